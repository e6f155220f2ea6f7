"""Balances for subscribers, agents, processors and partners."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

from tapgate.auth.disclosure import Audience
from tapgate.business.customers.subscribers.restriction import require_subscriber_access
from tapgate.business.payments.transactions.model import get_holder, parse_user_id
from tapgate.business.payments.transactions.money_requests import decode_id
from tapgate.ledger import chart
from tapgate.runtime.store.database import Database
from tapgate_client import clock, ids, money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.transactions import PartyType
from tapgate_client.schemas.wallets import Balance

NOT_FOUND_CODES: Final = {
    ids.SUBSCRIBER: Code.SUBSCRIBER_NOT_FOUND,
    ids.AGENT: Code.AGENT_NOT_FOUND,
    ids.PROCESSOR: Code.PROCESSOR_NOT_FOUND,
    ids.PARTNER: Code.PARTNER_NOT_FOUND,
}
#: Words for the types of holders in texts for people.
_HOLDER_WORDS: Final[Mapping[str, str]] = {
    PartyType.SUBSCRIBER: "customer",
    PartyType.PROCESSOR: "merchant",
    PartyType.PLATFORM: "platform account",
}


class AccountSide(NamedTuple):
    """Account in a transfer summary. A customer's name is personal data, so it is absent."""

    kind: str
    holder_id: str | None
    name: str


async def describe_accounts(database: Database, public_ids: list[str]) -> dict[str, AccountSide]:
    """Return the accounts that exist, by public ID."""
    rows = await database.fetch(
        "SELECT id, kind, owner_id, holder_name FROM accounts WHERE id = ANY ($1::bigint[])",
        [decode_id(ids.ACCOUNT, public_id) for public_id in public_ids],
    )
    sides = {}
    for row in rows:
        holder_type, holder_id = get_holder(row["kind"], row["owner_id"])
        name = holder_id if row["kind"] == chart.WALLET else row["holder_name"]
        sides[ids.encode(ids.ACCOUNT, row["id"])] = AccountSide(
            row["kind"], holder_id, f"{_HOLDER_WORDS.get(holder_type, holder_type)} {name}"
        )
    return sides


async def get_balance(
    database: Database, caller: Audience, user_id: str, *, now: datetime
) -> Balance:
    user = parse_user_id(user_id)
    row = None
    if user is not None:
        row = await database.fetchrow(
            """SELECT account.id, balance, held, currency, coalesce(restricted, false) AS restricted
               FROM accounts AS account LEFT JOIN subscribers ON account_id = account.id
               WHERE owner_id = $1 AND kind = $2""",
            user.id,
            user.kind.accounts[0],
        )
    if user is None or row is None:
        raise ApiError(NOT_FOUND_CODES.get(ids.get_prefix(user_id), Code.ACCOUNT_NOT_FOUND))
    await require_subscriber_access(database, caller, now, user.id, restricted=row["restricted"])

    def format_amount(minor: int) -> str:
        return money.format_decimal(minor, row["currency"])

    return Balance(
        user_id=user_id,
        account_id=ids.encode(ids.ACCOUNT, row["id"]),
        balance=format_amount(row["balance"]),
        available=format_amount(row["balance"] - row["held"]),
        held=format_amount(row["held"]),
        currency=row["currency"],
        as_of=clock.format_rfc3339(now),
    )
