"""Cards."""

from tapgate.client.operation import Group, Listing, M, Operation, act, described, operation, read
from tapgate.client.pages import listed, listing
from tapgate.client.records.cards import Card, CardBlocked, CardMoved, Uploaded
from tapgate.client.values import Money, given, money

_ALL = "/api/v1/cards"
_ONE = f"{_ALL}/{{serial}}"


class Cards(Group[M]):
    @operation
    def link(self, *, subscriber_id: str, card_serial: str, pin: str) -> Operation[CardMoved]:
        """The subscriber's PIN is the card's from then on."""
        body = given(subscriber_id=subscriber_id, card_serial=card_serial, pin=pin)
        return act(f"{_ALL}/link", CardMoved, body)

    @operation
    def link_child(
        self,
        *,
        parent_subscriber_id: str,
        card_serial: str,
        parent_pin: str,
        child_pin: str,
        daily_limit: Money,
        child_name: str,
        child_relationship: str | None = None,
    ) -> Operation[CardMoved]:
        """A card that spends from its parent's wallet, up to a daily limit, with its own PIN."""
        body = given(
            parent_subscriber_id=parent_subscriber_id,
            card_serial=card_serial,
            parent_pin=parent_pin,
            child_pin=child_pin,
            daily_limit=money(daily_limit),
            child_name=child_name,
            child_relationship=child_relationship,
        )
        return act(f"{_ALL}/child", CardMoved, body)

    @listing
    def list(
        self,
        *,
        subscriber_id: str | None = None,
        status: str | None = None,
        type: str | None = None,
        search: str | None = None,
        limit: int | None = None,
    ) -> Listing[Card]:
        """Newest first; `limit` is how many on a page."""
        query = given(
            subscriber_id=subscriber_id, status=status, type=type, search=search, limit=limit
        )
        return listed(_ALL, Card, query)

    @operation
    def get(self, serial: str) -> Operation[Card]:
        return read(_ONE, Card, serial=serial)

    @operation
    def block(self, serial: str, *, reason: str) -> Operation[CardBlocked]:
        """`lost`, `stolen` and `damaged` are for good; `fraud`, `customer_request` and `compliance`
        are not."""
        return act(f"{_ONE}/block", CardBlocked, given(reason=reason), serial=serial)

    @operation
    def unblock(self, serial: str, *, reason: str | None = None) -> Operation[CardMoved]:
        return act(f"{_ONE}/unblock", CardMoved, given(reason=reason), serial=serial)

    @operation
    def upload(self, file: bytes) -> Operation[Uploaded]:
        """New cards as a CSV file; those that are there already are skipped."""
        return described(
            "sets",
            "POST",
            f"{_ALL}/upload-csv",
            Uploaded,
            content=file,
            content_type="text/csv",
        )
