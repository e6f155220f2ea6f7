"""Request lifecycle, including retries and token renewal, without any I/O.

`RequestFlow.run` is a generator: it yields the next step, and a transport performs the step and
sends back the result. Both modes therefore share one set of retry rules.
"""

import re
import time
from collections.abc import Generator
from typing import Any, Final, NamedTuple, TypeVar

import httpx2

from tapgate_client import VERSION, responses
from tapgate_client.clock import Clock
from tapgate_client.credentials import AccessToken, Credential, Login, UnsignedRequest
from tapgate_client.errors import Code
from tapgate_client.exceptions import (
    ApiConnectionError,
    ApiError,
    AuthenticationError,
    OutcomeUnknownError,
    TapgateError,
    UnexpectedResponseError,
)
from tapgate_client.operation import Operation
from tapgate_client.operations.admin import AdminOperations
from tapgate_client.retries import RetryBudget, RetryPolicy
from tapgate_client.schemas.admin import Tokens

T = TypeVar("T")


class Sleep(NamedTuple):
    seconds: float


class RenewTokens(NamedTuple):
    """Replace these tokens. The transport runs one renewal at a time."""

    tokens: Tokens | None


FlowStep = httpx2.Request | Sleep | RenewTokens
StepResult = httpx2.Response | httpx2.RequestError | None
Flow = Generator[FlowStep, StepResult, T]

#: Errors raised before any part of the request was sent.
_CONNECT_ERRORS: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
)
_NOT_EXECUTED_STATUSES: Final = (429, 503)
_OUTCOME_UNKNOWN_STATUSES: Final = (500, 502, 504)

#: Returned before the gateway checks for a replay, so the outcome of earlier attempts is unknown.
_CODES_BEFORE_REPLAY_CHECK: Final = frozenset(
    {
        Code.UNAUTHORIZED,
        Code.FORBIDDEN,
        Code.OTP_REQUIRED,
        Code.PROCESSOR_SUSPENDED,
        Code.PARTNER_SUSPENDED,
        Code.TERMINAL_BLOCKED,
    }
)

_DEFAULT_HEADERS: Final = {"Accept": "*/*", "User-Agent": f"tapgate-client/{VERSION}"}
_TRACING_ID_PATTERN = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)
_MAX_CONNECT_TIMEOUT_SECONDS: Final = 5.0
#: How long before its expiry a token is renewed.
_TOKEN_RENEWAL_MARGIN_SECONDS: Final = 30.0


class FailedAttempt(NamedTuple):
    """Attempt that did not return a successful response."""

    error: TapgateError
    #: Another attempt may succeed.
    is_retryable: bool
    #: The gateway may have executed the operation despite the failure.
    may_have_executed: bool
    retry_after: float | None = None

    @property
    def is_conclusive(self) -> bool:
        """Whether the error also determines the outcome of earlier attempts."""
        error = self.error
        return (
            isinstance(error, ApiError)
            and not self.is_retryable
            and not self.may_have_executed
            and error.code not in _CODES_BEFORE_REPLAY_CHECK
        )


class RequestFlow:
    def __init__(
        self,
        base_url: str,
        credential: Credential | Login | None,
        *,
        retries: RetryPolicy,
        timeout: float,
        clock: Clock,
    ) -> None:
        self.base_url = _validate_base_url(base_url)
        self._login = credential if isinstance(credential, Login) else None
        self._credential = None if isinstance(credential, Login) else credential
        self._tokens: Tokens | None = None
        self.token_expires_at = 0.0
        self._retry_policy = retries
        connect_timeout = min(timeout, _MAX_CONNECT_TIMEOUT_SECONDS)
        self._timeout = httpx2.Timeout(timeout, connect=connect_timeout).as_dict()
        self._clock = clock

    def run(self, operation: Operation[T]) -> Flow[T]:
        budget = RetryBudget(self._retry_policy)
        may_have_executed = has_renewed = False
        while True:
            if self._needs_token(operation):
                yield RenewTokens(self._tokens)
            used_tokens = None if operation.is_public else self._tokens
            outcome = yield self._build_request(operation, used_tokens)
            if used_tokens is not None and not has_renewed and _has_status(outcome, 401):
                has_renewed = True
                yield RenewTokens(used_tokens)
                continue
            try:
                if isinstance(outcome, httpx2.Response) and responses.is_success(
                    operation, outcome
                ):
                    return responses.decode(operation, outcome)
                failure = _classify_failure(operation, outcome)
            except UnexpectedResponseError as error:
                failure = FailedAttempt(error, is_retryable=False, may_have_executed=True)
            if may_have_executed and operation.method == "DELETE" and _has_status(outcome, 404):
                return operation.response_type()  # an earlier attempt deleted the resource
            may_have_executed = may_have_executed or failure.may_have_executed
            can_retry = failure.is_retryable and (
                operation.is_repeatable or not failure.may_have_executed
            )
            delay = budget.next_delay(failure.retry_after) if can_retry else None
            if delay is None:
                raise _build_final_error(operation, failure, may_have_executed=may_have_executed)
            yield Sleep(delay)

    def renew_tokens(self, used_tokens: Tokens | None) -> Flow[None]:
        """Replace the tokens, unless a concurrent request has already done so."""
        if self._login is None or self._tokens is not used_tokens:
            return
        tokens = None
        if self._tokens is not None:
            # A refresh token is valid for one use, so log in if a refresh is rejected or lost.
            try:
                token = self._tokens.refresh_token
                refresh = AdminOperations.refresh_token.describe(None, refresh_token=token)
                tokens = yield from self.run(refresh)
            except (AuthenticationError, OutcomeUnknownError):
                self._tokens = None
        if tokens is None:
            email, password = self._login.email, self._login.password
            log_in = AdminOperations.log_in.describe(None, email=email, password=password)
            tokens = yield from self.run(log_in)
        self._tokens = tokens
        self.token_expires_at = time.monotonic() + tokens.expires_in

    def _needs_token(self, operation: Operation[Any]) -> bool:
        if self._login is None or operation.is_public:
            return False
        return (
            self._tokens is None
            or time.monotonic() > self.token_expires_at - _TOKEN_RENEWAL_MARGIN_SECONDS
        )

    def _build_request(self, operation: Operation[Any], tokens: Tokens | None) -> httpx2.Request:
        """Build the HTTP request and sign its final path and query."""
        request = httpx2.Request(
            operation.method,
            self.base_url + operation.target,
            content=operation.body,
            headers=_DEFAULT_HEADERS | dict(operation.headers),
            extensions={"timeout": self._timeout},
        )
        if _TRACING_ID_PATTERN.fullmatch(operation.request_id):
            request.headers["X-Request-ID"] = operation.request_id
        credential = self._credential if tokens is None else AccessToken(tokens.token)
        if credential is not None and not operation.is_public:
            path, _, query = request.url.raw_path.partition(b"?")
            unsigned = UnsignedRequest(
                operation.method, path.decode("ascii"), query, operation.body
            )
            request.headers.update(credential.build_headers(unsigned, self._clock))
        return request


def _validate_base_url(base_url: str) -> str:
    url = httpx2.URL(base_url)
    if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
        raise ValueError("base_url must be a URL such as https://pay.example.com")
    return base_url.rstrip("/")


def _classify_failure(operation: Operation[Any], outcome: StepResult) -> FailedAttempt:
    if not isinstance(outcome, httpx2.Response):
        sent = not isinstance(outcome, _CONNECT_ERRORS)
        error: TapgateError = ApiConnectionError(operation.request_id)
        error.__cause__ = outcome
        return FailedAttempt(error, is_retryable=True, may_have_executed=sent)
    error, status = responses.decode_error(operation, outcome), outcome.status_code
    # A proxy may have lost the connection to the gateway during the response.
    may_have_executed = status in _OUTCOME_UNKNOWN_STATUSES or isinstance(error, ApiConnectionError)
    return FailedAttempt(
        error,
        is_retryable=status in _NOT_EXECUTED_STATUSES or may_have_executed,
        may_have_executed=may_have_executed,
        retry_after=responses.parse_retry_after(outcome),
    )


def _has_status(outcome: StepResult, status: int) -> bool:
    return isinstance(outcome, httpx2.Response) and outcome.status_code == status


def _build_final_error(
    operation: Operation[Any], failure: FailedAttempt, *, may_have_executed: bool
) -> TapgateError:
    if operation.effect == "reads" or not may_have_executed or failure.is_conclusive:
        return failure.error
    outcome_unknown = OutcomeUnknownError(operation.request_id)
    outcome_unknown.__cause__ = failure.error
    return outcome_unknown
