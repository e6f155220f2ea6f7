"""Typed Python client for the Tapgate API.

The names below are imported at first use: the gateway shares the schemas, and starts faster without
the client and its HTTP library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tapgate_client.client import AsyncTapgateClient, TapgateClient
    from tapgate_client.credentials import (
        AccessToken,
        ApiKey,
        Credential,
        Login,
        PartnerKey,
        PosKey,
        ServiceSecret,
    )
    from tapgate_client.exceptions import (
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
    from tapgate_client.pagination import AsyncPaginator, Paginator
    from tapgate_client.responses import File
    from tapgate_client.retries import NO_RETRIES, RetryPolicy

#: Version of the gateway, the messenger and all clients, which are released together. `make docs`
#: writes it into package files, deployment templates and documents.
VERSION = "2.0.0"

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

_MODULES = ("client", "credentials", "exceptions", "pagination", "responses", "retries")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            public = vars(import_module(f"{__name__}.{module}"))
            if name in public:
                return public[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
