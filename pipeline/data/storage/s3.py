"""S3 through s3fs, with one addition: what is not an answer of S3 never counts as "nothing there".

A page of a captive portal instead of a listing is read as a listing without names, and a missing
bucket as a missing object. Either would make a store look empty.
"""

from __future__ import annotations

from typing import Any

import s3fs

from ...core.errors import StoreError

LISTING = "list_objects_v2"
MISSING_BUCKET = "NoSuchBucket"  # error code of S3
NO_LISTING = (
    "a page of HTML came instead of this object; it was a listing that is not one of S3: something "
    "between here and the storage has answered, such as a network that asks its users to sign in: "
    "see to network and endpoint, and try again"
)


class CheckedS3(s3fs.S3FileSystem):
    """S3 whose listings are listings of a bucket, and whose missing buckets are errors."""

    async def _call_s3(self, method: str, *args: object, **kwargs: object) -> dict[str, Any]:
        """Send a request, as `S3FileSystem._call_s3`.

        Raises
        ------
        StoreError
            If the bucket does not exist, or something else than S3 has answered a listing.
        """
        place = f"s3://{kwargs.get('Bucket', '')}/{kwargs.get('Key', kwargs.get('Prefix', ''))}"
        try:
            answer: dict[str, Any] = await super()._call_s3(method, *args, **kwargs)
        except FileNotFoundError as error:
            response = getattr(error.__cause__, "response", None)
            code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
            if code == MISSING_BUCKET:
                raise StoreError(
                    f"{place}: bucket {kwargs.get('Bucket')!r} does not exist; see to its name and "
                    "to the endpoint"
                ) from error
            raise
        if method == LISTING and "Name" not in answer:  # the bucket's, in each listing of S3
            raise StoreError(f"{place}: {NO_LISTING}")
        return answer
