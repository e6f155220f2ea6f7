"""Safeguarding, reconciliation and ledger reports over HTTP, as JSON, CSV and PDF."""

from datetime import timedelta
from typing import Any

import pytest

from builders.bank_statements import (
    build_camt,
    build_camt_entry,
    build_csv,
    change_line,
    import_statement,
    list_lines,
)
from builders.participants import create_agent
from builders.payouts import create_bank_account, create_merchant, create_run, request_payout
from business.payments.wallets.pdf_text import extract_pages
from drivers.csv_files import read_records
from harness import Harness, parse_error
from tapgate_client.clock import get_platform_day

ACCOUNT = "GB33BUKB20201555555555"


def get_day(harness: Harness, days: int = 0) -> str:
    today = get_platform_day(harness.services.clock(), harness.services.settings.timezone)
    return (today + timedelta(days=days)).isoformat()


async def get_report(harness: Harness, name: str, **query: str) -> Any:
    response = await harness.get(
        f"/api/v1/{name}", params=query, auth=await harness.create_admin("F")
    )
    assert response.status_code == 200, response.text
    return response


async def fund_agent(harness: Harness, amount: str, reference: str) -> dict[str, Any]:
    agent = await create_agent(harness)
    response = await harness.post(
        f"/api/v1/agents/{agent['id']}/fund",
        json={"amount": amount, "reference": reference},
        auth=await harness.create_admin("F"),
    )
    assert response.status_code == 200, response.text
    return agent


async def test_safeguarding_difference_is_zero_when_the_statement_agrees(
    harness: Harness,
) -> None:
    await create_bank_account(harness, None, number=ACCOUNT)
    day = get_day(harness)
    report = (await get_report(harness, "reports/safeguarding")).json()
    assert (report["day"], report["bank_balance"], report["difference"]) == (day, None, None)
    await fund_agent(harness, "500", "DEP-1")
    payout = await request_payout(harness, await create_merchant(harness, "300"), amount="100")
    await create_run(harness)
    opening = "1000.00"  # the merchant's balance was funded without a statement
    entries = (
        build_camt_entry("500.00", day, "DEP-1")
        + build_camt_entry("-100.00", day, payout["reference"])
        + build_camt_entry("-3.00", day, "FEE")
    )
    await import_statement(
        harness, build_camt(entries, opening=(opening, day), closing=("697.00", day))
    )
    report = (await get_report(harness, "reports/safeguarding", day=day)).json()
    assert report["e_money"] == {
        "wallet": "0.00", "float": "500.00", "commission": "0.00", "settlement": "200.00",
        "clearing": "0.00", "total": "700.00",
    }  # fmt: skip
    assert (report["in_transit"], report["suspense"]) == ("0.00", "0.00")
    assert (report["bank_balance"], report["ledger_cash"]) == ("697.00", "700.00")
    assert report["difference"] == "-3.00"
    assert report["bank_accounts"] == [{"account": "5555", "day": day, "balance": "697.00"}]
    (fee,) = await list_lines(harness, status="unmatched")
    await change_line(harness, fee["id"], "post", reason="Bank fee")
    report = (await get_report(harness, "reports/safeguarding", day=day)).json()
    assert (report["difference"], report["suspense"]) == ("0.00", "-3.00")
    yesterday = await get_report(harness, "reports/safeguarding", day=get_day(harness, -1))
    assert (yesterday.json()["bank_balance"], yesterday.json()["ledger_cash"]) == (None, "0.00")


async def test_reconciliation_report_counts_by_status(harness: Harness) -> None:
    await create_bank_account(harness, None)
    await import_statement(
        harness,
        build_csv(
            ("2026-01-05", "-7.00", "B-1", "old"),
            ("2026-02-05", "9.00", "B-2", "new"),
            ("2026-02-06", "-1.00", "B-3", "fee"),
        ),
    )
    lines = await list_lines(harness)
    await change_line(harness, lines[2]["id"], "ignore", reason="Known")
    report = (await get_report(harness, "reports/reconciliation")).json()
    totals = {row["status"]: row for row in report["data"]}
    assert totals["unmatched"] == {
        "status": "unmatched", "count": 2, "received": "9.00", "paid": "7.00", "amount": "2.00",
    }  # fmt: skip
    assert (totals["ignored"]["count"], totals["matched"]["count"]) == (1, 0)
    assert report["oldest_unmatched"] == lines[0]
    query = {"from": "2026-02-01", "to": "2026-02-05"}
    report = (await get_report(harness, "reports/reconciliation", **query)).json()
    assert [row["count"] for row in report["data"]] == [1, 0, 0, 0]
    assert report["oldest_unmatched"] == lines[1]
    wrong = await harness.get(
        "/api/v1/reports/reconciliation",
        params={"from": "2026-02-02", "to": "2026-02-01"},
        auth=await harness.create_admin("F"),
    )
    assert parse_error(wrong) == (422, "VALIDATION_FAILED")


async def test_income_statement_has_the_fees_of_the_period(harness: Harness) -> None:
    auth = await harness.create_admin()
    rules = (await harness.get("/api/v1/fee-rules", auth=auth)).json()["data"]
    rule = {"type": "payout", "up_to": None, "rate": "2", "payer": "sender"}
    await harness.put("/api/v1/fee-rules", json={"data": [*rules, rule]}, auth=auth)
    await request_payout(harness, await create_merchant(harness), amount="100")
    report = (await get_report(harness, "reports/income-statement")).json()
    assert report["to"] == get_day(harness)
    assert {row["gl_code"]: row["amount"] for row in report["rows"]}.popitem()
    assert report["net"] == "2.00"
    before = {"from": get_day(harness, -40), "to": get_day(harness, -1)}
    report = (await get_report(harness, "reports/income-statement", **before)).json()
    assert report["net"] == "0.00"


@pytest.mark.parametrize(
    ("path", "query", "title"),
    [
        ("reports/safeguarding", {}, "Safeguarding report"),
        ("reports/reconciliation", {}, "Reconciliation report"),
        ("reports/income-statement", {}, "Income statement"),
        ("ledger/trial-balance/file", {}, "Trial balance"),
        ("ledger/journal", {"day": True}, "Journal"),
    ],
)
async def test_every_report_is_a_csv_and_a_pdf_file(
    harness: Harness, path: str, query: dict[str, Any], title: str
) -> None:
    await create_bank_account(harness, None)
    await fund_agent(harness, "12.34", "DEP-1")
    await import_statement(harness, build_csv((get_day(harness), "12.34", "DEP-1", "deposit")))
    query = {"day": get_day(harness)} if query else {}
    file = await get_report(harness, path, format="csv", **query)
    assert file.content.startswith(b"\xef\xbb\xbf")
    assert any("12.34" in row.values() for row in read_records(file.content)) or "income" in path
    assert ".csv" in file.headers["Content-Disposition"]
    file = await get_report(harness, path, format="pdf", **query)
    assert (file.content[:5], file.headers["Content-Type"]) == (b"%PDF-", "application/pdf")
    (page,) = extract_pages(file.content)
    assert title in " ".join(page)
    assert harness.services.settings.currency in " ".join(page)
    again = await get_report(harness, path, format="pdf", **query)
    assert again.content == file.content or "trial-balance" in path
