"""Payout, payout run and bank account pages."""

import re

import httpx2

from builders.payouts import create_bank_account, create_merchant
from drivers.console import ConsoleClients
from harness import Harness
from tapgate.sites.console.labels import get_resource_label

PAYOUTS_URL = "/console/payouts"
ACCOUNTS_URL = "/console/bank-accounts"


def get_redirect(response: httpx2.Response) -> str:
    assert "HX-Redirect" in response.headers, response.text
    return response.headers["HX-Redirect"]


async def test_finance_pays_out_runs_payouts_and_marks_a_return(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    source = await create_bank_account(harness, None)
    merchant = await create_merchant(harness)
    finance = await console_clients.create_signed_in("F")
    assert "No payouts wait" in await finance.get_page_text(PAYOUTS_URL)
    assert "Request payout" in await finance.get_page_text(f"/console/processors/{merchant}")

    requested = await finance.submit_action("payout.create", {"owner_id": merchant, "amount": "90"})
    payout_path = get_redirect(requested)
    page = await finance.get_page_text(payout_path)
    assert "90.00" in page and "Requested" in page
    assert "Waits for the next payout run" in page and "Run payouts" in page
    work = await finance.get_page_text("/console/work")
    assert payout_path in work and "Payout · PO" in work and "<strong>PO" not in work

    run_path = get_redirect(await finance.submit_action("payout_run.create", {}))
    assert f"••••{source['number'][-4:]}</a>" in await finance.get_page_text("/console/payout-runs")
    assert "platform account" in await finance.get_page_text(ACCOUNTS_URL)
    listed = await finance.get_page_text(f"{PAYOUTS_URL}?status=all")
    assert re.search(r'data-label="Bank account">\s*<a href="/console/bank-accounts/bnk_', listed)
    run_page = await finance.get_page_text(run_path)
    assert f">{source['number']}</a>" in run_page, "the account that pays"
    assert "90.00" in run_page and "Upload the bank file to your bank." in run_page
    assert "Waits for the bank." in await finance.get_page_text(payout_path)
    file = await finance.get(f"{run_path}/file?format=pain.001")
    assert file.status_code == 200 and b"pain.001.001.09" in file.content
    assert "attachment" in file.headers["Content-Disposition"]
    runs = await finance.get_page_text("/console/payout-runs")
    assert run_path in runs and "Submitted" in runs and f"{run_path}/file?format=pain.001" in runs

    payout_id = payout_path.rpartition("/")[2]
    await finance.submit_action("payout.paid", {"bank_reference": "B-17"}, id=payout_id)
    assert "B-17" in await finance.get_page_text(payout_path)
    assert "Paid</span>" in await finance.get_page_text("/console/payout-runs")
    await finance.submit_action("payout.returned", {"reason": "Account closed"}, id=payout_id)
    page = await finance.get_page_text(payout_path)
    assert "Account closed" in page and "Mark as returned" not in page
    assert "The amount and the fee went back to " in page
    assert f"••••{source['number'][-4:]}</a>" in await finance.get_page_text("/console/payout-runs")
    assert "platform account" in await finance.get_page_text(ACCOUNTS_URL)
    listed = await finance.get_page_text(f"{PAYOUTS_URL}?status=all")
    assert re.search(r'data-label="Bank account">\s*<a href="/console/bank-accounts/bnk_', listed)
    run_page = await finance.get_page_text(run_path)
    assert "Every payout of this run is paid or returned." in run_page
    assert "Returned</span>" in run_page
    assert payout_path in await finance.get_page_text(f"{PAYOUTS_URL}?status=returned")


async def test_bank_account_is_added_verified_by_another_admin_and_blocked(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    merchant = await create_merchant(harness)
    finance = await console_clients.create_signed_in("F")
    ada = await console_clients.create_signed_in("A")
    fields = {"holder_name": "Shop Ltd", "bank_code": "SLCBSLFR", "number": "001234567890"}
    added = await finance.submit_action("bank_account.create", {"owner_id": merchant, **fields})
    path = get_redirect(added)
    account_id = path.rpartition("/")[2]
    assert "Not verified yet" in await finance.get_page_text(path)
    refused = await finance.submit_action("bank_account.verify", {}, id=account_id)
    assert "HX-Redirect" not in refused.headers

    await ada.submit_action("bank_account.verify", {}, id=account_id)
    page = await ada.get_page_text(path)
    assert "001234567890" in page and "Request payout" in page
    assert "<h1>SLCBSLFR ••••7890 " in page
    listed = await ada.get_page_text(ACCOUNTS_URL)
    assert re.search(r"••••7890", listed) and "001234567890" not in listed

    await ada.submit_action("bank_account.block", {"reason": "Fraud"}, id=account_id)
    assert "Reason: Fraud" in await ada.get_page_text(path)


async def test_payout_schedule_is_edited_on_the_merchant_page(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    merchant = await create_merchant(harness)
    finance = await console_clients.create_signed_in("F")
    await finance.submit_action(
        "payout_schedule.update",
        {"interval": "weekly", "minimum": "50", "reserve_percent": "10"},
        id=merchant,
    )
    page = await finance.get_page_text(f"/console/processors/{merchant}")
    assert "Weekly" in page and "50.00" in page and "10%" in page


def test_dangerous_dialogs_name_the_kind_of_record() -> None:
    labels = [get_resource_label("id", f"{prefix}06x4") for prefix in ("po_", "run_", "txn_")]
    assert labels == ["Payout", "Payout run", "Transaction"]
