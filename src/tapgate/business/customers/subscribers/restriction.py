"""Access checks for restricted subscribers, on single requests and in lists.

The rules in `auth/disclosure.py` decide which callers cannot see a subscriber. Requests from API
keys, and from admins who have not verified a code, get 403 `OTP_REQUIRED`. Partners can fund a
restricted subscriber, but the receipt omits personal data.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from tapgate.auth.actors import Actor
from tapgate.auth.disclosure import (
    Audience,
    Reader,
    build_hidden_condition,
    find_hidden_accounts,
    is_hidden,
)
from tapgate.auth.principals import Principal
from tapgate.business.customers.subscribers.model import Subscriber, require_not_closed
from tapgate.runtime.store.conditions import Conditions
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code

_REJECTION_MESSAGES: Final = {
    "api_key": "API keys cannot access restricted subscribers.",
    "admin": "Verify a one-time code sent to the subscriber's phone first.",
}


async def require_subscriber_access(
    reader: Reader, caller: Audience, now: datetime, subscriber_id: int, *, restricted: bool
) -> None:
    """Raise `OTP_REQUIRED` for an API key or admin without access to the subscriber."""
    reason = _get_rejection_message(caller)
    if restricted and reason is not None and await is_hidden(reader, caller, now, subscriber_id):
        raise ApiError(Code.OTP_REQUIRED, reason)


async def require_account_access(
    reader: Reader, caller: Audience, now: datetime, account_ids: Collection[int | None]
) -> None:
    """Raise `OTP_REQUIRED` for an API key or admin without access to all account holders."""
    if await find_hidden_accounts(reader, caller, now, account_ids):
        reject_hidden(caller)


def reject_hidden(caller: Audience) -> None:
    """Raise `OTP_REQUIRED` for an API key or admin from whom a subscriber is hidden."""
    reason = _get_rejection_message(caller)
    if reason is not None:
        raise ApiError(Code.OTP_REQUIRED, reason)


async def require_transaction_access(
    reader: Reader, caller: Principal, now: datetime, account_ids: Collection[int | None]
) -> None:
    """Reject a caller without access to all holders of a transaction's accounts.

    Admins see such a transaction masked. Lists omit it for an owner's key, so for the key it does
    not exist.
    """
    if caller.kind == "api_key" and caller.owner is not None:
        if await find_hidden_accounts(reader, caller, now, account_ids):
            raise ApiError(Code.TRANSACTION_NOT_FOUND)
    elif caller.kind != "admin":
        await require_account_access(reader, caller, now, account_ids)


def _get_rejection_message(caller: Audience) -> str | None:
    return None if caller is None else _REJECTION_MESSAGES.get(caller.kind)


async def require_editable(tx: Transaction, actor: Actor, subscriber: Subscriber) -> None:
    """Reject a change if the subscriber is hidden from the actor or closed."""
    await require_subscriber_access(
        tx, actor.principal, tx.now(), subscriber.id, restricted=subscriber.restricted
    )
    require_not_closed(subscriber)


def exclude_hidden(conditions: Conditions, caller: Principal, now: datetime) -> None:
    """Limit a query over `subscribers s` to subscribers who are visible to the caller.

    Rows without a subscriber, as in a LEFT JOIN, are kept.
    """
    hidden = build_hidden_condition(conditions, caller, now)
    if hidden is not None:
        conditions.add(f"({hidden}) IS NOT TRUE")


def exclude_hidden_accounts(
    conditions: Conditions, caller: Principal, now: datetime, *columns: str
) -> None:
    """Exclude rows in which a column contains a hidden subscriber's account."""
    hidden = build_hidden_condition(conditions, caller, now)
    if hidden is not None:
        for column in columns:
            # Avoid NOT EXISTS: PostgreSQL would plan an anti-join and read all rows to return the
            # first page.
            conditions.add_unselective(
                f"""(SELECT true FROM subscribers s
                     WHERE s.account_id = {column} AND {hidden}) IS NULL"""
            )
