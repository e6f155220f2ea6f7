"""Money requests for a subscriber identified by ID or by card."""

from typing import ClassVar

from tapgate import ids
from tapgate.api.request_context import RequestContext
from tapgate.errors import invalid_field
from tapgate.ledger import commands
from tapgate.ledger.commands import Party
from tapgate.schemas.common import build_missing_field_error
from tapgate.schemas.fields import CardSerial, Text
from tapgate.subscribers.restriction import require_subscriber_access
from tapgate.transactions.submit import MoneyRequest, decode_id


class CustomerMoneyRequest(MoneyRequest, kw_only=True):
    """Money request for a subscriber, identified by `subscriber_id` or by `card_serial`."""

    OMITTED_IN_EXAMPLES: ClassVar = ("card_serial",)

    subscriber_id: Text | None = None
    card_serial: CardSerial | None = None

    def __post_init__(self) -> None:
        if self.subscriber_id is None and self.card_serial is None:
            raise build_missing_field_error("subscriber_id")
        if self.subscriber_id is not None and self.card_serial is not None:
            # The two fields could identify different subscribers.
            raise invalid_field("card_serial", "must not be combined with subscriber_id")

    @property
    def customer(self) -> Party:
        if self.card_serial is not None:
            return commands.card_party(self.card_serial)
        return commands.subscriber_party(decode_id(ids.SUBSCRIBER, self.subscriber_id))


async def require_customer_access(
    request: RequestContext, subscriber_id: str | None, card_serial: str | None = None
) -> None:
    """Require access to the subscriber of a request that carries no subscriber PIN.

    The receipt or the decline reveals the balance, and not every caller may see the balance of a
    restricted subscriber. If the subscriber does not exist, the ledger rejects the command later.
    """
    row = await request.services.database.fetchrow(
        """SELECT id, restricted FROM subscribers
           WHERE id = coalesce((SELECT subscriber_id FROM cards WHERE serial = $1), $2)""",
        card_serial,
        decode_id(ids.SUBSCRIBER, subscriber_id),
    )
    if row is not None:
        await require_subscriber_access(
            request.services.database, request, row["id"], restricted=row["restricted"]
        )
