"""The guide in a browser: search, navigation and accessibility."""

import re

from playwright.async_api import expect

from browser.conftest import DemoCustomer
from drivers.chromium import PHONE_VIEWPORT, Tab


async def test_guide_is_searched_navigated_and_accessible(signed_out_tab: Tab) -> None:
    tab, page = signed_out_tab, signed_out_tab.page
    await tab.open("/guide")
    assert await tab.find_axe_violations() + await tab.find_contrast_violations() == []
    await page.keyboard.press("/")
    search = page.get_by_role("searchbox", name="Search the guide")
    await expect(search).to_be_focused()
    await search.press_sequentially("verify signatures")
    results = page.get_by_role("region", name="Search results")
    found = results.get_by_role("link", name=re.compile("Webhooks|signatures"))
    await expect(found.first).to_be_visible()
    assert await tab.find_axe_violations() == []
    await found.first.click()
    await expect(page).to_have_url(re.compile(r"/guide/\w"))
    assert await tab.find_axe_violations() + await tab.find_contrast_violations() == []

    documents = page.get_by_role("navigation", name="Documents")
    await documents.get_by_role("link", name="Quick start").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Quick start")
    current = documents.get_by_role("link", name="Quick start")
    await expect(current).to_have_attribute("aria-current", "page")
    await page.set_viewport_size(PHONE_VIEWPORT)
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await page.evaluate(overflow) == 0
    await page.emulate_media(color_scheme="dark")
    assert await tab.find_contrast_violations() == []


async def test_reference_tries_an_operation_and_remembers_the_language(
    tab: Tab, demo_customer: DemoCustomer
) -> None:
    page = tab.page
    await tab.open("/guide/api/pos")
    assert await tab.find_axe_violations() + await tab.find_contrast_violations() == []
    section = page.locator("#take-a-payment-by-card")
    await section.get_by_role("radio", name="Python").check()
    await expect(section.locator(".code[data-language=python]")).to_be_visible()
    await expect(section.locator(".code[data-language=sh]")).to_be_hidden()
    await tab.open("/guide/guides/refunds")
    for language, is_shown in (("python", True), ("sh", False), ("ts", False)):
        examples = page.locator(f".tabs .code[data-language={language}]")
        await expect(examples.first).to_be_visible(visible=is_shown)
    assert await tab.find_axe_violations() + await tab.find_contrast_violations() == []
    await tab.open("/guide/api/pos")

    await section.get_by_role("button", name="Try it").click()
    dialog = page.get_by_role("dialog", name="Take a payment by card")
    await expect(dialog.get_by_label("Body")).to_have_value(re.compile(demo_customer.card))
    assert await tab.find_axe_violations() + await tab.find_contrast_violations() == []
    await dialog.get_by_role("button", name="Send request").click()
    await expect(dialog).to_contain_text("200 OK")
    await expect(dialog.get_by_label("Response", exact=True)).to_contain_text("Payment approved")
    await dialog.get_by_role("button", name="Send request").click()  # the same idempotency key
    await expect(dialog).to_contain_text("Idempotent-Replayed: true")
    tab.monitor.expected_problems = ("401",)
    await dialog.get_by_label("Secret").fill("wrong")
    await dialog.get_by_role("button", name="Send request").click()
    await expect(dialog).to_contain_text("401")
    await dialog.get_by_role("button", name="Close").click()

    await tab.open("/guide/api/cards")
    languages = page.get_by_role("radio", name="Python")
    await expect(languages.first).to_be_checked()
    await page.set_viewport_size(PHONE_VIEWPORT)
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await page.evaluate(overflow) == 0
    await page.emulate_media(color_scheme="dark")
    assert await tab.find_axe_violations() + await tab.find_contrast_violations() == []


async def test_reference_loads_little_and_does_not_block(signed_out_tab: Tab) -> None:
    page = signed_out_tab.page
    await page.add_init_script(
        "window.longTasks = []; new PerformanceObserver(list => longTasks.push("
        "...list.getEntries().map(entry => entry.duration))).observe({type: 'longtask'});"
    )
    await signed_out_tab.open("/guide/api")
    sizes = await page.evaluate(
        "['navigation', 'resource'].flatMap(type => performance.getEntriesByType(type))"
        ".map(entry => entry.encodedBodySize)"
    )
    assert 0 < sum(sizes) < 200_000
    # Each entry is a task over 50 ms. A loaded machine is slow, so only the order of magnitude
    # is compared: the script that this page replaced took 20 seconds.
    assert sum(await page.evaluate("longTasks")) < 2_000
