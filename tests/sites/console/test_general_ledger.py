"""General ledger page: balances, trial balance, journal download and GL codes."""

import re
from datetime import date, timedelta

from builders.payments import PosDriver
from drivers.console import ConsoleClient, ConsoleClients, contains_digits
from harness import Harness
from tapgate_client.clock import get_platform_day

URL = "/console/ledger"


def get_today(harness: Harness) -> date:
    return get_platform_day(harness.services.clock(), harness.services.settings.timezone)


async def test_finance_sees_balances_and_downloads_the_journal(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    await (await PosDriver.create(harness)).pay("100.00")
    finance = await console_clients.create_signed_in("F")
    text = await finance.get_page_text(URL)
    for name in ("Customer wallets", "Cash and bank", "Fee income", "Verify ledger"):
        assert name in text
    assert text.count("900.00") == 1
    assert "Income statement" in text and text.count(">1.00<") == 3  # credit, income and net
    day = get_today(harness)
    entries = await finance.get_page_text(f"{URL}/entries?gl_code=2100&day={day}")
    assert "/console/transactions/txn_" in entries and "100.00" in entries
    assert "<h1>Customer wallets</h1>" in entries and "1,000.00" in entries
    total = entries.partition("<tfoot>")[2]
    assert "100.00" in total and "1,000.00" in total and "900.00 SLE" in entries
    assert "POS payment" in entries
    assert re.search("Opening balance</dt><dd>0.00 SLE</dd>", entries)
    assert re.search("Closing balance</dt><dd>900.00 SLE<small>Credit</small>", entries)
    cash = await finance.get_page_text(f"{URL}/entries?gl_code=1000&day={day}")
    assert re.search("Closing balance</dt><dd>[1-9][0-9,.]+ SLE<small>Debit</small>", cash)
    assert (await finance.get(f"{URL}/entries?gl_code=2100&day=never")).status_code == 422
    for query in ("/entries?gl_code=2100&day=0001-01-01", "?as_of=0001-01-01"):
        assert (await finance.get(f"{URL}{query}")).status_code in (200, 422), query
    assert not re.search(r">txn_\w+<", entries)
    assert "No entries" in await finance.get_page_text(f"{URL}/entries?gl_code=1&day={day}")
    assert (await finance.get(f"{URL}/entries")).headers["Location"] == URL
    pattern = r'<td data-label="(Debit|Credit)" class="money labeled end">1,000.00</td>'
    assert re.findall(pattern, text)
    assert "not been verified yet" in await finance.get_page_text(f"{URL}/seal")
    assert (await finance.submit_action("ledger.verify")).status_code == 200
    seal = await finance.get_page_text(f"{URL}/seal")
    assert "Ledger: debits = credits" in seal
    assert re.search(r"verified <time.*\(\d+ ledger entries\)", seal)
    yesterday = get_today(harness) - timedelta(days=1)
    before = await finance.get_page_text(f"{URL}?as_of={yesterday}")
    assert before.count("900.00") == 0
    wrong = await finance.get_page_text(f"{URL}?as_of=today")
    assert "Date must be a time" in wrong and wrong.count("900.00") == 1

    for format, start in (("csv", "\ufeffdate,transaction_id"), ("hledger", "decimal-mark .")):
        file = await finance.get(f"{URL}/journal?day={get_today(harness)}&format={format}")
        assert file.status_code == 200
        assert file.text.startswith(start)
        assert "attachment" in file.headers["Content-Disposition"]
    assert (await finance.get_partial(f"{URL}/journal?day=never")).status_code == 422
    proof = await finance.submit_action("ledger.verify", {})
    assert "All ledger checks passed" in proof.text


async def test_gl_codes_are_edited_with_errors_at_their_rows(
    ada: ConsoleClient, harness: Harness
) -> None:
    await ada.get(URL)
    form = (await ada.get_partial(f"{URL}/gl-codes")).text
    fields = dict(re.findall(r'name="(\w+)"[^>]* value="([^"]*)"', form))
    assert fields["gl_code_wallet"] == "2100"
    rejected = await ada.post_partial(f"{URL}/gl-codes", fields | {"gl_code_wallet": "4000"})
    assert "GL code is already used by fees." in rejected.text
    assert 'value="4000"' in rejected.text
    rejected = await ada.post_partial(f"{URL}/gl-codes", fields | {"name_wallet": " "})
    assert "Name must have 1 to 100 characters." in rejected.text
    saved = await ada.post_partial(f"{URL}/gl-codes", fields | {"gl_code_wallet": "2150"})
    assert saved.headers["HX-Redirect"] == URL
    text = await ada.get_page_text(URL)
    assert contains_digits(text, "2150") and not contains_digits(text, "2100")
    stale = await ada.post_partial(f"{URL}/gl-codes", fields)
    assert "has changed since you opened the form" in stale.text
