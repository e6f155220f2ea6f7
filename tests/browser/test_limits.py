"""Limits and fees: changes on the page apply to the next payment."""

from playwright.async_api import expect

from drivers.actors import Admin, require_success
from drivers.chromium import Tab


async def test_fee_tier_can_be_added(tab: Tab, ada: Admin) -> None:
    page, before = tab.page, require_success(await ada.get("fee-rules"))["data"]
    await tab.open("/console/limits")
    try:
        await page.get_by_role("button", name="Edit fee: Send money").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Tier 3: up to").fill("10")
        await dialog.get_by_label("Tier 3: percent").fill("0.75")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_contain_text("must be greater than in the previous tier")
        assert await tab.find_axe_violations() == []
        await dialog.get_by_label("Tier 3: up to").fill("900000")
        await dialog.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("status")).to_have_text("Fee updated.")
        fees = page.get_by_role("region", name="Fees", exact=True).last
        await expect(fees).to_contain_text("0.75% up to 900,000.00 SLE")
        added = {"type": "transfer_p2p", "up_to": "900000.00", "rate": "0.75", "payer": "sender"}
        now = require_success(await ada.get("fee-rules"))["data"]
        assert [rule for rule in now if rule != added] == before and added in now
    finally:
        require_success(await ada.put("fee-rules", data=before))
