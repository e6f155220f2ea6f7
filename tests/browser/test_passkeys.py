"""Passkeys with Chromium's virtual authenticator: enroll, sign in, and step-up in place."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, CDPSession, expect

from drivers import chromium
from drivers.actors import Admin
from drivers.chromium import DESKTOP_VIEWPORT, Tab
from drivers.deployments import Deployment
from tapgate.runtime.store.database import Database

EMAIL, PASSWORD = "passkeys@example.com", "correct horse battery"


@pytest.fixture
async def tab(browser: Browser, deployment: Deployment, ada: Admin) -> AsyncIterator[Tab]:
    """Yield a tab on `localhost`: browsers do not allow passkeys for IP addresses."""
    await ada.post(
        "admin/users", email=EMAIL, password=PASSWORD, name="Passkey Admin", role="system_admin"
    )
    address = str(deployment.client.base_url).replace("127.0.0.1", "localhost")
    async with chromium.open_tab(browser, address, DESKTOP_VIEWPORT) as opened:
        yield opened


async def add_authenticator(tab: Tab) -> tuple[CDPSession, str]:
    """Add a virtual authenticator with a fingerprint sensor; return how to control it."""
    session = await tab.page.context.new_cdp_session(tab.page)
    await session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    added: dict[str, Any] = await session.send(
        "WebAuthn.addVirtualAuthenticator", {"options": options}
    )
    return session, added["authenticatorId"]


async def expire_factor(deployment: Deployment, tab: Tab) -> None:
    """Make the admin's session factors older than 15 minutes."""
    database = await Database.connect(deployment.database_url)
    try:
        await database.execute(
            """UPDATE sessions SET factor_at = factor_at - interval '16 minutes'
               WHERE admin_id = (SELECT id FROM admins WHERE email = $1)""",
            EMAIL,
        )
    finally:
        await database.close()
    # The gateway reloads sessions when any session changes.
    other = await deployment.log_in_admin()
    await other.post("admin/logout")


async def test_passkey_is_added_signs_in_and_verifies_in_place(
    tab: Tab, deployment: Deployment
) -> None:
    page, dialog = tab.page, tab.page.get_by_role("dialog")
    authenticator, authenticator_id = await add_authenticator(tab)

    await tab.sign_in(EMAIL, PASSWORD)
    await tab.open("/console/account")
    await page.get_by_role("button", name="Add passkey").click()
    await dialog.get_by_label("Current password").fill(PASSWORD)
    await dialog.get_by_role("button", name="Continue").click()
    await dialog.get_by_label("Name").fill("Work laptop")
    assert await tab.find_axe_violations() == []
    await tab.take_screenshot("passkey-create", full=False)
    await dialog.get_by_role("button", name="Create passkey").click()
    await expect(dialog).to_contain_text("Save these recovery codes")
    await tab.take_screenshot("passkey-recovery-codes", full=False)
    await dialog.get_by_role("link", name="I've saved it").click()
    row = page.locator("tr").filter(has_text="Work laptop")
    await expect(row).to_contain_text("Never")
    assert await tab.find_axe_violations() == []
    await tab.take_screenshot("passkeys")

    await page.get_by_role("button", name="Sign out").click()
    await page.wait_for_url("**/console/sign-in")
    assert await tab.find_axe_violations() == []
    await tab.take_screenshot("sign-in-passkey")
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await page.wait_for_url("**/console")
    await tab.open("/console/account")
    await expect(row).not_to_contain_text("Never")

    await expire_factor(deployment, tab)
    await tab.open("/console/api-keys")
    await page.get_by_role("button", name="Create key").click()
    await dialog.get_by_label("Name").fill("Passkey reports")
    await dialog.get_by_label("Read cards").check()
    await dialog.get_by_role("button", name="Create key").click()
    await expect(dialog).to_contain_text("Verify your identity")
    await expect(dialog.get_by_role("button", name="Use a passkey")).to_be_focused()
    await expect(dialog.get_by_label("Name")).to_have_value("Passkey reports")
    assert await tab.find_axe_violations() == []
    await tab.take_screenshot("step-up", full=False)

    await authenticator.send(
        "WebAuthn.setUserVerified", {"authenticatorId": authenticator_id, "isUserVerified": False}
    )
    await dialog.get_by_role("button", name="Use a passkey").click()
    await expect(dialog.get_by_role("alert").filter(has_text="No passkey was used")).to_be_visible()
    await authenticator.send(
        "WebAuthn.setUserVerified", {"authenticatorId": authenticator_id, "isUserVerified": True}
    )
    await dialog.get_by_role("button", name="Use a passkey").click()
    await expect(dialog).to_contain_text("You won't be able to see it again")
    await dialog.get_by_role("link", name="I've saved it").click()
    await expect(page.locator("#rows tr").filter(has_text="Passkey reports")).to_be_visible()

    await expire_factor(deployment, tab)
    await tab.open("/simulator/pos")
    for digit in "125":
        await page.get_by_role("button", name=digit, exact=True).click()
    await page.locator("#tap").click()
    verify = page.locator("#verify")
    await expect(verify).to_contain_text("Verify your identity")
    await expect(page.locator("#screen")).to_contain_text("Verify your identity below")
    assert await tab.find_axe_violations() == []
    await tab.take_screenshot("step-up-pos", full=False)
    await verify.get_by_role("button", name="Use a passkey").click()
    await expect(page.locator("#screen")).to_contain_text("Approved")
    await expect(verify).to_be_hidden()

    await tab.open("/console/account")
    await row.get_by_role("button", name="Remove").click()
    await dialog.get_by_role("button", name="Remove").click()
    await expect(page.locator(".toast")).to_contain_text("Passkey removed.")
    await expect(row).to_have_count(0)
