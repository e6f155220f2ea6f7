"""Subscribers: search, block, unblock, and documents."""

import re

from playwright.async_api import expect

from browser.conftest import DemoCustomer
from drivers.chromium import Tab


async def test_subscriber_search_filters_while_typing(
    tab: Tab, demo_customer: DemoCustomer
) -> None:
    page = tab.page
    await tab.open("/console")
    await page.get_by_role("link", name="Customers", exact=True).click()
    await page.wait_for_url("**/console/subscribers")
    rows = page.locator("#rows tr")
    assert await rows.count() > 10
    await page.get_by_role("searchbox", name="Search").press_sequentially(
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
    await page.get_by_role("searchbox", name="Search").press_sequentially(demo_customer.phone[-8:])
    await expect(page.locator("#rows tr")).to_have_count(1)
    await expect(page).to_have_url(re.compile("search="))
    await page.get_by_role("link", name=demo_customer.name).hover()
    await page.mouse.down()
    await page.wait_for_timeout(500)
    await page.mouse.up()
    await expect(page.get_by_role("heading", level=1)).to_contain_text(demo_customer.name)


async def test_date_of_birth_is_shown_like_other_dates(
    tab: Tab, demo_customer: DemoCustomer
) -> None:
    await tab.open(f"/console/subscribers/{demo_customer.id}")
    fact = tab.page.locator(".facts > div", has_text="Date of birth")
    await expect(fact.get_by_role("definition")).to_have_text(re.compile(r"^\w{3} \d+, \d{4}$"))
