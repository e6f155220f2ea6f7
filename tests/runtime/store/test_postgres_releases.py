"""PostgreSQL's version: what is known about minor releases, and the warning at startup."""

from pathlib import Path

import pytest

from cases import each
from tapgate.core.settings import load_settings
from tapgate.runtime.store import postgres_releases
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.migrate import MIN_POSTGRES_VERSION
from tapgate.runtime.store.postgres_programs import read_embedded_version
from tapgate.runtime.store.postgres_releases import (
    NEWEST_MINOR_RELEASES,
    PostgresVersion,
    list_warnings,
    read_server_version,
)
from tapgate.server import supervisor


def test_every_supported_major_release_has_a_newest_minor_release() -> None:
    newest = max(NEWEST_MINOR_RELEASES)
    assert NEWEST_MINOR_RELEASES.keys() == {*range(MIN_POSTGRES_VERSION, newest + 1)}
    assert read_embedded_version().major in NEWEST_MINOR_RELEASES


async def test_embedded_server_has_the_version_of_its_program(database: Database) -> None:
    assert await read_server_version(database) == read_embedded_version()


@each("version, is_outdated", [
    [PostgresVersion(18, 5), True],
    [PostgresVersion(18, 6), False],
    [PostgresVersion(18, 7), False],
    [PostgresVersion(17, 12), False],
    [PostgresVersion(99, 0), False],
])  # fmt: skip
def test_only_an_older_minor_release_is_outdated(
    version: PostgresVersion, is_outdated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_releases, "NEWEST_MINOR_RELEASES", {17: 11, 18: 6})
    assert version.is_outdated is is_outdated
    assert len(list_warnings(version)) == is_outdated


@each("newer_by, has_warning", [[0, False], [1, True]])
def test_startup_warns_about_an_outdated_embedded_server(
    newer_by: int,
    has_warning: bool,
    data_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    embedded = read_embedded_version()
    newest = {embedded.major: embedded.minor + newer_by}
    monkeypatch.setattr(postgres_releases, "NEWEST_MINOR_RELEASES", newest)
    monkeypatch.setattr(supervisor, "STOP_SIGNALS", ())  # the test process keeps its handlers
    settings = load_settings({"TAPGATE_DATA_DIR": str(data_dir)})
    with supervisor.run_embedded_postgres(settings):
        pass
    warning = f"Warning: the embedded PostgreSQL {embedded} lacks the fixes of"
    assert (warning in capsys.readouterr().out) is has_warning
