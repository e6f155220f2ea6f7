"""Balance of a subscriber, an agent, a processor or a partner."""

from tapgate import clock, ids, money
from tapgate.api.endpoint import Access, Endpoints
from tapgate.api.request_context import RequestContext
from tapgate.errors import ApiError, Code
from tapgate.schemas.wallets import Balance
from tapgate.subscribers.restriction import require_subscriber_access
from tapgate.transactions.model import parse_user_id

endpoints = Endpoints("Wallet")

_NOT_FOUND_CODES = {
    ids.SUBSCRIBER: Code.SUBSCRIBER_NOT_FOUND,
    ids.AGENT: Code.AGENT_NOT_FOUND,
    ids.PROCESSOR: Code.PROCESSOR_NOT_FOUND,
    ids.PARTNER: Code.PARTNER_NOT_FOUND,
}


@endpoints.get(
    "/api/v1/balance/{user_id}",
    access=Access(scope="balance:read", roles="ACSF", service=True),
    errors=(*_NOT_FOUND_CODES.values(), Code.ACCOUNT_NOT_FOUND, Code.OTP_REQUIRED),
)
async def get_balance(request: RequestContext, user_id: str) -> Balance:
    """Get the balance of a subscriber, an agent (the float), a processor or a partner."""
    user = parse_user_id(user_id)
    services = request.services
    row = None
    if user is not None:
        row = await services.database.fetchrow(
            """SELECT account.id, balance, held, currency, coalesce(restricted, false) AS restricted
               FROM accounts AS account LEFT JOIN subscribers ON account_id = account.id
               WHERE owner_id = $1 AND kind = $2""",
            user.id,
            user.kind.accounts[0],
        )
    if user is None or row is None:
        raise ApiError(_NOT_FOUND_CODES.get(user_id[:4], Code.ACCOUNT_NOT_FOUND))
    await require_subscriber_access(
        services.database, request.caller, services.clock(), user.id, restricted=row["restricted"]
    )

    def format_amount(minor: int) -> str:
        return money.format_decimal(minor, row["currency"])

    return Balance(
        user_id=user_id,
        account_id=ids.encode(ids.ACCOUNT, row["id"]),
        balance=format_amount(row["balance"]),
        available=format_amount(row["balance"] - row["held"]),
        held=format_amount(row["held"]),
        currency=row["currency"],
        as_of=clock.format_rfc3339(services.clock()),
    )
