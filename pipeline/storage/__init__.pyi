from .files import (
    GROUP as GROUP,
    PRIVATE as PRIVATE,
    discard as discard,
    discard_empty as discard_empty,
    json_bytes as json_bytes,
    names_in as names_in,
    read_bytes as read_bytes,
    read_json as read_json,
    reading as reading,
    remove as remove,
    staged as staged,
    storage_errors as storage_errors,
    write_json as write_json,
    writing as writing,
)
from .folders import (
    publish as publish,
    read_one as read_one,
    staging as staging,
    writing_folder as writing_folder,
)
from .hidden import (
    is_hidden as is_hidden,
    visible_files as visible_files,
)
from .lock import (
    Hold as Hold,
    writer_lock as writer_lock,
)
from .temporary import (
    temporary_folder as temporary_folder,
)
from .transactions import (
    NO_STORE as NO_STORE,
)
from .urls import (
    ICECHUNK as ICECHUNK,
    filesystem as filesystem,
    is_transactional as is_transactional,
    local_path as local_path,
    normalize_url as normalize_url,
    working_folder as working_folder,
)
from .zarr_reading import (
    MOST_CHUNK_BYTES as MOST_CHUNK_BYTES,
    array_of as array_of,
    checked_array as checked_array,
    open_group as open_group,
)
from .zarr_stores import (
    attributes_of as attributes_of,
    check_no_foreign_files as check_no_foreign_files,
    check_no_link as check_no_link,
    check_replaceable as check_replaceable,
    check_writable as check_writable,
    current_snapshot as current_snapshot,
    delete_history as delete_history,
    exists as exists,
    holds_parts as holds_parts,
    is_empty as is_empty,
    is_taken as is_taken,
    read_group as read_group,
    writer_store as writer_store,
    zarr_store as zarr_store,
)
from .zarr_writer import (
    remove_partials as remove_partials,
)
