"""One-time codes: six digits, five minutes, three tries; at most one open for each question."""

import hmac
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

import asyncpg

from tapgate.errors import ApiError, Code
from tapgate.store.database import Database
from tapgate.vault import Vault

LIFETIME = timedelta(minutes=5)
TRIES = 3


class Question(NamedTuple):
    """What a code allows, about whom, and whose asking it was."""

    purpose: Literal["reset_pin", "restricted_access"]
    subscriber_id: int
    asker: str


async def issue(tx: asyncpg.Connection, vault: Vault, question: Question, now: datetime) -> str:
    """A new code to be sent to the subscriber's phone. It replaces the one before."""
    code = f"{secrets.randbelow(1_000_000):06d}"
    await tx.execute(
        """INSERT INTO one_time_codes (purpose, subscriber_id, asker, code_hash, expires_at)
           VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (purpose, subscriber_id, asker) DO UPDATE
           SET code_hash = excluded.code_hash, expires_at = excluded.expires_at, failures = 0""",
        *question,
        _hash(vault, question, code),
        now + LIFETIME,
    )
    return code


@asynccontextmanager
async def redeeming(
    database: Database, vault: Vault, question: Question, code: str, now: datetime
) -> AsyncIterator[asyncpg.Connection]:
    """The database transaction in which to do what the code allows; it uses the code up.

    A wrong code never gets inside, and its try is committed before INVALID_OTP is raised. When
    what is done inside fails, the code is as it was.
    """
    async with database.transaction() as tx:
        remaining = await _try(tx, vault, question, code, now)
        if remaining is None:
            yield tx
            return
    raise ApiError(Code.INVALID_OTP, details={"attempts_remaining": remaining})


async def _try(
    tx: asyncpg.Connection, vault: Vault, question: Question, code: str, now: datetime
) -> int | None:
    """None: it is right and used up. Else how many tries are left."""
    # The lock makes tries at the same time queue, each seeing the count of the one before.
    stored = await tx.fetchrow(
        "SELECT code_hash, failures, expires_at FROM one_time_codes "
        "WHERE purpose = $1 AND subscriber_id = $2 AND asker = $3 FOR UPDATE",
        *question,
    )
    if stored is None or stored["failures"] >= TRIES or stored["expires_at"] <= now:
        return 0
    if not hmac.compare_digest(stored["code_hash"], _hash(vault, question, code)):
        return await _count_failure(tx, question)
    await tx.execute(
        "DELETE FROM one_time_codes WHERE purpose = $1 AND subscriber_id = $2 AND asker = $3",
        *question,
    )
    return None


async def _count_failure(tx: asyncpg.Connection, question: Question) -> int:
    failures: int = await tx.fetchval(
        "UPDATE one_time_codes SET failures = failures + 1 "
        "WHERE purpose = $1 AND subscriber_id = $2 AND asker = $3 RETURNING failures",
        *question,
    )
    return TRIES - failures


def _hash(vault: Vault, question: Question, code: str) -> bytes:
    return vault.keyed_hash("one_time_code", repr((*question, code)).encode())
