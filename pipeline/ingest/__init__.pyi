from .arrays import (
    ingest_arrays as ingest_arrays,
    ingest_npz as ingest_npz,
)
from .formats.anndata_cells import (
    ingest_anndata as ingest_anndata,
)
from .formats.catalogues import (
    ingest_catalogue as ingest_catalogue,
)
from .formats.cytometry import (
    ingest_fcs as ingest_fcs,
)
from .formats.frames import (
    ingest_frame as ingest_frame,
)
from .formats.images import (
    ingest_images as ingest_images,
)
from .formats.patches import (
    ingest_patches as ingest_patches,
)
from .tables import (
    TableIngest as TableIngest,
    ingest_tables as ingest_tables,
)
