"""Limits and fees: changes on the page apply to the next payment."""

from playwright.async_api import expect

from browser.chromium import Tab
from journeys.admin import PASSWORD, Admin
from journeys.api_caller import require_error, require_success


async def test_changed_limit_applies_to_the_next_payment(tab: Tab, ada: Admin) -> None:
    app = await ada.create_app()
    fatu = await ada.create_funded_customer("50000.00", app, "Fatu Conteh")
    friend = await ada.create_funded_customer("1.00", app, "Musa Conteh")
    before = require_success(await ada.get("account-rules/1"))
    page = tab.page
    await tab.open("/console")
    await page.get_by_role("link", name="Limits and fees").click()
    await expect(page.get_by_role("row", name="Per transaction")).to_contain_text("50,000.00")
    assert await tab.find_axe_violations() == []
    try:
        await page.get_by_role("button", name="Edit").first.click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("Edit level 1 limits")
        await dialog.get_by_label("Per transaction").fill("much")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog.get_by_label("Per transaction")).to_have_attribute(
            "aria-invalid", "true"
        )
        assert await tab.find_axe_violations() == []
        await dialog.get_by_label("Per transaction").fill("40.00")
        await dialog.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("status")).to_have_text("Level 1 limits updated.")
        await expect(page.get_by_role("row", name="Per transaction")).to_contain_text("40.00")
        response = await fatu.send_money("40.01", friend)
        assert require_error(response) == (403, "TRANSACTION_LIMIT_EXCEEDED")
        require_success(await fatu.send_money("40.00", friend))
    finally:
        require_success(await ada.put("account-rules/1", max_transaction=before["max_transaction"]))


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


async def test_finance_user_can_view_but_not_change_fees(signed_out_tab: Tab, ada: Admin) -> None:
    finance = await ada.create_admin("Foday", "F")
    await signed_out_tab.sign_in(finance.email, PASSWORD)
    page = signed_out_tab.page
    await page.get_by_role("link", name="Limits and fees").click()
    await expect(page.get_by_role("main")).to_contain_text("1.5% up to 50,000.00 SLE")
    await expect(page.get_by_role("button", name="Edit")).to_have_count(0)
    assert await signed_out_tab.find_axe_violations() == []
