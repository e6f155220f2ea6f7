"""Bank accounts and payouts over HTTP."""

import itertools
from typing import Any

import httpx2

from harness import BearerAuth, Harness
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, Party
from tapgate_client import ids, money

BANK_ACCOUNTS_URL = "/api/v1/bank-accounts"
PAYOUTS_URL = "/api/v1/payouts"
RUNS_URL = "/api/v1/payout-runs"
_numbers = itertools.count(1)
_ACCOUNT_KINDS = {
    ids.PROCESSOR: chart.SETTLEMENT,
    ids.PARTNER: chart.CLEARING,
    ids.AGENT: chart.FLOAT,
}


def build_bank_account(owner_id: str | None, /, **fields: Any) -> dict[str, Any]:
    owner = {"owner_type": "platform"} if owner_id is None else {"owner_id": owner_id}
    number = f"00{next(_numbers):08d}"
    return {
        **owner,
        "holder_name": "Shop Ltd",
        "bank_code": "SLCBSLFR",
        "number": number,
        **fields,
    }


async def create_bank_account(
    harness: Harness,
    owner_id: str | None,
    *,
    verified: bool = True,
    aged: bool = True,
    **fields: Any,
) -> dict[str, Any]:
    """Create a bank account, by default verified so long ago that payouts can use it."""
    response = await harness.post(
        BANK_ACCOUNTS_URL,
        json=build_bank_account(owner_id, **fields),
        auth=await harness.create_admin("F"),
    )
    assert response.status_code == 201, response.text
    account: dict[str, Any] = response.json()
    if verified:
        response = await harness.post(
            f"{BANK_ACCOUNTS_URL}/{account['id']}/verify", auth=await harness.create_admin("A")
        )
        assert response.status_code == 200, response.text
        account = response.json()
    if aged:
        await harness.database.execute(
            "UPDATE bank_accounts SET verified_at = verified_at - interval '2 days'"
        )
    return account


async def fund_owner(harness: Harness, owner_id: str, amount: str) -> None:
    """Move cash to the account from which an owner is paid out."""
    prefix = owner_id[:4]
    outcome = await harness.services.ledger.submit(
        Command(
            type=chart.TRANSFER,
            channel="admin",
            payer=commands.CASH_PARTY,
            payee=Party("owner", ids.decode(prefix, owner_id) or 0, _ACCOUNT_KINDS[prefix]),
            amount=money.parse(amount, harness.services.settings.currency),
        )
    )
    outcome.require_accepted()


async def create_merchant(harness: Harness, balance: str = "1000") -> str:
    """Create a processor with a balance and a usable bank account; return its ID."""
    processor_id = await harness.get_processor_id(await harness.create_processor())
    if balance != "0":
        await fund_owner(harness, processor_id, balance)
    await create_bank_account(harness, processor_id)
    return processor_id


async def post_payout(
    harness: Harness, owner_id: str, auth: BearerAuth | None = None, **fields: Any
) -> httpx2.Response:
    return await harness.post(
        PAYOUTS_URL,
        json={"owner_id": owner_id, **fields},
        auth=auth or await harness.create_admin("F"),
    )


async def request_payout(harness: Harness, owner_id: str, **fields: Any) -> dict[str, Any]:
    """Request a payout and return its record."""
    response = await post_payout(harness, owner_id, **fields)
    assert response.status_code == 200, response.text
    return await get_payout(harness, response.json()["payout_id"])


async def create_paid_payout(harness: Harness, owner_id: str, amount: str = "1") -> str:
    """Pay an owner out, which needs an account of the platform too; return the payout's ID."""
    payout = await request_payout(harness, owner_id, amount=amount)
    await create_run(harness)
    response = await change_payout(harness, payout["id"], "paid")
    assert response.status_code == 200, response.text
    payout_id: str = payout["id"]
    return payout_id


async def get_payout(harness: Harness, payout_id: str) -> dict[str, Any]:
    response = await harness.get(f"{PAYOUTS_URL}/{payout_id}", auth=await harness.create_admin("F"))
    assert response.status_code == 200, response.text
    record: dict[str, Any] = response.json()
    return record


async def change_payout(
    harness: Harness, payout_id: str, verb: str, **fields: Any
) -> httpx2.Response:
    return await harness.post(
        f"{PAYOUTS_URL}/{payout_id}/{verb}", json=fields, auth=await harness.create_admin("F")
    )


async def post_run(harness: Harness, **fields: Any) -> httpx2.Response:
    return await harness.post(RUNS_URL, json=fields, auth=await harness.create_admin("F"))


async def create_run(harness: Harness, **fields: Any) -> dict[str, Any]:
    response = await post_run(harness, **fields)
    assert response.status_code == 200, response.text
    record: dict[str, Any] = response.json()
    return record


async def get_balance(harness: Harness, owner_id: str) -> str:
    balance = await harness.database.fetchval(
        "SELECT balance FROM accounts WHERE owner_id = $1 AND kind <> 'commission'",
        ids.decode(owner_id[:4], owner_id),
    )
    return money.format_decimal(balance, harness.services.settings.currency)


async def get_platform_balance(harness: Harness, kind: str) -> str:
    """Return credits minus debits of a platform account."""
    balance = await harness.database.fetchval(
        """SELECT coalesce(sum(CASE WHEN credit_account = a.id THEN amount ELSE -amount END), 0)
           FROM entries JOIN accounts a ON a.id IN (debit_account, credit_account)
           WHERE a.owner_id IS NULL AND a.kind = $1""",
        kind,
    )
    return money.format_decimal(int(balance), harness.services.settings.currency)
