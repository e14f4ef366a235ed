"""The public names of the package."""

import bagbasis.ingest


def test_every_public_name_is_listed():
    """`dir`, which completes names on a tab, has those that are imported later, too."""
    assert set(bagbasis.ingest.__all__) <= set(dir(bagbasis.ingest))
    tables = {"ingest_frame", "ingest_tables", "ingest_arrays", "TableIngest"}
    assert tables | {"ingest_anndata", "ingest_catalogue", "ingest_images"} <= set(
        dir(bagbasis.ingest)
    )
