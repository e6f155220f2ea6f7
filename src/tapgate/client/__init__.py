"""The typed client of the gateway: what the messenger and every third party call it with."""

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
    Conflict,
    ConnectionFailed,
    Declined,
    Forbidden,
    Invalid,
    NotFound,
    OutcomeUnknown,
    Refused,
    ServerFailed,
    TapgateError,
    TryLater,
    Unauthorized,
    UnexpectedAnswer,
)
from tapgate.client.gateway import AsyncGateway, Gateway
from tapgate.client.pages import AsyncPages, Page, Pages
from tapgate.client.retries import NO_RETRIES, Retries

__all__ = [
    "NO_RETRIES",
    "AccessToken",
    "ApiKey",
    "AsyncGateway",
    "AsyncPages",
    "Conflict",
    "ConnectionFailed",
    "Credential",
    "Declined",
    "Forbidden",
    "Gateway",
    "Invalid",
    "Login",
    "NotFound",
    "OutcomeUnknown",
    "Page",
    "Pages",
    "PartnerKey",
    "PosKey",
    "Refused",
    "Retries",
    "ServerFailed",
    "ServiceSecret",
    "TapgateError",
    "TryLater",
    "Unauthorized",
    "UnexpectedAnswer",
]
