"""Balance of a subscriber, an agent, a processor or a partner."""

from datetime import datetime
from typing import Final

from tapgate import clock, ids, money
from tapgate.auth.disclosure import Audience
from tapgate.errors import ApiError, Code
from tapgate.schemas.wallets import Balance
from tapgate.store.database import Database
from tapgate.subscribers.restriction import require_subscriber_access
from tapgate.transactions.model import parse_user_id

NOT_FOUND_CODES: Final = {
    ids.SUBSCRIBER: Code.SUBSCRIBER_NOT_FOUND,
    ids.AGENT: Code.AGENT_NOT_FOUND,
    ids.PROCESSOR: Code.PROCESSOR_NOT_FOUND,
    ids.PARTNER: Code.PARTNER_NOT_FOUND,
}


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
        raise ApiError(NOT_FOUND_CODES.get(user_id[:4], Code.ACCOUNT_NOT_FOUND))
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
