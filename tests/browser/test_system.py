"""System administration: API keys, administrators, webhooks and the audit log."""

import re

from playwright.async_api import expect

from drivers.chromium import Tab
from drivers.deployments import Deployment


async def _get_status(platform: Deployment, key: str) -> int:
    response = await platform.client.get(
        "/api/v1/cards", headers={"Authorization": f"Bearer {key}"}
    )
    return response.status_code


async def test_api_key_is_created_used_and_revoked(tab: Tab, deployment: Deployment) -> None:
    page, dialog = tab.page, tab.page.get_by_role("dialog")
    await tab.open("/console")
    await page.get_by_role("link", name="API keys").click()
    await page.wait_for_url("**/console/api-keys")
    await page.get_by_role("button", name="Create key").click()
    assert await tab.find_axe_violations() == []
    await dialog.get_by_label("Name").fill("Card reports")
    await dialog.get_by_role("button", name="Create key").click()
    await expect(dialog.locator(".problem")).to_be_visible()
    await expect(dialog.get_by_label("Name")).to_have_value("Card reports")
    await dialog.get_by_label(re.compile("Read cards")).check()
    await dialog.get_by_role("button", name="Create key").click()
    await expect(dialog).to_contain_text("You won't be able to see it again")
    assert await tab.find_axe_violations() == []
    key = await dialog.get_by_role("button", name="Copy").get_attribute("data-copy")
    assert key is not None and key.startswith("svc_test_")
    assert await _get_status(deployment, key) == 200
    await dialog.get_by_role("link", name="I've saved it").click()
    row = page.locator("#rows tr").filter(has_text="Card reports")
    await expect(row).to_contain_text("cards:read")
    assert key not in await page.content()
    assert await tab.find_axe_violations() == []
    await tab.choose_action("Revoke", row)
    await expect(dialog).to_contain_text("can't be undone")
    await dialog.get_by_role("button", name="Revoke").click()
    await expect(page.locator(".toast")).to_contain_text("Key revoked.")
    await expect(row).to_have_count(0)
    assert await _get_status(deployment, key) == 401
