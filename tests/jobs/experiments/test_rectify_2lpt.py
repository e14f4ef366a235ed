"""004, §3.5.4 at small scale: the order of the methods on held-out boxes, and times over N."""

from __future__ import annotations

from tests.jobs.experiments.contract import make


def test_settings_decide_what_is_measured_again():
    """Other kernel widths leave data and fits; other boxes leave nothing; no seeds share boxes."""

    def points(**changes):
        experiment = make("rectify-2lpt")
        experiment.settings = experiment.settings.model_copy(update=changes)
        return [point.params for point, _ in experiment.points()]

    before = points()
    wider = points(scale_multipliers=[2.0, 4.0, 8.0])
    assert [p for p in before if p in wider] == before[:3]
    assert not any(p in before for p in points(train_boxes=25))
    assert not any(p in before[:3] for p in points(train_views=2))
    assert [p for p in before if p in points(timed=[200, 400])] == [*before[:-2], before[-1]]
    seeds = [
        make("rectify-2lpt", scale="paper", seed=seed)._boxes(split).seed
        for seed in range(5)
        for split in ("train", "test")
    ]
    assert len(set(seeds)) == len(seeds)
