"""Base exceptions of the client, by family. No message quotes the body of a request."""

from typing import Any, ClassVar

import msgspec

from tapgate.errors import Code


class TapgateError(Exception):
    """Base class of all client exceptions.

    `request_id` identifies the request in the gateway's logs. For an operation that moves money, it
    is also the idempotency key to retry with.
    """

    def __init__(self, request_id: str) -> None:
        super().__init__(request_id)
        self.request_id = request_id


class ApiConnectionError(TapgateError):
    """The gateway could not be reached, and the request had no effect.

    Also raised for a read whose response was lost, since a read changes nothing.
    """

    def __str__(self) -> str:
        return f"could not connect to the gateway [{self.request_id}]"


class OutcomeUnknownError(TapgateError):
    """No conclusive response was received, so the operation may or may not have been executed.

    For an operation that moves money, retry with this `request_id`: the money moves at most once.
    For any other operation, read the current state before retrying.
    """

    def __str__(self) -> str:
        return f"no conclusive response; the request may have been executed [{self.request_id}]"


class UnexpectedResponseError(TapgateError):
    """The response cannot be decoded. It may be from a different server or incompatible version."""

    def __init__(self, request_id: str, status: int) -> None:
        super().__init__(request_id)
        self.args = (request_id, status)
        self.status = status

    def __str__(self) -> str:
        return f"unexpected response with status {self.status} [{self.request_id}]"


class ErrorResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Error response of the gateway."""

    status: int
    code: str
    error: str
    message: str | None = None
    details: dict[str, Any] = {}
    request_id: str
    #: Seconds to wait before a retry, if the gateway sent `Retry-After`.
    retry_after: float | None = None


class ApiError(TapgateError):
    """Error response of the gateway. Each error code has its own class, grouped by base class."""

    #: The error code of this class; None if only its subclasses have codes.
    CODE: ClassVar[Code | None] = None
    _classes_by_code: ClassVar[dict[str, type["ApiError"]]] = {}

    def __init_subclass__(cls, code: Code | None = None) -> None:
        super().__init_subclass__()
        cls.CODE = code
        if code is not None:
            ApiError._classes_by_code[code] = cls

    def __init__(self, error: ErrorResponse) -> None:
        super().__init__(error.request_id)
        self.args = (error,)
        self.status = error.status
        self.code = error.code
        self.error = error.error
        self.message = error.message
        self.details = error.details
        self.retry_after = error.retry_after

    def __str__(self) -> str:
        text = self.error if self.message is None else f"{self.error}: {self.message}"
        return f"{self.code} ({self.status}) {text} [{self.request_id}]"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code})"

    @property
    def party(self) -> str | None:
        """Return `sender` or `receiver` if the error concerns one of them, else None."""
        return self._get_text("party")

    def _get_text(self, name: str) -> str | None:
        value = self.details.get(name)
        return value if isinstance(value, str) else None

    def _get_integer(self, name: str) -> int | None:
        value = self.details.get(name)
        return value if isinstance(value, int) else None


class BadRequestError(ApiError):
    """400, 405, 413, 422: the request is invalid or cannot be fulfilled."""

    @property
    def fields(self) -> dict[str, str]:
        """Return the validation errors by field name."""
        fields = self.details.get("fields")
        return fields if isinstance(fields, dict) else {}


class UnauthorizedError(ApiError, code=Code.UNAUTHORIZED):
    """401: the credential is not accepted."""


class TransactionDeclinedError(ApiError):
    """402, 403: the transaction was declined and stored as failed.

    The decline consumes the idempotency key. Operations that move no money, such as linking a
    card, can raise the same errors; they store nothing.
    """


class ForbiddenError(ApiError, code=Code.FORBIDDEN):
    """403: not allowed with this credential, or not in the current state."""


class NotFoundError(ApiError, code=Code.NOT_FOUND):
    """404: the resource does not exist."""


class ConflictError(ApiError):
    """409: the resource's state does not allow the operation, or a value was already used."""


class RetryableError(ApiError):
    """429, 503: the request was not executed, and the retry policy allows no further attempt."""


class ServerError(ApiError):
    """5xx except 503: the gateway failed."""


_CLASS_BY_STATUS: dict[int, type[ApiError]] = {
    401: UnauthorizedError,
    402: TransactionDeclinedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    429: RetryableError,
    503: RetryableError,
}


def get_class_for_status(status: int) -> type[ApiError]:
    """Return the exception class for an error code that this client does not know."""
    return _CLASS_BY_STATUS.get(status, BadRequestError if status < 500 else ServerError)


def build_api_error(error: ErrorResponse) -> ApiError:
    return ApiError._classes_by_code.get(error.code, get_class_for_status(error.status))(error)
