"""Files: only a complete one has its name."""

import stat
from pathlib import Path

import pytest

from tapgate.store import StoreError
from tapgate.store.backup_file import open_new_file


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "backup"
    with pytest.raises(RuntimeError), open_new_file(path, replace=False) as file:
        file.write(b"half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with open_new_file(path, replace=False) as file:
        file.write(b"first")
        assert not path.exists()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(StoreError, match="--force replaces it"), open_new_file(path, replace=False):
        pass
    with open_new_file(path, replace=True) as file:
        file.write(b"second")
        assert path.read_bytes() == b"first"
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_came_up_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "backup"
    with pytest.raises(StoreError, match="exists already"), open_new_file(path, replace=False):
        path.write_bytes(b"another's")
    assert path.read_bytes() == b"another's"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "backup"
    with (
        pytest.raises(StoreError, match="cannot be written: No such file"),
        open_new_file(path, replace=False),
    ):
        pass
