"""How many clicks frequent tasks take, from the page on which people start. Typing is free."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from drivers.actors import Admin, App, Record, new_phone_number, require_success
from drivers.chromium import PHONE_VIEWPORT, Tab
from drivers.deployments import Deployment

#: Counts clicks of the pointer across pages. A button that a key presses has the detail 0.
_COUNT_CLICKS = """
  addEventListener("click", (event) => {
    if (!event.isTrusted || event.detail === 0) return;
    sessionStorage.setItem("clicks", Number(sessionStorage.getItem("clicks")) + 1);
  }, true);"""


@pytest.fixture
async def page(tab: Tab) -> Page:
    """Return a signed-in page that counts clicks."""
    await tab.page.add_init_script(_COUNT_CLICKS)
    return tab.page


@pytest.fixture
async def app(ada: Admin) -> App:
    return await ada.create_app()


@pytest.fixture
async def approval(ada: Admin) -> AsyncIterator[Record]:
    """Yield a keyset request of another admin, and remove the approval rules afterwards."""
    bo = await ada.create_admin("Bo", "A")
    rule = {"operation": "keysets", "roles": ["system_admin"], "approvers": 1}
    require_success(await ada.put("admin/approval-rules", data=[rule]))
    held = require_success(await bo.post("cards/keysets", name="Bureau of Freetown"))
    yield held["approval"]
    removal = require_success(await bo.put("admin/approval-rules", data=[]))["approval"]
    removed = require_success(await ada.post(f"approvals/{removal['id']}/approve"))
    assert removed["status"] == "executed"


async def count_clicks(page: Page) -> int:
    return int(await page.evaluate("sessionStorage.getItem('clicks') ?? 0"))


async def test_half_of_a_payment_is_refunded_in_three_clicks(tab: Tab, page: Page) -> None:
    await tab.open("/console/transactions?type=pos_payment&status=completed")
    await page.locator("#rows a[href*='/transactions/txn_']").first.click()
    await page.get_by_role("button", name="Refund", exact=True).click()
    amount = page.get_by_role("dialog").get_by_label("Amount")
    await expect(amount).to_be_focused()
    half = f"{float(await amount.input_value()) / 2:.2f}"
    await page.keyboard.type(half)  # replaces the whole amount, which is selected
    await expect(amount).to_have_value(half)
    await page.keyboard.press("Tab")
    await page.keyboard.type("Half of the order was returned")
    await page.get_by_role("dialog").get_by_role("button", name="Refund", exact=True).click()
    await expect(page.get_by_role("status")).to_have_text("Payment refunded.")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Partially refunded")
    assert await count_clicks(page) == 3


async def test_lost_card_is_replaced_in_five_clicks(
    tab: Tab, page: Page, ada: Admin, app: App, deployment: Deployment
) -> None:
    phone = new_phone_number()
    customer = await ada.create_funded_customer("50", app, "Isatu Koroma", phone_number=phone)
    new_card = f"{customer.card}-NEW"
    await ada.upload_cards(new_card)
    await tab.open(f"/console/subscribers/{customer.id}")
    await page.locator(f"a[href='/console/cards/{customer.card}']").first.click()
    await page.get_by_role("button", name="Replace", exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Reason")).to_have_value("lost")
    await dialog.get_by_role("button", name="Replace", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Replace card")
    code = await deployment.get_pending_code(phone)
    await page.get_by_role("button", name="Link new card").click()
    await expect(dialog.get_by_role("combobox", name="New card")).to_be_focused()
    await page.keyboard.type(new_card)
    await expect(dialog.get_by_role("option").first).to_be_visible()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await page.keyboard.type(code)
    await dialog.get_by_role("button", name="Link new card").click()
    await page.wait_for_url(f"**/console/cards/{customer.card}")
    assert await count_clicks(page) == 5
    linked = require_success(await ada.get(f"cards/{new_card}"))
    assert (linked["status"], linked["subscriber_id"]) == ("ACTIVE", customer.id)


async def test_request_is_approved_in_two_clicks_from_my_work(
    tab: Tab, page: Page, ada: Admin, approval: Record
) -> None:
    await tab.open("/console/work")
    await page.locator(f".work a.what[href='/console/approvals/{approval['id']}']").click()
    decision = page.get_by_role("region", name="Decision")
    await expect(decision).to_contain_text("executes this request immediately")
    await expect(page.get_by_role("main")).to_contain_text("Bureau of Freetown")
    assert await tab.find_axe_violations() == []
    await tab.take_screenshot("approval-decision")
    await page.set_viewport_size(PHONE_VIEWPORT)
    await tab.take_screenshot("approval-decision-phone")
    await decision.get_by_role("button", name="Approve and execute").click()
    await expect(page.get_by_role("status")).to_have_text("Request approved.")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Executed")
    assert await count_clicks(page) == 2
    names = [item["name"] for item in await ada.list_all("cards/keysets")]
    assert "Bureau of Freetown" in names


async def test_api_request_is_found_by_either_id_in_one_click(
    tab: Tab, page: Page, ada: Admin, app: App
) -> None:
    customer = await ada.create_funded_customer("50", app, phone_number=new_phone_number())
    friend = await ada.create_funded_customer("5", app, phone_number=new_phone_number())
    key = f"order-{secrets.token_hex(6)}"
    sent = require_success(await customer.send_money("5", friend, request_id=key))
    logged: list[Record] = []
    while not logged:  # requests are logged shortly after their response
        await asyncio.sleep(0.1)
        logged = await ada.list_all("admin/request-logs", transaction_id=sent["transaction_id"])
    for clicks, name in enumerate(("request_id", "idempotency_key"), 1):
        await tab.open("/console")
        await page.keyboard.press("Control+k")
        await page.keyboard.type(logged[0][name])
        await page.get_by_role("option").filter(has_text="/api/v1/wallet/transfer-p2p").click()
        await expect(page).to_have_url(re.compile(f"/console/request-logs/{logged[0]['id']}$"))
        assert await count_clicks(page) == clicks
