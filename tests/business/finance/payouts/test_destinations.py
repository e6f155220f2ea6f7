"""The bank account of a payout that waits for approval: shown, stored, and not exchanged."""

from typing import Any

import pytest

from builders.approvals import approve, build_rule, require_held, set_rules
from builders.payouts import (
    BANK_ACCOUNTS_URL,
    create_bank_account,
    create_merchant,
    fund_owner,
    get_payout,
    post_payout,
)
from harness import Harness
from tapgate.business.finance.payouts import routes
from tapgate_client import ids


async def list_accounts(harness: Harness, merchant: str) -> list[str]:
    rows = await harness.database.fetch(
        "SELECT id FROM bank_accounts WHERE owner_id = $1 ORDER BY id",
        ids.decode(ids.PROCESSOR, merchant),
    )
    return [ids.encode(ids.BANK_ACCOUNT, row["id"]) for row in rows]


async def block(harness: Harness, account_id: str) -> None:
    response = await harness.post(
        f"{BANK_ACCOUNTS_URL}/{account_id}/block",
        json={"reason": "x"},
        auth=await harness.create_admin("F"),
    )
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("names_account", [False, True])
async def test_approvers_see_the_bank_account(harness: Harness, names_account: bool) -> None:
    merchant = await create_merchant(harness)
    [account] = await list_accounts(harness, merchant)
    await set_rules(harness, build_rule("payouts"))
    named = {"bank_account_id": account} if names_account else {}
    held = require_held(await post_payout(harness, merchant, amount="400", **named))
    number = await harness.database.fetchval(
        "SELECT right(number, 4) FROM bank_accounts WHERE id = $1",
        ids.decode(ids.BANK_ACCOUNT, account),
    )
    assert held["summary"].endswith(f"that ends in {number}")
    assert held["changes"]["bank_account_id"] == [None, account]
    executed = await approve(harness, held)
    payout = await get_payout(harness, executed["result"]["payout_id"])
    assert payout["bank_account_id"] == account


@pytest.mark.parametrize("blocks_first", [False, True])
async def test_approved_payout_goes_to_no_other_bank_account(
    harness: Harness, blocks_first: bool
) -> None:
    merchant = await create_merchant(harness)
    [first] = await list_accounts(harness, merchant)
    await set_rules(harness, build_rule("payouts"))
    held = require_held(await post_payout(harness, merchant, amount="400"))
    await create_bank_account(harness, merchant)
    if blocks_first:
        await block(harness, first)
    done = await approve(harness, held)
    assert (done["status"], done["code"]) == ("failed", "VALIDATION_FAILED")
    assert not await harness.database.fetchval("SELECT count(*) FROM payouts")


async def test_payout_uses_the_bank_account_that_was_checked(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account changes between the check of the rules and the payout."""
    merchant = await create_merchant(harness, "0")
    await fund_owner(harness, merchant, "100")
    [first] = await list_accounts(harness, merchant)
    build = routes.build_payout_command

    async def build_later(*arguments: Any) -> Any:
        await create_bank_account(harness, merchant)
        await block(harness, first)
        return await build(*arguments)

    monkeypatch.setattr(routes, "build_payout_command", build_later)
    response = await post_payout(harness, merchant, amount="40")
    assert response.json()["code"] == "BANK_ACCOUNT_NOT_VERIFIED", response.text
