"""Processors with terminals, agents with float, and partners."""

import re

import pytest
from playwright.async_api import Locator, expect

from browser.chromium import PHONE_VIEWPORT, Tab
from journeys.actors import App
from journeys.admin import Admin


@pytest.fixture
async def agent_app(ada: Admin) -> App:
    return await ada.create_app("payments:write")


#: Stores the first label to which the button changes.
_RECORD_BUTTON_LABEL = """button => {
  new MutationObserver(() => { button.dataset.firstLabel ??= button.textContent; })
    .observe(button, { childList: true });
}"""


async def _copy_secret(tab: Tab, label: str) -> str:
    """Copy a secret, and return the clipboard content."""
    entry = tab.page.locator(".secrets > div", has_text=label)
    button = entry.get_by_role("button")
    await button.evaluate(_RECORD_BUTTON_LABEL)
    await button.dblclick()
    await expect(button).to_have_attribute("data-first-label", "Copied")
    copied = await tab.page.evaluate("navigator.clipboard.readText()")
    assert copied == await entry.locator("code").text_content()
    return str(copied)


async def _require_no_horizontal_scroll(tab: Tab) -> None:
    """Assert that neither the page nor the dialog overflows horizontally on a phone."""
    await tab.page.set_viewport_size(PHONE_VIEWPORT)
    overflows = await tab.page.evaluate(
        "[document.documentElement.scrollWidth - innerWidth,"
        " dialog.scrollWidth - dialog.clientWidth]"
    )
    assert overflows == [0, 0]


async def test_processor_with_terminal_is_created_rekeyed_blocked_and_suspended(tab: Tab) -> None:
    page, dialog = tab.page, tab.page.get_by_role("dialog")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await tab.open("/console/processors")
    await page.get_by_role("button", name="Create merchant").click()
    assert await tab.find_axe_violations() == []
    await dialog.get_by_label("Name").fill("Bo Market Cloth")
    await dialog.get_by_label("Phone").fill("+23276555001")
    await dialog.get_by_label("Email").fill("cloth@example.com")
    await dialog.get_by_role("button", name="Create").click()
    await expect(dialog).to_contain_text("It is not shown again")
    secret = await _copy_secret(tab, "Signing secret")
    await expect(dialog.locator("[data-copy]").first).to_have_text("Copy")
    await page.keyboard.press("Escape")
    await expect(dialog, "Escape must not close a dialog that shows a secret").to_be_visible()
    await dialog.get_by_role("link", name="I've saved it").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Bo Market Cloth")
    assert secret not in await page.content()

    await page.get_by_role("button", name="Add terminal").click()
    await dialog.get_by_label("Name").fill("Till 7")
    await dialog.get_by_role("button", name="Add terminal").click()
    assert await _copy_secret(tab, "Signing secret") != secret
    assert await tab.find_axe_violations() == []
    await _require_no_horizontal_scroll(tab)
    await dialog.get_by_role("link", name="I've saved it").click()
    terminal = _find_row(page.locator("section:has(#terminals)"), "Till 7")
    await terminal.get_by_role("button", name="Create key").click()
    await dialog.get_by_role("button", name="Create key").click()
    newest = await _copy_secret(tab, "Key ID")
    await dialog.get_by_role("link", name="I've saved it").click()
    await expect(terminal).to_contain_text(newest)

    keys = page.locator("section:has(#keys)")
    await _find_row(keys, newest).get_by_role("button", name="Delete").click()
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("status")).to_have_text("Key deleted.")
    await expect(keys).not_to_contain_text(newest)
    await terminal.get_by_role("button", name="Block").click()
    await dialog.get_by_role("button", name="Block").click()
    await expect(terminal).to_contain_text("Blocked")
    await page.get_by_role("button", name="Suspend").click()
    await dialog.get_by_label("Reason").fill("Moved to another town")
    await dialog.get_by_role("button", name="Suspend").click()
    await expect(page.get_by_text("Reason: Moved to another town")).to_be_visible()
    await _require_no_horizontal_scroll(tab)
    assert await tab.find_axe_violations() == []


async def test_agent_float_is_funded(tab: Tab, ada: Admin, agent_app: App) -> None:
    super_agent = await ada.create_agent(agent_app, "Zainab Wurie")
    await ada.create_agent(agent_app, "Momoh Wurie", super_agent)
    page, dialog = tab.page, tab.page.get_by_role("dialog")
    await tab.open("/console/agents")
    tree = page.locator(".trees > li", has_text="Zainab Wurie")
    await expect(tree).to_contain_text("1 sub-agent")
    assert await tab.find_axe_violations() == []
    await tree.get_by_role("link", name="Momoh Wurie").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Low float")
    await page.get_by_role("button", name="Fund float").click()
    assert await tab.find_axe_violations() == []
    await dialog.get_by_label("Amount").fill("much")
    await dialog.get_by_role("button", name="Fund").click()
    await expect(dialog.get_by_label("Amount")).to_have_attribute("aria-invalid", "true")
    await dialog.get_by_label("Amount").fill("1250.50")
    await dialog.get_by_role("button", name="Fund").click()
    await expect(page.get_by_role("status")).to_have_text("Float funded.")
    await expect(page.get_by_role("heading", level=1)).not_to_contain_text("Low float")
    await expect(page.locator("section:has(#float)")).to_contain_text("1,250.50 SLE")
    assert await tab.find_axe_violations() == []
    await _require_no_horizontal_scroll(tab)
    await page.get_by_role("navigation", name="Breadcrumb").get_by_text("Agents").click()
    await expect(tree.locator(".sums")).to_contain_text("1,250.50 SLE")


async def test_agent_search_filters_while_typing(tab: Tab, ada: Admin, agent_app: App) -> None:
    super_agent = await ada.create_agent(agent_app, "Hindolo Ngegba")
    await ada.create_agent(agent_app, "Satta Ngegba", super_agent)
    page = tab.page
    await tab.open("/console/agents")
    await page.get_by_label("Search").press_sequentially("satta ng")
    await expect(page.locator("#rows tbody tr")).to_have_count(1)
    await expect(page.locator("#rows")).to_contain_text("Satta Ngegba")
    await expect(page).to_have_url(re.compile("search="))
    await page.get_by_label("Search").fill("")
    await expect(page.locator(".trees > li", has_text="Hindolo Ngegba")).to_be_visible()


async def test_partner_is_created_funded_and_suspended(tab: Tab) -> None:
    page, dialog = tab.page, tab.page.get_by_role("dialog")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await tab.open("/console/partners")
    await page.get_by_role("button", name="Create partner").click()
    await dialog.get_by_label("Name").fill("Rokel Savings")
    await dialog.get_by_role("button", name="Create").click()
    secrets = {await _copy_secret(tab, "Signing secret"), await _copy_secret(tab, "Webhook secret")}
    assert len(secrets) == 2
    assert await tab.find_axe_violations() == []
    await _require_no_horizontal_scroll(tab)
    await dialog.get_by_role("link", name="I've saved it").click()
    await page.get_by_role("button", name="Add funds").click()
    await dialog.get_by_label("Amount").fill("75000")
    await dialog.get_by_role("button", name="Add funds").click()
    await expect(page.locator("section:has(#clearing)")).to_contain_text("75,000.00 SLE")
    await expect(page.locator("section:has(#history)")).to_contain_text("Partner deposit")
    await page.get_by_role("button", name="Suspend").click()
    await dialog.get_by_role("button", name="Suspend").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Suspended")
    assert await tab.find_axe_violations() == []


def _find_row(container: Locator, text: str) -> Locator:
    return container.locator("tr", has_text=text)
