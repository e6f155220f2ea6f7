"""Endpoint handlers that change and reset PINs for subscribers, child cards and agents."""

from typing import TypeVar

from tapgate.business.pins.operations import PinOperations
from tapgate.http.api.request_context import RequestContext
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.agents import AgentPinChange
from tapgate_client.schemas.common import SuccessResponse
from tapgate_client.schemas.subscribers import PinChange, PinReset

Key = TypeVar("Key")


async def change_pin(
    request: RequestContext,
    tx: Transaction,
    operations: PinOperations[Key],
    key: Key,
    body: PinChange | AgentPinChange,
) -> SuccessResponse:
    services = request.services
    await operations.change(
        tx, request.actor, key, body.old_pin, body.new_pin, pin_verifier=services.pin_verifier
    )
    return SuccessResponse(message="PIN changed")


async def request_pin_reset(
    request: RequestContext,
    tx: Transaction,
    operations: PinOperations[Key],
    key: Key,
    receiver: str,
) -> SuccessResponse:
    """Send a one-time code to the phone of `receiver`, such as "parent"."""
    await operations.request_reset(tx, request.actor, key, vault=request.services.vault)
    return SuccessResponse(message=f"A one-time code was sent to the {receiver}'s phone")


async def reset_pin(
    request: RequestContext,
    tx: Transaction,
    operations: PinOperations[Key],
    key: Key,
    body: PinReset,
) -> SuccessResponse:
    services = request.services
    await operations.reset(
        tx,
        request.actor,
        key,
        body.otp,
        body.new_pin,
        pin_verifier=services.pin_verifier,
        vault=services.vault,
    )
    return SuccessResponse(message="PIN reset")
