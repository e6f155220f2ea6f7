"""Search for subscribers and cards. Hidden ones are found only by their ID or serial."""

from tapgate.auth.disclosure import is_hidden
from tapgate.business.customers.cards import queries as card_queries
from tapgate.business.customers.cards.model import Card
from tapgate.business.customers.subscribers import queries as subscriber_queries
from tapgate.business.customers.subscribers.model import Subscriber
from tapgate.business.search.model import Match, Search, build_match
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.search import RESTRICTED_SUBSCRIBER, SearchType


async def find_subscribers(search: Search) -> list[Match]:
    """Find subscribers by ID, phone number or the beginning of the first or last name.

    If there are few of them, further ones are found by parts of names, phone numbers and document
    numbers.
    """
    subscriber_id = search.decode_id(ids.SUBSCRIBER)
    if subscriber_id is not None:
        return await _get_subscriber(search, subscriber_id)
    found = await subscriber_queries.search(
        search.database,
        search.caller,
        search.now,
        text=search.text,
        name=search.name_prefix,
        phones=search.phone_prefixes,
        words=None if search.phone_number else search.words,
        limit=search.limit,
    )
    return [_build_subscriber_match(search, subscriber) for subscriber in found]


async def _get_subscriber(search: Search, subscriber_id: int) -> list[Match]:
    """Return the subscriber with this ID. Of a hidden one, only the status is disclosed."""
    try:
        subscriber = await subscriber_queries.get(search.database, subscriber_id)
    except ApiError as error:
        if error.code is not Code.SUBSCRIBER_NOT_FOUND:
            raise
        return []
    if subscriber.restricted and await is_hidden(
        search.database, search.caller, search.now, subscriber_id
    ):
        match = build_match(
            SearchType.SUBSCRIBER,
            search.text,
            RESTRICTED_SUBSCRIBER,
            status=subscriber.status,
            is_exact=True,
        )
        return [match]
    return [_build_subscriber_match(search, subscriber)]


def _build_subscriber_match(search: Search, subscriber: Subscriber) -> Match:
    public_id = ids.encode(ids.SUBSCRIBER, subscriber.id)
    return build_match(
        SearchType.SUBSCRIBER,
        public_id,
        subscriber.name,
        subscriber.phone_number,
        status=subscriber.status,
        is_exact=search.text in (public_id, subscriber.id_number)
        or search.phone_number == subscriber.phone_number,
    )


async def find_cards(search: Search) -> list[Match]:
    """Find cards by serial, the beginning of a serial, or UID in any notation."""
    found = await card_queries.list_by_serial_prefix(
        search.database, search.caller, search.now, search.text, search.limit
    )
    exact = await card_queries.find(search.database, search.text)
    if exact is None:
        return [_build_card_match(search, card) for card in found]
    others = [card for card in found if card.id != exact.id]
    return [*await _disclose_card(search, exact), *(_build_card_match(search, c) for c in others)]


async def _disclose_card(search: Search, card: Card) -> list[Match]:
    """Return the card that matches exactly. A UID must not reveal a hidden subscriber's card."""
    if (
        card.restricted
        and card.subscriber_id is not None
        and await is_hidden(search.database, search.caller, search.now, card.subscriber_id)
    ):
        status = card.status_at(search.now)
        match = build_match(
            SearchType.CARD,
            card.serial,
            card.serial,
            RESTRICTED_SUBSCRIBER,
            status=status,
            is_exact=True,
        )
        return [match] if card.serial == search.text else []
    return [_build_card_match(search, card, is_exact=True)]


def _build_card_match(search: Search, card: Card, *, is_exact: bool = False) -> Match:
    return build_match(
        SearchType.CARD,
        card.serial,
        card.serial,
        card.child_name or card.subscriber_name or "Unassigned",
        status=card.status_at(search.now),
        is_exact=is_exact or card.serial.upper() == search.text.upper(),
    )
