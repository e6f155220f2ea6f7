"""A whole gateway in processes of its own, as an operator runs it."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

TAPGATE = Path(sys.executable).with_name("tapgate")
ADMIN = {"email": "ada@example.com", "password": "correct horse battery"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.asynccontextmanager
async def gateway(folder: Path, url: str, *, workers: int) -> AsyncIterator[str]:
    """Its address. Told to stop in the end, and must stop by itself."""
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if "TAPGATE" not in name}
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            TAPGATE,
            "serve",
            env=kept
            | {
                "TAPGATE_DATA_DIR": str(folder / "gateway"),
                "TAPGATE_DATABASE_URL": url,
                "TAPGATE_PORT": str(port),
                "TAPGATE_WORKERS": str(workers),
                "TAPGATE_ADMIN_EMAIL": ADMIN["email"],
                "TAPGATE_ADMIN_PASSWORD": ADMIN["password"],
                "TAPGATE_RATE_LIMIT": "100000",
                "TAPGATE_RATE_BURST": "100000",
                "TAPGATE_DEMO": "off",
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    try:
        assert process.stdout is not None
        while not (line := await process.stdout.readline()).startswith(b"The gateway listens"):
            assert line, (folder / "log").read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        assert await process.wait() == 0
