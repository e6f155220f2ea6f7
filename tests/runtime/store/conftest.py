import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import asyncpg
import pytest

from drivers.network_faults import make_certificates, run_proxy
from tapgate.runtime.store.url import parse_url


def build_tcp_url(url: str, host: str, port: int) -> str:
    return f"postgresql://postgres@{host}:{port}/{parse_url(url).database}"


@pytest.fixture
async def tcp_url(database_url: str) -> AsyncIterator[str]:
    """Yield the database URL on a TCP port without TLS."""
    async with run_proxy(database_url) as port:
        yield build_tcp_url(database_url, "127.0.0.1", port)


class TlsProxy(NamedTuple):
    port: int
    root_certificate: Path

    def build_url(self, database_url: str, host: str = "localhost") -> str:
        return build_tcp_url(database_url, host, self.port)


@pytest.fixture
async def tls_proxy(postgres: str, tmp_path: Path) -> AsyncIterator[TlsProxy]:
    """Yield a TLS-only proxy with a certificate for `localhost`."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    context, root = make_certificates(folder)
    async with run_proxy(postgres, context) as port:
        yield TlsProxy(port, root)


@pytest.fixture
async def other_empty_database_url(empty_database_url: str) -> AsyncIterator[str]:
    """Yield a URL for a second database without tables."""
    name = f"{parse_url(empty_database_url).database}_other"
    connection = await asyncpg.connect(empty_database_url)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
        yield empty_database_url.replace(
            f"@/{parse_url(empty_database_url).database}?", f"@/{name}?"
        )
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


def make_reachable(folder: Path) -> None:
    """Let other system users traverse a folder's parents, up to the temporary folder."""
    for parent in folder.parents:
        if parent == Path(tempfile.gettempdir()):
            return
        parent.chmod(parent.stat().st_mode | 0o011)
