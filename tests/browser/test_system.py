"""System administration: API keys, administrators, webhooks and the audit log."""

import re

from playwright.async_api import Browser, expect

from browser import chromium
from browser.chromium import DESKTOP_VIEWPORT, PHONE_VIEWPORT, Tab
from journeys.admin import Admin
from journeys.api_caller import require_success
from journeys.deployment import Deployment
from notifications.webhook_receiver import WebhookReceiver

_PASSWORD = "a long enough password"


async def _get_status(platform: Deployment, key: str) -> int:
    response = await platform.client.get(
        "/api/v1/cards", headers={"Authorization": f"Bearer {key}"}
    )
    return response.status_code


async def test_api_key_is_created_used_and_revoked(tab: Tab, deployment: Deployment) -> None:
    page, dialog = tab.page, tab.page.get_by_role("dialog")
    await tab.open("/console")
    await page.get_by_role("link", name="API keys").click()
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
    await row.get_by_role("button", name="Revoke").click()
    await expect(dialog).to_contain_text("can't be undone")
    await dialog.get_by_role("button", name="Revoke").click()
    await expect(page.locator(".flash")).to_have_text("Key revoked.")
    await expect(row).to_have_count(0)
    assert await _get_status(deployment, key) == 401


async def test_new_support_user_sees_only_permitted_pages_until_disabled(
    tab: Tab, browser: Browser, deployment: Deployment
) -> None:
    page, dialog = tab.page, tab.page.get_by_role("dialog")
    await tab.open("/console")
    await page.get_by_role("link", name="Administrators").click()
    await expect(page.locator("#rows tr").filter(has_text="you")).to_contain_text(
        "You can't disable your own account"
    )
    assert await tab.find_axe_violations() == []
    await page.get_by_role("button", name="Add administrator").click()
    assert await tab.find_axe_violations() == []
    await dialog.get_by_label("Name").fill("Sia Support")
    await dialog.get_by_label("Email").fill("sia@example.com")
    await dialog.get_by_label("Role").select_option("support_user")
    await dialog.get_by_label("Password").fill(_PASSWORD)
    await dialog.get_by_role("button", name="Add administrator").click()
    await expect(page.locator(".flash")).to_have_text("Administrator added.")

    async with chromium.open_tab(
        browser, str(deployment.client.base_url), DESKTOP_VIEWPORT
    ) as support_tab:
        await support_tab.sign_in("sia@example.com", _PASSWORD)
        navigation = support_tab.page.get_by_role("navigation", name="Pages")
        await expect(navigation.get_by_role("link", name="Customers")).to_be_visible()
        for name in ("Webhooks", "API keys", "Administrators", "Audit log", "Compliance"):
            await expect(navigation.get_by_role("link", name=name)).to_have_count(0)
        support_tab.monitor.expected_problems = ("403",)
        await support_tab.open("/console/administrators")
        await expect(support_tab.page.get_by_text("Available to: System admin.")).to_be_visible()
        assert await support_tab.find_axe_violations() == []

        row = page.locator("#rows tr").filter(has_text="Sia Support")
        await row.get_by_role("button", name="Disable").click()
        await dialog.get_by_role("button", name="Disable").click()
        await expect(row).to_contain_text("Disabled")
        await support_tab.open("/console/subscribers")
        await expect(support_tab.page).to_have_url(re.compile("/console/sign-in"))


async def test_test_event_is_delivered_and_redelivered(tab: Tab, ada: Admin) -> None:
    page, dialog = tab.page, tab.page.get_by_role("dialog")
    await tab.open("/console")
    receiver = WebhookReceiver()
    async with receiver.listen():
        await page.get_by_role("link", name="Webhooks").click()
        await page.get_by_role("button", name="Add webhook").click()
        assert await tab.find_axe_violations() == []
        await dialog.get_by_label("Endpoint URL").fill(f"{receiver.url}/events")
        await dialog.get_by_label("Merchant suspended").check()
        await dialog.get_by_role("button", name="Add webhook").click()
        secret = await dialog.get_by_role("button", name="Copy").get_attribute("data-copy")
        assert secret is not None
        await dialog.get_by_role("link", name=receiver.url).click()
        await expect(page.get_by_role("heading", level=1)).to_have_text(f"{receiver.url}/events")
        await page.get_by_role("button", name="Send test event").click()
        await dialog.get_by_role("button", name="Send test event").click()
        delivery = page.locator("#deliveries tbody tr")
        await expect(delivery).to_contain_text("Delivered", timeout=30_000)
        await expect(delivery).to_contain_text("204")
        (received,) = receiver.received
        assert received.content["type"] == "webhook.test" and received.is_signed_with(secret)
        assert await tab.find_axe_violations() == []
        await delivery.get_by_role("button", name="Resend").click()
        await dialog.get_by_role("button", name="Resend").click()
        await expect(delivery.get_by_role("cell").nth(3)).to_have_text("2", timeout=30_000)
        assert [webhook.id for webhook in receiver.received] == [received.id] * 2
        await page.get_by_role("button", name="Delete").click()
        await expect(dialog).to_contain_text("can't be undone")
        await dialog.get_by_role("button", name="Delete").click()
        await expect(page).to_have_url(re.compile("/console/webhooks$"))
        urls = [
            item["url"]
            for item in require_success(await ada.get("admin/webhook-endpoints"))["data"]
        ]
        assert f"{receiver.url}/events" not in urls


async def test_webhook_is_paused_rotated_resumed_and_disabled(tab: Tab, ada: Admin) -> None:
    page, dialog = tab.page, tab.page.get_by_role("dialog")
    receiver = WebhookReceiver()
    async with receiver.listen():
        created = require_success(
            await ada.post("admin/webhook-endpoints", url=receiver.url, events=["*"])
        )
        await tab.open(f"/console/webhooks/{created['id']}")
        await page.get_by_role("button", name="Edit").click()
        await expect(dialog.get_by_label("All events")).to_be_checked()
        assert await tab.find_axe_violations() == []
        await dialog.get_by_label("All events").uncheck()
        await dialog.get_by_label("Merchant suspended").check()
        await tab.take_screenshot("webhook-edit")
        await dialog.get_by_role("button", name="Save").click()
        await expect(page.locator(".flash")).to_have_text("Webhook updated.")

        await page.get_by_role("button", name="Pause").click()
        await dialog.get_by_role("button", name="Pause").click()
        await expect(page.locator(".notice")).to_contain_text("Paused by an administrator")
        await page.get_by_role("button", name="Send test event").click()
        await dialog.get_by_role("button", name="Send test event").click()
        delivery = page.locator("#deliveries tbody tr")
        await expect(delivery).to_contain_text("When resumed")
        assert await tab.find_axe_violations() == []
        await tab.take_screenshot("webhook-paused")

        await page.get_by_role("button", name="Rotate secret").click()
        assert await tab.find_axe_violations() == []
        await tab.take_screenshot("webhook-rotate")
        await dialog.get_by_role("button", name="Rotate secret").click()
        secret = await dialog.get_by_role("button", name="Copy").get_attribute("data-copy")
        assert secret is not None and secret != created["secret"]
        await tab.take_screenshot("webhook-rotated")
        await dialog.get_by_role("link", name="I've saved it").click()
        assert receiver.received == []

        receiver.enqueue_response(500, b"<b>out of order</b>" * 60)
        await page.get_by_role("button", name="Resume").click()
        await dialog.get_by_role("button", name="Resume").click()
        await expect(delivery).to_contain_text("500")
        (received,) = receiver.received[:1]
        assert received.is_signed_with(secret) and received.is_signed_with(created["secret"])
        await delivery.get_by_text("Body").click()
        await expect(delivery.get_by_label("Response body")).to_contain_text("<b>out of order</b>")
        assert await tab.find_axe_violations() == []

        receiver.enqueue_response(410, b'{"error": "gone"}' * 70)
        await page.get_by_role("button", name="Resend").click()
        await dialog.get_by_role("button", name="Resend").click()
        await expect(delivery).to_contain_text("410", timeout=30_000)
        await tab.open(f"/console/webhooks/{created['id']}")
        await expect(page.locator(".problem")).to_contain_text("410 Gone")
        await delivery.get_by_text("Body").click()
        await tab.take_screenshot("webhook-response")
        await page.set_viewport_size(PHONE_VIEWPORT)
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(overflow) <= 0
        await tab.take_screenshot("webhook-phone")
        await page.set_viewport_size(DESKTOP_VIEWPORT)
        assert await tab.find_axe_violations() == []
        await tab.take_screenshot("webhook-disabled")
        await tab.open("/console/webhooks")
        await expect(page.locator("#rows")).to_contain_text("Disabled")
        await tab.take_screenshot("webhooks-list")


async def test_audit_chain_is_verified(tab: Tab) -> None:
    page = tab.page
    await tab.open("/console")
    await page.get_by_role("link", name="Audit log").click()
    await page.get_by_role("button", name="Verify log").click()
    outcome = page.locator("#verified")
    await expect(outcome).to_contain_text("entries are intact")
    await expect(outcome).to_contain_text("Sealed through")
    await page.get_by_label("Event").fill("admin.login")
    await page.get_by_label("Event").press("Enter")
    await expect(page).to_have_url(re.compile("event=admin.login"))
    await expect(page.locator("#rows tr").first).to_contain_text("Admin login")
    await page.locator("#rows summary").first.click()
    await expect(page.locator("#rows details").first).to_contain_text("Hash")
    assert await tab.find_axe_violations() == []
