"""Stub service for the supervisor's tests. It responds with its process ID; `/late` takes 1 s."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from tapgate.http.worker import run, serve


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/late":
        _mark_request_received()
        await asyncio.sleep(1)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})


def _mark_request_received() -> None:
    Path(os.environ["TAPGATE_DATA_DIR"], "request_received").touch()


async def main() -> None:
    if "STUB_FAILS" in os.environ:
        sys.exit(7)
    await serve(app)


if __name__ == "__main__":
    run(main)
