"""Typed Python client for the gateway API, used by the messenger and by integrators."""

from tapgate.client.client import AsyncTapgateClient, TapgateClient
from tapgate.client.credentials import (
    AccessToken,
    ApiKey,
    Credential,
    Login,
    PartnerKey,
    PosKey,
    ServiceSecret,
)
from tapgate.client.exceptions import (
    ApiConnectionError,
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    OutcomeUnknownError,
    RetryableError,
    ServerError,
    TapgateError,
    TransactionDeclinedError,
    UnauthorizedError,
    UnexpectedResponseError,
)
from tapgate.client.pagination import AsyncPaginator, Page, Paginator
from tapgate.client.retries import NO_RETRIES, RetryPolicy

__all__ = [
    "NO_RETRIES",
    "AccessToken",
    "ApiConnectionError",
    "ApiError",
    "ApiKey",
    "AsyncPaginator",
    "AsyncTapgateClient",
    "BadRequestError",
    "ConflictError",
    "Credential",
    "ForbiddenError",
    "Login",
    "NotFoundError",
    "OutcomeUnknownError",
    "Page",
    "Paginator",
    "PartnerKey",
    "PosKey",
    "RetryPolicy",
    "RetryableError",
    "ServerError",
    "ServiceSecret",
    "TapgateClient",
    "TapgateError",
    "TransactionDeclinedError",
    "UnauthorizedError",
    "UnexpectedResponseError",
]
