"""Migration files, their kinds, and which of them are pending on a database.

An expand migration keeps older releases' processes working. A contract migration removes what
they need, and names the newest migration that a process must know from then on.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from tapgate import VERSION
from tapgate.runtime.store import StoreError

MIGRATIONS_DIR: Final = Path(__file__).parent / "migrations"
#: The first migration file that declares its kind, as all later ones do.
FIRST_CLASSIFIED: Final = "0047"

#: Newest migration in the last 1.x release, from which this release upgrades.
LAST_1X_MIGRATION: Final = "0107_cancelled_deliveries_index.sql"

_HEADER_PATTERN: Final = re.compile(
    r"-- migration: (?:(expand)( concurrently)?|contract, requires (\d{4}))\n"
)


class Migration(NamedTuple):
    name: str
    sql: str

    @property
    def number(self) -> str:
        return self.name[:4]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def requires(self) -> str | None:
        """Number of the newest migration that a process must know to run after this one.

        None for an expand migration.
        """
        header = self._match_header()
        return None if header is None else header[3]

    @property
    def is_contract(self) -> bool:
        return self.requires is not None

    @property
    def is_concurrent(self) -> bool:
        """Whether its statements run outside a database transaction, to build indexes."""
        header = self._match_header()
        return header is not None and header[2] is not None

    @property
    def kind(self) -> str:
        if self._match_header() is None:
            return "unclassified, older releases cannot start after it"
        if self.is_contract:
            return f"contract, releases without {self.requires} cannot run after it"
        return "expand, long-running" if self.is_concurrent else "expand"

    def _match_header(self) -> re.Match[str] | None:
        return _HEADER_PATTERN.match(self.sql)


class AppliedMigration(NamedTuple):
    sha256: str
    requires: str | None = None
    #: Release that applied it.
    release: str | None = None


class MigrationPlan(NamedTuple):
    #: In the order in which they are applied.
    pending: Sequence[Migration]
    #: Names of applied migrations that this release does not know.
    newer: Sequence[str]
    #: Newest release that applied one of them.
    newer_release: str | None
    is_new_database: bool

    def select(self, *, contract: bool) -> list[Migration]:
        """Return the pending migrations to apply, in order, and contract migrations last.

        A new database is created in one step.
        """
        if self.is_new_database:
            return list(self.pending)
        expanding = [item for item in self.pending if not item.is_contract]
        contracting = [item for item in self.pending if item.is_contract]
        return [*expanding, *contracting] if contract else expanding

    def list_notes(self) -> list[str]:
        """Return lines for the operator about an older release and pending contract migrations."""
        lines = []
        if self.newer:
            lines.append(
                f"Warning: the database was upgraded by Tapgate {self.newer_release} to"
                f" {self.newer[-1]}. This release, {VERSION}, can still use it."
            )
        if deferred := [item.name for item in self.pending if item.is_contract]:
            lines.append(
                f"Not yet applied: {', '.join(deferred)}. Run `tapgate migrate --contract` when all"
                " nodes run this release and you no longer need to roll back."
            )
        return lines


def load_migrations(folder: Path = MIGRATIONS_DIR) -> list[Migration]:
    return [Migration(file.name, file.read_text()) for file in sorted(folder.glob("*.sql"))]


@cache
def get_newest_number(folder: Path = MIGRATIONS_DIR) -> str:
    """Return the number of the newest migration that this release knows."""
    return max(file.name for file in folder.glob("*.sql"))[:4]


async def read_applied(connection: Any) -> dict[str, AppliedMigration]:
    """Return the applied migrations by name. Columns that later migrations add may be missing."""
    if await connection.fetchval("SELECT to_regclass('schema_migrations')") is None:
        return {}
    rows = await connection.fetch(
        """SELECT name, sha256, to_jsonb(applied) ->> 'requires', to_jsonb(applied) ->> 'release'
           FROM schema_migrations AS applied"""
    )
    return {name: AppliedMigration(*details) for name, *details in rows}


def get_required_number(applied: Mapping[str, AppliedMigration]) -> str | None:
    """Return the newest migration that a process must know to use the database."""
    return max((item.requires for item in applied.values() if item.requires), default=None)


def require_usable_schema(applied: Mapping[str, AppliedMigration], newest_number: str) -> None:
    """Raise StoreError if a process that knows migrations up to this number is too old."""
    required = get_required_number(applied)
    if required is None or newest_number >= required:
        return
    releases = [item.release for item in applied.values() if item.requires == required]
    raise StoreError(
        f"the database requires a newer release of Tapgate: {releases[0]} has removed what"
        f" {VERSION} needs (schema {newest_number}, required {required}). Start Tapgate"
        f" {releases[0]}"
    )


def build_plan(
    migrations: Sequence[Migration], applied: Mapping[str, AppliedMigration]
) -> MigrationPlan:
    """Return which migrations are pending; raise StoreError if the database cannot be used."""
    require_unchanged_files(migrations, {name: item.sha256 for name, item in applied.items()})
    require_usable_schema(applied, max((item.number for item in migrations), default=""))
    newer = sorted(applied.keys() - {item.name for item in migrations})
    return MigrationPlan(
        pending=[item for item in migrations if item.name not in applied],
        newer=newer,
        newer_release=applied[newer[-1]].release if newer else None,
        is_new_database=not applied,
    )


def require_unchanged_files(migrations: Sequence[Migration], applied: Mapping[str, str]) -> None:
    """Raise StoreError if an applied file was changed, or if a pending one comes too late.

    Contract migrations may be applied after later expand migrations.
    """
    for migration in migrations:
        if applied.get(migration.name, migration.sha256) != migration.sha256:
            raise StoreError(f"{migration.name} was changed after it was applied")
        if migration.name in applied or migration.is_contract or not applied:
            continue
        if migration.name < max(applied):
            raise StoreError(
                f"{migration.name} comes before {max(applied)}, which is already applied"
            )


def require_known_migrations(applied: Mapping[str, str]) -> None:
    """Raise StoreError if this release cannot create a schema with these migrations."""
    migrations = load_migrations()
    if newer := sorted(applied.keys() - {item.name for item in migrations}):
        raise _build_newer_error(newer)
    require_unchanged_files(migrations, applied)
    if applied and LAST_1X_MIGRATION not in applied:
        raise build_too_old_error()


def build_too_old_error() -> StoreError:
    return StoreError(
        f"the database is older than the last 1.x release of Tapgate, from which {VERSION} upgrades"
        " (docs/upgrading.md). Start the last 1.x release once, then start this release again"
    )


def _build_newer_error(newer: Sequence[str]) -> StoreError:
    return StoreError(
        f"the database is newer than this version of Tapgate: it has {', '.join(newer)}"
    )
