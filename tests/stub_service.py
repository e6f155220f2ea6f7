"""Stub service for the supervisor's tests. It responds with its process ID; `/late` takes 1 s."""

import asyncio
import os
import sys
from pathlib import Path

from tapgate.core.settings import load_settings
from tapgate.http.http_messages import Request, Response
from tapgate.http.responses import render_json
from tapgate.http.worker import run, serve


class StubApp:
    async def respond(self, request: Request) -> Response:
        if request.path == "/late":
            _mark_request_received()
            await asyncio.sleep(1)
        return render_json(200, str(os.getpid()).encode())


def _mark_request_received() -> None:
    Path(os.environ["TAPGATE_DATA_DIR"], "request_received").touch()


async def main() -> None:
    if "STUB_FAILS" in os.environ:
        sys.exit(7)
    await serve(StubApp(), drain_seconds=load_settings(os.environ).drain_seconds)


if __name__ == "__main__":
    run(main)
