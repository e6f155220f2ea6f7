"""Base class of the requests, and how one is sent."""

from typing import Any, ClassVar

import msgspec
import structlog

from tapgate.messenger.model import (
    GatewayUnreachable,
    RequestOutcome,
    RequestRejected,
    RequestSucceeded,
)
from tapgate_client import AsyncTapgateClient
from tapgate_client import exceptions as client
from tapgate_client.errors import Code

_log = structlog.get_logger()


class GatewayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of requests. The result of `perform` is the `result` of `RequestSucceeded`."""

    #: Whether a response of 503 leaves open if money has moved.
    moves_money: ClassVar[bool] = False

    async def perform(self, gateway: AsyncTapgateClient) -> Any:
        raise NotImplementedError


class CardNotOwnedError(Exception):
    """The card is not the subscriber's own; reported as not found to hide that it exists."""


async def perform(gateway: AsyncTapgateClient, request: GatewayRequest) -> RequestOutcome:
    """Send a request through the client; errors become outcomes."""
    try:
        return RequestSucceeded(result=await request.perform(gateway))
    except client.ApiError as error:
        return _map_error(request, error)
    except client.ApiConnectionError:
        return GatewayUnreachable(uncertain=False)
    except client.TapgateError:
        return GatewayUnreachable(uncertain=True)
    except CardNotOwnedError:
        return RequestRejected(code=Code.CARD_NOT_FOUND)


def _map_error(
    request: GatewayRequest, error: client.ApiError
) -> RequestRejected | GatewayUnreachable:
    if isinstance(error, client.UnavailableError):
        # A 503 can come before or during the commit, so the transfer may have been executed.
        return GatewayUnreachable(uncertain=request.moves_money)
    if isinstance(error, client.RateLimitedError) and not error.details:
        return GatewayUnreachable(uncertain=False)
    if isinstance(error, client.ServerError):
        return GatewayUnreachable(uncertain=True)
    is_postponed = error.code == Code.FORBIDDEN and "until" in error.details
    if error.code in (Code.UNAUTHORIZED, Code.FORBIDDEN) and not is_postponed:
        # The person cannot fix the messenger's credentials; the log entry is for the operator.
        _log.error("gateway.access_denied", code=error.code)
        return GatewayUnreachable(uncertain=False)
    return RequestRejected(code=error.code, message=error.message, details=error.details)
