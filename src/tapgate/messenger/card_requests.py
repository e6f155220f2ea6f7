"""Requests about cards, and about PIN holders of a phone number."""

import msgspec

from tapgate.core.public_names import clean_person_name
from tapgate.messenger.agent_requests import find_agent, to_agent
from tapgate.messenger.gateway_requests import (
    CardNotOwnedError,
    GatewayRequest,
    find_subscriber,
    to_subscriber,
)
from tapgate.messenger.model import Agent, Card, SecretStruct, Subscriber
from tapgate_client import AsyncTapgateClient
from tapgate_client.schemas.cards import CardRecord, CardStatus, CardType, DisclosedCard


class ListCards(GatewayRequest, frozen=True, kw_only=True):
    subscriber_id: str

    async def perform(self, gateway: AsyncTapgateClient) -> list[Card]:
        listed = gateway.cards.list(subscriber_id=self.subscriber_id)
        return [to_card(item) for item in (await listed.get_page()).data]


class BlockCard(GatewayRequest, frozen=True, kw_only=True):
    subscriber_id: str
    card_serial: str
    reason: str  # lost, stolen, damaged, customer_request

    async def perform(self, gateway: AsyncTapgateClient) -> Card:
        await _require_own_card(gateway, self.subscriber_id, self.card_serial)
        return to_card((await gateway.cards.block(self.card_serial, reason=self.reason)).card)


class UnblockCard(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    """Unblock a card after verifying the subscriber's PIN."""

    subscriber_id: str
    card_serial: str
    pin: str

    async def perform(self, gateway: AsyncTapgateClient) -> Card:
        await _require_own_card(gateway, self.subscriber_id, self.card_serial)
        await gateway.subscribers.verify_pin(self.subscriber_id, pin=self.pin)
        return to_card((await gateway.cards.unblock(self.card_serial)).card)


class PinHolders(msgspec.Struct, frozen=True, kw_only=True):
    """PIN holders whose PIN a phone number can reset."""

    subscriber: Subscriber | None
    agent: Agent | None
    child_cards: list[Card]


class FindPinHolders(GatewayRequest, frozen=True, kw_only=True):
    phone: str

    async def perform(self, gateway: AsyncTapgateClient) -> PinHolders:
        found = await find_subscriber(gateway, self.phone)
        agent = await find_agent(gateway, self.phone)
        cards = [] if found is None else await ListCards(subscriber_id=found.id).perform(gateway)
        return PinHolders(
            subscriber=None if found is None else to_subscriber(found),
            agent=None if agent is None else to_agent(agent),
            child_cards=[
                card
                for card in cards
                if card.type == CardType.CHILD
                and card.status in (CardStatus.ACTIVE, CardStatus.BLOCKED)
            ],
        )


def to_card(record: CardRecord | DisclosedCard) -> Card:
    return Card(
        serial=record.serial,
        type=record.type or None,  # unset if the subscriber is restricted
        status=record.status,
        holder_name=clean_person_name(record.holder_name) if record.holder_name else None,
    )


async def _require_own_card(
    gateway: AsyncTapgateClient, subscriber_id: str, card_serial: str
) -> None:
    card = await gateway.cards.get(card_serial)
    if card.subscriber_id != subscriber_id:
        raise CardNotOwnedError
