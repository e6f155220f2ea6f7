"""Setting up an empty installation with the steps on the overview."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.async_api import Browser, Error, expect

from databases import ScratchDatabases, build_database_url
from drivers import chromium
from drivers.actors import Admin, require_success
from drivers.chromium import DESKTOP_VIEWPORT, PHONE_VIEWPORT, Tab
from drivers.processes import ADMIN, open_client, start_tapgate
from harness import PIN

MAX_ATTEMPTS = 5
_GET_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class EmptyInstallation(NamedTuple):
    tab: Tab
    ada: Admin


@pytest.fixture
async def empty(
    browser: Browser, postgres: str, scratch_databases: ScratchDatabases
) -> AsyncIterator[EmptyInstallation]:
    """Yield an installation without demo data, and a tab signed in as its only admin."""
    name = await scratch_databases.acquire()
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as folder:
        url = build_database_url(name, postgres)
        async with (
            start_tapgate(Path(folder), url, workers=1, demo="off") as running,
            open_client(running.address) as client,
            chromium.open_tab(browser, running.address, DESKTOP_VIEWPORT) as tab,
        ):
            await tab.sign_in_by_request(ADMIN["email"], ADMIN["password"])
            yield EmptyInstallation(
                tab, await Admin.log_in(client, ADMIN["email"], ADMIN["password"])
            )
    await scratch_databases.release(name)


async def submit(tab: Tab, button: str, **fields: str) -> None:
    """Open a step's form, submit it, and return to the overview."""
    page = tab.page
    await page.get_by_role("region", name="Get started").get_by_role("button", name=button).click()
    dialog = page.get_by_role("dialog")
    for name, value in fields.items():
        field = dialog.locator(f'[name="{name}"]')
        if name == "events":
            await dialog.locator(f'[name="events"][value="{value}"]').check()
        elif await field.evaluate("field => field.tagName") == "SELECT":
            await field.select_option(value)
        else:
            await field.fill(value)
    async with page.expect_response(lambda response: response.request.method == "POST"):
        await dialog.locator("form button:not([type=button])").click()
    for _ in range(MAX_ATTEMPTS):
        try:
            await tab.open("/console")
        except Error:  # the form opens a page itself, which aborted this one
            continue
        return
    raise AssertionError("the overview cannot be opened")


async def test_steps_are_completed_on_an_empty_installation(empty: EmptyInstallation) -> None:
    tab, page, ada = empty.tab, empty.tab.page, empty.ada
    steps = page.get_by_role("region", name="Get started")
    await tab.open("/")
    await expect(steps).to_contain_text("0 of 9 done")
    await tab.take_screenshot("onboarding")
    assert await tab.find_axe_violations() + await tab.find_contrast_violations() == []
    await page.set_viewport_size(PHONE_VIEWPORT)
    await tab.take_screenshot("onboarding-phone")
    assert await page.evaluate(_GET_OVERFLOW) == 0
    await page.set_viewport_size(DESKTOP_VIEWPORT)
    # A step's text is not squeezed by its buttons.
    heights = "steps => steps.map(step => step.offsetHeight)"
    assert max(await steps.get_by_role("listitem").evaluate_all(heights)) < 150

    await steps.get_by_role("link", name="Upload cards").click()
    await page.get_by_label("CSV file").set_input_files(
        {"name": "c.csv", "mimeType": "text/csv", "buffer": b"Serial No.,MAC Address\nTAP-1,\n"}
    )
    await page.get_by_role("button", name="Upload").click()
    await expect(page.get_by_role("heading", name="Import results")).to_be_visible()
    await tab.open("/console")
    await expect(steps).to_contain_text("1 of 9 done")
    await submit(tab, "Register", name="Fatu Kamara", phone_number="+23276000001", pin="5927")
    await submit(tab, "Fund float", amount="1000")
    await submit(
        tab,
        "Add customer",
        first_name="Aminata",
        last_name="Kamara",
        phone_number="+23276000002",
        pin=PIN,
    )
    await expect(steps).to_contain_text("4 of 9 done")
    await submit(tab, "Add webhook", url="http://127.0.0.1:9/hook", events="*")
    await submit(tab, "Add administrator", name="Ben", email="ben@example.com", role="system_admin")
    await tab.take_screenshot("onboarding-two-steps-left")
    await expect(steps).to_contain_text("6 of 9 done")
    await expect(steps.get_by_role("link", name="Open POS terminal")).to_be_visible()

    (customer,) = require_success(await ada.get("subscribers"))["data"]
    (agent,) = require_success(await ada.get("agents"))["data"]
    link = {"subscriber_id": customer["id"], "card_serial": "TAP-1", "pin": PIN}
    require_success(await ada.post("cards/link", **link))
    cash = {"agent_id": agent["id"], "subscriber_id": customer["id"], "agent_pin": "5927"}
    require_success(await ada.post("agents/cashin", amount="100", request_id="cash-1", **cash))
    merchant = await ada.create_merchant()
    paid = {"card_serial": "TAP-1", "amount": "10", "pin": PIN, "request_id": "pay-1"}
    require_success(await merchant.server.post("pos/payment", **paid))
    await tab.open("/console")
    await expect(steps).to_contain_text("7 of 9 done")
    await steps.get_by_role("link", name="Invite manager").click()
    await expect(page.get_by_role("heading", name="Get started")).to_be_visible()
    manager = {"email": "isata@example.com", "name": "Isata", "role": "merchant_manager"}
    require_success(await ada.post("admin/users", owner_id=merchant.id, **manager))
    await tab.open("/console")
    await expect(steps).to_contain_text("8 of 9 done")
    assert max(await steps.get_by_role("listitem").evaluate_all(heights)) < 200
    await ada.create_admin("Cleo", "A")  # ada has seen the link of Ben, who cannot approve alone
    await steps.get_by_role("button", name="Use the recommended rules").click()
    await expect(page.locator(".toast")).to_contain_text("Approval rules updated.")
    await tab.open("/console")
    await expect(page.get_by_role("heading", name="Home")).to_be_visible()
    await expect(steps).to_be_hidden()
