"""One-time codes: six digits, valid for five minutes and three attempts.

At most one code is valid per purpose, holder, and requester, and only while the holder has the
phone number that it was sent to. After 15 wrong codes, no further
code is issued until 24 hours after the first of them; a correct code resets the count. A phone
number receives at most one code per minute and five per hour from the gateway and the messenger
(`send_limit.py`). The limit on wrong codes allows about 15 guesses per day; the limit on
sent codes alone would allow 15 per hour.
"""

import math
import secrets
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from tapgate.core.vault import Vault
from tapgate.ledger.one_time_codes import send_limit
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code

CODE_LIFETIME = timedelta(minutes=5)
MAX_ATTEMPTS = 3
MAX_FAILURES = 15
FAILURE_WINDOW = timedelta(days=1)

_HASH_PURPOSE = "one_time_code"


class CodeRequest(NamedTuple):
    """A code's purpose, the holder it concerns, and the requester.

    The holder is a subscriber or, to reset a PIN, the subscriber, card or agent that has the PIN.
    The column `subscriber_id` contains its ID.
    """

    purpose: Literal["reset_pin", "restricted_access", "replace_card"]
    holder_id: int
    requester: str


def generate_code() -> str:
    return f"{secrets.randbelow(1_000_000):06d}"


async def issue(tx: Transaction, vault: Vault, code_request: CodeRequest, phone_number: str) -> str:
    """Return a new code to be sent to this phone number. It replaces the previous code.

    Raises 429 if too many codes were sent to the number or too many wrong codes were entered.
    """
    now = tx.now()
    wait = await send_limit.reserve(tx, phone_number, now)
    if wait is not None:
        raise ApiError(
            Code.RATE_LIMITED,
            "Too many one-time codes were sent to this phone number. Try again later.",
            headers={"Retry-After": str(wait)},
            details={"limit": "codes", "retry_after": wait},
        )
    code = generate_code()
    issued = await tx.fetchval(
        f"""INSERT INTO one_time_codes AS kept
                (purpose, subscriber_id, asker, code_hash, expires_at)
            VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (purpose, subscriber_id, asker) DO UPDATE
            SET code_hash = excluded.code_hash, expires_at = excluded.expires_at, failures = 0
            WHERE kept.missed < {MAX_FAILURES} OR kept.missed_since <= $6
            RETURNING true""",
        *code_request,
        vault.keyed_hash(_HASH_PURPOSE, repr((*code_request, phone_number, code)).encode()),
        now + CODE_LIFETIME,
        now - FAILURE_WINDOW,
    )
    if not issued:
        raise await _build_too_many_failures_error(tx, code_request)
    return code


async def _build_too_many_failures_error(tx: Transaction, code_request: CodeRequest) -> ApiError:
    since: datetime = await tx.fetchval(
        "SELECT missed_since FROM one_time_codes "
        "WHERE purpose = $1 AND subscriber_id = $2 AND asker = $3",
        *code_request,
    )
    seconds = max(1, math.ceil((since + FAILURE_WINDOW - tx.now()).total_seconds()))
    return ApiError(
        Code.RATE_LIMITED,
        "Too many incorrect codes. Try again later.",
        headers={"Retry-After": str(seconds)},
        details={"limit": "wrong_codes", "retry_after": seconds},
    )


async def redeem(
    tx: Transaction, vault: Vault, code_request: CodeRequest, phone_number: str, code: str
) -> ApiError | None:
    """Consume the code in the same database transaction as the action it authorizes.

    `phone_number` is the holder's current number. A code that was sent to another number is
    invalid, so a lost phone is useless once the holder has a new number.

    If the code is invalid, the failed attempt is counted and `INVALID_OTP` is returned. It is not
    raised, because the caller must commit the count. After a rollback, the code is still valid.
    """
    remaining = await _attempt(tx, vault, code_request, phone_number, code)
    if remaining is None:
        return None
    return ApiError(Code.INVALID_OTP, details={"attempts_remaining": remaining})


async def _attempt(
    tx: Transaction, vault: Vault, code_request: CodeRequest, phone_number: str, code: str
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
    if stored is None or stored["failures"] >= MAX_ATTEMPTS or stored["expires_at"] <= tx.now():
        return 0
    if not _matches(stored["code_hash"], vault, code_request, phone_number, code):
        return await _count_failure(tx, code_request)
    await tx.execute(
        "DELETE FROM one_time_codes WHERE purpose = $1 AND subscriber_id = $2 AND asker = $3",
        *code_request,
    )
    return None


async def _count_failure(tx: Transaction, code_request: CodeRequest) -> int:
    now = tx.now()
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


def _matches(
    code_hash: bytes, vault: Vault, code_request: CodeRequest, phone_number: str, code: str
) -> bool:
    # Version 1 stored hashes without the phone number. Codes sent before an upgrade stay valid.
    return any(
        vault.matches_hash(code_hash, _HASH_PURPOSE, repr(content).encode())
        for content in ((*code_request, phone_number, code), (*code_request, code))
    )
