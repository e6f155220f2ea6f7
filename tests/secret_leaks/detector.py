"""Leak detector: records a test's secrets, then searches all sources for them."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from secret_leaks import sources
from secret_leaks.capture import TrafficRecorder, record_traffic
from secret_leaks.secrets import Leak, SecretSet
from secret_leaks.sources import Source
from tapgate.core.settings import Settings
from tapgate.core.settings.declaration import Secrecy


class LeakDetector:
    def __init__(self, recorder: TrafficRecorder, database_url: str) -> None:
        self._recorder = recorder
        self._database_url = database_url
        self._sources: list[Source] = []
        self._pin_sources: list[Source] = []
        self._folders: list[Path] = []

    @property
    def secrets(self) -> SecretSet:
        return self._recorder.secrets

    def add_secret(self, kind: str, value: str | None) -> None:
        """Add a secret that no client sends, such as the installation's key."""
        self.secrets.add(kind, value)

    def add_settings_secrets(self, settings: Settings) -> None:
        """Add the installation's secrets."""
        for item in settings.declared.values():
            if item.secrecy is Secrecy.STRONG:
                secrets = item.value_type.list_secrets(getattr(settings, item.name))
                for suffix, secret in secrets.items():
                    self.add_secret(item.variable + suffix, secret)

    def add_source(self, name: str, text: str | bytes) -> None:
        self._sources.append(Source(name, text.encode() if isinstance(text, str) else text))

    def add_pin_source(self, name: str, text: str) -> None:
        """Add a source that may contain codes and tokens but no PIN, such as chat replies."""
        self._pin_sources.append(Source(name, text.encode()))

    def add_processes(self) -> None:
        """Add the child processes that are running now."""
        self._sources += sources.read_processes()

    def add_folder(self, folder: Path) -> None:
        """Add a folder that is read at the end, when all files are written."""
        self._folders.append(folder)

    async def find_leaks(self) -> list[Leak]:
        searched = [*self._sources, *await sources.read_database(self._database_url)]
        searched.append(Source("responses", b"\n".join(self._recorder.responses)))
        for folder in self._folders:
            searched += sources.read_files(folder)
        return _search_sources(self.secrets, searched) + _search_sources(
            self.secrets.filter_by_suffix("pin"), self._pin_sources
        )


@contextlib.asynccontextmanager
async def detect_leaks(database_url: str) -> AsyncIterator[LeakDetector]:
    """Fail if any secret recorded inside the block appears where it is not allowed."""
    with record_traffic() as recorder:
        detector = LeakDetector(recorder, database_url)
        async with sources.log_all_statements(database_url) as log:
            start = log.stat().st_size
            yield detector
            found = await detector.find_leaks()
        found += _search_sources(detector.secrets, [sources.read_log_since(log, start)])
    assert not found, format_leaks(found)


def _search_sources(secrets: SecretSet, searched: Iterable[Source]) -> list[Leak]:
    searched = [*searched]
    # Searching all sources together first is faster: usually, none contains a long secret.
    present = secrets.select_present(b"\n".join(source.data for source in searched))
    return [
        found
        for source in searched
        for found in present.find_leaks(
            source.name, source.data, digits=source.search_short_secrets
        )
    ]


def format_leaks(found: list[Leak]) -> str:
    """Return one line per source and kind of secret."""
    first = {(item.source, item.kind): item.context for item in reversed(found)}
    return "\n".join(
        f"{kind} in {source}: {context!r}" for (source, kind), context in first.items()
    )
