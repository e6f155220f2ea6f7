"""`tapgate after-recovery`: make a recovered database safe to serve, and say what to reconcile."""

from collections.abc import Sequence
from typing import Any, Final

from tapgate.business.approvals.operations import cancel_open
from tapgate.cli import operator
from tapgate.events.audit.trail import AuditTrail
from tapgate.http.api.services import Services
from tapgate.runtime.store.revocation import advance_delivery_numbers, revoke_credentials
from tapgate_client import ids

_trail: Final = AuditTrail("installation")

#: What had left the platform, or was about to, and whose other side continued after the recovered
#: time.
_OPEN_ITEMS: Final = {
    "payouts sent to a bank": "SELECT count(*) FROM payouts WHERE status = 'submitted'",
    "payouts not yet sent to a bank": "SELECT count(*) FROM payouts WHERE status = 'requested'",
    "webhook deliveries that will be sent again": (
        "SELECT count(*) FROM deliveries WHERE status = 'pending'"
    ),
    "messages that will be sent again": "SELECT count(*) FROM messages WHERE status = 'pending'",
    "transfers to other books without a final response": (
        "SELECT count(*) FROM book_transfers WHERE status IN ('pending', 'stopped')"
    ),
    "transactions under review": (
        "SELECT count(*) FROM transactions WHERE status = 'under_review'"
    ),
}


async def prepare(services: Services) -> None:
    """End what the recovery revived, and print what to reconcile. Safe to repeat."""
    actor = operator.build_actor()
    async with services.transaction() as tx:
        ended = await revoke_credentials(tx)
        await services.authenticator.sessions.publish_change(tx)
        ended["approval requests"] = await cancel_open(
            tx, actor, reason="The database was recovered to an earlier time."
        )
        await advance_delivery_numbers(tx, tx.now())
        last = await tx.fetchrow("SELECT id, created_at FROM transactions ORDER BY id DESC LIMIT 1")
        closed_day = await tx.fetchval("SELECT max(day) FROM closed_days")
        open_items = {name: await tx.fetchval(sql) for name, sql in _OPEN_ITEMS.items()}
        changes = {name: (count, 0) for name, count in ended.items() if count}
        await _trail.record(tx, actor, None, "recovered", changes=changes)
    print("\n".join([*_describe_ended(ended), "", *_describe_work(last, closed_day, open_items)]))


def _describe_ended(ended: dict[str, int]) -> Sequence[str]:
    return ["Ended:", *(f"  {count:>7,} {name}" for name, count in ended.items())]


def _describe_work(last: Any, closed_day: Any, open_items: dict[str, int]) -> Sequence[str]:
    if last is None:
        newest = "The database has no transactions."
    else:
        public_id = ids.encode(ids.TRANSACTION, last["id"])
        newest = (
            f"The last transaction is {public_id} of {last['created_at']:%Y-%m-%d %H:%M:%S} UTC."
        )
    return [
        newest,
        "Everything after it is lost, although customers and merchants saw it as paid.",
        "",
        "Reconcile, with the time from then until the stop:",
        *(f"  {count:>7,} {name}" for name, count in open_items.items()),
        "  - Payments: compare with the records of merchants, partners and agents, by reference.",
        "  - Bank accounts: compare payouts and top-ups with the bank statement.",
        "  - Other books: they keep what they credited and delivered. Compare the transfers by ID"
        " before customers spend money that came back, and settle the difference.",
        "  - Webhooks: tell the owners of the endpoints the period; their records have more.",
        "  - Revocations: block cards and accounts again, and delete keys again.",
        "  - Closed days: "
        + ("none." if closed_day is None else f"{closed_day} is the last. Close later days again."),
        "Then run `tapgate verify --all`, and start the nodes.",
    ]
