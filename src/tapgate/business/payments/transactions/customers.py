"""Subscribers of money requests, identified by ID or by card."""

from tapgate.business.customers.subscribers.restriction import require_subscriber_access
from tapgate.business.payments.transactions.money_requests import decode_id
from tapgate.http.api.request_context import GuardedRequest
from tapgate.ledger import commands
from tapgate.ledger.commands import Party
from tapgate_client import ids
from tapgate_client.schemas.transactions import CustomerMoneyRequest


def build_customer_party(body: CustomerMoneyRequest) -> Party:
    if body.card_serial is not None:
        return commands.card_party(body.card_serial)
    return commands.subscriber_party(decode_id(ids.SUBSCRIBER, body.subscriber_id))


async def require_customer_access(
    request: GuardedRequest, subscriber_id: str | None, card_serial: str | None = None
) -> None:
    """Require access to a request's subscriber if the request has no subscriber PIN.

    The receipt or the decline reveals the balance, and not every caller may see the balance of a
    restricted subscriber. If the subscriber does not exist, the ledger rejects the command later.
    """
    database = request.services.database
    row = await database.fetchrow(
        """SELECT id, restricted FROM subscribers
           WHERE id = coalesce((SELECT subscriber_id FROM cards WHERE serial = $1), $2)""",
        card_serial,
        decode_id(ids.SUBSCRIBER, subscriber_id),
    )
    if row is not None:
        now, restricted = request.services.clock(), row["restricted"]
        await require_subscriber_access(
            database, request.caller, now, row["id"], restricted=restricted
        )
