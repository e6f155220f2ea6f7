"""Claims on outbox messages: one sender per message, one message at a time per person.

Only a person's oldest waiting message can be claimed. A claim postpones the message for all other
senders, so the person's later messages wait too. If a sender is killed, nothing is lost: the
message is due again when the lease expires.
"""

import random
from datetime import datetime, timedelta

import msgspec

from tapgate.messenger.outbox import statuses
from tapgate.store.database import Database

#: Longer than sending one part of a message takes; the sender extends the lease after each part.
LEASE_DURATION = timedelta(seconds=45)
_MAX_BACKOFF_SECONDS = 60.0

_random = random.SystemRandom()


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A message leased to this process for sending."""

    id: int
    address: str
    content: bytes | None
    attempts: int
    created_at: datetime
    problem: str | None
    channel_message_id: str | None

    @property
    def accepted_part_ids(self) -> list[str]:
        """Provider's IDs of the parts that it has already accepted; `-` stands for a missing ID."""
        return (self.channel_message_id or "").split()


async def claim(
    database: Database, *, now: datetime, limit: int, address: str | None = None
) -> list[Claim]:
    """Claim up to `limit` due messages, longest due first, or the next due message to `address`."""
    columns = ", ".join(Claim.__struct_fields__)
    address_filter, values = ("true", ()) if address is None else ("address = $4", (address,))
    # The status is checked again on the locked row: another sender may have processed the message
    # after `oldest` was read.
    rows = await database.fetch(
        f"""WITH oldest AS MATERIALIZED (
                SELECT DISTINCT ON (address) id AS oldest_id FROM messenger.outbox
                WHERE status = 'waiting' AND {address_filter} ORDER BY address, id),
            due AS MATERIALIZED (
                SELECT id AS due_id FROM messenger.outbox JOIN oldest ON id = oldest_id
                WHERE status = 'waiting' AND next_attempt_at <= $1
                ORDER BY next_attempt_at, id LIMIT $3 FOR UPDATE OF outbox SKIP LOCKED)
            UPDATE messenger.outbox SET attempts = attempts + 1, next_attempt_at = $2
            FROM due WHERE id = due_id
            RETURNING {columns}""",
        now,
        now + LEASE_DURATION,
        limit,
        *values,
    )
    return [Claim(**row) for row in rows]


async def extend_lease(
    database: Database, claim: Claim, channel_ids: list[str], now: datetime
) -> None:
    """Record the accepted parts and renew the lease for the next part."""
    await database.execute(
        """UPDATE messenger.outbox SET channel_message_id = $3, next_attempt_at = $4
           WHERE id = $1 AND attempts = $2 AND status = 'waiting'""",
        claim.id,
        claim.attempts,
        " ".join(channel_ids),
        now + LEASE_DURATION,
    )


async def schedule_retry(database: Database, claim: Claim, problem: str, now: datetime) -> None:
    # The attempt count identifies the claim: another sender that claims the message increments it.
    await database.execute(
        """UPDATE messenger.outbox SET next_attempt_at = $3, problem = $4
           WHERE id = $1 AND attempts = $2 AND status = 'waiting'""",
        claim.id,
        claim.attempts,
        now + compute_backoff(claim.attempts),
        problem,
    )


async def complete(
    database: Database, claim: Claim, channel_ids: list[str], now: datetime, *, keep_content: bool
) -> None:
    async with database.transaction() as tx:
        await statuses.link_channel_ids(tx, claim.id, channel_ids, now)
        await tx.execute(
            """UPDATE messenger.outbox SET status = 'sent', channel_message_id = $2, problem = NULL,
                      content = CASE WHEN $3::boolean THEN content END,
                      report_at = CASE WHEN key LIKE $5 THEN $4::timestamptz END
               WHERE id = $1 AND status = 'waiting'""",
            claim.id,
            " ".join(channel_ids),
            keep_content,
            now,
            statuses.REPORTED_KEY_PATTERN,
        )


async def fail(
    database: Database, claim: Claim, problem: str, now: datetime, *, keep_content: bool
) -> None:
    await database.execute(
        """UPDATE messenger.outbox SET status = 'refused', problem = $3,
                  content = CASE WHEN $4::boolean THEN content END,
                  report_at = CASE WHEN key LIKE $6 THEN $5::timestamptz END
           WHERE id = $1 AND attempts = $2 AND status = 'waiting'""",
        claim.id,
        claim.attempts,
        problem,
        keep_content,
        now,
        statuses.REPORTED_KEY_PATTERN,
    )


def compute_backoff(attempts: int) -> timedelta:
    """Return an exponential backoff of 1, 2, 4, ... 60 seconds, with ±25% jitter."""
    seconds = min(_MAX_BACKOFF_SECONDS, 2.0 ** min(attempts - 1, 10))
    return timedelta(seconds=seconds * _random.uniform(0.75, 1.25))
