"""Stories about people who run the business: agents without float, and merchant fees."""

import re

from playwright.async_api import expect

from drivers.chromium import PHONE_VIEWPORT, Tab, download_csv


async def test_liquidity_page_shows_which_agents_run_out_first(tab: Tab) -> None:
    page = tab.page
    await tab.open("/console/work")
    await tab.take_screenshot("work")
    assert await tab.find_axe_violations() == []
    await tab.open("/console/agents")
    await page.get_by_role("link", name="Liquidity").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Agent liquidity")
    await page.wait_for_load_state()
    rows = page.locator("tbody tr")
    assert await rows.count() > 1
    days = [
        float(text.removesuffix(" days"))
        for text in await rows.locator('td[data-label="Days of cover"]').all_inner_texts()
        if re.fullmatch(r"[\d.]+ days", text)
    ]
    assert days == sorted(days)
    await tab.take_screenshot("liquidity")
    assert await tab.find_axe_violations() == []
    await page.set_viewport_size(PHONE_VIEWPORT)
    await tab.take_screenshot("liquidity-phone")


async def test_fees_of_a_merchant_are_exported_for_last_month(tab: Tab) -> None:
    page = tab.page
    await tab.open("/console/processors")
    await page.locator("#rows a").first.click()
    sales = page.locator("#sales")
    await expect(sales).to_contain_text("Net change")
    await tab.take_screenshot("merchant-sales")
    await sales.get_by_role("link", name="Last month").click()
    await expect(sales.get_by_role("link", name="Last month")).to_have_attribute(
        "aria-current", "page"
    )
    assert await tab.find_axe_violations() == []
    _, heads, _ = await download_csv(page, "Export CSV")
    assert {"id", "amount", "fee_amount", "created_at"} <= set(heads)


async def test_filtered_list_shows_totals_and_is_exported_with_progress(tab: Tab) -> None:
    page = tab.page
    await tab.open("/console?period=month")
    await page.locator(".tiles a").first.click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Transactions")
    await expect(page.locator("#totals")).to_contain_text("completed:")
    await tab.take_screenshot("transaction-totals")
    assert await tab.find_axe_violations() == []
    await page.get_by_label("Flow").select_option("refunds")
    await expect(page.locator("#totals")).to_contain_text("transaction")
    await tab.open("/console/subscribers")
    await page.get_by_text("Columns", exact=True).click()
    await page.get_by_role("checkbox", name="Phone").uncheck()
    await expect(page.get_by_role("columnheader", name="Phone")).to_be_hidden()
    await page.reload()
    await expect(page.get_by_role("columnheader", name="Phone")).to_be_hidden()
    _, _, rows = await download_csv(page, "Export CSV")
    await expect(page.locator("#download-note")).to_have_text(f"{len(rows):,} rows exported.")
