"""Requests about the subscriber's cards."""

from tapgate.messenger.gateway_requests.base import CardNotOwnedError, GatewayRequest
from tapgate.messenger.model import Card, SecretStruct
from tapgate_client import AsyncTapgateClient
from tapgate_client.names import clean_person_name
from tapgate_client.schemas.cards import CardRecord, DisclosedCard


class ListCards(GatewayRequest, frozen=True, kw_only=True):
    subscriber_id: str

    async def perform(self, gateway: AsyncTapgateClient) -> list[Card]:
        listed = gateway.cards.list(subscriber_id=self.subscriber_id)
        return [to_card(item) for item in (await listed.get_page()).data]


class LinkCard(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    """Link the card with a serial, or the card whose link the person pasted."""

    subscriber_id: str
    card_serial: str | None = None
    tap_url: str | None = None
    pin: str

    async def perform(self, gateway: AsyncTapgateClient) -> Card:
        linked = await gateway.cards.link(
            subscriber_id=self.subscriber_id,
            card_serial=self.card_serial,
            card_proof=self.tap_url,
            pin=self.pin,
        )
        return to_card(linked.card)


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


def to_card(record: CardRecord | DisclosedCard) -> Card:
    return Card(
        serial=record.serial,
        type=record.type or None,  # unset on the card of a restricted subscriber
        status=record.status,
        holder_name=clean_person_name(record.holder_name) if record.holder_name else None,
    )


async def _require_own_card(
    gateway: AsyncTapgateClient, subscriber_id: str, card_serial: str
) -> None:
    card = await gateway.cards.get(card_serial)
    if card.subscriber_id != subscriber_id:
        raise CardNotOwnedError
