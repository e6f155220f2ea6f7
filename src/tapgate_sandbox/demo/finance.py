"""The demo's finance: closed days, payouts in every state, a statement with one unmatched line."""

from datetime import date
from typing import Final

from tapgate.auth.actors import SYSTEM_ACTOR, Actor
from tapgate.auth.principals import Principal
from tapgate.business.finance.bank_accounts import operations as bank_accounts
from tapgate.business.finance.day_close.model import get_day_end
from tapgate.business.finance.day_close.queries import has_entries_before
from tapgate.business.finance.day_close.worker import SYSTEM_ACTOR as DAY_CLOSE_ACTOR
from tapgate.business.finance.day_close.worker import build_closer
from tapgate.business.finance.payouts import routes as payouts
from tapgate.business.finance.reconciliation.imports import import_statement
from tapgate.business.staff import operations as staff
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
from tapgate_sandbox.demo.administrator import require_first_admin
from tapgate_sandbox.demo.owner_users import PASSWORD, DemoUser

_BANK_CODE: Final = "SLCBSLFR"
_BANK_NAME: Final = "Sierra Leone Commercial Bank"
#: A second person, because nobody verifies a bank account that they have added.
VERIFIER: Final = DemoUser("finance@demo.example", "Hawa Turay", AdminRole.FINANCE_USER)


async def close_day(services: Services, day: date) -> None:
    """Close a day, unless nothing was ever posted until its end."""
    if await has_entries_before(services.database, get_day_end(day, services.settings.timezone)):
        await build_closer(services).close(day, DAY_CLOSE_ACTOR)


async def open_bank_accounts(services: Services, actor: Actor, shop_id: int) -> None:
    """Open verified bank accounts for a merchant and for the platform."""
    admin_id = await require_first_admin(services.database)
    owner_id = ids.encode(ids.PROCESSOR, shop_id)
    new = (
        NewBankAccount(
            owner_id=owner_id,
            holder_name="Shop",
            bank_code=_BANK_CODE,
            bank_name=_BANK_NAME,
            number="003001012345678",
        ),
        NewBankAccount(
            owner_type=BankAccountOwner.PLATFORM,
            holder_name="Tapgate",
            bank_code=_BANK_CODE,
            bank_name=_BANK_NAME,
            number="003001098765432",
        ),
    )
    currency = services.settings.currency
    verifier_id = await _create_verifier(services)
    verifier = Actor.from_principal(
        _build_principal(verifier_id, VERIFIER.name, VERIFIER.role),
        ip="127.0.0.1",
        request_id="demo",
    )
    async with services.transaction() as tx:
        for each in new:
            account = await bank_accounts.create(
                tx, actor, each, admin_id=admin_id, currency=currency
            )
            await bank_accounts.verify(tx, verifier, account.id, admin_id=verifier_id)


async def _create_verifier(services: Services) -> int:
    password_hash = await services.authenticator.passwords.hash(PASSWORD)
    async with services.transaction() as tx:
        row = await staff.create(
            tx,
            SYSTEM_ACTOR,
            email=VERIFIER.email,
            name=VERIFIER.name,
            role=VERIFIER.role,
            password_hash=password_hash,
            makers={},
        )
    admin_id: int = row["id"]
    return admin_id


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
    admin_id = await require_first_admin(services.database)
    return RequestContext(
        services=services,
        method="POST",
        path="/api/v1/payouts",
        query=b"",
        headers={},
        ip="127.0.0.1",
        request_id="demo",
        caller=_build_principal(admin_id, "Demo", AdminRole.SYSTEM_ADMIN),
    )


def _build_principal(admin_id: int, name: str, role: AdminRole) -> Principal:
    return Principal(
        kind="admin",
        id=ids.encode(ids.ADMIN, admin_id),
        name=name,
        role=role,
        admin_id=admin_id,
        session_id=0,
    )
