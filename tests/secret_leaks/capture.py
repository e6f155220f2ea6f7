"""Recorder of all secrets and responses that pass through an HTTP client.

It patches the client classes, so tests need not declare their secrets. Every credential is a
secret, and so is every value, sent or returned, of a field whose name denotes a secret.
"""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import msgspec

from drivers.messenger import FlowClient
from secret_leaks import allowlist
from secret_leaks.secrets import SecretSet
from tapgate.server.gateway import ENDPOINT_GROUPS

#: Last words of secret fields' names: `new_pin` is secret, but `api_key_id` is not.
SECRET_SUFFIXES = frozenset({"pin", "otp", "password", "secret", "token", "key"})
_REDACTED = "(shown here)"
_AUTH_ATTRIBUTES = ("secret", "_secret", "_credential")
_ENDPOINT_PATTERNS = [
    (endpoint.method, re.compile(re.sub(r"\{[a-z_]+\}", "[^/]+", endpoint.path)), endpoint.name)
    for noun in ENDPOINT_GROUPS
    for endpoint in noun
]


#: Secret fields whose names do not show it: tap proofs, and a card chip's keys.
_OTHER_SECRET_FIELDS = frozenset(
    {"statement_url", "picc_data", "cmac", "k0", "k1", "k2", "k3", "k4"}
)


def is_secret_field(name: str) -> bool:
    return name.rpartition("_")[2] in SECRET_SUFFIXES or name in _OTHER_SECRET_FIELDS


class TrafficRecorder:
    def __init__(self) -> None:
        self.secrets = SecretSet()
        #: Responses without the secrets that they are allowed to show.
        self.responses: list[bytes] = []

    def record_request(self, request: httpx2.Request, auth: object) -> None:
        for name in _AUTH_ATTRIBUTES:
            secret = getattr(auth, name, None)
            self.secrets.add("a credential", secret.decode() if _is_bytes(secret) else secret)
        self.secrets.add(
            "a bearer token", request.headers.get("authorization", "").partition(" ")[2]
        )
        if "/statements/" in request.url.path:
            self.secrets.add("a statement token", request.url.path.rpartition("/")[2])
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, httpx2.RequestNotRead):
            self.record_secrets(msgspec.json.decode(request.content))

    def record_secrets(self, value: Any, endpoint_name: str = "") -> Any:
        """Record all secrets in the value; return it without those that the endpoint may return."""
        if isinstance(value, list):
            return [self.record_secrets(item, endpoint_name) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            name: self._record_field(name, member, endpoint_name) for name, member in value.items()
        }

    def _record_field(self, name: str, value: Any, endpoint_name: str) -> Any:
        if not is_secret_field(name) or not isinstance(value, str):
            return self.record_secrets(value, endpoint_name)
        secret = value.rpartition("/")[2] if name == "statement_url" else value
        again = secret in self.secrets
        self.secrets.add(name, secret)
        is_allowed = (endpoint_name, name) in allowlist.ALLOWED_IN_RESPONSES and not again
        return _REDACTED if is_allowed else value

    def record_response(self, response: httpx2.Response) -> None:
        name = _get_endpoint_name(response.request)
        head = f"{name}: {response.status_code} {list(response.headers.items())}".encode()
        body = response.content
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            if response.is_success:  # in errors, field names map to messages
                body = msgspec.json.encode(self.record_secrets(msgspec.json.decode(body), name))
        self.responses.append(head + b" " + body)


@contextlib.contextmanager
def record_traffic() -> Iterator[TrafficRecorder]:
    """Record the requests and unstreamed responses of all HTTP clients inside the block."""
    recorder = TrafficRecorder()
    send, send_sync = httpx2.AsyncClient.send, httpx2.Client.send
    encrypt = FlowClient.encrypt

    async def send_recorded(self: Any, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await send(self, request, **options)
        finally:
            recorder.record_request(request, options.get("auth"))
        if not options.get("stream"):
            recorder.record_response(response)
        return response

    def send_sync_recorded(self: Any, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = send_sync(self, request, **options)
        finally:
            recorder.record_request(request, options.get("auth"))
        if not options.get("stream"):
            recorder.record_response(response)
        return response

    def encrypt_recorded(self: FlowClient, content: dict[str, Any]) -> bytes:
        """Record form contents here, because forms are encrypted before any client sees them."""
        recorder.record_secrets(content)
        return encrypt(self, content)

    with contextlib.ExitStack() as stack:
        for owner, name, new in (
            (httpx2.AsyncClient, "send", send_recorded),
            (httpx2.Client, "send", send_sync_recorded),
            (FlowClient, "encrypt", encrypt_recorded),
        ):
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, new)
        yield recorder


def _get_endpoint_name(request: httpx2.Request) -> str:
    for method, path, name in _ENDPOINT_PATTERNS:
        if request.method == method and path.fullmatch(request.url.path):
            return name
    return f"{request.method} elsewhere"


def _is_bytes(value: object) -> bool:
    return isinstance(value, bytes)
