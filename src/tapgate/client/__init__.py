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
    ApprovalRequiredError,
    AuthenticationError,
    ConflictError,
    DeclinedError,
    NotFoundError,
    OutcomeUnknownError,
    PermissionDeniedError,
    RateLimitedError,
    ServerError,
    SignatureError,
    TapgateError,
    UnavailableError,
    UnexpectedResponseError,
    ValidationError,
)
from tapgate.client.pagination import AsyncPaginator, Paginator
from tapgate.client.responses import File
from tapgate.client.retries import NO_RETRIES, RetryPolicy

__all__ = [
    "NO_RETRIES",
    "AccessToken",
    "ApiConnectionError",
    "ApiError",
    "ApiKey",
    "ApprovalRequiredError",
    "AsyncPaginator",
    "AsyncTapgateClient",
    "AuthenticationError",
    "ConflictError",
    "Credential",
    "DeclinedError",
    "File",
    "Login",
    "NotFoundError",
    "OutcomeUnknownError",
    "Paginator",
    "PartnerKey",
    "PermissionDeniedError",
    "PosKey",
    "RateLimitedError",
    "RetryPolicy",
    "ServerError",
    "ServiceSecret",
    "SignatureError",
    "TapgateClient",
    "TapgateError",
    "UnavailableError",
    "UnexpectedResponseError",
    "ValidationError",
]
