"""The full kernel matrix of KL: it learns, and its choice sees no test bag."""

from __future__ import annotations

import numpy as np

from bagbasis import Bags
from bagbasis.divergences import divergence_matrix
from bagbasis.jobs.experiments.gram_peer import GramPeer


def problem():
    """Gaussian bags whose spread is the target."""
    rng = np.random.default_rng(0)
    y = rng.uniform(0.5, 2, 120)
    bags = Bags.from_list([rng.normal(0, scale, (60, 1)) for scale in y])
    return bags, y


def test_learns_the_spread():
    """Predictions follow the truth; two columns of targets are predicted as each alone would be
    with the same choice."""
    bags, y = problem()
    peer = GramPeer(multipliers=(1.0,), alphas=(0.1,))
    predicted, choice = peer.predict(bags[:80], y[:80, None], bags[80:])
    assert choice == {"multiplier": 1.0, "alpha": 0.1}
    assert np.corrcoef(predicted[:, 0], y[80:])[0, 1] > 0.75
    both, _ = peer.predict(bags[:80], np.stack([y, -y], axis=1)[:80], bags[80:])
    np.testing.assert_allclose(both, np.concatenate([predicted, -predicted], axis=1), atol=1e-9)


def test_choice_by_training_bags_alone():
    """Other test bags do not change what is chosen, and a row is predicted as it is alone."""
    bags, y = problem()
    many, choice = GramPeer().predict(bags[:60], y[:60, None], bags[60:])
    one, again = GramPeer().predict(bags[:60], y[:60, None], bags[60:61])
    assert choice == again
    np.testing.assert_allclose(one, many[:1], atol=1e-9)


def test_any_distances():
    """From the matrices of its own divergence it predicts what it predicts from bags."""
    bags, y = problem()
    peer, targets = GramPeer(), y[:60, None]
    own = divergence_matrix(bags[:60], divergence="symmetric_kl", k=4)
    cross = divergence_matrix(bags[60:], bags[:60], "symmetric_kl", k=4)
    predicted, choice = peer.predict(bags[:60], targets, bags[60:])
    again, chosen = peer.predict_from(own, cross, targets)
    assert choice == chosen
    np.testing.assert_allclose(again, predicted, atol=1e-9)
