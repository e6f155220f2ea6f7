"""Stage: scenes, the tour, API calls and accessibility."""

import re

import pytest
from playwright.async_api import expect

from browser.conftest import DemoCustomer
from drivers.chromium import PHONE_VIEWPORT, Tab

_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
async def stage(tab: Tab) -> Tab:
    await tab.page.set_viewport_size({"width": 1440, "height": 900})
    await tab.open("/stage")
    await expect(tab.page.locator("#entries li").first).to_be_visible()
    return tab


async def finish_scene(tab: Tab) -> None:
    await expect(tab.page.locator("#stage.playing")).to_have_count(0)


async def test_tap_shows_entries_receipt_and_api_call(
    stage: Tab, demo_customer: DemoCustomer
) -> None:
    page = stage.page
    assert await stage.find_axe_violations() + await stage.find_contrast_violations() == []
    await page.get_by_role("button", name="Tap for me").click()
    await expect(page.locator("#screen")).to_contain_text("Approved")
    newest = page.locator("#entries li").first
    await expect(newest).to_contain_text(f"{demo_customer.name} → ")
    await expect(newest).to_contain_text("35.00 SLE")
    await expect(newest.get_by_role("row")).not_to_have_count(0)
    await expect(page.locator("#a-log")).to_contain_text("35.00 SLE")
    code = page.locator("#call-code")
    await expect(code).to_contain_text("curl -s $TAPGATE/api/v1/pos/payment")
    await page.get_by_role("radio", name="Python").check()
    await expect(code).to_contain_text("client.pos.pay(")
    await page.get_by_role("radio", name="TypeScript").check()
    await expect(code).to_contain_text("client.payAtTerminal(")
    await page.get_by_role("radio", name="curl").check()
    await finish_scene(stage)
    await stage.take_screenshot("readme/stage-tap", full=False)


async def test_money_goes_from_phone_to_phone(stage: Tab) -> None:
    page = stage.page
    await page.get_by_role("button", name="Send money").click()
    await expect(page.locator("#b-log")).to_contain_text("You received 5.00 SLE")
    await expect(page.locator("#a-log")).to_contain_text("You sent Mohamed S. 5.00 SLE")
    await expect(page.locator("#call-name")).to_have_text("POST /api/v1/wallet/transfer-p2p")
    await expect(page.locator("#call-code")).to_contain_text('"recipient_phone_number"')
    await finish_scene(stage)
    await stage.take_screenshot("readme/stage", full=False)


async def test_copy_of_a_card_is_refused_and_raises_an_alert(stage: Tab) -> None:
    page = stage.page
    stage.monitor.expected_problems = ("409",)
    await page.get_by_role("button", name="Clone a card").click()
    await expect(page.locator("#real-counter")).to_have_text(re.compile(r"^\d+$"))
    await expect(page.locator("#clone-text")).to_contain_text("The copy is refused")
    await expect(page.locator("#screen")).to_contain_text("Declined")
    alert = page.get_by_role("link", name="Alert: this card may have been cloned")
    await expect(alert).to_be_visible()
    assert await stage.find_axe_violations() + await stage.find_contrast_violations() == []
    await finish_scene(stage)
    await stage.take_screenshot("readme/stage-clone", full=False)
    await alert.click()
    await expect(page.get_by_role("link", name="DEMO-000002").first).to_be_visible()


@pytest.mark.proof
async def test_tour_visits_every_part(stage: Tab) -> None:
    page = stage.page
    stage.monitor.expected_problems = ("409",)
    await page.get_by_role("button", name="Take the tour").click()
    tour = page.get_by_role("region", name="Tour")
    next_step = tour.get_by_role("button", name=re.compile("Next|Finish"))
    step = tour.locator("#tour-step")
    await expect(step).to_have_text("1 / 9")
    await expect(next_step).to_be_enabled()
    await next_step.click()  # from now on, the tour waits
    spots = {"stage-terminal"}
    checked = re.compile("^[23] / 9")
    await expect(step).to_have_text(checked)
    await expect(next_step).to_be_enabled()
    assert await stage.find_axe_violations() + await stage.find_contrast_violations() == []
    while await tour.is_visible():
        spots.add(await page.locator(".spot").get_attribute("id"))
        await expect(next_step).to_be_enabled()
        await next_step.click()
    expected = {"stage-terminal", "a-phone", "b-phone", "stage-ledger", "stage-call"}
    assert spots == expected
    await expect(tour).to_be_hidden()


async def test_stage_fits_a_phone_and_shows_codes_for_real_phones(stage: Tab) -> None:
    page = stage.page
    await page.get_by_role("button", name="Open a real phone").click()
    dialog = page.get_by_role("dialog", name="Open a real phone")
    await expect(dialog.get_by_role("img", name="QR code")).to_have_count(2)
    assert await stage.find_axe_violations() == []
    await dialog.get_by_role("button", name="Close").click()
    await page.set_viewport_size(PHONE_VIEWPORT)
    assert await page.evaluate(_OVERFLOW) == 0
    await page.emulate_media(color_scheme="dark")
    assert await stage.find_axe_violations() + await stage.find_contrast_violations() == []
