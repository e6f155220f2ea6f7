"""What may go wrong with a call, by families. No text here holds what was sent."""

from typing import Any, ClassVar

import msgspec

from tapgate.errors import Code


class TapgateError(Exception):
    """A call that has no answer to give.

    `request_id` names the call: in the gateway's logs and, for an operation that moves money, the
    one to try again with.
    """

    def __init__(self, request_id: str) -> None:
        super().__init__(request_id)
        self.request_id = request_id


class ApiConnectionError(TapgateError):
    """The gateway was not reached, or what was asked changes nothing: nothing happened."""

    def __str__(self) -> str:
        return f"the gateway cannot be reached [{self.request_id}]"


class OutcomeUnknownError(TapgateError):
    """Whether it took place is not known: the answer never came.

    Money: call again with this `request_id`, and it moves once at most. Anything else: look first.
    """

    def __str__(self) -> str:
        return f"the answer did not come, it may have taken place [{self.request_id}]"


class UnexpectedResponseError(TapgateError):
    """Something answered that is not the gateway, or a gateway too different from this client."""

    def __init__(self, request_id: str, status: int) -> None:
        super().__init__(request_id)
        self.args = (request_id, status)
        self.status = status

    def __str__(self) -> str:
        return f"an answer with status {self.status} that is not the gateway's [{self.request_id}]"


class ErrorResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway said."""

    status: int
    code: str
    error: str
    message: str | None = None
    details: dict[str, Any] = {}
    request_id: str
    #: Seconds after which to ask again, where it said so.
    retry_after: float | None = None


class ApiError(TapgateError):
    """The gateway said no. There is a class for every code, below the one of its family."""

    #: The codes that a class itself stands for.
    CODE: ClassVar[Code | None] = None
    _classes_by_code: ClassVar[dict[str, type["ApiError"]]] = {}

    def __init_subclass__(cls, code: Code | None = None) -> None:
        super().__init_subclass__()
        cls.CODE = code
        if code is not None:
            ApiError._classes_by_code[code] = cls

    def __init__(self, refusal: ErrorResponse) -> None:
        super().__init__(refusal.request_id)
        self.args = (refusal,)
        self.status = refusal.status
        self.code = refusal.code
        self.error = refusal.error
        self.message = refusal.message
        self.details = refusal.details
        self.retry_after = refusal.retry_after

    def __str__(self) -> str:
        said = self.error if self.message is None else f"{self.error}: {self.message}"
        return f"{self.code} ({self.status}) {said} [{self.request_id}]"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code})"

    @property
    def party(self) -> str | None:
        """`sender` or `receiver`, where one of them is the cause."""
        return self._get_text("party")

    def _get_text(self, name: str) -> str | None:
        value = self.details.get(name)
        return value if isinstance(value, str) else None

    def _get_integer(self, name: str) -> int | None:
        value = self.details.get(name)
        return value if isinstance(value, int) else None


class BadRequestError(ApiError):
    """400, 405, 413, 422: asked for in the wrong way, or not possible."""

    @property
    def fields(self) -> dict[str, str]:
        """What is wrong, by field."""
        fields = self.details.get("fields")
        return fields if isinstance(fields, dict) else {}


class UnauthorizedError(ApiError, code=Code.UNAUTHORIZED):
    """401: the credential is not good."""


class TransactionDeclinedError(ApiError):
    """402, 403: a payment that was decided and recorded as failed. Its request id is used up."""


class ForbiddenError(ApiError, code=Code.FORBIDDEN):
    """403: not with this credential, or not now."""


class NotFoundError(ApiError, code=Code.NOT_FOUND):
    """404: there is no such thing."""


class ConflictError(ApiError):
    """409: it is already so, or something else is in the way."""


class RetryableError(ApiError):
    """429, 503: nothing took place; the client has already tried again for a while."""


class ServerError(ApiError):
    """5xx: a mistake on the other side."""


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
    """What a code that this client does not know is at least."""
    return _CLASS_BY_STATUS.get(status, BadRequestError if status < 500 else ServerError)


def build_api_error(refusal: ErrorResponse) -> ApiError:
    return ApiError._classes_by_code.get(refusal.code, get_class_for_status(refusal.status))(
        refusal
    )
