"""Page object for the phone simulator."""

import re

from playwright.async_api import Locator, Page, Request, expect

from drivers.chromium import Tab


def contains_pin(text: str, pin: str) -> bool:
    """Return whether the PIN occurs as a standalone number.

    Any four digits may occur by chance in an ID, a time, an amount, or ciphertext.
    """
    return re.search(rf"(?<![\w+/.,-]){pin}(?![\w+/-]|[.,]\d)", text) is not None


class PhonePage:
    """Page object for the phone simulator. Records every request that the page sends."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self.page: Page = tab.page
        self.log: Locator = tab.page.get_by_role("log")
        self.dialog: Locator = tab.page.get_by_role("dialog")
        self.sent_bodies: list[str] = []
        self.page.on("request", self._on_request)

    def _on_request(self, request: Request) -> None:
        self.sent_bodies.append(request.url + (request.post_data or ""))

    async def open(self, phone: str) -> None:
        await self.tab.open("/simulator/phone")
        await self.select_phone_number(phone)

    async def select_phone_number(self, phone: str) -> None:
        page = self.page
        await page.get_by_label("Name or phone number").fill(phone)
        results = page.get_by_role("list", name="Search results")
        await results.get_by_role("button", name=phone).click()
        await expect(page.locator("#own-number")).to_have_text(phone)

    async def send_message(self, text: str) -> None:
        await self.page.get_by_label("Message").fill(text)
        await self.page.get_by_role("button", name="Send", exact=True).click()

    async def expect_last_message(self, text: str | re.Pattern[str]) -> None:
        """Assert that the last message contains the text."""
        bubble = self.log.locator(".group").last
        await expect(bubble).to_contain_text(text)

    async def tap_option(self, title: str) -> None:
        await self.log.locator(".group").last.get_by_role("button", name=title).click()

    async def choose_from_list(self, title: str) -> None:
        """Choose an option from the list of the last message."""
        await self.tap_option("Choose")
        row = self.dialog.get_by_role("button", name=title)
        await expect(self.dialog.get_by_role("button").nth(1)).to_be_focused()
        await row.click()
        await expect(self.dialog).to_be_hidden()

    async def press_digits(self, digits: str) -> None:
        pad = self.page.get_by_role("group", name="Number pad")
        for digit in digits:
            await pad.get_by_role("button", name=digit, exact=True).click()

    async def confirm(self) -> None:
        await self.dialog.get_by_role("button", name="Confirm").click()

    async def enter_pin(self, pin: str, button: str = "Enter PIN") -> None:
        """Open the form of the last message, and enter the PIN."""
        await self.tap_option(button)
        await expect(self.dialog.get_by_label("Your PIN", exact=True)).to_be_focused()
        await self.page.keyboard.type(pin)
        await self.page.keyboard.press("Enter")
        await expect(self.dialog).to_be_hidden()

    async def require_pins_absent(self, *pins: str) -> None:
        """Assert that no PIN is on the page, in session storage, or in any request."""
        stored = await self.page.evaluate("JSON.stringify(sessionStorage)")
        text = await self.page.locator("#phone").inner_text()
        for pin in pins:
            for source in (text, stored, *self.sent_bodies):
                assert not contains_pin(source, pin), source
