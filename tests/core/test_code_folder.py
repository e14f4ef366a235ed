"""Where code lies that a process has compiled and runs again: never where others can put theirs."""

from __future__ import annotations

import os
import stat

import pytest

from bagbasis.core import systems


@pytest.fixture
def shared(tmp_path):
    """A folder with a mode of one's choice."""

    def make(mode):
        folder = tmp_path / "kernels"
        folder.mkdir()
        folder.chmod(mode)
        return folder

    return make


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners there")
class TestFoldersOfCode:
    """Code of other accounts is never run."""

    @pytest.mark.parametrize("mode", [0o700, 0o755])
    def test_own_folder(self, shared, mode):
        folder = shared(mode)
        assert systems.code_folder(folder) == str(folder)

    def test_new_folder(self, tmp_path):
        folder = tmp_path / "a" / "kernels"
        assert systems.code_folder(folder) == str(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    @pytest.mark.parametrize("mode", [0o1777, 0o775, 0o3775])
    def test_shared_folder(self, shared, mode):
        """Each account has one of its own in it, which is found again."""
        folder = shared(mode)
        own = systems.code_folder(folder)
        assert os.path.dirname(own) == str(folder)
        assert stat.S_IMODE(os.stat(own).st_mode) & 0o777 == 0o700  # the group may be inherited
        assert systems.code_folder(folder) == own

    def test_folder_in_which_all_replace(self, shared):
        with pytest.raises(PermissionError, match="other accounts can replace"):
            systems.code_folder(shared(0o777))

    @pytest.mark.parametrize("kind", ["open", "link", "file"])
    def test_own_name_is_taken(self, shared, tmp_path, kind):
        """By what another account could have put there."""
        own = shared(0o1777) / f"account-{os.geteuid()}"
        if kind == "open":
            own.mkdir()
            own.chmod(0o777)
        elif kind == "link":
            (tmp_path / "elsewhere").mkdir()
            own.symlink_to(tmp_path / "elsewhere")
        else:
            own.touch()
        with pytest.raises(PermissionError, match="not a folder of this account alone"):
            systems.code_folder(own.parent)

    @pytest.mark.parametrize("mode", [0o700, 0o1777])
    def test_folder_of_another_account(self, shared, mode, monkeypatch):
        folder = shared(mode)
        if os.geteuid() == 0:
            os.chown(folder, 4711, -1)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
        with pytest.raises(PermissionError, match="belongs to another account"):
            systems.code_folder(folder)
