"""Transactions: filters, ledger entries, and CSV export."""

import re

from playwright.async_api import expect

from browser.chromium import Tab
from browser.conftest import DemoCustomer
from browser.downloads import download_csv
from journeys.admin import Admin
from journeys.api_caller import require_success


async def test_transaction_is_found_by_filters_and_shows_its_entries(
    tab: Tab, demo_customer: DemoCustomer, ada: Admin
) -> None:
    # The demo may have no payment by this customer today.
    terminal, _ = await ada.create_terminal(await ada.create_merchant(), "Till 1")
    require_success(await terminal.pay("4.50", demo_customer.card, demo_customer.pin))
    page = tab.page
    await tab.open("/console")
    await page.get_by_role("link", name="Transactions").click()
    assert await tab.find_axe_violations() == []
    await page.get_by_label("Party ID").fill(demo_customer.id)
    await page.get_by_label("Type").select_option("pos_payment")
    await expect(page).to_have_url(re.compile(f"user_id={demo_customer.id}"))
    paid = await ada.list_transactions(demo_customer.id, type="pos_payment")
    rows = page.locator("#rows tr")
    await expect(rows).to_have_count(len(paid))
    await rows.nth(0).get_by_role("link").first.click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("POS payment of")
    recorded_entries = require_success(await ada.get(f"transactions/{paid[0]['id']}/entries"))[
        "entries"
    ]
    entries = page.get_by_role("region", name="Ledger entries")
    await expect(entries.locator("tbody tr")).to_have_count(len(recorded_entries))
    await expect(entries.locator("tbody tr").nth(0)).to_contain_text(
        f"{demo_customer.name} · Wallet"
    )
    await expect(entries.locator("tfoot")).to_contain_text("Total (debits = credits)")
    assert await tab.find_axe_violations() == []


async def test_invalid_filter_shows_an_error_and_keeps_the_list(tab: Tab) -> None:
    page = tab.page
    await tab.open("/console/transactions")
    await page.get_by_label("Party ID").fill("nonsense")
    await page.get_by_label("Party ID").press("Enter")
    errors = page.locator("#filter-errors")
    await expect(errors).to_contain_text("Party ID must be the ID of a customer")
    await expect(page.locator("#rows tr")).to_have_count(51)
    assert await tab.find_axe_violations() == []
    await page.get_by_label("Party ID").fill("")
    await page.get_by_label("Party ID").press("Enter")
    await expect(errors).to_be_empty()


async def test_filtered_list_is_exported_as_csv(
    tab: Tab, demo_customer: DemoCustomer, ada: Admin
) -> None:
    page = tab.page
    await tab.open("/console/transactions")
    await page.get_by_label("Party ID").fill(demo_customer.id)
    await page.get_by_label("Party ID").press("Enter")
    await expect(page).to_have_url(re.compile(f"user_id={demo_customer.id}"))
    transactions = await ada.list_transactions(demo_customer.id)
    name, heads, rows = await download_csv(page, "Export CSV")
    assert re.fullmatch(r"transactions-\d{4}-\d\d-\d\d\.csv", name)
    assert heads[:5] == ["id", "created_at", "completed_at", "type", "status"]
    assert [row[0] for row in rows] == [item["id"] for item in transactions]
    await expect(page.locator("#download-note")).not_to_contain_text("continues in another file")


async def test_large_export_continues_in_the_next_file(
    tab: Tab, demo_customer: DemoCustomer, ada: Admin
) -> None:
    page = tab.page
    transaction_ids = [item["id"] for item in await ada.list_transactions(demo_customer.id)]
    await tab.open(
        f"/console/transactions?user_id={demo_customer.id}&limit={len(transaction_ids) - 1}"
    )
    first = await download_csv(page, "Export CSV")
    await expect(page.get_by_text("The export continues in another file")).to_be_visible()
    assert await tab.find_axe_violations() == []
    last = await download_csv(page, "Download next file")
    assert [row[0] for row in first.rows + last.rows] == transaction_ids
    await expect(page.locator("#download-note")).not_to_contain_text("continues in another file")


async def test_export_with_restricted_subscribers_states_that_data_is_hidden(tab: Tab) -> None:
    page = tab.page
    await tab.open("/console/transactions")
    _, heads, rows = await download_csv(page, "Export CSV")
    masked = [dict(zip(heads, row, strict=True)) for row in rows if row[-1] == "true"]
    assert masked and not [row for row in masked if row["from_name"] or row["to_name"]]
    await expect(page.locator("#download-note")).to_contain_text("Personal data hidden")
    await tab.open(f"/console/transactions/{masked[0]['id']}")
    await expect(page.get_by_text("Personal data hidden.")).to_be_visible()
    assert await tab.find_axe_violations() == []
