"""Only the bank's word returns a payout that it has: approval rules for reversals guard it."""

import pytest

from builders.approvals import approve, build_rule, require_held, set_rules
from builders.auth import enroll_app
from builders.bank_statements import (
    build_csv,
    change_line,
    import_statement,
    list_lines,
    post_statement,
)
from builders.ledger import require_balanced_books
from builders.payouts import (
    PAYOUTS_URL,
    change_payout,
    create_bank_account,
    create_merchant,
    create_paid_payout,
    create_run,
    get_balance,
    get_payout,
    get_platform_balance,
    request_payout,
)
from harness import Harness, parse_error
from tapgate.business.finance.reconciliation import imports
from tapgate.sites.console.pages.approval_rules import build_recommended_rules
from tapgate_client import ids


async def create_payout(harness: Harness, status: str, amount: str = "400") -> tuple[str, str]:
    """Create a merchant, and a payout that the bank has; return both IDs."""
    merchant = await create_merchant(harness)
    if not await harness.database.fetchval(
        "SELECT count(*) FROM bank_accounts WHERE owner_type = 'platform'"
    ):
        await create_bank_account(harness, None)
    if status == "paid":
        return merchant, await create_paid_payout(harness, merchant, amount)
    payout = await request_payout(harness, merchant, amount=amount)
    await create_run(harness)
    return merchant, payout["id"]


async def build_statement(harness: Harness, payout_id: str) -> str:
    """Return a statement file that anyone could type: the payment and the return of a payout."""
    payout, day = await get_payout(harness, payout_id), harness.services.clock().date().isoformat()
    reference, amount = payout["reference"], payout["amount"]
    lines = [(day, amount, reference, "closed account")]
    if payout["status"] == "submitted":
        lines.insert(0, (day, f"-{amount}", reference, "paid"))
    return build_csv(*lines)


@pytest.mark.parametrize("status", ["submitted", "paid"])
@pytest.mark.parametrize("way", ["by hand", "import", "worker", "match"])
async def test_no_admin_returns_a_payout_alone(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, status: str, way: str
) -> None:
    merchant, payout_id = await create_payout(harness, status)
    await set_rules(harness, *build_recommended_rules())
    maker = await harness.create_admin("F")
    content = await build_statement(harness, payout_id)
    held = None
    if way == "by hand":
        url = f"{PAYOUTS_URL}/{payout_id}/returned"
        held = require_held(await harness.post(url, json={"reason": "x"}, auth=maker))
    else:
        with monkeypatch.context() as patch:
            if way == "worker":

                async def stop(*_: object) -> None:
                    pass

                patch.setattr(imports, "match_statement", stop)
            assert (await post_statement(harness, content, maker)).status_code == 201
        if way == "worker":
            rows = await harness.database.fetch("SELECT id FROM bank_statements")
            await imports.match_statement(harness.services, rows[0]["id"], imports.SYSTEM_ACTOR)
        [line] = await list_lines(harness, status="unmatched")
        assert (line["amount"], line["proposed_payout_id"]) == ("400.00", payout_id)
        assert (await get_payout(harness, payout_id))["status"] == "paid"
        if way == "match":
            held = require_held(
                await change_line(harness, line["id"], "match", maker, payout_id=payout_id)
            )
    assert await get_balance(harness, merchant) == "600.00"
    if held is None:
        return
    assert (held["operation"], held["resource_id"]) == ("reversals", payout_id)
    assert "400.00 SLE" in held["summary"]
    assert (await approve(harness, held))["status"] == "executed"
    payout = await get_payout(harness, payout_id)
    assert payout["status"] == "returned"
    assert await get_balance(harness, merchant) == "1000.00"
    assert [line["proposed_payout_id"] for line in await list_lines(harness)][-1:] in ([], [None])
    await require_balanced_books(harness.database)


async def test_import_returns_payouts_without_a_rule_for_reversals(harness: Harness) -> None:
    merchant, payout_id = await create_payout(harness, "submitted")
    await set_rules(harness, build_rule("payouts"))
    record = await import_statement(harness, await build_statement(harness, payout_id))
    assert (record["matched"], record["unmatched"]) == (2, 0)
    assert (await get_payout(harness, payout_id))["status"] == "returned"
    assert await get_balance(harness, merchant) == "1000.00"


async def test_returns_count_in_the_sum_of_reversals(harness: Harness) -> None:
    merchant = await create_merchant(harness)
    await create_bank_account(harness, None)
    payouts = [await create_paid_payout(harness, merchant, "60") for _ in range(2)]
    await set_rules(harness, build_rule("reversals", above="100"))
    maker = await harness.create_admin("F")
    first, second = [
        await harness.post(f"{PAYOUTS_URL}/{payout}/returned", json={"reason": "x"}, auth=maker)
        for payout in payouts
    ]
    assert first.status_code == 200
    held = require_held(second)
    assert (await change_payout(harness, payouts[1], "returned", reason="x")).status_code == 200
    assert (await approve(harness, held))["code"] == "PAYOUT_NOT_PENDING"


async def test_proposed_line_is_linked_after_a_return_by_hand(harness: Harness) -> None:
    merchant, payout_id = await create_payout(harness, "paid")
    await set_rules(harness, build_rule("reversals"))
    await import_statement(harness, await build_statement(harness, payout_id))
    held = require_held(await change_payout(harness, payout_id, "returned", reason="closed"))
    assert (await approve(harness, held))["status"] == "executed"
    [line] = await list_lines(harness, status="unmatched")
    matched = await change_line(harness, line["id"], "match", payout_id=payout_id)
    assert matched.json()["status"] == "matched", matched.text
    assert await get_balance(harness, merchant) == "1000.00"
    assert await get_platform_balance(harness, "payouts_in_transit") == "0.00"


async def test_replayed_returns_have_no_second_effect(harness: Harness) -> None:
    _, payout_id = await create_payout(harness, "paid")
    auth, url = await harness.create_admin("F"), f"{PAYOUTS_URL}/{payout_id}/returned"
    body = {"reason": "x", "request_id": "K"}
    first = await harness.post(url, json=body, auth=auth)
    again = await harness.post(url, json=body, auth=auth)
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize("status", ["requested", "submitted"])
async def test_return_of_a_payout_that_was_not_paid_is_rejected_at_once(
    harness: Harness, status: str
) -> None:
    """The payout could be paid while the request runs, so the request may not run unguarded."""
    merchant = await create_merchant(harness)
    await create_bank_account(harness, None)
    payout = await request_payout(harness, merchant, amount="400")
    await import_statement(harness, build_csv(("2026-01-15", "400.00", "B-1", "item")))
    [line] = await list_lines(harness)
    if status == "submitted":
        await create_run(harness)
    await set_rules(harness, build_rule("reversals"))
    response = await change_line(harness, line["id"], "match", payout_id=payout["id"])
    assert parse_error(response) == (409, "PAYOUT_NOT_PENDING")
    if status == "requested":
        response = await change_payout(harness, payout["id"], "returned", reason="x")
        assert parse_error(response) == (409, "PAYOUT_NOT_PENDING")


async def test_closed_line_of_a_paid_payout_is_rejected_at_once(harness: Harness) -> None:
    _, payout_id = await create_payout(harness, "paid")
    await set_rules(harness, build_rule("reversals"))
    await import_statement(harness, await build_statement(harness, payout_id))
    [line] = await list_lines(harness, status="unmatched")
    await change_line(harness, line["id"], "ignore", reason="later")
    response = await change_line(harness, line["id"], "match", payout_id=payout_id)
    assert parse_error(response) == (409, "LINE_NOT_OPEN")


@pytest.mark.parametrize("way", ["by hand", "match"])
async def test_return_needs_a_recent_second_factor(harness: Harness, way: str) -> None:
    _, payout_id = await create_payout(harness, "paid")
    await set_rules(harness, build_rule("reversals"))
    await import_statement(harness, await build_statement(harness, payout_id))
    [line] = await list_lines(harness, status="unmatched")
    admin = await harness.create_admin("F")
    await enroll_app(harness.services, ids.decode(ids.ADMIN, admin.id) or 0)
    await harness.database.execute("UPDATE sessions SET factor_at = NULL")
    if way == "by hand":
        url = f"{PAYOUTS_URL}/{payout_id}/returned"
        response = await harness.post(url, json={"reason": "x"}, auth=admin)
    else:
        response = await change_line(harness, line["id"], "match", admin, payout_id=payout_id)
    assert parse_error(response) == (403, "OTP_REQUIRED")
