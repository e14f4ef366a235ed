"""GloScope's matrix by blocks, and the classes that patpy's interfaces ask for."""

import numpy as np
import pandas as pd
import pytest

from bagbasis import (
    BagStore,
    DataError,
    ModelError,
    MomentsEmbedding,
    ParameterError,
    PointTransformer,
)
from bagbasis.singlecell import (
    BagbasisSamples,
    BagbasisSupervised,
    divergence_blocks,
    pairs,
    replicate_robustness,
    sample_distances,
)

RNG = np.random.default_rng(0)
BAGS = [RNG.normal(0.3 * i, 1, (50 + i, 12)).astype(np.float32) for i in range(5)]


def gloscope(bags, k):
    """The formula as printed: (d/n) Σ log(r_j / r_i) + log(m / (n − 1)), both ways."""
    n = len(bags)
    directed = np.zeros((n, n))
    for i, p in enumerate(np.float64(bag) for bag in bags):
        own = np.sort(np.linalg.norm(p[:, None] - p, axis=2), axis=1)[:, k]
        for j, q in enumerate(np.float64(bag) for bag in bags):
            other = np.sort(np.linalg.norm(p[:, None] - q, axis=2), axis=1)[:, k - 1]
            ratio = p.shape[1] * np.log(other / own).mean()
            directed[i, j] = ratio + np.log(len(q) / (len(p) - 1))
    np.fill_diagonal(directed, 0)
    return directed + directed.T


@pytest.mark.parametrize("bags_per_block", [1, 2, 16])
def test_blocks_give_gloscopes_matrix(bags_per_block, tmp_path):
    """Bags in memory and in a store; the progress ends at all pairs."""
    steps = []
    result = divergence_blocks(
        BAGS, k=7, bags_per_block=bags_per_block, progress=lambda *step: steps.append(step)
    )
    np.testing.assert_allclose(result, gloscope(BAGS, 7), rtol=1e-12, atol=1e-12)
    assert steps[-1][0] == steps[-1][1]
    store = BagStore.create(tmp_path / "s.zarr", 12).append(BAGS)
    of_store = divergence_blocks(store, k=7, bags_per_block=bags_per_block)
    np.testing.assert_array_equal(of_store, result)


def test_a_break_costs_the_block_it_hits(tmp_path, monkeypatch):
    """Finished blocks are read again; those of other bags or another k are not."""
    computed = []

    def counted(*args, **options):
        computed.append(args)
        if len(computed) == 3:
            raise KeyboardInterrupt
        return pairs_matrix(*args, **options)

    pairs_matrix = pairs.divergence_matrix
    monkeypatch.setattr(pairs, "divergence_matrix", counted)
    options = {"k": 7, "bags_per_block": 2, "checkpoints": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        divergence_blocks(BAGS, **options)
    result = divergence_blocks(BAGS, **options)
    assert len(computed) == 3 + 6 - 2
    np.testing.assert_allclose(result, gloscope(BAGS, 7), rtol=1e-12, atol=1e-12)
    divergence_blocks(BAGS[::-1], **options)
    assert len(computed) == 7 + 6
    with pytest.raises(ParameterError, match="has a direction"):
        divergence_blocks(BAGS, "kl")


@pytest.mark.long
def test_blocks_of_a_store_are_kept_by_its_points(tmp_path):
    """Another store of that URL, with the same ids and sizes, has its own divergences."""
    options = {"k": 7, "bags_per_block": 2, "checkpoints": tmp_path / "kept"}
    for bags in (BAGS, [bag[:, ::-1] + 0.1 * bag for bag in BAGS]):
        store = BagStore.create(tmp_path / "s.zarr", 12, overwrite=True).append(bags)
        result = divergence_blocks(store, **options)
        np.testing.assert_allclose(result, gloscope(bags, 7), rtol=1e-12, atol=1e-12)


@pytest.fixture(scope="module")
def cells():
    """Cells of 12 samples in two groups, in any order; a donor has two samples."""
    n = 40
    sample = np.repeat(np.arange(12), n)
    place = RNG.normal(size=(6, 3))[sample // 2] + 4 * (sample[:, None] >= 6)
    points = (place + RNG.normal(size=(12 * n, 3))).astype(np.float32)
    order = RNG.permutation(12 * n)
    obs = pd.DataFrame(
        {
            "sample": [f"s{i}" for i in sample],
            "donor": [f"d{i // 2}" for i in sample],
            "disease": np.where(sample >= 6, "yes", "no"),
            "age": (sample // 2 * 10.0),
            "depth": np.arange(12 * n),
        },
        index=[f"c{i}" for i in range(12 * n)],
    ).iloc[order]
    import anndata

    return anndata.AnnData(points[order], obs=obs, obsm={"X_pca": points[order]})


@pytest.mark.long
@pytest.mark.parametrize("method", ["knn", "mixture", "js", "mean_map", "sliced"])
def test_replicates_of_a_donor_are_near(cells, method):
    """By each representation; kept in ``uns`` until forced."""
    ours = BagbasisSamples("sample", method=method, k=5)
    with pytest.raises(ModelError, match="prepare_anndata"):
        ours.calculate_distance_matrix()
    ours.prepare_anndata(cells)
    distances = ours.calculate_distance_matrix()
    assert (distances == distances.T).all()
    assert (np.diag(distances) == 0).all()
    donors = ours.metadata(["donor"])["donor"].tolist()
    assert replicate_robustness(distances, donors) > 0.9
    assert ours.evaluate_representation("disease")["score"] == 1
    assert ours.calculate_distance_matrix() is cells.uns[ours.DISTANCES_UNS_KEY]
    has_vectors = ours.sample_representation is not None
    assert has_vectors == (method in ("js", "mean_map", "sliced"))
    with pytest.raises(DataError, match=r"'depth'.*not constant within"):
        ours.metadata(["depth"])


def test_distances_are_in_the_order_of_samples(cells):
    """That of `samples`: rows are those of the samples' own cells."""
    ours = BagbasisSamples("sample", method="knn", k=5)
    ours.prepare_anndata(cells)
    bags = [cells.obsm["X_pca"][cells.obs["sample"] == name] for name in ours.samples]
    result = ours.calculate_distance_matrix(force=True)
    np.testing.assert_array_equal(result, sample_distances(bags, k=5))


def test_labels_are_predicted(cells):
    """Classes with their shares, numbers as a series, by the samples' names."""
    tasks = ["classification", "regression"]
    first = PointTransformer(embedding=MomentsEmbedding())
    model = BagbasisSupervised("sample", ["disease", "age"], tasks, embedding=first)
    model.prepare_anndata(cells)
    predicted = model.predict("disease")
    assert list(predicted.columns) == ["prob_no", "prob_yes", "disease_pred"]
    truth = model.metadata(["disease", "age"])
    assert (predicted["disease_pred"] == truth["disease"]).mean() > 0.8
    np.testing.assert_allclose(predicted[["prob_no", "prob_yes"]].sum(axis=1), 1)
    assert np.corrcoef(model.predict("age"), truth["age"])[0, 1] > 0.8
    with pytest.raises(DataError, match=r"no model of 'ages' \(did you mean 'age'"):
        model.predict("ages")
