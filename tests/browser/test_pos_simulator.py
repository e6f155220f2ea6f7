"""POS simulator: payments, a wrong PIN, refunds, a replayed request, and a cloned card."""

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Locator, Page, Route, expect

from browser.conftest import DemoCustomer
from drivers.actors import Admin, require_success
from drivers.chromium import Tab
from drivers.deployments import Deployment
from tapgate_client import signing

#: Demo card of Mohamed Sesay, which signs its taps.
SIGNING_CARD = "DEMO-000002"

#: Fake NFC reader. Tests present a card by dispatching a `cardtap` CustomEvent.
_FAKE_NFC_READER = """
window.NDEFReader = class extends EventTarget {
  async scan() {
    document.addEventListener("cardtap", ({ detail }) => {
      const event = new Event("reading");
      const data = new TextEncoder().encode(detail.url);
      event.serialNumber = detail.uid;
      event.message = { records: detail.url ? [{ recordType: "url", data }] : [] };
      this.dispatchEvent(event);
    });
  }
};
"""


#: Contrast ratio of an element's text and the nearest background, as in WCAG.
_GET_CONTRAST = """element => {
  const parse = color => color.match(/[\\d.]+/g).map(Number);
  const luminance = color => parse(color).slice(0, 3)
    .map(part => part / 255)
    .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  let surface = element;
  while (parse(getComputedStyle(surface).backgroundColor)[3] === 0) surface = surface.parentElement;
  const found = [getComputedStyle(element).color, getComputedStyle(surface).backgroundColor]
    .map(luminance).sort((a, b) => b - a);
  return (found[0] + 0.05) / (found[1] + 0.05);
}"""


class PosPage:
    """Page object for the POS simulator."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab
        self.page: Page = tab.page
        self.screen: Locator = tab.page.locator("#screen")

    async def open(self) -> None:
        await self.tab.open("/simulator/pos")
        await expect(self.screen).to_contain_text("Amount")

    async def press_keys(self, digits: str) -> None:
        for digit in digits:
            await self.page.get_by_role("button", name=digit, exact=True).click()

    async def press_button(self, name: str) -> None:
        await self.page.get_by_role("button", name=name, exact=True).click()

    async def tap_card(self) -> None:
        await self.page.locator("#tap").click()

    async def pay(self, minor: str, pin: str) -> None:
        await self.page.get_by_label("Require PIN").check()
        await self.press_keys(minor)
        await self.tap_card()
        await self.enter_pin(pin)

    async def enter_pin(self, pin: str) -> None:
        await expect(self.screen).to_contain_text("PIN")
        await self.press_keys(pin)
        await self.press_button("OK")

    @property
    def latest_receipt(self) -> Locator:
        return self.page.locator(".receipt").first

    async def get_transaction_id(self) -> str:
        return await self.latest_receipt.get_by_role("link").inner_text()


async def wait_until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait up to 60 seconds until the condition holds."""
    async with asyncio.timeout(60):
        while not await condition():
            await asyncio.sleep(0.05)


@pytest.fixture
async def pos_page(tab: Tab) -> PosPage:
    pos_page = PosPage(tab)
    await pos_page.open()
    return pos_page


async def test_payment_links_to_its_ledger_entries(
    pos_page: PosPage, demo_customer: DemoCustomer
) -> None:
    page = pos_page.page
    await expect(page.locator("#tap-label")).to_contain_text(demo_customer.name)
    for selector in ("#replay", "#new-payment", "#key", "#inspector", "#insecure"):
        await expect(page.locator(selector)).to_be_hidden()
    assert await pos_page.tab.find_axe_violations() == []
    await pos_page.pay("1250", demo_customer.pin)
    await expect(pos_page.screen).to_contain_text("Approved")
    await expect(pos_page.screen).to_contain_text("12.50 SLE")
    await expect(pos_page.latest_receipt).to_contain_text(f"•••• {demo_customer.card[-4:]}")
    assert await pos_page.tab.find_axe_violations() == []
    await pos_page.tab.take_screenshot("readme/pos")
    transaction = await pos_page.get_transaction_id()
    await pos_page.latest_receipt.get_by_role("link").click()
    await expect(page).to_have_url(re.compile(f"/console/transactions/{transaction}$"))
    entries = page.get_by_role("region", name="Ledger entries").locator("tbody tr")
    await expect(entries.filter(has_text="12.50").first).to_be_visible()
    await expect(entries.filter(has_text=demo_customer.name).first).to_be_visible()
    await pos_page.tab.take_screenshot("readme/transaction")


async def test_terminal_cannot_be_switched_during_a_payment(
    pos_page: PosPage, demo_customer: DemoCustomer
) -> None:
    """After a switch, the payment would not appear on any receipt."""
    page, released = pos_page.page, asyncio.Event()

    async def delay(route: Route) -> None:
        await released.wait()
        await route.continue_()

    await page.route("**/api/v1/pos/payment", delay)
    await pos_page.pay("375", demo_customer.pin)
    await expect(pos_page.screen).to_contain_text("Processing")
    await expect(page.get_by_label("Terminal", exact=True)).to_be_disabled()
    released.set()
    await expect(pos_page.screen).to_contain_text("Approved")
    await expect(page.get_by_label("Terminal", exact=True)).to_be_enabled()
    await expect(pos_page.latest_receipt).to_contain_text("3.75 SLE")


async def test_displayed_signing_input_matches_the_signature(
    pos_page: PosPage, demo_customer: DemoCustomer
) -> None:
    page = pos_page.page
    await pos_page.press_button("Look up")
    await pos_page.tap_card()
    await expect(pos_page.screen).to_contain_text(demo_customer.card)
    signed = await page.locator("#inspector-signed").text_content() or ""
    headers = dict(
        line.split(": ", 1)
        for line in (await page.locator("#inspector-headers").inner_text()).splitlines()
    )
    assert signed.startswith("POST\n/api/v1/pos/lookup-card\n")
    assert await page.locator("#key-secret").inner_text() == "•" * 12
    await pos_page.press_button("Reveal")
    secret = await page.locator("#key-secret").inner_text()
    assert signing.verify(secret.encode(), headers["X-Signature"], signed.encode())
    assert headers["X-Signature"] in await page.locator("#inspector-curl").inner_text()
    assert secret not in await page.locator("#inspector").inner_text()


async def test_large_payment_requires_the_pin_and_a_wrong_pin_is_explained(
    pos_page: PosPage, demo_customer: DemoCustomer
) -> None:
    pos_page.tab.monitor.expected_problems = ("403", "400")
    page = pos_page.page
    await page.keyboard.type("210000")
    await page.keyboard.press("Enter")
    await expect(pos_page.screen).to_contain_text("Amount due")
    await page.keyboard.press("Enter")
    await expect(pos_page.screen).to_contain_text("This payment requires a PIN")
    request_id = re.compile(r'"request_id":"([^"]+)"')
    signed = page.locator("#inspector-signed")
    first = request_id.search(await signed.inner_text())
    await page.keyboard.type("0000" if demo_customer.pin != "0000" else "1111")
    await page.keyboard.press("Enter")
    await expect(pos_page.screen).to_contain_text("Declined. Wrong PIN. 2 attempts left.")
    await page.keyboard.type(demo_customer.pin)
    await page.keyboard.press("Enter")
    await expect(pos_page.screen).to_contain_text("Approved")
    last = request_id.search(await signed.inner_text())
    assert first is not None and last is not None
    assert first[1] == last[1]


async def test_replayed_request_returns_the_original_response_and_moves_no_money(
    pos_page: PosPage, demo_customer: DemoCustomer, ada: Admin
) -> None:
    await pos_page.pay("310", demo_customer.pin)
    await expect(pos_page.screen).to_contain_text("Approved")
    transaction = await pos_page.get_transaction_id()
    first_signature = await pos_page.page.locator("#inspector-headers").inner_text()
    await pos_page.press_button("Replay request")
    await expect(pos_page.screen).to_contain_text("Replayed: same transaction, no money moved")
    status = pos_page.page.locator("#inspector-status")
    await expect(status).to_contain_text("Idempotent-Replayed: true")
    await expect(pos_page.page.locator("#inspector-response")).to_contain_text(transaction)
    assert await pos_page.page.locator("#inspector-headers").inner_text() != first_signature
    await expect(pos_page.page.locator(".receipt")).to_have_count(1)

    async def is_counted() -> bool:
        chain = require_success(await ada.get(f"transactions/{transaction}/chain"))
        return bool(chain["replays"]["count"] == 1)

    await wait_until(is_counted)


async def test_partial_refund_followed_by_refund_of_the_remainder(
    pos_page: PosPage, demo_customer: DemoCustomer, ada: Admin
) -> None:
    await pos_page.pay("800", demo_customer.pin)
    await expect(pos_page.screen).to_contain_text("Approved")
    paid = await pos_page.get_transaction_id()
    await pos_page.latest_receipt.get_by_role("button", name="Refund").click()
    await expect(pos_page.screen).to_contain_text("8.00 SLE")
    await pos_page.press_keys("300")  # replaces the suggested amount
    await expect(pos_page.screen).to_contain_text("3.00 SLE")
    await pos_page.press_button("OK")
    await expect(pos_page.screen).to_contain_text("Still refundable: 5.00 SLE")
    await pos_page.tab.open("/simulator/pos")  # receipts persist, the key is new
    payment = pos_page.page.locator(".receipt", has_text=paid)
    await expect(payment).to_contain_text("5.00 SLE")
    await payment.get_by_role("button", name="Refund").click()
    await pos_page.press_button("OK")
    await expect(pos_page.screen).to_contain_text("Still refundable: 0.00 SLE")
    await expect(payment.get_by_role("button", name="Refund")).to_be_hidden()
    assert require_success(await ada.get(f"transactions/{paid}"))["status"] == "refunded"


@pytest.mark.parametrize("leaving", ["for another page", "by signing out"])
async def test_terminal_key_is_deleted_when_the_page_is_left(
    pos_page: PosPage, demo_customer: DemoCustomer, ada: Admin, leaving: str
) -> None:
    page = pos_page.page
    await pos_page.press_button("Look up")
    await pos_page.tap_card()
    await expect(pos_page.screen).to_contain_text(demo_customer.card)
    key = await page.locator("#key-id").inner_text()
    chosen = page.locator("#terminal option:checked")
    processor = await chosen.get_attribute("data-processor")

    async def is_deleted() -> bool:
        keys = await ada.list_all(f"processors/{processor}/keys")
        return key not in [item["api_key_id"] for item in keys]

    assert not await is_deleted()
    if leaving == "by signing out":
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    else:
        await pos_page.tab.open("/simulator")
    await wait_until(is_deleted)


async def test_keyboard_controls_the_terminal_after_a_click_elsewhere(
    pos_page: PosPage, demo_customer: DemoCustomer
) -> None:
    page = pos_page.page
    await page.get_by_role("button", name=f"Use {demo_customer.name}'s card").click()
    await page.keyboard.type("150")
    await page.get_by_label("Require PIN").check()
    await page.keyboard.press("Enter")
    await expect(pos_page.screen).to_contain_text("Amount due")
    await page.locator("#tap").press("Enter")
    await page.keyboard.type(f"{demo_customer.pin[:2]}0")
    await page.keyboard.press("Backspace")
    await expect(pos_page.screen).to_contain_text("2 of 4 digits")
    await page.keyboard.type(demo_customer.pin[2:])
    await page.keyboard.press("Enter")
    await expect(pos_page.screen).to_contain_text("Approved")
    await expect(pos_page.screen).to_contain_text("1.50 SLE")


async def test_insecure_context_disables_signing_with_an_explanation(tab: Tab) -> None:
    await tab.page.add_init_script("Object.defineProperty(crypto, 'subtle', {value: undefined})")
    await tab.open("/simulator/pos")
    explanation = tab.page.get_by_text("Your browser can sign requests only on localhost")
    await expect(explanation).to_be_visible()
    await expect(tab.page.locator("#tap")).to_be_disabled()


async def test_physical_card_is_read_over_nfc(
    tab: Tab, demo_customer: DemoCustomer, deployment: Deployment, ada: Admin
) -> None:
    await tab.page.add_init_script(_FAKE_NFC_READER)
    pos_page = PosPage(tab)
    await pos_page.open()
    await expect(tab.page.get_by_text("This browser can't read NFC cards")).to_be_hidden()
    await tab.page.get_by_role("button", name="Tap a physical card").click()
    await expect(tab.page.locator("#nfc-status")).to_contain_text("Hold a card")
    present = "detail => document.dispatchEvent(new CustomEvent('cardtap', {detail}))"
    cards = [
        card
        for card in await ada.list_all("cards", status="ACTIVE")
        if card["mac_address"] and card["serial"] != demo_customer.card
    ]
    other = next(card for card in cards if card["authenticity"] == "none")
    await tab.page.evaluate(present, {"uid": other["mac_address"].lower()})
    await expect(tab.page.locator("#nfc-status")).to_contain_text(other["serial"])
    await expect(tab.page.locator("#card-image-serial")).to_contain_text(other["serial"][-4:])
    # A card that signs its taps is identified by the URL in its memory, and pays with it.
    _, url = await deployment.run_command("card", "tap", SIGNING_CARD)
    await pos_page.press_keys("425")
    await tab.page.evaluate(present, {"uid": "04:00:00:00:00:00:00", "url": url.strip()})
    await expect(pos_page.screen).to_contain_text("Approved")
    await expect(pos_page.latest_receipt).to_contain_text("4.25 SLE")


async def test_clone_of_a_card_that_signs_its_taps_is_declined(pos_page: PosPage) -> None:
    page = pos_page.page
    await page.get_by_role("button", name="Mohamed Sesay's card, which signs taps").click()
    await expect(page.locator("#chip-status")).to_contain_text("Signs every tap")
    for _ in range(2):  # each payment has its own tap
        await pos_page.press_keys("200")
        await pos_page.tap_card()
        await expect(pos_page.screen).to_contain_text("Approved")
        await pos_page.press_button("New payment")
    await pos_page.press_button("Clone this card")
    await expect(page.locator("#tap-label")).to_contain_text("the clone of Mohamed Sesay's card")
    assert await pos_page.tab.find_axe_violations() == []
    pos_page.tab.monitor.expected_problems = ("409",)
    await pos_page.press_keys("200")
    await pos_page.tap_card()
    await expect(pos_page.screen).to_contain_text("Declined")
    await expect(page.locator("#inspector-response")).to_contain_text("CARD_PROOF_USED")
    await page.get_by_role("link", name="View card and alert").click()
    await expect(page.get_by_text("This card may have been cloned.")).to_be_visible()
    await page.get_by_role("link", name="View alert").click()
    await expect(page.get_by_role("link", name=SIGNING_CARD)).to_be_visible()


async def test_every_button_is_readable_under_the_pointer(pos_page: PosPage) -> None:
    buttons = pos_page.page.get_by_role("main").locator("button:visible:enabled")
    assert await buttons.count() > 15
    unreadable = {}
    for button in await buttons.all():
        await button.hover()
        ratio = await button.evaluate(_GET_CONTRAST)
        if ratio < 4.5:
            unreadable[await button.inner_text()] = ratio
    assert unreadable == {}
