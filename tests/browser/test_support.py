"""Support staff answer a customer in a support request's conversation."""

from playwright.async_api import expect

from drivers.chromium import PHONE_VIEWPORT, Tab


async def test_reply_box_sends_a_reply_and_keeps_it_on_an_error(tab: Tab) -> None:
    page = tab.page
    await tab.open("/console/support?status=all")
    await tab.take_screenshot("support-list")
    # Other tests ask for support too.
    await page.locator("#rows tr", has_text="charged twice").get_by_role("link").first.click()
    await expect(page.locator("#thread")).to_contain_text("charged twice")
    await page.wait_for_load_state()
    reply = page.get_by_label("Reply", exact=True)
    await reply.evaluate("box => box.removeAttribute('maxlength')")
    await reply.fill("Which day?\n" + "x" * 1000)
    await page.get_by_role("button", name="Send reply").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("must have 1 to 1000 characters")
    await dialog.get_by_label("Reply").fill("Which day?\nAnd in which shop?")
    await dialog.get_by_role("button", name="Send reply").click()
    await expect(page.get_by_role("status")).to_have_text("Reply sent.")
    await expect(page.locator("#thread li.staff")).to_contain_text("And in which shop?")
    assert await tab.find_axe_violations() == []
    await tab.take_screenshot("support-request")
    await page.set_viewport_size(PHONE_VIEWPORT)
    await tab.take_screenshot("support-request-phone")
    await tab.open("/console/support?status=answered")
    await tab.take_screenshot("support-list-phone")
    await expect(page.locator("#rows")).to_contain_text("Which day?")
