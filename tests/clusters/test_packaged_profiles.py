"""Profiles that come with the package, used from a folder that has none."""

import pytest

from bagbasis import ConfigError
from bagbasis.execution.clusters.profiles import load_profile


def test_a_packaged_profile_is_found_anywhere(tmp_path, monkeypatch):
    """By name; one of the same name in ``configs/profiles`` comes first; a refusal lists both."""
    monkeypatch.chdir(tmp_path)
    assert load_profile("slurm").cluster == "slurm"
    folder = tmp_path / "configs" / "profiles"
    folder.mkdir(parents=True)
    (folder / "slurm.yaml").write_text("cluster: local\n")
    (folder / "ours.yaml").write_text("cluster: local\n")
    assert load_profile("slurm").cluster == "local"
    with pytest.raises(ConfigError, match=r"'none'.*'gateway'.*'ours', 'slurm'"):
        load_profile("none")
