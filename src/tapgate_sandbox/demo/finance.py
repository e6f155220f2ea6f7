"""The demo's finance: payouts in every state, and a bank statement with one unmatched line."""

from typing import Final

from tapgate.auth.actors import Actor
from tapgate.auth.principals import Principal
from tapgate.business.finance.bank_accounts import operations as bank_accounts
from tapgate.business.finance.payouts import routes as payouts
from tapgate.business.finance.reconciliation.imports import import_statement
from tapgate.business.staff.queries import get_first_system_admin
from tapgate.http.api.request_context import RequestContext
from tapgate.http.api.services import Services
from tapgate_client import ids
from tapgate_client.clock import get_platform_day
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.bank_accounts import BankAccountOwner, NewBankAccount
from tapgate_client.schemas.bank_statements import BankStatementQuery
from tapgate_client.schemas.payouts import (
    BankPayoutReceipt,
    NewPayoutRequest,
    NewPayoutRun,
    PayoutCancellation,
)

_BANK_CODE: Final = "SLCBSLFR"
#: The system verifies the demo's bank accounts, because an admin may not verify an added account.
_SYSTEM_ADMIN_ID: Final = 1


async def open_bank_accounts(services: Services, actor: Actor, shop_id: int) -> None:
    """Open verified bank accounts for a merchant and for the platform."""
    admin_id = await get_first_system_admin(services.database) or 0
    owner_id = ids.encode(ids.PROCESSOR, shop_id)
    new = (
        NewBankAccount(
            owner_id=owner_id, holder_name="Shop", bank_code=_BANK_CODE, number="003001012345678"
        ),
        NewBankAccount(
            owner_type=BankAccountOwner.PLATFORM,
            holder_name="Tapgate",
            bank_code=_BANK_CODE,
            number="003001098765432",
        ),
    )
    currency = services.settings.currency
    async with services.transaction() as tx:
        for each in new:
            account = await bank_accounts.create(
                tx, actor, each, admin_id=admin_id, currency=currency
            )
            await bank_accounts.verify(tx, actor, account.id, admin_id=_SYSTEM_ADMIN_ID)


async def pay_out(services: Services, shop_id: int) -> None:
    """Request payouts, run some, and import the statement on which the bank paid and returned."""
    request = await _build_request(services)
    owner_id = ids.encode(ids.PROCESSOR, shop_id)

    async def request_payout(amount: str) -> BankPayoutReceipt:
        reply = await payouts.request_payout(
            request, NewPayoutRequest(owner_id=owner_id, amount=amount)
        )
        assert isinstance(reply.body, BankPayoutReceipt)
        return reply.body

    paid, returned, _ = [await request_payout(amount) for amount in ("60", "45", "30")]
    cancelled = await request_payout("20")
    number = ids.decode(ids.PAYOUT, cancelled.payout_id) or 0
    await payouts.cancel_payout(request, number, PayoutCancellation())
    async with services.transaction() as tx:
        await payouts.create_payout_run(request, tx, NewPayoutRun())
    await request_payout("25")
    day = get_platform_day(services.clock(), services.settings.timezone).isoformat()
    # Whole amounts, because some currencies have no decimals.
    statement = "\n".join(
        [
            "date,amount,reference,description",
            f"{day},-60,{paid.reference},Payout",
            f"{day},-45,{returned.reference},Payout",
            f"{day},45,{returned.reference},Account closed",
            f"{day},-3,FEE,Monthly fee",
            "",
        ]
    )
    await import_statement(request, BankStatementQuery(), statement.encode())


async def _build_request(services: Services) -> RequestContext:
    """Return a request by the first administrator."""
    admin_id = await get_first_system_admin(services.database) or 0
    return RequestContext(
        services=services,
        method="POST",
        path="/api/v1/payouts",
        query=b"",
        headers={},
        ip="127.0.0.1",
        request_id="demo",
        caller=Principal(
            kind="admin",
            id=ids.encode(ids.ADMIN, admin_id),
            name="Demo",
            role=AdminRole.SYSTEM_ADMIN,
            admin_id=admin_id,
            session_id=0,
        ),
    )
