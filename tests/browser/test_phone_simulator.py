"""Phone simulator: transfers, registration with a document, and PIN secrecy.

Only the messenger may be able to read the PINs.
"""

import asyncio
import re
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
from PIL import Image
from playwright.async_api import Route, expect

from browser.conftest import DemoCustomer
from drivers.actors import Admin, new_phone_number, require_success
from drivers.chromium import PHONE_VIEWPORT, Tab
from drivers.deployments import Deployment
from drivers.phone_page import PhonePage, contains_pin


def require_pins_not_logged(platform: Deployment, *pins: str) -> None:
    logged = (platform.settings.data_dir.parent / "log").read_text()
    for pin in pins:
        assert not contains_pin(logged, pin)


async def get_balance(ada: Admin, subscriber_id: str) -> str:
    return str(require_success(await ada.get(f"balance/{subscriber_id}"))["balance"])


_HAS_PENDING_MESSAGES_SQL = """
    SELECT EXISTS (SELECT FROM notices)
        OR EXISTS (SELECT FROM messages WHERE recipient = $1 AND status = 'pending')"""


@pytest.fixture
async def phone_page(tab: Tab, demo_customer: DemoCustomer, deployment: Deployment) -> PhonePage:
    """Open the demo customer's phone after the pending messages of other tests were sent."""
    connection = await asyncpg.connect(deployment.database_url)
    try:
        async with asyncio.timeout(60):
            while await connection.fetchval(_HAS_PENDING_MESSAGES_SQL, demo_customer.phone):
                await asyncio.sleep(0.1)
    finally:
        await connection.close()
    page_object = PhonePage(tab)
    await page_object.open(demo_customer.phone)
    return page_object


async def test_page_of_a_tapped_card_continues_in_the_chat(
    tab: Tab, phone_page: PhonePage, deployment: Deployment
) -> None:
    _, url = await deployment.run_command("card", "tap", "DEMO-000002")
    await tab.page.set_viewport_size(PHONE_VIEWPORT)
    await tab.open(urlsplit(url.strip())._replace(scheme="", netloc="").geturl())
    await expect(tab.page.get_by_role("heading", name="Genuine card")).to_be_visible()
    assert await tab.find_axe_violations() == []
    await tab.page.get_by_role("link", name="Continue in chat").click()
    draft = re.compile(rf"^Link my card: http\S+\?{urlsplit(url.strip()).query}$")
    await expect(tab.page.get_by_label("Message")).to_have_value(draft)
    await tab.page.get_by_role("button", name="Send", exact=True).click()
    await phone_page.expect_last_message("link the card you tapped")


async def test_transfer_to_a_friend_with_a_wrong_and_a_correct_pin(
    tab: Tab, phone_page: PhonePage, demo_customer: DemoCustomer, ada: Admin, deployment: Deployment
) -> None:
    (friend,) = require_success(await ada.get("subscribers", search="+23225000002"))["data"]
    before = await get_balance(ada, friend["id"])
    await phone_page.send_message("menu")
    await phone_page.expect_last_message("What would you like to do?")
    assert await tab.find_axe_violations() == []
    await phone_page.choose_from_list("Send money")
    await phone_page.expect_last_message("Who would you like to send money to?")
    await phone_page.send_message("DEMO-000002")
    await phone_page.expect_last_message("How much")
    await phone_page.send_message("25")
    await phone_page.expect_last_message("25.00 SLE")
    await phone_page.tap_option("Yes")
    await phone_page.expect_last_message("Enter your PIN to send")
    await phone_page.tap_option("Enter PIN")
    await expect(phone_page.dialog.get_by_label("Your PIN", exact=True)).to_be_focused()
    assert await tab.find_axe_violations() == []

    wrong = "9173"
    await phone_page.press_digits(wrong)
    await phone_page.confirm()
    await expect(phone_page.dialog.get_by_role("alert")).to_contain_text("2")
    await phone_page.page.keyboard.type(demo_customer.pin)
    await phone_page.page.keyboard.press("Enter")
    await expect(phone_page.dialog).to_be_hidden()
    await phone_page.expect_last_message(re.compile(r"txn_\w+"))
    await tab.take_screenshot("readme/phone", full=False)
    await phone_page.require_pins_absent(demo_customer.pin, wrong)
    require_pins_not_logged(deployment, demo_customer.pin, wrong)

    sent = re.findall(r"txn_\w+", await phone_page.log.inner_text())[-1]
    paid = require_success(await ada.get(f"transactions/{sent}"))
    assert (paid["amount"], paid["status"], paid["channel"]) == ("25.00", "completed", "messaging")
    assert float(await get_balance(ada, friend["id"])) == pytest.approx(float(before) + 25)

    await phone_page.select_phone_number(friend["phone_number"])
    await phone_page.expect_last_message("You received 25.00 SLE")
    await phone_page.expect_last_message(sent)
    # After switching back, the conversation is still there.
    conversations = phone_page.page.get_by_role("list", name="Conversations")
    await conversations.get_by_role("button", name=demo_customer.name).click()
    await expect(phone_page.log).to_contain_text("PIN entered")


async def test_registration_and_kyc_document_upload(
    tab: Tab, ada: Admin, deployment: Deployment, tmp_path: Path
) -> None:
    document = tmp_path / "card.jpg"
    Image.new("RGB", (320, 200), (30, 90, 140)).save(document)
    phone, pin = new_phone_number(), "7352"
    await tab.page.set_viewport_size(PHONE_VIEWPORT)
    phone_page = PhonePage(tab)
    await tab.open("/simulator/phone")
    await tab.page.locator("#person summary").click()
    await phone_page.select_phone_number(phone)
    await tab.page.get_by_role("button", name="menu", exact=True).click()
    await expect(phone_page.log.locator(".group").last).to_be_visible()
    await phone_page.send_message("<b>register</b>")
    await expect(phone_page.log).to_contain_text("<b>register</b>")
    await phone_page.send_message("register")
    await phone_page.expect_last_message("What's your first and last name?")
    await phone_page.send_message("Isata Conteh")
    await phone_page.expect_last_message("Shall I open a wallet with these details?")
    await phone_page.tap_option("Yes")
    await phone_page.expect_last_message("PIN")
    await phone_page.tap_option("PIN")
    await expect(phone_page.dialog.get_by_label("New PIN", exact=True)).to_be_focused()
    assert await tab.find_axe_violations() == []
    await phone_page.press_digits(pin + pin)
    await phone_page.confirm()
    await expect(phone_page.log).to_contain_text("Your wallet is ready")

    await phone_page.send_message("kyc")
    await phone_page.expect_last_message("Which document")
    await phone_page.tap_option("Choose")
    await phone_page.dialog.get_by_role("button").nth(1).click()
    await phone_page.expect_last_message("Please send a clear photo")
    await tab.page.get_by_label("Choose an image").set_input_files(document)
    await expect(tab.page.get_by_alt_text("Image to send")).to_be_visible()
    assert await tab.find_axe_violations() == []
    await tab.page.get_by_role("button", name="Send", exact=True).click()
    await phone_page.expect_last_message("I got it")
    await expect(phone_page.log.get_by_alt_text("Image you sent")).to_be_visible()
    await phone_page.require_pins_absent(pin)
    require_pins_not_logged(deployment, pin)

    (person,) = require_success(await ada.get("subscribers", search=phone))["data"]
    assert (person["first_name"], person["last_name"]) == ("Isata", "Conteh")
    documents = require_success(await ada.get(f"subscribers/{person['id']}/kyc-documents"))["data"]
    assert [item["document_type"] for item in documents] == ["id_front"]


async def test_forgotten_pin_is_reset_with_a_six_digit_code(
    tab: Tab, ada: Admin, deployment: Deployment
) -> None:
    phone, new_pin = new_phone_number(), "7352"
    names = {"first_name": "Isata", "last_name": "Conteh"}
    require_success(await ada.post("subscribers", phone_number=phone, pin="4907", **names))
    phone_page = PhonePage(tab)
    await phone_page.open(phone)
    await phone_page.send_message("I forgot my PIN")
    await expect(phone_page.log).to_contain_text("is your code")
    found = re.search(r"(\d{6}) is your code", await phone_page.log.inner_text())
    assert found is not None
    await phone_page.log.get_by_role("button", name="Set new PIN").click()
    code = phone_page.dialog.get_by_label("6-digit code")
    await expect(code).to_be_focused()
    assert await tab.find_axe_violations() == []

    # An incomplete code is not submitted, and more than six digits do not fit.
    await phone_page.press_digits(found[1][:5])
    await phone_page.confirm()
    await expect(code).to_be_focused()
    await phone_page.page.keyboard.type(found[1][5] + new_pin)
    await expect(code).to_have_value(found[1])
    await phone_page.press_digits(new_pin)
    await tab.take_screenshot("phone-reset-pin", full=False)
    await phone_page.confirm()
    await expect(phone_page.dialog).to_be_hidden()
    # The notice of the change can arrive before or after the answer.
    await expect(phone_page.log).to_contain_text("The new PIN is active")
    await phone_page.require_pins_absent(new_pin)
    require_pins_not_logged(deployment, new_pin)


async def test_option_list_works_with_the_keyboard_alone(tab: Tab, phone_page: PhonePage) -> None:
    keyboard = tab.page.keyboard
    await phone_page.send_message("menu")
    await phone_page.expect_last_message("What would you like to do?")
    opener = phone_page.log.get_by_role("button", name="Choose").last
    await opener.press("Enter")
    rows = phone_page.dialog.locator(".row")
    await expect(rows.first).to_be_focused()
    edges = (
        "rows => rows.flatMap(row => [...row.children].map(part => part.getBoundingClientRect().x))"
    )
    assert len(set(await rows.evaluate_all(edges))) == 1, "titles and descriptions are aligned"
    await keyboard.press("Shift+Tab")
    await keyboard.press("Shift+Tab")
    await expect(rows.last).to_be_focused()
    await keyboard.press("Escape")
    await expect(phone_page.dialog).to_be_hidden()
    await expect(opener).to_be_focused()


async def test_undeliverable_message_or_image_shows_an_error(
    tab: Tab, phone_page: PhonePage
) -> None:
    error = tab.page.locator("#chat-error")
    await tab.page.get_by_label("Choose an image").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"no picture"}
    )
    await expect(error).to_have_text("Only JPEG and PNG images are supported.")

    async def fail(route: Route) -> None:
        await route.fulfill(json={"problem": "The messenger is not responding."})

    await tab.page.route("**/simulator/phone/*", fail)
    await phone_page.send_message("balance")
    await expect(error).to_have_text("The messenger is not responding.")
    await expect(phone_page.log.locator(".own").last).to_contain_text("Not sent")
    assert await tab.find_axe_violations() == []
    await tab.page.unroute("**/simulator/phone/*")
    await phone_page.send_message("balance")
    await expect(error).to_be_hidden()
    await phone_page.expect_last_message(re.compile(r"[\d,]+\.\d\d SLE"))


async def test_pin_is_masked_when_the_form_key_is_unavailable(tab: Tab) -> None:
    async def fail(route: Route) -> None:
        await route.fulfill(json={"problem": "The messenger is not responding."})

    await tab.page.route("**/simulator/phone/form-key", fail)
    phone_page = PhonePage(tab)
    await phone_page.open(new_phone_number())
    await phone_page.send_message("7413")
    await expect(phone_page.log).to_contain_text("••••")
    stored = await tab.page.evaluate("JSON.stringify(sessionStorage)")
    text = await tab.page.locator("#phone").inner_text()
    assert not contains_pin(stored, "7413") and not contains_pin(text, "7413")
