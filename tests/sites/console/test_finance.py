"""The finance officer's day in the console, from the day close to the safeguarding file."""

import re
from datetime import timedelta

from builders.approvals import APPROVALS_URL, approve, build_rule, set_rules
from builders.bank_statements import build_csv, list_lines
from builders.participants import create_agent
from builders.payouts import (
    create_bank_account,
    create_merchant,
    create_run,
    get_payout,
    get_platform_balance,
    request_payout,
)
from drivers.console import ConsoleClients
from harness import Harness
from tapgate_client.clock import get_platform_day

FINANCE_URL = "/console/finance"
IMPORT_URL = "/console/bank-statements/import"


def get_day(harness: Harness, days: int = 0) -> str:
    today = get_platform_day(harness.services.clock(), harness.services.settings.timezone)
    return (today + timedelta(days=days)).isoformat()


async def test_day_is_played_from_the_finance_page(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    account = await create_bank_account(harness, None)
    merchant = await create_merchant(harness)
    paid = await request_payout(harness, merchant, amount="90")
    await create_run(harness)
    waiting = await request_payout(harness, merchant, amount="40")
    finance = await console_clients.create_signed_in("F")
    page = await finance.get_page_text(FINANCE_URL)
    for text in ("Yesterday is open", "No bank balance yet", "1 payout must be paid", "40.00"):
        assert text in page, text

    assert get_next_step(page) == "1. Close the day"
    await finance.submit_action("ledger_day.close", {}, date=get_day(harness, -1))
    page = await finance.get_page_text(FINANCE_URL)
    assert "Yesterday is closed" in page and get_next_step(page) == "2. Import the statement"

    content = build_csv(
        (get_day(harness), "-90.00", paid["reference"], "Kamara Stores"),
        (get_day(harness), "-3.50", "FEE-1", "Monthly fee"),
    )
    result = await finance.post_file(IMPORT_URL, content.encode())
    assert "Statement imported" in result.text and "Match what is left" in result.text
    assert (await get_payout(harness, paid["id"]))["status"] == "paid"
    (statement,) = re.findall(r'href="(/console/bank-statements/bst_\w+)\?', result.text)
    for path in (IMPORT_URL, f"/console/bank-accounts/{account['id']}"):
        assert f'<a href="{statement}"' in (await finance.get(path)).text
    # The statement opens with what is left to match. A CSV file has no balances.
    opened = await finance.get_page_text(statement)
    assert "Monthly fee" in opened and "Payout to" not in opened
    (heading,) = re.findall("<h1>.*?</h1>", opened, re.DOTALL)
    assert f"{account['bank_code']} ••••" in heading and "To match" in heading
    assert "Not in the file" in opened
    matched = await finance.get_page_text(f"{statement}?status=matched")
    payout_link = f'<a href="/console/payouts/{paid["id"]}">Payout to {paid["owner_name"]}</a>'
    assert payout_link in matched
    again = await finance.post_file(IMPORT_URL, content.encode())
    assert "Nothing imported" in again.text
    broken = await finance.post_file(IMPORT_URL, b"date,amount\nx,1\n")
    assert "Line 2" in broken.text

    to_match = await finance.get_page_text("/console/bank-statements?status=to_match")
    assert f"{statement}?status=unmatched" in to_match and account["bank_code"] in to_match
    page = await finance.get_page_text(FINANCE_URL)
    assert "1 bank line is unmatched" in page and "Monthly fee" in page
    assert get_next_step(page) == "3. Match what is left"
    (line,) = await list_lines(harness, status="unmatched")
    dialog = await finance.get(f"/console/bank-statements/lines/{line['id']}/candidates")
    assert "No payout or deposit has this amount" in dialog.text
    await finance.submit_action("bank_line.post", {"reason": "Bank fee"}, id=line["id"])
    assert await get_platform_balance(harness, "suspense") == "-3.50"
    statement_url = f"/console/bank-statements/{line['statement_id']}"
    page = await finance.get_page_text(f"{statement_url}?status=posted")
    assert "Bank fee" in page and "Unmatch" in page
    (posted,) = await list_lines(harness, status="posted")
    transaction = await finance.get_page_text(f"/console/transactions/{posted['transaction_id']}")
    assert "Bank posting" in transaction and "FEE-1" in transaction
    await finance.submit_action("bank_line.unmatch", {}, id=line["id"])
    await finance.submit_action("bank_line.ignore", {"reason": "Known"}, id=line["id"])
    page = await finance.get_page_text(FINANCE_URL)
    assert "Nobody is missing money" in page and get_next_step(page) == "4. Run payouts"

    run = await finance.submit_action("payout_run.create", {})
    run_path = run.headers["HX-Redirect"]
    page = (await finance.get(FINANCE_URL)).text
    assert run_path in page and get_next_step(page) is None
    assert (await get_payout(harness, waiting["id"]))["status"] == "submitted"
    file = await finance.get(f"{FINANCE_URL}/safeguarding?day={get_day(harness)}&format=pdf")
    assert file.content.startswith(b"%PDF-")
    listed = (await finance.get("/console/bank-statements")).text
    assert statement_url in listed and "?status=unmatched" not in listed
    assert "All clear" in await finance.get_page_text("/console/bank-statements?status=to_match")


def get_next_step(page: str) -> str | None:
    found = re.search(r'>([^<>]+?)\s*<span class="badge next">Next step<', page)
    return found and found[1]


async def test_line_is_matched_with_a_candidate(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    await create_bank_account(harness, None)
    agent = await create_agent(harness)
    auth = await harness.create_admin("F")
    for _ in range(2):
        await harness.post(f"/api/v1/agents/{agent['id']}/fund", json={"amount": "70"}, auth=auth)
    finance = await console_clients.create_signed_in("F")
    content = build_csv((get_day(harness), "70.00", "B-1", "Deposit")).encode()
    await finance.post_file(IMPORT_URL, content)
    (line,) = await list_lines(harness)
    assert line["status"] == "unmatched"
    dialog = await finance.get(f"/console/bank-statements/lines/{line['id']}/candidates")
    found = re.findall(r"transaction_id=(txn_\w+)", dialog.text)
    assert len(found) == 2 and agent["name"] in dialog.text
    await finance.submit_action("bank_line.match", {"transaction_id": found[0]}, id=line["id"])
    (line,) = await list_lines(harness)
    assert (line["status"], line["transaction_id"]) == ("matched", found[0])


async def test_return_of_a_payout_is_proposed_and_confirmed_with_approval(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    await create_bank_account(harness, None)
    payout = await request_payout(harness, await create_merchant(harness), amount="90")
    await create_run(harness)
    await set_rules(harness, build_rule("reversals"))
    finance = await console_clients.create_signed_in("F")
    lines = [(get_day(harness), amount, payout["reference"], "-") for amount in ("-90.00", "90.00")]
    await finance.post_file(IMPORT_URL, build_csv(*lines).encode())
    (line,) = await list_lines(harness, status="unmatched")
    for path in (FINANCE_URL, f"/console/bank-statements/{line['statement_id']}"):
        page = await finance.get_page_text(path)
        assert "Proposed return" in page and "Confirm return" in page, path
    form = {"payout_id": payout["id"], "approval_reason": "On the statement of today"}
    sent = await finance.submit_action("bank_line.match", form, id=line["id"])
    assert "/console/approvals/" in sent.headers["HX-Redirect"]
    (held,) = (await harness.get(APPROVALS_URL, auth=await harness.create_admin())).json()["data"]
    assert (held["operation"], held["resource_id"]) == ("reversals", payout["id"])
    assert (await get_payout(harness, payout["id"]))["status"] == "paid"
    assert (await approve(harness, held))["status"] == "executed"
    assert (await get_payout(harness, payout["id"]))["status"] == "returned"


async def test_columns_of_a_bank_are_saved_for_its_account(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    account = await create_bank_account(harness, None)
    finance = await console_clients.create_signed_in("F")
    fields = {
        "date": "Tag", "amount": "Betrag", "description": "Text\nName",
        "date_format": "DD.MM.YYYY", "decimal_separator": ",",
    }  # fmt: skip
    await finance.submit_action("csv_mapping.update", fields, id=account["id"])
    page = await finance.get_page_text(f"{IMPORT_URL}?bank_account_id={account['id']}")
    assert "Betrag" in page and "Text, Name" in page
    content = b"Tag;Betrag;Text;Name\n15.01.2026;-1.000,50;Miete;Bintu\n"
    await finance.post_file(f"{IMPORT_URL}?bank_account_id={account['id']}", content)
    (line,) = await list_lines(harness)
    assert (line["amount"], line["description"]) == ("-1000.50", "Miete Bintu")
