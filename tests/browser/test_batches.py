"""A finance officer pays salaries from a file."""

from playwright.async_api import expect

from browser.conftest import DemoCustomer
from drivers.chromium import PHONE_VIEWPORT, Tab


async def test_batch_is_uploaded_checked_and_paid(tab: Tab, demo_customer: DemoCustomer) -> None:
    page = tab.page
    await tab.open("/console/batches")
    await expect(page.locator("#rows")).to_contain_text("Market grants")
    await tab.take_screenshot("batch-list")
    await page.get_by_role("button", name="Create batch from cash").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("Salaries November")
    await dialog.get_by_role("button", name="Create batch from cash").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Salaries November")
    lines = f"phone_number,amount,reference\n{demo_customer.phone},12.50,A\n+23276999999,5,B\n"
    file = {"name": "salaries.csv", "mimeType": "text/csv"}
    await page.get_by_label("CSV file").set_input_files({**file, "buffer": b"phone_number\n"})
    await page.get_by_role("button", name="Upload").click()
    await expect(page.locator("#result")).to_contain_text("has no column amount")
    await tab.take_screenshot("batch-upload-error")
    await page.get_by_label("CSV file").set_input_files({**file, "buffer": lines.encode()})
    await page.get_by_role("button", name="Upload").click()
    await expect(page.get_by_role("status").first).to_have_text("Lines uploaded.")
    assert await tab.find_axe_violations() == []
    await page.get_by_role("button", name="Check the lines").click()
    await dialog.get_by_role("button", name="Check the lines").click()
    await expect(page.get_by_role("heading", name="Invalid lines")).to_be_visible()
    await tab.take_screenshot("batch-validated")
    await page.set_viewport_size(PHONE_VIEWPORT)
    await tab.take_screenshot("batch-validated-phone")
    await page.get_by_role("button", name="Pay batch").click()
    await dialog.get_by_role("button", name="Pay batch").click()
    # The page follows the run without a reload.
    await expect(page.locator("#progress")).to_contain_text("Completed with errors", timeout=30_000)
    assert await tab.find_axe_violations() == []
    await tab.take_screenshot("batch-completed-phone")
