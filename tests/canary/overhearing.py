"""Hears every secret that goes through a client, and keeps every answer to be searched.

There is one place to listen at, so a new journey need not say which secrets it has: whatever is
sent or answered under the name of a secret is one, and so is whatever proves who calls.
"""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import msgspec

from canary import exceptions
from canary.register import Register
from tapgate.gateway import ENDPOINT_GROUPS
from tapgate.messenger.flows.flow_client import FlowClient

#: The last word of a field's name: `new_pin` is secret, `pin_locked_until` and `api_key_id` not.
SECRET_WORDS = frozenset({"pin", "otp", "password", "secret", "token", "key"})
_BLANK = "(shown here)"
_OF_AUTH = ("secret", "_secret", "_credential")
_TEMPLATES = [
    (endpoint.method, re.compile(re.sub(r"\{[a-z_]+\}", "[^/]+", endpoint.path)), endpoint.name)
    for noun in ENDPOINT_GROUPS
    for endpoint in noun
]


def names_a_secret(name: str) -> bool:
    return name.rpartition("_")[2] in SECRET_WORDS or name == "statement_url"


class Ear:
    def __init__(self) -> None:
        self.register = Register()
        #: The answers without what they are there to show.
        self.answers: list[bytes] = []

    def hear_request(self, request: httpx2.Request, auth: object) -> None:
        for name in _OF_AUTH:
            secret = getattr(auth, name, None)
            self.register.learn("a credential", secret.decode() if _is_bytes(secret) else secret)
        self.register.learn("a bearer", request.headers.get("authorization", "").partition(" ")[2])
        if "/statements/" in request.url.path:
            self.register.learn("a statement's token", request.url.path.rpartition("/")[2])
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, httpx2.RequestNotRead):
            self.hear(msgspec.json.decode(request.content))

    def hear(self, value: Any, shown_by: str = "") -> Any:
        """The same without what may be shown there."""
        if isinstance(value, list):
            return [self.hear(item, shown_by) for item in value]
        if not isinstance(value, dict):
            return value
        return {name: self._member(name, member, shown_by) for name, member in value.items()}

    def _member(self, name: str, value: Any, shown_by: str) -> Any:
        if not names_a_secret(name) or not isinstance(value, str):
            return self.hear(value, shown_by)
        secret = value.rpartition("/")[2] if name == "statement_url" else value
        again = secret in self.register
        self.register.learn(name, secret)
        may_be = (shown_by, name) in exceptions.ANSWERS and not again
        return _BLANK if may_be else value

    def hear_answer(self, answer: httpx2.Response) -> None:
        name = _endpoint(answer.request)
        head = f"{name}: {answer.status_code} {list(answer.headers.items())}".encode()
        body = answer.content
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            if answer.is_success:  # else a field's name stands before what is wrong with it
                body = msgspec.json.encode(self.hear(msgspec.json.decode(body), name))
        self.answers.append(head + b" " + body)


@contextlib.contextmanager
def overheard() -> Iterator[Ear]:
    """Everything that any client sends meanwhile."""
    ear = Ear()
    send, send_waiting = httpx2.AsyncClient.send, httpx2.Client.send
    encrypted = FlowClient.encrypt

    async def heard(self: Any, request: httpx2.Request, **how: Any) -> httpx2.Response:
        try:
            answer = await send(self, request, **how)
        finally:
            ear.hear_request(request, how.get("auth"))
        if not how.get("stream"):
            ear.hear_answer(answer)
        return answer

    def heard_waiting(self: Any, request: httpx2.Request, **how: Any) -> httpx2.Response:
        try:
            answer = send_waiting(self, request, **how)
        finally:
            ear.hear_request(request, how.get("auth"))
        if not how.get("stream"):
            ear.hear_answer(answer)
        return answer

    def filled_in(self: FlowClient, content: dict[str, Any]) -> bytes:
        """Forms are encrypted before any client sees them."""
        ear.hear(content)
        return encrypted(self, content)

    with contextlib.ExitStack() as stack:
        for owner, name, new in (
            (httpx2.AsyncClient, "send", heard),
            (httpx2.Client, "send", heard_waiting),
            (FlowClient, "encrypted", filled_in),
        ):
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, new)
        yield ear


def _endpoint(request: httpx2.Request) -> str:
    for method, path, name in _TEMPLATES:
        if request.method == method and path.fullmatch(request.url.path):
            return name
    return f"{request.method} elsewhere"


def _is_bytes(value: object) -> bool:
    return isinstance(value, bytes)
