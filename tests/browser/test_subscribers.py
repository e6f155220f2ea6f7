"""Subscribers: search, block, unblock, and documents."""

import re
from pathlib import Path

from PIL import Image
from playwright.async_api import expect

from browser.chromium import Tab
from browser.conftest import DemoCustomer
from journeys.admin import Admin


async def test_subscriber_search_filters_while_typing(
    tab: Tab, demo_customer: DemoCustomer
) -> None:
    page = tab.page
    await tab.open("/console")
    await page.get_by_role("link", name="Customers").click()
    rows = page.locator("#rows tr")
    assert await rows.count() > 10
    await page.get_by_label("Search").press_sequentially(
        f"{demo_customer.name.lower()} {demo_customer.phone[-8:]}"
    )
    await expect(rows).to_have_count(1)
    await expect(page).to_have_url(re.compile("search="))
    await page.get_by_role("link", name=demo_customer.name).click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text(demo_customer.name)
    assert await tab.find_axe_violations() == []


async def test_long_press_on_a_search_result_opens_it(
    tab: Tab, demo_customer: DemoCustomer
) -> None:
    """Leaving the search field must not reload the list under the pointer."""
    page = tab.page
    await tab.open("/console/subscribers")
    await page.get_by_label("Search").press_sequentially(demo_customer.phone[-8:])
    await expect(page.locator("#rows tr")).to_have_count(1)
    await expect(page).to_have_url(re.compile("search="))
    await page.get_by_role("link", name=demo_customer.name).hover()
    await page.mouse.down()
    await page.wait_for_timeout(500)
    await page.mouse.up()
    await expect(page.get_by_role("heading", level=1)).to_contain_text(demo_customer.name)


async def test_subscriber_is_blocked_and_unblocked(tab: Tab, demo_customer: DemoCustomer) -> None:
    page = tab.page
    await tab.open(f"/console/subscribers/{demo_customer.id}")
    await page.get_by_role("button", name="Block", exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Block this customer?")
    assert await tab.find_axe_violations() == []
    await dialog.get_by_label("Reason").fill("Lost the phone")
    await dialog.get_by_role("button", name="Block").click()
    await expect(page.get_by_role("status")).to_have_text("Customer blocked.")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Blocked")
    await expect(page.get_by_text("Reason: Lost the phone")).to_be_visible()
    await page.get_by_role("button", name="Unblock").click()
    await dialog.get_by_role("button", name="Unblock").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Active")


async def test_kyc_document_is_uploaded_and_displayed(tab: Tab, ada: Admin, tmp_path: Path) -> None:
    photo = tmp_path / "front.png"
    Image.new("RGB", (320, 200), (90, 120, 60)).save(photo)
    app = await ada.create_app()
    person = await app.register_customer("Hawa Sankoh")
    page = tab.page
    await tab.open(f"/console/subscribers/{person.id}")
    await page.get_by_role("button", name="Add document").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Photo").set_input_files(photo)
    assert await tab.find_axe_violations() == []
    await dialog.get_by_role("button", name="Add document").click()
    await expect(page.get_by_role("img", name="ID front")).to_be_visible()
    assert await page.get_by_role("img", name="ID front").evaluate("image => image.naturalWidth")
