"""Request log requests and responses."""

from enum import StrEnum
from typing import Annotated, Any

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.fields import IdRule, IntegerRange, Reference, Text
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.periods import PeriodBound
from tapgate_client.schemas.values import Example, Id, IpAddress, RequestId, Time, Word


class RequestResult(StrEnum):
    SUCCEEDED = "succeeded"  # status below 400
    FAILED = "failed"


class LoggedMethod(StrEnum):
    GET = "GET"
    POST = "POST"
    PUT = "PUT"
    DELETE = "DELETE"


class LoggedCaller(StrEnum):
    """Caller kind: an API key, or a signing key's owner."""

    APPLICATION = "api_key"
    PROCESSOR = "processor"
    PARTNER = "partner"


class LoggedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with an API key or a signing key. `endpoint` is the path template."""

    id: Id
    created_at: Time
    api_key_id: Id
    caller_type: LoggedCaller
    caller_name: Annotated[str, Example("Online store")]
    method: Annotated[str, Example("GET")]
    endpoint: Annotated[str, Example("/api/v1/cards/{serial}")]
    path: Annotated[str, Example("/api/v1/cards/TAP-000001")]
    status: Annotated[int, Example(200)]
    error_code: Word | None
    duration_ms: float
    request_id: RequestId
    ip: IpAddress
    #: Of requests that move money: the caller's key, and the transaction in the response.
    idempotency_key: Word | None
    transaction_id: Id | None


class LoggedRequestDetails(LoggedRequest, frozen=True, kw_only=True):
    """A logged request with its query and bodies.

    A body is null if it was not stored: bodies are not logged, or it is empty, too large or not
    JSON. Secrets, personal data and free texts are replaced by `***`.
    """

    query: dict[str, Any] | None
    request_body: dict[str, Any] | None
    response_body: dict[str, Any] | None


class RequestLogQuery(PageQuery, kw_only=True):
    api_key_id: Annotated[str, IdRule(ids.KEY)] | None = None
    method: LoggedMethod | None = None
    endpoint: Text | None = None
    status: Annotated[int, IntegerRange(100, 599)] | None = None
    result: RequestResult | None = None
    error_code: Reference | None = None
    request_id: Reference | None = None
    idempotency_key: Reference | None = None
    transaction_id: Annotated[str, IdRule(ids.TRANSACTION)] | None = None
    from_: PeriodBound | None = msgspec.field(default=None, name="from")
    to: PeriodBound | None = None
