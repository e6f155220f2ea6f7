"""HTTP server that imitates the messenger, including its failures."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATH = "/api/v1/external/messaging"
#: Response that closes the connection without sending anything.
DROP_CONNECTION = (0, b"")
FakeResponse = tuple[int, bytes]


def build_reply(text: str) -> FakeResponse:
    return 200, json.dumps({"answer": text, "status": "success"}).encode()


def build_error(status: int, error: str, **more: Any) -> FakeResponse:
    return status, json.dumps({"error": error, "status": "error", **more}).encode()


class FakeMessenger:
    """Responses to return in order, and the recorded requests."""

    def __init__(self, url: str, responses: tuple[FakeResponse, ...]) -> None:
        self.url = url
        self.responses = list(responses)
        self.bodies: list[dict[str, Any]] = []
        self.tokens: list[str | None] = []

    @property
    def texts(self) -> list[str]:
        return [body["message"] for body in self.bodies]


@contextmanager
def run_fake_messenger(*responses: FakeResponse) -> Iterator[FakeMessenger]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            is_expected = self.path == PATH and self.headers["Content-Type"] == "application/json"
            messenger.bodies.append(body)
            messenger.tokens.append(self.headers["Authorization"])
            status, content = messenger.responses.pop(0) if is_expected else (404, b"")
            if (status, content) == DROP_CONNECTION:
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        messenger = FakeMessenger(f"http://127.0.0.1:{server.server_port}", responses)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield messenger
        finally:
            server.shutdown()
            thread.join()
