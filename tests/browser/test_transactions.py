"""Transactions: filters, ledger entries, and CSV export."""

import re

from playwright.async_api import expect

from browser.conftest import DemoCustomer
from drivers.actors import Admin, require_success
from drivers.chromium import Tab, download_csv


async def test_filtered_list_is_exported_as_csv(
    tab: Tab, demo_customer: DemoCustomer, ada: Admin
) -> None:
    page = tab.page
    await tab.open("/console/transactions")
    await page.get_by_role("combobox", name="Party").fill(demo_customer.id)
    await page.get_by_role("combobox", name="Party").press("Enter")
    await expect(page).to_have_url(re.compile(demo_customer.id))
    transactions = await ada.list_transactions(demo_customer.id)
    name, heads, rows = await download_csv(page, "Export CSV")
    assert re.fullmatch(r"transactions-\d{4}-\d\d-\d\d\.csv", name)
    assert heads[:5] == ["id", "created_at", "completed_at", "type", "status"]
    assert [row[0] for row in rows] == [item["id"] for item in transactions]
    await expect(page.locator("#download-note")).not_to_contain_text("continues in another file")


async def test_receipt_is_found_from_its_approval_code_with_two_more_keystrokes(
    tab: Tab, demo_customer: DemoCustomer, ada: Admin
) -> None:
    payments = await ada.list_transactions(demo_customer.id, type="pos_payment", status="completed")
    page, payment = tab.page, payments[0]
    for path in ("/console", "/console/limits"):
        await tab.open(path)
        await page.keyboard.press("Control+k")
        await page.keyboard.type(payment["approval_code"])
        await page.keyboard.press("Enter")  # also before the suggestions have appeared
        await expect(page).to_have_url(re.compile(payment["id"]))


async def test_search_box_is_used_by_keyboard_alone(tab: Tab, demo_customer: DemoCustomer) -> None:
    page = tab.page
    await tab.open("/console/transactions")
    await page.keyboard.press("Control+k")
    await page.keyboard.type(demo_customer.name.split()[0])
    box, options = page.locator("#find-input"), page.locator("#find-options [role=option]")
    await expect(box).to_have_attribute("aria-expanded", "true")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    assert await tab.find_axe_violations() == []
    assert await tab.find_contrast_violations() == []
    await tab.take_screenshot("search", full=False)
    await page.keyboard.press("Escape")
    await expect(box).to_have_attribute("aria-expanded", "false")
    await expect(box).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowUp")  # from the first to the last
    await expect(options.last).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/console/(subscribers|agents)/"))


async def test_form_selects_a_record_by_name(
    tab: Tab, demo_customer: DemoCustomer, ada: Admin
) -> None:
    page, agents = tab.page, await ada.list_all("agents")
    await tab.open(f"/console/subscribers/{demo_customer.id}")
    await tab.choose_action("Cash in")
    agent = page.get_by_role("combobox", name="Agent")
    await agent.press_sequentially(agents[0]["name"])
    await expect(agent).to_have_attribute("aria-expanded", "true")
    assert await tab.find_axe_violations("#dialog") == []
    await tab.take_screenshot("picker", full=False)
    await agent.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await agent.press("ArrowDown")
    await agent.press("Enter")
    await expect(page.locator("#field-agent_id-chosen")).to_have_value(agents[0]["id"])


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
    for label in ("From", "To"):
        await page.get_by_label(label, exact=True).fill(day)
    name, heads, rows = await download_csv(page, "Download", "button")
    assert name == f"journal-{day}.csv"
    assert heads[:3] == ["date", "transaction_id", "entry"]
    assert {row[0] for row in rows} == {day}
    assert completed[0]["id"] in {row[1] for row in rows}


async def test_receipt_is_found_by_its_approval_code(tab: Tab, ada: Admin) -> None:
    listed = require_success(await ada.get("transactions", type="pos_payment", status="completed"))
    transaction = next(row for row in listed["data"] if row["approval_code"])
    page = tab.page
    await tab.open("/console")
    await page.keyboard.press("Control+k")
    search = page.get_by_role("combobox", name="Search customers, cards, payments")
    await expect(search).to_be_focused()
    await search.press_sequentially(transaction["approval_code"])
    option = page.get_by_role("option").first
    await expect(option).to_be_visible()
    await search.press("ArrowDown")
    await search.press("Enter")
    await expect(page).to_have_url(re.compile(f"/console/transactions/{transaction['id']}"))
    await expect(page.get_by_role("main")).to_contain_text(transaction["approval_code"])
