"""Compliance officer: held payments, alerts, and rules."""

import pytest
from playwright.async_api import expect

from browser.chromium import Tab
from journeys.actors import Customer
from journeys.admin import PASSWORD, Admin
from journeys.api_caller import require_success

_BALANCE = "1300000.00"
_HELD_AMOUNT = "600000.00"


@pytest.fixture
async def officer(signed_out_tab: Tab, ada: Admin) -> Tab:
    admin = await ada.create_admin("Isata", "C")
    await signed_out_tab.sign_in(admin.email, PASSWORD)
    return signed_out_tab


async def create_customer(ada: Admin, name: str) -> Customer:
    """Create a customer at KYC level 3 with a card."""
    customer = await ada.create_funded_customer("100.00", await ada.create_app(), name)
    url = f"subscribers/{customer.id}"
    require_success(await ada.put(url, kyc_level=3, kyc_status="VERIFIED"))
    return customer


async def decide_alert(tab: Tab, button: str, notes: str) -> None:
    """Release or reject the payment on the page of its alert, and check the dialog."""
    page = tab.page
    await page.get_by_role("button", name=button).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("This can't be undone.")
    assert await tab.find_axe_violations() == []
    await dialog.get_by_label("Notes").fill(notes)
    await dialog.get_by_role("button", name=button).click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Resolved")


async def test_officer_releases_one_held_payment_and_rejects_another(
    officer: Tab, ada: Admin
) -> None:
    kadiatu, alusine = (
        await create_customer(ada, "Kadiatu Bangura"),
        await create_customer(ada, "Alusine Turay"),
    )
    bank = await ada.create_partner()
    await ada.fund_partner(bank, _BALANCE)
    require_success(await bank.top_up(_BALANCE, kadiatu, "house"))
    first = require_success(await kadiatu.send_money(_HELD_AMOUNT, alusine, memo="the house"))
    second = require_success(await kadiatu.send_money(_HELD_AMOUNT, alusine, memo="the garden"))
    assert {first["status"], second["status"]} == {"under_review"}

    # Both alerts are in the queue, newest first.
    page = officer.page
    await page.get_by_role("link", name="Compliance").click()
    rows = page.locator("#rows tr").filter(has_text="Kadiatu Bangura")
    await expect(rows).to_have_count(3)  # includes the alert for the large top-up
    large_amount_alerts = rows.filter(has_text="Large amount")
    await expect(large_amount_alerts).to_have_count(2)
    await expect(large_amount_alerts.first).to_contain_text("600,000.00 SLE")
    assert await officer.find_axe_violations() == []

    # The alert page shows everything needed for the decision.
    await large_amount_alerts.first.get_by_role("link", name="Large amount").click()
    main = page.get_by_role("main")
    await expect(main).to_contain_text("Payment over 500,000.00 SLE: hold for review.")
    await expect(main).to_contain_text("Alusine Turay hasn't received it")
    await expect(main).to_contain_text("the garden")
    assert await officer.find_axe_violations() == []
    await page.get_by_role("button", name="Investigate").click()
    await page.get_by_label("Note").fill("Asked for the contract")
    await page.get_by_role("dialog").get_by_role("button", name="Investigate").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Investigating")
    await expect(main).to_contain_text("Asked for the contract")

    # A rejection returns the funds to the sender.
    await decide_alert(officer, "Reject payment", "There is no garden")
    await expect(page.get_by_role("status")).to_contain_text("The transaction was rejected")
    assert await alusine.get_funds() == ("100.00", "0.00")
    assert (await kadiatu.get_funds())[1] == "603000.00"

    # The second payment is found among the subscriber's alerts, and released.
    others = page.get_by_role("region", name="Other alerts for this customer")
    held = others.locator("tbody tr").filter(has_text="Open").filter(has_text="High")
    await held.get_by_role("link").click()
    await decide_alert(officer, "Release payment", "The deed is genuine")
    await expect(page.get_by_role("status")).to_contain_text("The transaction was released")
    await expect(main).to_contain_text("Completed")
    assert await alusine.get_funds() == ("600100.00", "0.00")
    assert (await kadiatu.get_funds())[1] == "0.00"
    await page.get_by_role("navigation").get_by_role("link", name="Compliance").first.click()
    await expect(large_amount_alerts).to_have_count(0)


async def test_raised_rule_threshold_applies_to_the_payment_check(officer: Tab, ada: Admin) -> None:
    person = await create_customer(ada, "Sia Kamanda")
    page = officer.page
    await officer.open("/console/compliance/rules")
    rule = page.get_by_role("region", name="Large amount")
    await expect(rule).to_contain_text("Payment over 500,000.00 SLE: hold for review.")
    assert await officer.find_axe_violations() == []

    async def change(threshold: str) -> None:
        await rule.get_by_role("button", name="Edit").click()
        await page.get_by_label("Amount threshold").fill(threshold)
        assert await officer.find_axe_violations() == []
        await page.get_by_role("dialog").get_by_role("button", name="Save").click()
        await expect(page.get_by_role("status")).to_have_text("Rule updated.")

    await change("1234567.89")
    try:
        await expect(rule).to_contain_text("Payment over 1,234,567.89 SLE: hold for review.")
        await page.get_by_role("button", name="Check payment").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Customer").fill(person.id)
        await dialog.get_by_label("Amount").fill("600000")
        await dialog.get_by_role("button", name="Check payment").click()
        await expect(dialog.get_by_role("heading")).to_contain_text("Payment would be")
        await expect(dialog).not_to_contain_text("AMOUNT_THRESHOLD")
        await dialog.get_by_role("button", name="Close").click()
    finally:
        await change("500000")
