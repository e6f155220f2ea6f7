"""Requests that reset a forgotten PIN of a subscriber, an agent or a child card."""

from typing import Literal

import msgspec

from tapgate.messenger.gateway_requests.base import GatewayRequest
from tapgate.messenger.gateway_requests.cards import ListCards
from tapgate.messenger.gateway_requests.subscribers import find_subscriber, to_subscriber
from tapgate.messenger.model import Agent, Card, SecretStruct, Subscriber
from tapgate_client import AsyncTapgateClient
from tapgate_client.names import clean_business_name
from tapgate_client.schemas.cards import CardStatus, CardType

PinHolderType = Literal["subscriber", "agent", "card"]


class PinHolders(msgspec.Struct, frozen=True, kw_only=True):
    """Holders of the PINs that a phone number can reset."""

    subscriber: Subscriber | None
    agent: Agent | None
    child_cards: list[Card]


class FindPinHolders(GatewayRequest, frozen=True, kw_only=True):
    phone: str

    async def perform(self, gateway: AsyncTapgateClient) -> PinHolders:
        found = await find_subscriber(gateway, self.phone)
        agents = await gateway.agents.list(phone_number=self.phone, limit=1).get_page()
        cards = [] if found is None else await ListCards(subscriber_id=found.id).perform(gateway)
        return PinHolders(
            subscriber=None if found is None else to_subscriber(found),
            agent=next(
                (
                    Agent(id=item.id, name=clean_business_name(item.business_name or item.name))
                    for item in agents.data
                ),
                None,
            ),
            child_cards=[
                card
                for card in cards
                if card.type == CardType.CHILD
                and card.status in (CardStatus.ACTIVE, CardStatus.BLOCKED)
            ],
        )


class RequestPinReset(GatewayRequest, frozen=True, kw_only=True):
    """Send a code to the phone of the PIN's holder. A card's `holder_id` is its serial."""

    holder_type: PinHolderType
    holder_id: str

    async def perform(self, gateway: AsyncTapgateClient) -> None:
        match self.holder_type:
            case "subscriber":
                await gateway.subscribers.request_pin_reset(self.holder_id)
            case "agent":
                await gateway.agents.request_pin_reset(self.holder_id)
            case "card":
                await gateway.cards.request_pin_reset(self.holder_id)


class ResetPin(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    holder_type: PinHolderType
    holder_id: str
    code: str
    new_pin: str

    async def perform(self, gateway: AsyncTapgateClient) -> None:
        secrets = {"otp": self.code, "new_pin": self.new_pin}
        match self.holder_type:
            case "subscriber":
                await gateway.subscribers.reset_pin(self.holder_id, **secrets)
            case "agent":
                await gateway.agents.reset_pin(self.holder_id, **secrets)
            case "card":
                await gateway.cards.reset_pin(self.holder_id, **secrets)
