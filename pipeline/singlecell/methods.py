"""Classes with patpy's interfaces of sample representations and supervised methods."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..core import checked, documented
from ..core.arrays import Floats, refuse_masked
from ..core.errors import DataError, ModelError, closest, shown
from ..data.bags.bags import Bags
from ..embeddings.base import Embedding
from ..execution.progress import Progress
from ..models.classifier import DoubleBasisClassifier
from ..models.regressor import DoubleBasisRegressor
from .distances import DEFAULT_METHOD, METHODS, Method, representation, sample_distances
from .pairs import N_NEIGHBOURS, Neighbours
from .scores import TASKS, information_retention, predict_from_neighbors

if TYPE_CHECKING:
    from anndata import AnnData


_VERSION = 1  # of the distances in ``uns``; it is increased if the numbers change


class _NoCellsError(ModelError, RuntimeError):
    """`prepare_anndata` was not called; patpy's users expect a RuntimeError."""


class _Samples:
    """Base of both interfaces: the cells of each sample, in the order of their first cells."""

    def __init__(
        self, sample_key: str, cell_group_key: str | None, layer: str | None, seed: int
    ) -> None:
        self.sample_key = sample_key
        self.cell_group_key = cell_group_key
        self.layer = layer
        self.seed = seed
        self.adata: AnnData | None = None
        self.samples: pd.Index | None = None

    def prepare_anndata(self, adata: AnnData) -> None:
        """Use the cells of an AnnData object, which is not copied.

        Raises
        ------
        DataError
            If obs has no column ``sample_key``, or neither obsm nor layers has ``layer``.
        """
        _column(adata, self.sample_key)
        codes, names = pd.factorize(adata.obs[self.sample_key])
        if (codes < 0).any():
            raise DataError(f"obs[{self.sample_key!r}] has no value for {(codes < 0).sum()} cells")
        cells = _coordinates(adata, self.layer)
        order = np.argsort(codes, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(codes))])
        self.bags_ = Bags(cells[order], offsets)
        self.adata, self.samples = adata, pd.Index(names, name=self.sample_key)

    def metadata(self, columns: Sequence[str]) -> pd.DataFrame:
        """Return columns of obs with one row per sample.

        Raises
        ------
        DataError
            If a column does not exist or is not constant within a sample.
        """
        adata = self._prepared()
        columns_by_name = {}
        for name in columns:
            groups = _column(adata, name).groupby(adata.obs[self.sample_key], observed=True)
            several = groups.nunique()
            if (several > 1).any():
                raise DataError(f"obs[{name!r}] is not constant within {several.idxmax()!r}")
            columns_by_name[name] = groups.first()
        return pd.DataFrame(columns_by_name).reindex(self.samples)

    def _prepared(self) -> AnnData:
        return self._check_adata_loaded()

    def _check_adata_loaded(self) -> AnnData:
        """Return the cells; patpy's methods call this method, and expect a RuntimeError."""
        if self.adata is None:
            raise _NoCellsError("no cells yet: call prepare_anndata(adata) first")
        return self.adata


@documented
class BagbasisSamples(_Samples):
    """Sample representations with the interface of patpy's ``SampleRepresentationMethod``.

    Parameters
    ----------
    sample_key
        Column of obs with the samples.
    cell_group_key
        Not used; required by the interface.
    layer
        Name of the array with the cells: an entry of obsm, or of layers if obsm lacks it. None or
        "X" is X.
    seed
        Seed of the method's random draws.
    method
        Method of `sample_distances`. "knn" gives GloScope's matrix.
    k
        Number of neighbours for the method "knn".
    checkpoints : URL
        Folder for finished blocks; see `divergence_blocks`.

    Attributes
    ----------
    samples : pandas.Index
        Names of the samples, in the order of the rows of the distance matrix.
    sample_representation : DataFrame or None
        One vector per sample; None for methods without an embedding.

    See Also
    --------
    BagbasisSupervised : Sample labels for patpy.
    sample_distances : Distances between samples.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> import anndata
    >>> import pandas as pd
    >>> donors = pd.DataFrame({'donor': np.repeat(list('abcdef'), 30)})
    >>> cells = anndata.AnnData(np.zeros((180, 1)), donors)
    >>> shift = np.repeat([0, 0, 0, 3, 3, 3], 30)[:, np.newaxis]
    >>> cells.obsm['X_pca'] = shift + rng.normal(size=(180, 2))
    >>> from bagbasis.singlecell import BagbasisSamples
    >>> method = BagbasisSamples('donor', k=5)
    >>> method.prepare_anndata(cells)
    >>> method.calculate_distance_matrix().shape
    (6, 6)
    """

    @checked
    def __init__(
        self,
        sample_key: str,
        cell_group_key: str | None = None,
        *,
        layer: str | None = "X_pca",
        seed: int = 67,
        method: Method = DEFAULT_METHOD,
        k: Neighbours = N_NEIGHBOURS,
        checkpoints: str | None = None,
    ) -> None:
        super().__init__(sample_key, cell_group_key, layer, seed)
        self.method, self.k, self.checkpoints = method, k, checkpoints
        self.sample_representation: pd.DataFrame | None = None

    def prepare_anndata(self, adata: AnnData) -> None:
        """Use the cells of an AnnData object, which is not copied.

        Raises
        ------
        DataError
            If obs has no column ``sample_key``, or neither obsm nor layers has ``layer``.
        """
        super().prepare_anndata(adata)
        self.sample_representation = None

    @property
    def DISTANCES_UNS_KEY(self) -> str:  # noqa: N802 - patpy's name
        """Key of ``adata.uns`` under which `calculate_distance_matrix` keeps the distances."""
        return f"X_bagbasis_{self.method}_distances"

    def calculate_distance_matrix(
        self, force: bool = False, *, progress: Progress | None = None
    ) -> Floats:
        """Return the distances between samples, (n, n), and keep them in ``adata.uns``.

        Kept distances are used again if method, k, seed, layer, samples, order of samples and cells
        are the same. A hash of all of these is kept with the distances.

        Parameters
        ----------
        force : bool
            Whether the distances are computed again even if kept distances could be used.
        progress : callable, optional
            Function that is called with (pairs done, pairs in all).
        """
        adata = self._prepared()
        source_key, source = f"{self.DISTANCES_UNS_KEY}_source", self._source()
        is_kept = self.DISTANCES_UNS_KEY in adata.uns and adata.uns.get(source_key) == source
        is_new = force or not is_kept
        if self.method in METHODS[2:] and (is_new or self.sample_representation is None):
            rows = representation(self.bags_, self.method)
            self.sample_representation = pd.DataFrame(rows, index=self.samples)
        if not is_new:
            stored: Floats = adata.uns[self.DISTANCES_UNS_KEY]
            return stored
        distances = sample_distances(
            self.bags_,
            self.method,
            k=self.k,
            seed=self.seed,
            checkpoints=self.checkpoints,
            progress=progress,
        )
        adata.uns[self.DISTANCES_UNS_KEY], adata.uns[source_key] = distances, source
        return distances

    def _source(self) -> str:
        """Return a hash of everything that the distances depend on."""
        assert self.samples is not None
        layer = "X" if self.layer is None else self.layer
        names = list(map(str, self.samples))
        parameters = [_VERSION, self.method, self.k, self.seed, self.sample_key, layer, names]
        digest = hashlib.sha256(json.dumps(parameters).encode())
        digest.update(f"{self.bags_.points.dtype.name} {self.bags_.points.shape}".encode())
        digest.update(self.bags_.offsets.tobytes())
        digest.update(np.ascontiguousarray(self.bags_.points).data)
        return digest.hexdigest()

    def evaluate_representation(
        self,
        target: str,
        method: str = "knn",
        metadata: pd.DataFrame | None = None,
        task: str = "classification",
        n_neighbors: int = 3,
    ) -> dict[str, Any]:
        """Return how well neighbours predict a column of obs, like patpy's method of this name.

        Raises
        ------
        DataError
            If the method is not "knn", the only supported method.
        """
        if method != "knn":
            raise DataError(f"method is {shown(method)}; here there is 'knn' alone")
        values = self._values(target, metadata).to_numpy(dtype=object)
        distances = self.calculate_distance_matrix()
        return {
            "score": information_retention(distances, values, task=task, n_neighbors=n_neighbors),
            "metric": "f1_macro_calibrated" if task == "classification" else "spearman_r",
            "n_unique": int(pd.Series(values).nunique()),
            "n_observations": int(pd.notna(values).sum()),
            "method": method,
        }

    @documented
    def predict_metadata(
        self,
        target: str,
        metadata: pd.DataFrame | None = None,
        n_neighbors: int = 3,
        task: str = "classification",
    ) -> tuple[pd.Series, NDArray[Any]]:
        """Return the known values of a column of obs, and their predictions from nearest samples.

        Each sample is predicted from its ``n_neighbors`` nearest other samples, weighted by
        1 / distance.

        Parameters
        ----------
        target
            Column of obs, or of ``metadata``.
        metadata : DataFrame
            Table with one row per sample, indexed by sample name. Default: the columns of obs.
        n_neighbors
            Number of neighbours.
        task : {"classification", "regression"}
            Whether the column holds classes or numbers.

        Returns
        -------
        true : Series
            Values of the samples with a known value, indexed by sample name.
        predicted : shape (len(true),)
            Predicted classes or numbers.

        Raises
        ------
        DataError
            If the column does not exist, the task is not supported, or there are fewer samples with
            a known value than neighbours.
        """
        if task not in TASKS[:2]:
            raise DataError(f"task is {shown(task)}; expected 'classification' or 'regression'")
        values = self._values(target, metadata)
        distances = self.calculate_distance_matrix()
        known, predicted = predict_from_neighbors(
            distances, values.to_numpy(dtype=object), task, n_neighbors
        )
        true = values[known]
        if task == "classification":
            by_name = {str(value): value for value in true}
            predicted = np.array([by_name[name] for name in predicted.tolist()])
        return true, predicted

    def embed(self, method: str = "MDS") -> Floats:
        """Return coordinates of the samples in the plane, (n, 2), that preserve the distances.

        Parameters
        ----------
        method : {"MDS"}
            Classical multidimensional scaling. For other methods, pass the result of
            `calculate_distance_matrix` to ``umap.UMAP(metric="precomputed")`` or
            ``openTSNE.TSNE(metric="precomputed")``.

        Raises
        ------
        DataError
            If the method is not "MDS", the only supported method.
        """
        if method != "MDS":
            raise DataError(
                f"method is {shown(method)}; here there is 'MDS' alone: give "
                "calculate_distance_matrix() to other methods, with metric='precomputed'"
            )
        squares = self.calculate_distance_matrix() ** 2
        centred = squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True)
        values, vectors = np.linalg.eigh(-(centred + squares.mean()) / 2)
        places: Floats = np.zeros((len(squares), 2))
        n = min(2, len(squares))
        places[:, :n] = vectors[:, ::-1][:, :n] * np.sqrt(np.maximum(values[::-1][:n], 0))
        return places

    def to_adata(self, metadata: pd.DataFrame | None = None) -> AnnData:
        """Return an AnnData object with one row per sample.

        X holds `sample_representation`, or the result of `embed` for methods without one. obsm
        holds the distances, and obs the metadata.

        Parameters
        ----------
        metadata : DataFrame, optional
            Table with one row per sample, indexed by sample name.

        Raises
        ------
        DataError
            If the metadata lack a sample.
        """
        distances = self.calculate_distance_matrix()
        rows = self.sample_representation
        names = pd.Index([str(name) for name in self._names()])
        obs = pd.DataFrame(index=names) if metadata is None else self._rows_of(metadata)
        return type(self._prepared())(
            self.embed() if rows is None else rows.to_numpy(),
            obs.set_axis(names),
            obsm={self.DISTANCES_UNS_KEY: distances},
        )

    def _values(self, target: str, metadata: pd.DataFrame | None) -> pd.Series:
        """Return one value per sample from a column of obs, or of a table indexed by sample."""
        if metadata is None:
            return self.metadata([target])[target]
        if target not in metadata:
            raise DataError(
                f"metadata have no column {target!r}{closest(target, list(metadata.columns))}"
            )
        return self._rows_of(metadata)[target]

    def _rows_of(self, metadata: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a table in the order of the samples."""
        names = self._names()
        if not metadata.index.is_unique:
            twice = metadata.index[metadata.index.duplicated()][0]
            raise DataError(f"metadata: sample {twice!r} has several rows; give each sample one")
        missing = names.difference(metadata.index)
        if len(missing):
            raise DataError(
                f"metadata: sample {missing[0]!r} has no row; give metadata with the names of the "
                "samples as its index"
            )
        return metadata.loc[names]

    def _names(self) -> pd.Index:
        self._prepared()
        assert self.samples is not None
        return self.samples


@documented
class BagbasisSupervised(_Samples):
    """Labels of samples, with the interface of patpy's ``SupervisedSampleMethod``.

    For each label, a Double-Basis estimator is fitted to the samples with a known value of it.

    Parameters
    ----------
    sample_key
        Column of obs with the samples.
    label_keys : str or list of str
        Columns of obs that are constant within a sample.
    tasks : str or list of str
        Task per label: "classification", "regression" or "ranking".
    cell_group_key
        Not used; required by the interface.
    layer
        Name of the array with the cells; see `BagbasisSamples`.
    seed
        Not used: fits are deterministic given the seed of their random features.
    embedding : embedding
        Embedding of the cells. Default: the default embedding of the estimators.

    Attributes
    ----------
    models_ : dict
        Fitted estimator of each label.

    See Also
    --------
    BagbasisSamples : Sample representations for patpy.
    bagbasis.DoubleBasisClassifier : Classify bags.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> import anndata
    >>> import pandas as pd
    >>> donors = pd.DataFrame({'donor': np.repeat(list('abcdef'), 30)})
    >>> cells = anndata.AnnData(np.zeros((180, 1)), donors)
    >>> shift = np.repeat([0, 0, 0, 3, 3, 3], 30)[:, np.newaxis]
    >>> cells.obsm['X_pca'] = shift + rng.normal(size=(180, 2))
    >>> from bagbasis.singlecell import BagbasisSupervised
    >>> cells.obs['age'] = 40.0 + shift.ravel()
    >>> method = BagbasisSupervised('donor', 'age', 'regression')
    >>> method.sample_key
    'donor'
    """

    def __init__(
        self,
        sample_key: str,
        label_keys: str | Sequence[str],
        tasks: str | Sequence[str],
        *,
        cell_group_key: str | None = None,
        layer: str | None = "X_pca",
        seed: int = 42,
        embedding: Embedding | None = None,
    ) -> None:
        super().__init__(sample_key, cell_group_key, layer, seed)
        self.embedding = embedding
        self.label_keys = [label_keys] if isinstance(label_keys, str) else list(label_keys)
        self.tasks = [tasks] if isinstance(tasks, str) else list(tasks)
        if len(self.tasks) != len(self.label_keys):
            raise DataError(f"{len(self.label_keys)} labels have {len(self.tasks)} tasks")

    def prepare_anndata(self, adata: AnnData) -> None:
        """Use the cells of an AnnData object, and fit one model per label."""
        super().prepare_anndata(adata)
        self.labels = self.metadata(self.label_keys)
        self.models_: dict[str, DoubleBasisClassifier | DoubleBasisRegressor] = {}
        for label, task in zip(self.label_keys, self.tasks, strict=True):
            values = self.labels[label].to_numpy()
            known = pd.notna(values)
            kind = DoubleBasisClassifier if task == "classification" else DoubleBasisRegressor
            y = values[known].astype(str if task == "classification" else np.float64)
            model = kind() if self.embedding is None else kind(self.embedding)
            self.models_[label] = model.fit(self.bags_[np.flatnonzero(known)], y)

    def predict(self, label: str) -> pd.Series | pd.DataFrame:
        """Return the prediction for every sample, in patpy's form.

        Numbers are returned as a Series. Classes are returned as a DataFrame with the columns
        ``prob_CLASS`` and ``LABEL_pred``. The samples include those that the model was fitted to;
        to judge a model, use `cross_val_score`.

        Raises
        ------
        DataError
            If the label was not fitted.
        """
        self._prepared()
        if label not in self.models_:
            raise DataError(f"no model of {label!r}{closest(label, [*self.models_])}")
        model = self.models_[label]
        predicted = model.predict(self.bags_)
        if not isinstance(model, DoubleBasisClassifier):
            return pd.Series(np.asarray(predicted), index=self.samples, name=label)
        shares = np.asarray(model.predict_proba(self.bags_))
        columns = [f"prob_{name}" for name in model.classes_]
        return pd.DataFrame(shares, index=self.samples, columns=columns).assign(
            **{f"{label}_pred": predicted}
        )

    def calculate_distance_matrix(self) -> Floats:
        """Return the distances between the mean maps of samples, (n, n)."""
        self._prepared()
        return sample_distances(self.bags_, "mean_map")


def _column(adata: AnnData, name: str) -> pd.Series:
    if name not in adata.obs:
        raise DataError(f"obs has no column {name!r}{closest(name, list(adata.obs))}")
    column: pd.Series = adata.obs[name]
    return column


def _coordinates(adata: AnnData, layer: str | None) -> Floats:
    if layer is None or layer == "X":
        matrix = adata.X
    elif layer in adata.obsm:
        matrix = adata.obsm[layer]
    elif layer in adata.layers:
        matrix = adata.layers[layer]
    else:
        raise DataError(f"layer {layer!r} is none of obsm ({shown(list(adata.obsm))}) or layers")
    refuse_masked("X" if layer is None else layer, matrix)
    dense = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
    return dense if dense.dtype in (np.float32, np.float64) else dense.astype(np.float64)
