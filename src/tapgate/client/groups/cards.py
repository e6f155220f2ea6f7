"""Operations on cards."""

from tapgate.client.encoding import Money, encode_amount, omit_none
from tapgate.client.operation import (
    ListOperation,
    M,
    Operation,
    OperationGroup,
    build_get,
    build_operation,
    build_post,
    operation,
)
from tapgate.client.pagination import build_list, list_operation
from tapgate.client.records.cards import BlockCardResponse, Card, CardResponse, UploadCardsResponse

_COLLECTION_PATH = "/api/v1/cards"
_RESOURCE_PATH = f"{_COLLECTION_PATH}/{{serial}}"


class Cards(OperationGroup[M]):
    @operation
    def link(self, *, subscriber_id: str, card_serial: str, pin: str) -> Operation[CardResponse]:
        """Link a card to a subscriber. The card uses the subscriber's PIN."""
        body = omit_none(subscriber_id=subscriber_id, card_serial=card_serial, pin=pin)
        return build_post(f"{_COLLECTION_PATH}/link", CardResponse, body)

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
    ) -> Operation[CardResponse]:
        """Link a child card.

        A child card has its own PIN and spends from the parent's wallet, up to a daily limit.
        """
        body = omit_none(
            parent_subscriber_id=parent_subscriber_id,
            card_serial=card_serial,
            parent_pin=parent_pin,
            child_pin=child_pin,
            daily_limit=encode_amount(daily_limit),
            child_name=child_name,
            child_relationship=child_relationship,
        )
        return build_post(f"{_COLLECTION_PATH}/child", CardResponse, body)

    @list_operation
    def list(
        self,
        *,
        subscriber_id: str | None = None,
        status: str | None = None,
        type: str | None = None,
        search: str | None = None,
        limit: int | None = None,
    ) -> ListOperation[Card]:
        """List cards, newest first. `limit` is the page size."""
        query = omit_none(
            subscriber_id=subscriber_id, status=status, type=type, search=search, limit=limit
        )
        return build_list(_COLLECTION_PATH, Card, query)

    @operation
    def get(self, serial: str) -> Operation[Card]:
        return build_get(_RESOURCE_PATH, Card, serial=serial)

    @operation
    def block(self, serial: str, *, reason: str) -> Operation[BlockCardResponse]:
        """Block a card.

        The reasons `lost`, `stolen` and `damaged` block it permanently. The reasons `fraud`,
        `customer_request` and `compliance` can be reversed with `unblock`.
        """
        return build_post(
            f"{_RESOURCE_PATH}/block", BlockCardResponse, omit_none(reason=reason), serial=serial
        )

    @operation
    def unblock(self, serial: str, *, reason: str | None = None) -> Operation[CardResponse]:
        return build_post(
            f"{_RESOURCE_PATH}/unblock", CardResponse, omit_none(reason=reason), serial=serial
        )

    @operation
    def upload(self, file: bytes) -> Operation[UploadCardsResponse]:
        """Create cards from a CSV file. Existing cards are skipped."""
        return build_operation(
            "sets",
            "POST",
            f"{_COLLECTION_PATH}/upload-csv",
            UploadCardsResponse,
            content=file,
            content_type="text/csv",
        )
