"""What customers take for granted, played to its end in the chat and in the console.

Everything done to an account is told, belongs to something that staff can see, and can be undone.
"""

import re

import pytest
from playwright.async_api import expect

from drivers.actors import Admin, App, Customer, new_phone_number, require_success
from drivers.chromium import Tab
from drivers.phone_page import PhonePage

pytestmark = [pytest.mark.proof, pytest.mark.refund]

_PHONE = ".handset"
_DIALOG = "#dialog"


@pytest.fixture
async def app(ada: Admin) -> App:
    return await ada.create_app()


async def create_customer(ada: Admin, app: App, name: str) -> Customer:
    phone = new_phone_number()
    return await ada.create_funded_customer("500", app, name, phone_number=phone)


async def submit_dialog(tab: Tab, button: str) -> None:
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_role("button", name=button, exact=True).click()
    await expect(dialog).to_be_hidden()


async def test_transfer_to_the_wrong_person_is_recalled_and_returned(
    tab: Tab, ada: Admin, app: App
) -> None:
    sender = await create_customer(ada, app, "Aminata Kamara")
    receiver = await create_customer(ada, app, "Foday Sesay")
    sent = require_success(await sender.send_money("100", receiver))
    phone = PhonePage(tab)
    await phone.open(sender.phone)
    await phone.send_message("I sent money to the wrong person")
    await phone.expect_last_message("Which transfer went to the wrong person?")
    await phone.choose_from_list("100.00 SLE")
    await phone.enter_pin(sender.pin)
    await phone.expect_last_message("100.00 SLE is on hold for 24 hours")

    await tab.open("/console/work")
    await expect(tab.page.get_by_role("main")).to_contain_text("Recall")
    await tab.open(f"/console/transactions/{sent['transaction_id']}")
    await tab.page.get_by_role("region", name="Recall").get_by_role("link", name="Open").click()
    await expect(tab.page.get_by_role("heading", level=1)).to_contain_text("Open")
    await tab.take_screenshot("readme/recall-open")
    recall_url = tab.page.url

    await phone.open(receiver.phone)
    await phone.expect_last_message("Return it")
    await tab.take_screenshot("readme/recall-question", within=_PHONE)
    await phone.tap_option("Return it")
    await phone.enter_pin(receiver.pin)
    # The notice of the return can arrive before or after the answer.
    await expect(phone.log).to_contain_text("Thank you")
    await phone.open(sender.phone)
    await expect(phone.log).to_contain_text("returned")
    assert await ada.get_balance(receiver.id) == "500.00"
    await tab.page.goto(recall_url)
    await expect(tab.page.get_by_role("heading", level=1)).to_contain_text("Returned")
    assert await tab.find_axe_violations() == []


async def test_reversed_cash_in_takes_the_commission_back_and_tells_the_customer(
    tab: Tab, ada: Admin, app: App
) -> None:
    customer = await create_customer(ada, app, "Mariama Bangura")
    agent = await ada.create_agent(app, "Kadiatu Store")
    await ada.fund_agent(agent, "1000")
    paid = require_success(await agent.cash_in("200", customer))
    before = await agent.get_balances()
    await tab.open(f"/console/transactions/{paid['transaction_id']}")
    await tab.choose_action("Reverse")
    dialog = tab.page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Commission taken back")
    await dialog.get_by_label("Reason").fill("Paid in twice")
    assert await tab.find_axe_violations(_DIALOG) == []
    await tab.take_screenshot("readme/reversal", within=_DIALOG)
    await submit_dialog(tab, "Reverse")
    await expect(tab.page.get_by_role("heading", level=1)).to_contain_text("Reversed")
    after = await agent.get_balances()
    assert (before, after) == (("800.00", "2.00"), ("1000.00", "0.00"))
    phone = PhonePage(tab)
    await phone.open(customer.phone)
    await expect(phone.log).to_contain_text("200.00 SLE")
    await tab.take_screenshot("reversal-notice", within=_PHONE)


async def test_card_payment_is_disputed_answered_and_refunded(
    tab: Tab, ada: Admin, app: App
) -> None:
    customer = await create_customer(ada, app, "Isata Conteh")
    terminal, _ = await ada.create_terminal(await ada.create_merchant("Shoe shop"), "Till 1")
    require_success(await terminal.pay("60", customer.card, customer.pin))
    phone = PhonePage(tab)
    await phone.open(customer.phone)
    await phone.send_message("something wrong?")
    await phone.choose_from_list("60.00 SLE")
    await phone.expect_last_message("What is wrong with the payment")
    await phone.choose_from_list("Nothing received")
    await phone.expect_last_message("Please describe in a few words")
    await phone.send_message("The shoes never came")
    await expect(phone.log).to_contain_text("We have opened a dispute of 60.00 SLE")
    await tab.take_screenshot("readme/dispute-chat", within=_PHONE)

    await tab.open("/console/disputes")
    await tab.page.locator("#rows").get_by_role("link", name="Isata Conteh").click()
    await tab.choose_action("Record response")
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Merchant response").fill("Handed over at the counter")
    await submit_dialog(tab, "Record response")
    await tab.page.get_by_role("button", name="Refund 60.00").click()
    await dialog.get_by_label("Reason").fill("No proof of delivery")
    await tab.take_screenshot("dispute-refund", within=_DIALOG)
    await submit_dialog(tab, "Refund customer")
    await expect(tab.page.get_by_role("heading", level=1)).to_contain_text("Refunded")
    assert await tab.find_axe_violations() == []
    await tab.take_screenshot("readme/dispute")
    assert await ada.get_balance(customer.id) == "500.00"
    await phone.open(customer.phone)
    await expect(phone.log).to_contain_text("decided in your favor")


async def test_replaced_number_objects_and_the_wallet_is_blocked(
    tab: Tab, ada: Admin, app: App
) -> None:
    customer = await create_customer(ada, app, "Fatmata Koroma")
    new_number = new_phone_number()
    require_success(await ada.put(f"subscribers/{customer.id}", phone_number=new_number))
    phone = PhonePage(tab)
    await phone.open(customer.phone)
    await phone.expect_last_message("This wasn't me")
    await tab.take_screenshot("readme/number-changed", within=_PHONE)
    await phone.tap_option("This wasn't me")
    await expect(phone.log).to_contain_text("We have blocked the wallet")

    await tab.open(f"/console/subscribers/{customer.id}")
    await expect(tab.page.get_by_role("heading", level=1)).to_contain_text("Blocked")
    await tab.open("/console/support")
    await tab.page.locator("#rows").get_by_role("link", name="Fatmata Koroma").first.click()
    await expect(tab.page.get_by_role("main")).to_contain_text("urgent")
    await tab.take_screenshot("readme/number-changed-request")
    refused = await ada.post(f"subscribers/{customer.id}/unblock")
    assert refused.status_code == 403
    bo = await ada.create_admin("Bo", "A")
    require_success(await bo.post(f"subscribers/{customer.id}/unblock"))


async def test_stolen_card_is_blocked_in_the_chat_and_replaced_by_staff(
    tab: Tab, ada: Admin, app: App
) -> None:
    customer = await create_customer(ada, app, "Adama Sillah")
    await ada.upload_cards(f"{customer.card}-NEW")
    phone = PhonePage(tab)
    await phone.open(customer.phone)
    await phone.send_message("my card was stolen")
    await phone.tap_option("Yes")
    await expect(phone.log).to_contain_text("was blocked")
    await tab.take_screenshot("readme/stolen-card", within=_PHONE)

    await tab.open(f"/console/cards/{customer.card}")
    await tab.page.get_by_role("button", name="Replace", exact=True).click()
    dialog = tab.page.get_by_role("dialog")
    await dialog.get_by_label("Reason").select_option("stolen")
    await submit_dialog(tab, "Replace")
    await expect(tab.page.get_by_role("heading", level=1)).to_have_text("Replace card")
    await phone.open(customer.phone)
    await expect(phone.log).to_contain_text("is your code")
    found = re.findall(r"(\d{6}) is your code", await phone.log.inner_text())
    await tab.open(f"/console/cards/{customer.card}/replace")
    await tab.take_screenshot("readme/replace-card")
    await tab.page.get_by_role("button", name="Link new card").click()
    card = dialog.get_by_role("combobox", name="New card")
    await card.press_sequentially(f"{customer.card}-NEW")
    await tab.page.get_by_role("option").first.click()
    await dialog.get_by_label("Code from the customer's phone").fill(found[-1])
    await submit_dialog(tab, "Link new card")
    linked = require_success(await ada.get(f"cards/{customer.card}-NEW"))
    assert (linked["status"], linked["subscriber_id"]) == ("ACTIVE", customer.id)

    await tab.open(f"/console/subscribers/{customer.id}/timeline")
    row = tab.page.get_by_role("row").filter(has_text="Message: Card changed").first
    await expect(row).to_contain_text("Queued")  # until a messaging provider reports it
    assert await tab.find_axe_violations() == []
    await tab.take_screenshot("readme/timeline")


async def test_stop_ends_receipts_and_start_brings_them_back(
    tab: Tab, ada: Admin, app: App
) -> None:
    customer = await create_customer(ada, app, "Mohamed Turay")
    phone = PhonePage(tab)
    await phone.open(customer.phone)
    await phone.send_message("STOP!")
    await phone.expect_last_message("You still get what is essential")
    await tab.take_screenshot("stop", within=_PHONE)
    require_success(await ada.post(f"subscribers/{customer.id}/block", reason="Asked by phone"))
    await expect(phone.log).to_contain_text("your wallet was blocked")
    await phone.send_message("START")
    await phone.expect_last_message("You get all messages again")
    record = require_success(await ada.get(f"subscribers/{customer.id}"))
    assert record["messages"] == "all"
