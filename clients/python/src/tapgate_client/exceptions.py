"""Client exceptions. No message quotes a request body.

TapgateError
├── ApiError                    the gateway returned an error response
│   ├── ValidationError         400, 405, 413, 415, 422
│   ├── AuthenticationError     401
│   ├── DeclinedError           402, 403, 409: money was refused
│   ├── PermissionDeniedError   403
│   ├── NotFoundError           404
│   ├── ConflictError           409
│   ├── RateLimitedError        429
│   ├── UnavailableError        503
│   └── ServerError             other 5xx
├── ApprovalRequiredError       an approval rule holds the request
├── ApiConnectionError          the request had no effect
├── OutcomeUnknownError         the request may have been executed
├── UnexpectedResponseError     the response cannot be decoded
└── SignatureError              a webhook failed verification
"""

from typing import Any, Final

from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import ApprovalRecord
from tapgate_client.schemas.common import ErrorBody


class TapgateError(Exception):
    """Base class for client exceptions.

    `request_id` identifies the request in the gateway's logs. For an operation that moves money, it
    is also the idempotency key to retry with. `code` is the error code of an `ApiError`, otherwise
    None.
    """

    code: str | None = None
    _text = "request failed"

    def __init__(self, request_id: str) -> None:
        super().__init__(request_id)
        self.request_id = request_id

    def __str__(self) -> str:
        return f"{self._text} [{self.request_id}]"


class ApprovalRequiredError(TapgateError):
    """An approval rule holds the request until other admins approve it; nothing was executed.

    `approval` is the pending approval. A retry with the same idempotency key returns it again.
    """

    _text = "the request waits for approval"

    def __init__(self, request_id: str, approval: ApprovalRecord) -> None:
        super().__init__(request_id)
        self.args = (request_id, approval)
        self.approval = approval


class ApiConnectionError(TapgateError):
    """The gateway could not be reached, and the request had no effect.

    Also raised for a read whose response was lost, since a read changes nothing.
    """

    _text = "could not connect to the gateway"


class OutcomeUnknownError(TapgateError):
    """No conclusive response was received, so the operation may or may not have been executed.

    For an operation that moves money, retry with this `request_id`: the money moves at most once.
    For any other operation, read the current state before retrying.
    """

    _text = "no conclusive response; the request may have been executed"


class UnexpectedResponseError(TapgateError):
    """The response cannot be decoded. It may be from a different server or incompatible version."""

    def __init__(self, request_id: str, status: int) -> None:
        super().__init__(request_id)
        self.args = (request_id, status)
        self.status = status
        self._text = f"unexpected response with status {status}"


class SignatureError(TapgateError):
    """A webhook failed verification. The message gives the reason and never quotes the body."""

    def __init__(self, reason: str) -> None:
        super().__init__("")
        self.args = (reason,)
        self._text = reason

    def __str__(self) -> str:
        return self._text


class ApiError(TapgateError):
    """Gateway error response.

    `code` is one of `tapgate_client.errors.Code`, or a newer gateway's code. `error` is its short
    text, `message` explains the case, and `details` depends on the code. `retry_after` is the
    number of seconds to wait before a retry, if the gateway sent it. `replayed` is true if the
    response to an earlier attempt with the same idempotency key was replayed.
    """

    code: str
    replayed = False

    def __init__(
        self, body: ErrorBody, status: int, request_id: str, retry_after: float | None = None
    ) -> None:
        super().__init__(request_id)
        self.args = (body, status, request_id, retry_after)
        self.status = status
        self.code = body.code
        self.error = body.error
        self.message = body.message
        self.details: dict[str, Any] = body.details or {}
        self.retry_after = retry_after

    def __str__(self) -> str:
        text = self.error if self.message is None else f"{self.error}: {self.message}"
        return f"{self.code} ({self.status}) {text} [{self.request_id}]"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code})"


class ValidationError(ApiError):
    """400, 405, 413, 415, 422: the request is invalid or cannot be fulfilled."""

    @property
    def fields(self) -> dict[str, str]:
        """Return the validation errors by field name."""
        fields = self.details.get("fields")
        return fields if isinstance(fields, dict) else {}


class AuthenticationError(ApiError):
    """401: the credential is not accepted."""


class DeclinedError(ApiError):
    """402, 403, 409: the transaction was declined and stored as failed; `code` gives the reason.

    The decline consumes the idempotency key. Operations that move no money, such as linking a
    card, can raise the same errors; they store nothing.
    """


class PermissionDeniedError(ApiError):
    """403: not allowed with this credential, or not in the current state."""


class NotFoundError(ApiError):
    """404: the resource does not exist."""


class ConflictError(ApiError):
    """409: the resource's state does not allow the operation, or a value was already used."""


class RateLimitedError(ApiError):
    """429: too many requests. The request was not executed."""


class UnavailableError(ApiError):
    """503: the gateway is unavailable. The request was not executed."""


class ServerError(ApiError):
    """5xx except 503: the gateway failed."""


_CLASS_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    401: AuthenticationError,
    402: DeclinedError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    429: RateLimitedError,
    503: UnavailableError,
}

#: Codes with the status 403 or 409 that decline a transaction.
_DECLINE_CODES: Final = frozenset(
    {
        Code.SUBSCRIBER_BLOCKED,
        Code.CARD_NOT_ACTIVE,
        Code.AGENT_NOT_ACTIVE,
        Code.COMPLIANCE_REJECTED,
        Code.TRANSACTION_LIMIT_EXCEEDED,
        Code.CARD_LIMIT_EXCEEDED,
        Code.DAILY_LIMIT_EXCEEDED,
        Code.MONTHLY_LIMIT_EXCEEDED,
        Code.MAX_BALANCE_EXCEEDED,
        Code.TRANSFER_CANCELLED,
    }
)


def build_api_error(
    body: ErrorBody, status: int, request_id: str, retry_after: float | None = None
) -> ApiError:
    """Return the exception for an error response; an unknown code gets its status's class."""
    error_class = _CLASS_BY_STATUS.get(status, ValidationError if status < 500 else ServerError)
    if body.code in _DECLINE_CODES:
        error_class = DeclinedError
    return error_class(body, status, request_id, retry_after)
