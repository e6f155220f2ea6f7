"""Transactions: filters, ledger entries, and CSV export."""

import re

from playwright.async_api import expect

from browser.conftest import DemoCustomer
from drivers.actors import Admin
from drivers.chromium import Tab, download_csv


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


async def test_journal_of_a_day_is_downloaded(
    tab: Tab, demo_customer: DemoCustomer, ada: Admin
) -> None:
    page = tab.page
    completed = await ada.list_transactions(demo_customer.id, status="completed")
    day = completed[0]["completed_at"][:10]
    await tab.open("/console/ledger")
    await page.get_by_label("Day").fill(day)
    name, heads, rows = await download_csv(page, "Download", "button")
    assert name == f"journal-{day}.csv"
    assert heads[:3] == ["date", "transaction_id", "entry"]
    assert {row[0] for row in rows} == {day}
    assert completed[0]["id"] in {row[1] for row in rows}
