"""One reversal, one open recall and one open dispute of recent demo payments."""

import hashlib
from datetime import timedelta
from typing import Final

from tapgate.auth.actors import Actor
from tapgate.business.disputes import operations as disputes
from tapgate.business.payments.recalls import operations as recalls
from tapgate.http.api.services import Services
from tapgate.ledger import chart
from tapgate.ledger.commands import Reversal, ScopedIdempotencyKey
from tapgate_client import ids
from tapgate_client.schemas.disputes import DisputeReason, NewDispute
from tapgate_client.schemas.transactions import Channel

#: Old enough for a quiet night, and young enough for a recall.
_MAX_AGE: Final = timedelta(hours=20)
_REVERSAL_REASON: Final = "Paid in twice at the agent"


async def create_examples(services: Services, actor: Actor, *, excluded_account: int) -> None:
    """Undo the newest payments whose receiver still has the money."""
    cash_in = await _find_newest(services, chart.AGENT_CASHIN, excluded_account)
    transfer = await _find_newest(services, chart.TRANSFER_P2P, excluded_account)
    payment = await _find_newest(services, chart.POS_PAYMENT, excluded_account)
    if cash_in is not None:
        await services.ledger.submit(
            Reversal(
                original_id=cash_in,
                amount=None,
                channel=Channel.ADMIN,
                context={"memo": _REVERSAL_REASON, "requested_by": actor.id},
                audit=actor.build_audit_facts(_REVERSAL_REASON),
            )
        )
    if transfer is not None:
        await recalls.request_recall(
            services, actor, transfer, "Sent to the wrong number", _build_key(f"recall-{transfer}")
        )
    if payment is not None:
        body = NewDispute(
            transaction_id=ids.encode(ids.TRANSACTION, payment),
            reason=DisputeReason.NOT_RECEIVED,
            description="The goods were never delivered.",
        )
        async with services.transaction() as tx:
            await disputes.open_dispute(tx, actor, body, payment, _build_key(f"dispute-{payment}"))


async def _find_newest(
    services: Services, transaction_type: str, excluded_account: int
) -> int | None:
    found: int | None = await services.database.fetchval(
        """SELECT t.id FROM transactions t JOIN accounts payee ON payee.id = t.to_account
           WHERE t.type = $1 AND t.status = 'completed' AND payee.status = 'active'
             AND payee.balance - payee.held >= t.amount
             AND $2 NOT IN (t.from_account, t.to_account) AND t.created_at > $3
           ORDER BY t.id DESC LIMIT 1""",
        transaction_type,
        excluded_account,
        services.clock() - _MAX_AGE,
    )
    return found


def _build_key(request_id: str) -> ScopedIdempotencyKey:
    fingerprint = hashlib.blake2b(request_id.encode(), digest_size=16).digest()
    return ScopedIdempotencyKey("demo", request_id, fingerprint)
