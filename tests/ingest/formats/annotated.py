"""AnnData objects, and their files as anndata writes them."""

from __future__ import annotations

import pandas as pd


def annotated(obs, x, genes, **obsm):
    """Cells with their annotations; no strings of Arrow, which anndata does not write yet."""
    var = pd.DataFrame(index=pd.Index(genes, dtype=object))
    index = pd.Index([f"c{i}" for i in range(len(obs))], dtype=object)
    columns = {
        name: pd.Categorical(values, pd.Index(sorted(values.dropna().unique()), dtype=object))
        if values.dtype.kind not in "biuf"
        else values.to_numpy()
        for name, values in obs.items()
    }
    import anndata

    return anndata.AnnData(X=x, obs=pd.DataFrame(columns, index=index), var=var, obsm=obsm)


def write_h5ad(path, *parts, **obsm):
    """Write the file of such cells."""
    annotated(*parts, **obsm).write_h5ad(path)
