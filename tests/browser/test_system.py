"""System administration: API keys, administrators, webhooks and the audit log."""

import re
from pathlib import Path

from PIL import Image
from playwright.async_api import expect

from drivers.actors import Admin, require_success
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
    await page.locator("nav summary", has_text="Developers").click()
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


async def test_request_log_is_filtered_by_a_key_that_is_selected_by_name(tab: Tab) -> None:
    page = tab.page
    await tab.open("/console/request-logs")
    await page.get_by_role("combobox", name="Key").fill("demo")
    await page.get_by_role("option", name="demo").first.click()
    await page.wait_for_url(re.compile(r"api_key_id\.id=key_"))
    await page.reload()
    await expect(page.get_by_role("combobox", name="Key")).to_have_value("demo")
    assert await tab.find_axe_violations() == []


async def test_unknown_path_shows_a_page_with_the_navigation(tab: Tab) -> None:
    tab.monitor.expected_problems = ("status of 404",)
    await tab.open("/nothing-here")
    await expect(tab.page.get_by_role("heading", name="Page not found")).to_be_visible()
    assert await tab.find_axe_violations() == []
    await tab.take_screenshot("not-found")
    await tab.page.get_by_role("link", name="Back to home").click()
    await tab.page.wait_for_url("**/console")


async def test_branding_preview_follows_the_form(tab: Tab, ada: Admin, tmp_path: Path) -> None:
    """Name, color and logo change on the receipt, in the chat and at sign-in before saving."""
    page, dialog = tab.page, tab.page.get_by_role("dialog")
    branding = require_success(await ada.get("admin/branding"))
    await tab.open("/console/settings")
    await page.get_by_role("button", name="Edit branding").click()
    preview = dialog.get_by_role("group", name="Preview")
    await dialog.get_by_label("Operator name").fill("City Transit")
    await dialog.get_by_label("Color").fill("#4338ca")
    await dialog.get_by_label("Support contact").fill("+23222000000")
    names = preview.locator("[data-brand=name]")
    await expect(names).to_have_text(["City Transit"] * 3)
    await expect(preview).to_contain_text("+23222000000")
    for part in (".chat-preview header", ".button-preview"):
        await expect(preview.locator(part)).to_have_css("background-color", "rgb(67, 56, 202)")
    await expect(preview.locator(".receipt")).to_have_css("border-top-color", "rgb(67, 56, 202)")
    assert await tab.find_axe_violations() == []
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.locator("main .chat-preview")).to_contain_text("City Transit")
    await expect(page.locator("header .brand")).to_contain_text("City Transit")

    logo = tmp_path / "logo.png"
    Image.new("RGB", (64, 64), "#4338ca").save(logo)
    await tab.choose_action("Upload logo")
    await dialog.locator("input[type=file]").set_input_files(logo)
    for image in await preview.locator(".logo").all():
        await expect(image).to_have_attribute("src", re.compile("^blob:"))
        assert await image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 64
    await dialog.get_by_role("button", name="Upload", exact=True).click()
    await expect(page.locator("main .receipt .logo")).to_have_attribute(
        "src", re.compile(r"^/console/logo\.png\?at=")
    )
    values = {name: branding[name] for name in ("name", "color", "support_contact")}
    require_success(await ada.put("admin/branding", logo="", **values))
