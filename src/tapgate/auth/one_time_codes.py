"""One-time codes: six digits, valid for five minutes and three attempts.

At most one code is valid per purpose, subscriber, and requester. After 15 wrong codes, no further
code is issued until 24 hours after the first of them; a correct code resets the count. A phone
number receives at most one code per minute and five per hour from the gateway and the messenger
(`store/code_send_limit.py`). The limit on wrong codes allows about 15 guesses per day; the limit on
sent codes alone would allow 15 per hour.
"""

import hmac
import math
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

import asyncpg

from tapgate.errors import ApiError, Code
from tapgate.store import code_send_limit
from tapgate.store.transaction import Transaction
from tapgate.vault import Vault

CODE_LIFETIME = timedelta(minutes=5)
MAX_ATTEMPTS = 3
MAX_FAILURES = 15
FAILURE_WINDOW = timedelta(days=1)


class CodeRequest(NamedTuple):
    """Purpose of a code, the subscriber it concerns, and the requester."""

    purpose: Literal["reset_pin", "restricted_access"]
    subscriber_id: int
    requester: str


async def issue(
    tx: asyncpg.Connection,
    vault: Vault,
    code_request: CodeRequest,
    phone_number: str,
    now: datetime,
) -> str:
    """Return a new code to be sent to this phone number. It replaces the previous code.

    Raises 429 if too many codes were sent to the number or too many wrong codes were entered.
    """
    wait = await code_send_limit.reserve(tx, phone_number, now)
    if wait is not None:
        raise ApiError(
            Code.RATE_LIMITED,
            "Too many one-time codes were sent to this phone number. Try again later.",
            headers={"Retry-After": str(wait)},
        )
    code = f"{secrets.randbelow(1_000_000):06d}"
    issued = await tx.fetchval(
        f"""INSERT INTO one_time_codes AS kept
                (purpose, subscriber_id, asker, code_hash, expires_at)
            VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (purpose, subscriber_id, asker) DO UPDATE
            SET code_hash = excluded.code_hash, expires_at = excluded.expires_at, failures = 0
            WHERE kept.missed < {MAX_FAILURES} OR kept.missed_since <= $6
            RETURNING true""",
        *code_request,
        _hash(vault, code_request, code),
        now + CODE_LIFETIME,
        now - FAILURE_WINDOW,
    )
    if not issued:
        raise await _build_too_many_failures_error(tx, code_request, now)
    return code


async def _build_too_many_failures_error(
    tx: asyncpg.Connection, code_request: CodeRequest, now: datetime
) -> ApiError:
    since: datetime = await tx.fetchval(
        "SELECT missed_since FROM one_time_codes "
        "WHERE purpose = $1 AND subscriber_id = $2 AND asker = $3",
        *code_request,
    )
    seconds = max(1, math.ceil((since + FAILURE_WINDOW - now).total_seconds()))
    return ApiError(
        Code.RATE_LIMITED,
        "Too many incorrect codes. Try again later.",
        headers={"Retry-After": str(seconds)},
    )


@asynccontextmanager
async def redeem(
    open_transaction: Callable[[], AbstractAsyncContextManager[Transaction]],
    vault: Vault,
    code_request: CodeRequest,
    code: str,
    now: datetime,
) -> AsyncIterator[Transaction]:
    """Open a database transaction for the action that the code authorizes, and consume the code.

    If the code is invalid, the block is not entered: the failed attempt is committed, and
    `INVALID_OTP` is raised. If the block raises, the code is not consumed.
    """
    async with open_transaction() as tx:
        remaining = await _attempt(tx, vault, code_request, code, now)
        if remaining is None:
            yield tx
            return
    raise ApiError(Code.INVALID_OTP, details={"attempts_remaining": remaining})


async def _attempt(
    tx: asyncpg.Connection, vault: Vault, code_request: CodeRequest, code: str, now: datetime
) -> int | None:
    """Consume the code and return None if it is correct; otherwise return the remaining attempts.

    Returns 0 if there is no valid code.
    """
    # The row lock serializes concurrent attempts, so that each sees all earlier failures.
    stored = await tx.fetchrow(
        "SELECT code_hash, failures, expires_at FROM one_time_codes "
        "WHERE purpose = $1 AND subscriber_id = $2 AND asker = $3 FOR UPDATE",
        *code_request,
    )
    if stored is None or stored["failures"] >= MAX_ATTEMPTS or stored["expires_at"] <= now:
        return 0
    if not hmac.compare_digest(stored["code_hash"], _hash(vault, code_request, code)):
        return await _count_failure(tx, code_request, now)
    await tx.execute(
        "DELETE FROM one_time_codes WHERE purpose = $1 AND subscriber_id = $2 AND asker = $3",
        *code_request,
    )
    return None


async def _count_failure(tx: asyncpg.Connection, code_request: CodeRequest, now: datetime) -> int:
    failures: int = await tx.fetchval(
        """UPDATE one_time_codes
           SET failures = failures + 1,
               missed = CASE WHEN missed_since > $4 THEN missed + 1 ELSE 1 END,
               missed_since = CASE WHEN missed_since > $4 THEN missed_since ELSE $5 END
           WHERE purpose = $1 AND subscriber_id = $2 AND asker = $3 RETURNING failures""",
        *code_request,
        now - FAILURE_WINDOW,
        now,
    )
    return MAX_ATTEMPTS - failures


def _hash(vault: Vault, code_request: CodeRequest, code: str) -> bytes:
    return vault.keyed_hash("one_time_code", repr((*code_request, code)).encode())
