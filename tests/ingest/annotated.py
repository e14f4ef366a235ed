"""AnnData objects, and their files as anndata writes them."""

from __future__ import annotations

import anndata
import numpy as np
import pandas as pd


def annotated(obs, x, genes, **obsm):
    """Cells with their annotations; no strings of Arrow, which anndata does not write yet."""
    var = pd.DataFrame(index=np.array(genes, object))
    index = np.array([f"c{i}" for i in range(len(obs))], object)
    columns = {
        name: pd.Categorical(values.astype(object))
        if values.dtype.kind not in "biuf"
        else values.to_numpy()
        for name, values in obs.items()
    }
    return anndata.AnnData(X=x, obs=pd.DataFrame(columns, index=index), var=var, obsm=obsm)


def write_h5ad(path, *parts, **obsm):
    """Write the file of such cells."""
    with pd.option_context("future.infer_string", False):
        annotated(*parts, **obsm).write_h5ad(path)
