"""Conversation storage, with leases that give one task at a time exclusive write access.

The holder renews its lease periodically, and the lease expires soon after the holder dies. Every
write names the lease, so a task that has lost its lease cannot write. Lease deadlines use the
database clock, which all processes share.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import asyncpg
import msgspec

from tapgate.messenger.conversation.state import Conversation
from tapgate.messenger.model import CONVERSATION_TIMEOUT_SECONDS
from tapgate.runtime.cached_result import CachedResult
from tapgate.runtime.health import MAX_AGE_SECONDS
from tapgate.runtime.store.database import Database
from tapgate_client.clock import Clock
from tapgate_client.errors import unavailable

LEASE_DURATION = timedelta(seconds=5)
_RENEW_INTERVAL_SECONDS = 1.5
_ACQUIRE_TIMEOUT_SECONDS = 20.0
_MIN_BACKOFF_SECONDS = 0.01
_MAX_BACKOFF_SECONDS = 0.25
_MAX_CLOCK_SKEW_SECONDS = 60


class LeaseLostError(Exception):
    """This task no longer holds the conversation's lease; nothing was written."""


class LeasedConversation(msgspec.Struct, frozen=True, kw_only=True):
    address: str
    lease: int
    conversation: Conversation
    #: Latest send time among the webhook messages already handled, in Unix seconds.
    heard_until: int
    #: The conversation's last messages, sealed; None if it has expired.
    transcript: bytes | None


@contextlib.asynccontextmanager
async def acquire(
    database: Database,
    address: str,
    now: datetime,
    *,
    timeout_seconds: float = _ACQUIRE_TIMEOUT_SECONDS,
) -> AsyncIterator[LeasedConversation]:
    """Lease the conversation exclusively for this task.

    Raises `ApiError` with status 503 if the lease is not available within the timeout.
    """
    leased = await _acquire_with_timeout(database, address, now, timeout_seconds)
    renewal = asyncio.create_task(_renew(database, leased))
    try:
        yield leased
    finally:
        renewal.cancel()
        # Release even on cancellation, so that other tasks do not wait for the lease to expire.
        await asyncio.shield(_release(database, leased))


async def save(
    tx: asyncpg.Connection | Database,
    leased: LeasedConversation,
    conversation: Conversation,
    *,
    now: datetime,
    heard_until: int = 0,
    transcript: bytes | None = None,
) -> None:
    """Save the conversation if the lease is still leased, else raise `LeaseLostError`.

    Without a `transcript`, the stored one is kept.

    The update locks the row, so the lease cannot change before the database transaction ends.
    """
    saved = await tx.fetchval(
        """UPDATE messenger.conversations
           SET state = $3, expires_at = $4, heard_until = greatest(heard_until, $5),
               transcript = coalesce($6, transcript)
           WHERE address = $1 AND lease = $2 RETURNING true""",
        leased.address,
        leased.lease,
        msgspec.to_builtins(conversation),
        now + timedelta(seconds=CONVERSATION_TIMEOUT_SECONDS),
        _clamp_sent_at(heard_until, now),
        transcript,
    )
    if not saved:
        raise LeaseLostError


def _clamp_sent_at(sent_at: int, now: datetime) -> int:
    """Return the send time, or the current time if the send time is too far in the future.

    A small provider clock skew is accepted. A larger skew would mark all following messages
    as late until the local clock catches up.
    """
    current_time = int(now.timestamp())
    return sent_at if sent_at <= current_time + _MAX_CLOCK_SKEW_SECONDS else current_time


async def count_active(database: Database, now: datetime) -> int:
    count: int = await database.fetchval(
        "SELECT count(*) FROM messenger.conversations WHERE expires_at > $1", now
    )
    return count


def cache_active_count(database: Database, clock: Clock) -> CachedResult[int]:
    """Return the cached number of active conversations."""
    return CachedResult(lambda: count_active(database, clock()), MAX_AGE_SECONDS)


async def _acquire_with_timeout(
    database: Database, address: str, now: datetime, timeout_seconds: float
) -> LeasedConversation:
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    pause = _MIN_BACKOFF_SECONDS
    while (leased := await _try_acquire(database, address, now)) is None:
        if asyncio.get_running_loop().time() > deadline:
            raise unavailable("Another message in this conversation is still being processed")
        await asyncio.sleep(pause)
        pause = min(pause * 2, _MAX_BACKOFF_SECONDS)
    return leased


async def _try_acquire(
    database: Database, address: str, now: datetime
) -> LeasedConversation | None:
    lease = secrets.randbits(63)
    row = await database.fetchrow(
        """INSERT INTO messenger.conversations AS c (address, lease, leased_until)
           VALUES ($1, $2, clock_timestamp() + $3)
           ON CONFLICT (address) DO UPDATE
           SET lease = excluded.lease, leased_until = excluded.leased_until
           WHERE c.lease IS NULL OR c.leased_until <= clock_timestamp()
           RETURNING c.state, c.heard_until, c.expires_at, c.transcript""",
        address,
        lease,
        LEASE_DURATION,
    )
    if row is None:
        return None
    return LeasedConversation(
        address=address,
        lease=lease,
        conversation=_restore_conversation(row["state"], row["expires_at"], now),
        heard_until=row["heard_until"],
        transcript=row["transcript"] if row["expires_at"] and row["expires_at"] > now else None,
    )


def _restore_conversation(
    state: object, expires_at: datetime | None, now: datetime
) -> Conversation:
    if state is None or expires_at is None:
        return Conversation()
    try:
        conversation = msgspec.convert(state, Conversation)
    except msgspec.ValidationError:
        # A different version of this code wrote the state, so start over rather than guess.
        return Conversation(lapsed=True)
    if expires_at > now:
        return conversation
    return Conversation(
        question=conversation.question,
        lapsed=conversation.lapsed or conversation.operation is not None,
    )


async def _renew(database: Database, leased: LeasedConversation) -> None:
    while True:
        await asyncio.sleep(_RENEW_INTERVAL_SECONDS)
        # A failed renewal is retried. If the lease was lost, the holder's next write fails.
        with contextlib.suppress(Exception):
            await database.execute(
                """UPDATE messenger.conversations SET leased_until = clock_timestamp() + $3
                   WHERE address = $1 AND lease = $2""",
                leased.address,
                leased.lease,
                LEASE_DURATION,
            )


async def _release(database: Database, leased: LeasedConversation) -> None:
    # If this fails, the lease expires. The row of a conversation that was never saved is deleted.
    with contextlib.suppress(Exception):
        await database.execute(
            """WITH unsaved AS (
                   DELETE FROM messenger.conversations
                   WHERE address = $1 AND lease = $2 AND expires_at IS NULL)
               UPDATE messenger.conversations SET lease = NULL, leased_until = NULL
               WHERE address = $1 AND lease = $2 AND expires_at IS NOT NULL""",
            leased.address,
            leased.lease,
        )
