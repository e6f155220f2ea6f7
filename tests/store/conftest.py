import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import asyncpg
import pytest

from store.proxy import listening, make_certificates
from tapgate.store.url import parse_url


def address(url: str, host: str, port: int) -> str:
    return f"postgresql://postgres@{host}:{port}/{parse_url(url).database}"


@pytest.fixture
async def by_tcp(database_url: str) -> AsyncIterator[str]:
    """The database at a TCP port without TLS."""
    async with listening(database_url) as port:
        yield address(database_url, "127.0.0.1", port)


class Tls(NamedTuple):
    port: int
    root: Path

    def url(self, database_url: str, host: str = "localhost") -> str:
        return address(database_url, host, self.port)


@pytest.fixture
async def tls(postgres: str, tmp_path: Path) -> AsyncIterator[Tls]:
    """A TCP port that takes TLS only, with a certificate for `localhost`."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    context, root = make_certificates(folder)
    async with listening(postgres, context) as port:
        yield Tls(port, root)


@pytest.fixture
async def other_empty_url(empty_url: str) -> AsyncIterator[str]:
    """A second database without tables."""
    name = f"{parse_url(empty_url).database}_other"
    connection = await asyncpg.connect(empty_url)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
        yield empty_url.replace(f"@/{parse_url(empty_url).database}?", f"@/{name}?")
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


def let_others_reach(folder: Path) -> None:
    """Let other system users pass through a test's folders: temporary folders are private."""
    for parent in folder.parents:
        if parent == Path(tempfile.gettempdir()):
            return
        parent.chmod(parent.stat().st_mode | 0o011)
