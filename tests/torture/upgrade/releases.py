"""Releases of Tapgate that run side by side: this one, the one after it, and earlier ones.

The source of the last 1.x release is stored beside this module, so that its upgrade is tested in
clones without history too.
"""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import tapgate
from databases import ADD_COLUMN_SQL
from tapgate import VERSION
from tapgate.runtime.store.migration_plan import MIGRATIONS_DIR, get_newest_number

_SOURCE: Final = Path(tapgate.__file__).parent
#: Folder that contains the client package, relative to the project.
_CLIENT: Final = Path("clients/python/src")
_RUN: Final = "from tapgate.cli import main; main()"
#: Commit of the last 1.x release, 1.1.0. Its source still names itself 1.0.0.
LAST_1X_COMMIT: Final = "387992b1644f4eec4add406adfc20d7f00420816"
LAST_1X_ARCHIVE: Final = Path(__file__).with_name("tapgate-1.1.0.tar.xz")
SOURCE_PATHS: Final = ":(glob)**/src/**"
_NEXT_VERSION: Final = "2.1.0"
#: Transactions column that the next release writes: the release that wrote the row.
_COLUMN: Final = "written_by"
#: Changes in the next release: file, text and replacement.
_CHANGES: Final = (
    ("__init__.py", "from tapgate_client import VERSION", f'VERSION = "{_NEXT_VERSION}"'),
    (
        "ledger/engine/write.py",
        "created_at, completed_at)",
        f"created_at, completed_at, {_COLUMN})",
    ),
    (
        "ledger/engine/write.py",
        "CASE status WHEN 'completed' THEN $3 END",
        f"CASE status WHEN 'completed' THEN $3 END, '{_NEXT_VERSION}'",
    ),
)
_EXPAND: Final = f"""-- migration: expand
ALTER TABLE transactions ADD {_COLUMN} text NOT NULL DEFAULT '{VERSION}';
"""
_INDEX: Final = """-- migration: expand concurrently
DROP INDEX CONCURRENTLY IF EXISTS cards_added_column;
CREATE INDEX CONCURRENTLY cards_added_column ON cards (added_column);
"""
#: Afterwards, an INSERT from the older release fails.
_CONTRACT: Final = f"""-- migration: contract, requires 9001
ALTER TABLE transactions ALTER {_COLUMN} DROP DEFAULT;
"""
CONTRACT_NAME: Final = "9999_contract.sql"


class Release(NamedTuple):
    version: str
    #: Folder that contains the package.
    source: Path
    #: Whether it has the contract migration below.
    has_contract: bool = False

    @property
    def schema(self) -> str:
        """Number of the newest migration."""
        (migrations,) = self.source.rglob(MIGRATIONS_DIR.name)
        return get_newest_number(migrations)

    def build_command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-c", _RUN, *arguments]

    def build_environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        client = self.source.parent / _CLIENT
        return {**environ, "PYTHONPATH": f"{self.source}{os.pathsep}{client}"}

    def run(self, environ: Mapping[str, str], *arguments: str) -> tuple[int, str]:
        """Run a command to its end; return its exit status and output."""
        result = subprocess.run(
            self.build_command(*arguments),
            env=self.build_environ(environ),
            cwd=self.source,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        return result.returncode, result.stdout


def get_this_release() -> Release:
    return Release(VERSION, _SOURCE.parent)


def build_next_release(folder: Path, tables: list[str]) -> Release:
    """Create the release after this one: it adds a column to every table and writes one of them.

    All other files are links, including compiled modules.
    """
    package = folder / "tapgate"
    shutil.copytree(_SOURCE, package, copy_function=os.symlink)
    for name, text, replacement in _CHANGES:
        file = package / name
        source = file.read_text()
        assert source.count(text) == 1, f"{name} does not contain {text!r} once"
        file.unlink()
        file.write_text(source.replace(text, replacement))
    migrations = package / MIGRATIONS_DIR.relative_to(_SOURCE)
    (migrations / "9001_written_by.sql").write_text(_EXPAND)
    for number, table in enumerate(sorted(tables), 9100):
        (migrations / f"{number}_add_column.sql").write_text(
            f"-- migration: expand\n{ADD_COLUMN_SQL.format(table=table)}\n"
        )
    (migrations / "9900_index.sql").write_text(_INDEX)
    (migrations / CONTRACT_NAME).write_text(_CONTRACT)
    return Release(_NEXT_VERSION, folder, has_contract=True)


def unpack_last_1x(folder: Path) -> Release:
    """Unpack the source of the last 1.x release. It runs with this environment's packages."""
    with tarfile.open(LAST_1X_ARCHIVE) as files:
        files.extractall(folder)
    return Release("1.1.0", folder / "src")


def check_out(reference: str, folder: Path) -> Release:
    """Unpack the source at a Git reference. It runs with this environment's packages."""
    archive = subprocess.run(
        ["git", "archive", "--format=zip", reference, SOURCE_PATHS],
        cwd=_SOURCE.parent.parent,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        files.extractall(folder)
    return Release(reference, folder / "src")
