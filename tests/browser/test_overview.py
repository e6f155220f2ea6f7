"""Sign-in, the home page and the reports."""

import re

import pytest
from playwright.async_api import expect

from drivers.actors import Admin, require_success
from drivers.chromium import Tab
from drivers.processes import ADMIN


async def test_sign_in_rejects_a_wrong_password_and_sign_out_ends_the_session(
    signed_out_tab: Tab,
) -> None:
    page = signed_out_tab.page
    signed_out_tab.monitor.expected_problems = ("401",)
    await signed_out_tab.open("/console/subscribers")
    await expect(page).to_have_url(re.compile(r"/console/sign-in\?to="))
    await page.get_by_label("Email").fill(ADMIN["email"])
    await page.get_by_label("Password").fill("not the password")
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page.get_by_text("Incorrect email or password")).to_be_visible()
    await expect(page.get_by_label("Password")).to_be_focused()
    assert await signed_out_tab.find_axe_violations() == []
    await page.get_by_label("Password").fill(ADMIN["password"])
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Customers")
    cookies = await page.context.cookies()
    assert cookies
    assert all(item["sameSite"] == "Strict" for item in cookies)
    assert {item["name"] for item in cookies if not item["httpOnly"]} <= {"tapgate_timezone"}
    await page.get_by_role("button", name="Sign out").click()
    await page.wait_for_url("**/console/sign-in")  # the next request would cancel the sign-out
    await signed_out_tab.open("/console")
    await expect(page).to_have_url(re.compile("/console/sign-in$"))


async def test_navigation_fits_the_window(tab: Tab) -> None:
    await tab.open("/console")
    hidden = "document.querySelector('.bar').scrollHeight - window.innerHeight"
    assert await tab.page.evaluate(hidden) <= 0


async def test_overview_totals_match_the_api(tab: Tab, ada: Admin) -> None:
    page = tab.page
    await tab.open("/console")
    await page.get_by_role("link", name="30 days").click()
    await expect(page.get_by_role("link", name="30 days")).to_have_attribute("aria-current", "page")
    overview = require_success(await ada.get("overview", period="month"))
    tiles = page.locator(".tiles").first
    payments = overview["flows"][0]["amount"]
    await expect(tiles).to_contain_text(f"{float(payments):,.2f} SLE")
    await expect(tiles).to_contain_text(f"{100 * overview['totals']['success_rate']:.1f}%")
    await expect(page.locator("#chart-volume")).to_be_visible()
    assert await page.locator(".chart svg .part").count() > 20
    await tab.take_screenshot("readme/overview")
    assert await tab.find_axe_violations() == []
    await tab.open("/console/reports?period=month")
    await expect(tiles).to_contain_text(f"{float(payments):,.2f} SLE")
    chart = page.locator("figure", has=page.locator("#chart-counts"))
    await chart.get_by_text("View as table").click()
    await expect(chart.get_by_role("row")).to_have_count(31)
    assert await tab.find_axe_violations() == []


@pytest.mark.usefixtures("french")
async def test_relative_date_in_a_sentence_is_in_lower_case(tab: Tab) -> None:
    await tab.open("/console/reports")
    lead = tab.page.locator("p.lead")
    await expect(lead).to_have_text(re.compile(r"(hier|aujourd.hui) \d\d:\d\d"))
