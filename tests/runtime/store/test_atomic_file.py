"""Atomic files: only a complete file appears under its name."""

import stat
from pathlib import Path

import pytest

from tapgate.runtime.store import StoreError
from tapgate.runtime.store.backup_file import open_new_file


def test_file_appears_under_its_name_only_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "backup"
    with pytest.raises(RuntimeError), open_new_file(path, replace=False) as file:
        file.write(b"half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with open_new_file(path, replace=False) as file:
        file.write(b"first")
        assert not path.exists()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with (
        pytest.raises(StoreError, match="Use --force to replace it"),
        open_new_file(path, replace=False),
    ):
        pass
    with open_new_file(path, replace=True) as file:
        file.write(b"second")
        assert path.read_bytes() == b"first"
    assert path.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [path]


def test_file_created_by_another_process_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "backup"
    with pytest.raises(StoreError, match="already exists"), open_new_file(path, replace=False):
        path.write_bytes(b"another's")
    assert path.read_bytes() == b"another's"
    assert list(tmp_path.iterdir()) == [path]


def test_missing_folder_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "backup"
    with (
        pytest.raises(StoreError, match="cannot be written: No such file"),
        open_new_file(path, replace=False),
    ):
        pass
