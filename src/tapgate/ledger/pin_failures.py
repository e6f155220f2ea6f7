"""Wrong PINs that were counted: of a subscriber and of the child cards that spend the same wallet.

Written with the try counter, under the lock of the wallet's account. Every one is kept, so that a
rule that is switched on knows what happened before; only an active rule has them counted.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Final

from tapgate.ledger.rules import MAX_WINDOW_SECONDS, ComplianceRule

#: Removed at most at once: more than are added, so that what is too old disappears in the end.
_PRUNE_LIMIT: Final = 100


async def add_failures(tx: Any, account_ids: Collection[int], now: datetime) -> None:
    """Also removes some of what no rule can count any more."""
    await tx.execute(
        "INSERT INTO pin_failures (account_id, failed_at) SELECT unnest($1::bigint[]), $2",
        list(account_ids),
        now,
    )
    # Others who remove at the same time are not waited for.
    await tx.execute(
        """DELETE FROM pin_failures WHERE ctid = ANY (ARRAY(
               SELECT ctid FROM pin_failures WHERE failed_at < $1 ORDER BY failed_at LIMIT $2
               FOR UPDATE SKIP LOCKED))""",
        now - timedelta(seconds=MAX_WINDOW_SECONDS),
        max(_PRUNE_LIMIT, 2 * len(account_ids)),
    )


async def count_failures(
    tx: Any, watches: Collection[ComplianceRule], account_ids: Collection[int], now: datetime
) -> dict[tuple[int, int], int]:
    """(rule, account) -> how many in the rule's window."""
    if not watches or not account_ids:
        return {}
    rows = await tx.fetch(
        """SELECT rule.id, failure.account_id, count(*)
           FROM unnest($2::bigint[], $3::timestamptz[]) AS rule (id, since)
           JOIN pin_failures failure
             ON failure.account_id = ANY ($1::bigint[]) AND failure.failed_at >= rule.since
           GROUP BY 1, 2""",
        list(account_ids),
        [rule.id for rule in watches],
        [now - timedelta(seconds=rule.window_seconds or 0) for rule in watches],
    )
    return {(rule_id, account_id): failures for rule_id, account_id, failures in rows}
