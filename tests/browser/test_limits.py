"""Limits and fees: changed on the page, and the next payment goes by them."""

from playwright.async_api import expect

from browser.chromium import Tab
from journeys.admin import PASSWORD, Admin
from journeys.api_caller import require_error, require_success


async def test_a_limit_is_changed_and_holds(tab: Tab, ada: Admin) -> None:
    app = await ada.create_app()
    fatu = await ada.create_funded_customer("50000.00", app, "Fatu Conteh")
    friend = await ada.create_funded_customer("1.00", app, "Musa Conteh")
    before = require_success(await ada.get("account-rules/1"))
    page = tab.page
    await tab.open("/console")
    await page.get_by_role("link", name="Limits and fees").click()
    await expect(page.get_by_role("row", name="One payment")).to_contain_text("50,000.00")
    assert await tab.find_axe_violations() == []
    try:
        await page.get_by_role("button", name="Change").first.click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("Change the limits of level 1")
        await dialog.get_by_label("One payment").fill("much")
        await dialog.get_by_role("button", name="Change").click()
        await expect(dialog.get_by_label("One payment")).to_have_attribute("aria-invalid", "true")
        assert await tab.find_axe_violations() == []
        await dialog.get_by_label("One payment").fill("40.00")
        await dialog.get_by_role("button", name="Change").click()
        await expect(page.get_by_role("status")).to_contain_text("level 1 are changed")
        await expect(page.get_by_role("row", name="One payment")).to_contain_text("40.00")
        answer = await fatu.send_money("40.01", friend)
        assert require_error(answer) == (403, "TRANSACTION_LIMIT_EXCEEDED")
        require_success(await fatu.send_money("40.00", friend))
    finally:
        require_success(await ada.put("account-rules/1", max_transaction=before["max_transaction"]))


async def test_a_fee_gets_another_step(tab: Tab, ada: Admin) -> None:
    page, before = tab.page, require_success(await ada.get("fee-rules"))["data"]
    await tab.open("/console/limits")
    try:
        await page.get_by_role("button", name="Change the fee of Transfer P2P").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Step 3: up to").fill("10")
        await dialog.get_by_label("Step 3: percent").fill("0.75")
        await dialog.get_by_role("button", name="Change the fee").click()
        await expect(dialog).to_contain_text("must be more than that of the step before")
        assert await tab.find_axe_violations() == []
        await dialog.get_by_label("Step 3: up to").fill("900000")
        await dialog.get_by_role("button", name="Change the fee").click()
        await expect(page.get_by_role("status")).to_have_text("The fee is changed.")
        fees = page.get_by_role("region", name="Fees", exact=True).last
        await expect(fees).to_contain_text("0.75 % up to 900,000.00 SLE")
        added = {"type": "transfer_p2p", "up_to": "900000.00", "rate": "0.75", "payer": "sender"}
        now = require_success(await ada.get("fee-rules"))["data"]
        assert [step for step in now if step != added] == before and added in now
    finally:
        require_success(await ada.put("fee-rules", data=before))


async def test_who_looks_after_money_sees_fees_and_changes_none(stranger: Tab, ada: Admin) -> None:
    finance = await ada.create_admin("Foday", "F")
    await stranger.sign_in(finance.email, PASSWORD)
    page = stranger.page
    await page.get_by_role("link", name="Limits and fees").click()
    await expect(page.get_by_role("main")).to_contain_text("1.5 % up to 50,000.00 SLE")
    await expect(page.get_by_role("button", name="Change")).to_have_count(0)
    assert await stranger.find_axe_violations() == []
