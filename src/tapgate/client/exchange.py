"""One call from its first try to its end, without any input or output of its own.

`steps` says what to do next and is told what came of it; a line does it, waiting or awaiting. So
there is one set of rules for when to try again, for both modes.
"""

import re
import time
from collections.abc import Generator
from typing import Any, Final, NamedTuple, TypeVar

import httpx2

from tapgate import VERSION
from tapgate.client import answers
from tapgate.client.credentials import AccessToken, Credential, Login, Unsigned
from tapgate.client.exceptions import (
    ConnectionFailed,
    OutcomeUnknown,
    Refused,
    TapgateError,
    Unauthorized,
    UnexpectedAnswer,
)
from tapgate.client.operation import Operation, described
from tapgate.client.records.admin import Tokens
from tapgate.client.retries import Patience, Retries
from tapgate.clock import Clock
from tapgate.errors import Code

T = TypeVar("T")


class Pause(NamedTuple):
    seconds: float


class Renew(NamedTuple):
    """Get other tokens than these; one call at a time."""

    tokens: Tokens | None


Step = httpx2.Request | Pause | Renew
Outcome = httpx2.Response | httpx2.RequestError | None
Steps = Generator[Step, Outcome, T]

#: Nothing of the request was sent.
_NOT_SENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
)
_NOTHING_HAPPENED: Final = (429, 503)
_MAYBE_HAPPENED: Final = (500, 502, 504)

#: Said before the gateway looks whether it has seen the request: of an earlier try they tell
#: nothing.
_SAID_AT_THE_DOOR: Final = frozenset(
    {
        Code.UNAUTHORIZED,
        Code.FORBIDDEN,
        Code.OTP_REQUIRED,
        Code.PROCESSOR_SUSPENDED,
        Code.PARTNER_SUSPENDED,
        Code.TERMINAL_BLOCKED,
    }
)

_ALWAYS: Final = {"Accept": "*/*", "User-Agent": f"tapgate-client/{VERSION}"}
_TRACEABLE = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
#: How long before its end a token is renewed.
_EARLY: Final = 30.0


class Failure(NamedTuple):
    """A try that brought no answer."""

    error: TapgateError
    #: Another try may do better.
    passing: bool
    #: It may have taken place all the same.
    maybe_done: bool
    retry_after: float | None = None

    @property
    def settles(self) -> bool:
        """Whether it also says what became of earlier tries."""
        error = self.error
        return (
            isinstance(error, Refused)
            and not self.passing
            and not self.maybe_done
            and error.code not in _SAID_AT_THE_DOOR
        )


class Exchange:
    def __init__(
        self,
        base_url: str,
        credential: Credential | Login | None,
        *,
        retries: Retries,
        timeout: httpx2.Timeout,
        clock: Clock,
    ) -> None:
        self._base_url = _checked(base_url)
        self._login = credential if isinstance(credential, Login) else None
        self._credential = None if isinstance(credential, Login) else credential
        self._tokens: Tokens | None = None
        self._token_ends = 0.0
        self._retries = retries
        self._timeout = timeout.as_dict()
        self._clock = clock

    def steps(self, operation: Operation[T]) -> Steps[T]:
        patience = Patience(self._retries)
        maybe_done = renewed = False
        while True:
            if self._needs_token(operation):
                yield Renew(self._tokens)
            used = None if operation.public else self._tokens
            outcome = yield self._request(operation, used)
            if used is not None and not renewed and _has_status(outcome, 401):
                renewed = True
                yield Renew(used)
                continue
            try:
                if isinstance(outcome, httpx2.Response) and answers.is_answer(operation, outcome):
                    return answers.read(operation, outcome)
                failure = _failure(operation, outcome)
            except UnexpectedAnswer as unread:
                failure = Failure(unread, passing=False, maybe_done=True)
            if maybe_done and operation.method == "DELETE" and _has_status(outcome, 404):
                return operation.answer()  # an earlier try took it away
            maybe_done = maybe_done or failure.maybe_done
            again = failure.passing and (operation.repeatable or not failure.maybe_done)
            pause = patience.pause(failure.retry_after) if again else None
            if pause is None:
                raise _last_word(operation, failure, maybe_done=maybe_done)
            yield Pause(pause)

    def renewal(self, used: Tokens | None) -> Steps[None]:
        """Other tokens than those that were used, unless another call has got them by now."""
        if self._login is None or self._tokens is not used:
            return
        tokens = None
        if self._tokens is not None:
            # Good for one use: whatever goes wrong with it, it is not tried again.
            try:
                tokens = yield from self.steps(refresh(self._tokens.refresh_token))
            except (Unauthorized, OutcomeUnknown):
                self._tokens = None
        if tokens is None:
            tokens = yield from self.steps(log_in(self._login.email, self._login.password))
        self._tokens = tokens
        self._token_ends = time.monotonic() + tokens.expires_in

    def _needs_token(self, operation: Operation[Any]) -> bool:
        if self._login is None or operation.public:
            return False
        return self._tokens is None or time.monotonic() > self._token_ends - _EARLY

    def _request(self, operation: Operation[Any], tokens: Tokens | None) -> httpx2.Request:
        """Signed as it is sent: with the path and the query that its address has in the end."""
        request = httpx2.Request(
            operation.method,
            self._base_url + operation.target,
            content=operation.body,
            headers=_ALWAYS | dict(operation.headers),
            extensions={"timeout": self._timeout},
        )
        if _TRACEABLE.fullmatch(operation.request_id):
            request.headers["X-Request-ID"] = operation.request_id
        credential = self._credential if tokens is None else AccessToken(tokens.token)
        if credential is not None and not operation.public:
            path, _, query = request.url.raw_path.partition(b"?")
            unsigned = Unsigned(operation.method, path.decode("ascii"), query, operation.body)
            request.headers.update(credential.headers(unsigned, self._clock))
        return request


def _checked(base_url: str) -> str:
    url = httpx2.URL(base_url)
    if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
        raise ValueError("base_url must be like https://pay.example.com")
    return base_url.rstrip("/")


def _failure(operation: Operation[Any], outcome: Outcome) -> Failure:
    if not isinstance(outcome, httpx2.Response):
        sent = not isinstance(outcome, _NOT_SENT)
        error: TapgateError = ConnectionFailed(operation.request_id)
        error.__cause__ = outcome
        return Failure(error, passing=True, maybe_done=sent)
    error, status = answers.refusal(operation, outcome), outcome.status_code
    # Whoever stands before the gateway may have lost it in the middle of its answer.
    maybe_done = status in _MAYBE_HAPPENED or isinstance(error, ConnectionFailed)
    return Failure(
        error,
        passing=status in _NOTHING_HAPPENED or maybe_done,
        maybe_done=maybe_done,
        retry_after=answers.retry_after(outcome),
    )


def _has_status(outcome: Outcome, status: int) -> bool:
    return isinstance(outcome, httpx2.Response) and outcome.status_code == status


def _last_word(operation: Operation[Any], failure: Failure, *, maybe_done: bool) -> TapgateError:
    if operation.effect == "reads" or not maybe_done or failure.settles:
        return failure.error
    unknown = OutcomeUnknown(operation.request_id)
    unknown.__cause__ = failure.error
    return unknown


def log_in(email: str, password: str) -> Operation[Tokens]:
    body = {"email": email, "password": password}
    return described("acts", "POST", "/api/v1/admin/login", Tokens, body=body, public=True)


def refresh(refresh_token: str) -> Operation[Tokens]:
    body = {"refresh_token": refresh_token}
    return described("acts", "POST", "/api/v1/admin/refresh", Tokens, body=body, public=True)
