"""The guide in a browser: search, navigation and accessibility."""

import re

from playwright.async_api import expect

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
