"""The portal in a browser: every page, the first page, no scripts, and a first day.

With TAPGATE_PICTURES, screenshots of all pages and of the days are saved: `make pictures`.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from itertools import chain
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, expect

from browser.conftest import DemoCustomer
from drivers import chromium
from drivers.actors import Admin, App, Terminal, require_success
from drivers.chromium import DESKTOP_VIEWPORT, PHONE_VIEWPORT, Tab
from drivers.deployments import Deployment
from harness import BearerAuth, HmacAuth
from tapgate.sites.portal.portal import PAGES
from tapgate_sandbox.demo.owner_users import PASSWORD, USERS

_MANAGER, _, _CASHIER, _PARTNER, _AGENT = (user.email for user in USERS)
_PARTIAL_PATHS: Final = {
    "/portal/transactions/export",
    "/portal/texts/{file}",
    "/portal/brand.css",
    "/portal/logo.png",
    "/portal/sign-in",
    "/portal/invitation",
}
_PAGES: Final = sorted(
    {page.path for page in chain.from_iterable(PAGES) if page.method == "GET"} - _PARTIAL_PATHS
)
_MAX_FIRST_PAGE_BYTES: Final = 100 * 1024
#: A tenth of what browsers call good. Localized times shift less than 0.001.
_MAX_LAYOUT_SHIFT: Final = 0.01
#: Sums layout shifts that no input has caused, as Chromium's own score does, and lists what moved.
_OBSERVE_SHIFTS: Final = """
    window.layoutShift = {sum: 0, moved: []};
    new PerformanceObserver(list => {
      for (const entry of list.getEntries().filter(({ hadRecentInput }) => !hadRecentInput)) {
        window.layoutShift.sum += entry.value;
        for (const { node } of entry.sources) {
          window.layoutShift.moved.push(node?.outerHTML?.slice(0, 80));
        }
      }
    }).observe({type: "layout-shift", buffered: true});"""
_GET_OVERFLOW: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def sign_in(tab: Tab, email: str) -> None:
    response = await tab.page.request.post(
        f"{tab.base_url}/portal/sign-in",
        form={"email": email, "password": PASSWORD},
        headers={"Sec-Fetch-Site": "same-origin"},
        max_redirects=0,
    )
    assert response.status == 303, await response.text()


@pytest.fixture
async def phone_tab(browser: Browser, deployment: Deployment) -> AsyncIterator[Tab]:
    address = str(deployment.client.base_url)
    async with chromium.open_tab(browser, address, PHONE_VIEWPORT) as tab:
        yield tab


async def test_manager_signs_in_and_sees_the_latest_payments(signed_out_tab: Tab) -> None:
    tab, page = signed_out_tab, signed_out_tab.page
    await tab.open("/portal/sign-in")
    await page.get_by_label("Email").fill(_MANAGER)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await expect(page).to_have_url(f"{tab.base_url}/portal")
    await expect(page.get_by_role("heading", name="Latest payments")).to_be_visible()


async def test_every_page_is_accessible_fits_and_does_not_shift(
    phone_tab: Tab, page_urls: dict[str, str]
) -> None:
    """On a phone and on a desktop, in light and dark mode; layout shifts on the phone."""
    tab, page = phone_tab, phone_tab.page
    await page.add_init_script(_OBSERVE_SHIFTS)
    await tab.open("/portal/sign-in")
    findings = {"/portal/sign-in": await _check(tab, "portal-sign-in")}
    await sign_in(tab, _MANAGER)
    for path, url in page_urls.items():
        findings[path] = await _open_and_check(tab, url, f"portal{_build_name(path)}")
    for email in (_CASHIER, _PARTNER, _AGENT):
        await page.context.clear_cookies()
        await sign_in(tab, email)
        await tab.open("/portal")
        findings[email] = await _check(tab, f"portal-home-{email.partition('@')[0]}")
    assert {path: found for path, found in findings.items() if found} == {}


async def test_every_page_fits_in_french(
    phone_tab: Tab, deployment: Deployment, page_urls: dict[str, str]
) -> None:
    """French texts are longer: pages must fit, and their labels must still be accessible."""
    tab, page = phone_tab, phone_tab.page
    await page.add_init_script(_OBSERVE_SHIFTS)
    user = await Admin.log_in(deployment.client, _MANAGER, PASSWORD)
    require_success(await user.put("admin/me/preferences", language="fr"))
    await sign_in(tab, _MANAGER)
    try:
        findings = {
            path: await _open_and_check(tab, url, f"portal-fr{_build_name(path)}")
            for path, url in page_urls.items()
        }
        await tab.open("/portal")
        await expect(page.get_by_role("heading", name="Derniers paiements")).to_be_visible()
    finally:
        require_success(await user.put("admin/me/preferences", language=""))
    assert {path: found for path, found in findings.items() if found} == {}


@pytest.fixture(scope="session")
async def page_urls(deployment: Deployment, ada: Admin) -> dict[str, str]:
    """Return the URL of each page, with a record of the manager's merchant."""
    manager = await Admin.log_in(deployment.client, _MANAGER, PASSWORD)
    records = await _create_records(manager, ada)
    urls = {}
    for path in _PAGES:
        list_path, has_record, _ = path.partition("/{id}")
        urls[path] = path.replace("{id}", records[list_path]) if has_record else path
    return {path: url.replace("{delivery_id}", records["delivery"]) for path, url in urls.items()}


async def _create_records(manager: Admin, ada: Admin) -> dict[str, str]:
    """Return the ID of a record by the path of its list."""
    shop = require_success(await manager.get("me/owner"))["id"]
    payment, *_ = await manager.list_all("transactions", type="pos_payment", status="completed")
    payout = require_success(await manager.get("payouts", limit=1))["data"][0]
    dispute = require_success(
        await ada.post(
            "disputes",
            transaction_id=payment["id"],
            reason="not_received",
            description="The shoes never came",
            request_id="portal-pages",
        )
    )
    question = require_success(
        await manager.post("support/owner-requests", text="Where is the fee from?")
    )
    hook = require_success(
        await manager.post("admin/webhook-endpoints", url="http://127.0.0.1:9/hook", events=["*"])
    )
    delivery = require_success(await manager.post(f"admin/webhook-endpoints/{hook['id']}/test"))
    return {
        "/portal/transactions": payment["id"],
        "/portal/payouts": payout["id"],
        "/portal/disputes": dispute["id"],
        "/portal/support": question["id"],
        "/portal/webhooks": hook["id"],
        "delivery": delivery["id"],
        "/portal/request-logs": await _log_request(manager, ada, shop),
        "/portal/approvals": await _create_approval(manager, ada, shop),
    }


async def _log_request(manager: Admin, ada: Admin, shop: str) -> str:
    """Send a request with a key of the merchant, and wait until it is listed."""
    key = require_success(
        await ada.post("admin/api-keys", name="Till", scopes=["payments:read"], owner_id=shop)
    )
    app = App(ada.client, BearerAuth(key["key"], key["id"]), key["id"])
    require_success(await app.get("me/owner"))
    while not (logged := require_success(await manager.get("admin/request-logs"))["data"]):
        await asyncio.sleep(0.1)
    return str(logged[0]["id"])


async def _create_approval(manager: Admin, ada: Admin, shop: str) -> str:
    """Let a rule hold a request of the manager, and restore the rules."""
    bo = await ada.create_admin("Bo", "A")
    rules = require_success(await ada.get("admin/approval-rules"))["data"]
    rule = {"operation": "merchant_keys", "roles": ["system_admin"], "approvers": 1}
    await _set_rules(ada, bo, [rule])
    held = require_success(await manager.post(f"processors/{shop}/terminals", name="Till 9"))
    await _set_rules(ada, bo, rules)
    return str(held["approval"]["id"])


async def _set_rules(ada: Admin, bo: Admin, rules: list[dict[str, Any]]) -> None:
    """Replace the approval rules, which other tests of this installation may have set too."""
    changed = require_success(await bo.put("admin/approval-rules", data=rules))
    if "approval" in changed:
        require_success(await ada.post(f"approvals/{changed['approval']['id']}/approve"))


async def _open_and_check(tab: Tab, url: str, name: str) -> list[str]:
    """Check a page, and that the portal has not led to another one."""
    await tab.open(url)
    path = urlsplit(tab.page.url).path
    return [f"redirected to {path}"] if path != url else await _check(tab, name)


async def _check(tab: Tab, name: str) -> list[str]:
    page, found = tab.page, []
    await page.wait_for_load_state("networkidle")
    shift = await page.evaluate("window.layoutShift")
    if shift["sum"] > _MAX_LAYOUT_SHIFT:
        found.append(f"layout shift of {shift['sum']}: {shift['moved']}")
    for size in (PHONE_VIEWPORT, DESKTOP_VIEWPORT):
        await page.set_viewport_size(size)
        if (pixels := await page.evaluate(_GET_OVERFLOW)) > 0:
            found.append(f"{pixels} pixels too wide at {size['width']}")
        await tab.take_screenshot(f"{name}-{size['width']}")
        found += await tab.find_axe_violations()
        for scheme in ("dark", "light"):
            await page.emulate_media(color_scheme=scheme)
            found += await tab.find_contrast_violations()
    await page.set_viewport_size(PHONE_VIEWPORT)
    return found


def _build_name(path: str) -> str:
    return re.sub(r"[/{}]+", "-", path.removeprefix("/portal")).rstrip("-") or "-home"


async def test_first_page_is_small_on_a_phone(phone_tab: Tab) -> None:
    """Bytes that the phone receives with an empty cache: responses with their headers."""
    tab, page = phone_tab, phone_tab.page
    await sign_in(tab, _MANAGER)
    session = await page.context.new_cdp_session(page)
    await session.send("Network.enable")
    await session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    sizes: list[float] = []
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    await tab.open("/portal")
    await page.wait_for_load_state("networkidle")
    print(f"first page: {sum(sizes) / 1024:.1f} KiB in {len(sizes)} responses")
    assert 10 * 1024 < sum(sizes) < _MAX_FIRST_PAGE_BYTES


async def test_portal_works_without_scripts(browser: Browser, deployment: Deployment) -> None:
    """Sign in, filter payments, refund one and download a statement."""
    address = str(deployment.client.base_url).rstrip("/")
    context = await browser.new_context(java_script_enabled=False, viewport=PHONE_VIEWPORT)
    try:
        page = await context.new_page()
        await page.goto(f"{address}/portal/sign-in")
        await page.get_by_label("Email").fill(_MANAGER)
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Sign in", exact=True).click()
        await expect(page.get_by_role("heading", name="Latest payments")).to_be_visible()
        await page.goto(f"{address}/portal/transactions")
        await page.locator("summary", has_text="Filters").click()
        await page.locator('select[name="status"]').select_option("completed")
        await page.get_by_role("button", name="Apply").click()
        await expect(page).to_have_url(re.compile("status=completed"))
        await page.goto(f"{address}{await _find_refundable(page)}")
        await page.get_by_role("button", name="Refund").click()
        await page.get_by_label("Amount").fill("0.01")
        await page.get_by_label("Reason").fill("Rounding")
        await page.get_by_role("main").get_by_role("button", name="Refund").click()
        await expect(page.locator(".toast")).to_be_visible()
        await expect(page.get_by_role("main")).to_contain_text("−0.01")
        await page.goto(f"{address}/portal/statements")
        async with page.expect_download() as waiting:
            await page.get_by_role("button", name="Download", exact=True).click()
        assert (await waiting.value).suggested_filename.endswith(".pdf")
    finally:
        await context.close()


async def _find_refundable(page: Page) -> str:
    """Return the path of the newest completed card payment in the list."""
    rows = page.locator("#rows tr", has=page.get_by_text("POS payment"))
    path = await rows.first.locator("a").first.get_attribute("href")
    assert path is not None
    return path


async def test_merchants_first_day(
    tab: Tab, phone_tab: Tab, ada: Admin, demo_customer: DemoCustomer, browser: Browser
) -> None:
    """From the contract to the first refund: the admin on a desktop, the manager on a phone."""
    page = tab.page
    await tab.open("/console/processors")
    await _submit(page, "Create merchant", "Create", name="Kissy Market", email="k@example.com",
                  phone_number="+23276123987")  # fmt: skip
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("link", name="I've saved it").click()
    steps = page.get_by_role("region", name="Get started")
    await expect(steps).to_contain_text("0 of 5 done")
    await tab.take_screenshot("first-day-1-merchant")
    await _submit(page, "Invite user", "Invite user", name="Isata Sesay",
                  email="isata.sesay@example.com")  # fmt: skip
    url = (await dialog.locator("code").first.inner_text()).strip()
    assert "/portal/invitation#" in url
    await tab.take_screenshot("first-day-2-invitation", full=False)
    await dialog.get_by_role("link", name="I've saved it").click()
    await expect(steps).to_contain_text("1 of 5 done")
    shop = page.url.rpartition("/")[2]

    phone = phone_tab.page
    context = await browser.new_context(locale="en-GB", reduced_motion="reduce")
    try:
        phone = await context.new_page()
        await phone.set_viewport_size(PHONE_VIEWPORT)
        manager = Tab(phone, tab.base_url)
        path = url[url.index("/portal") :]
        await manager.open(path)
        await phone.get_by_label("New password").fill("market day in kissy 7")
        await phone.get_by_role("button", name="Set password").click()
        await phone.get_by_label("Email").fill("isata.sesay@example.com")
        await phone.get_by_label("Password").fill("market day in kissy 7")
        await phone.get_by_role("button", name="Sign in", exact=True).click()
        await expect(phone.get_by_role("region", name="Get started")).to_contain_text("0 of 3")
        await manager.take_screenshot("first-day-3-home")
        terminal = await _add_terminal(manager, shop, ada)
        paid = require_success(
            await terminal.post(
                "pos/payment",
                card_serial=demo_customer.card,
                amount="12.50",
                pin=demo_customer.pin,
                request_id="first-day-1",
            )
        )
        await manager.open("/portal")
        await expect(phone.get_by_role("main")).to_contain_text("12.50")
        await manager.take_screenshot("first-day-4-first-sale")
        await manager.open(f"/portal/transactions/{paid['transaction_id']}")
        await manager.take_screenshot("first-day-5-receipt")
        await phone.get_by_role("button", name="Refund").click()
        refund = phone.get_by_role("dialog")
        await refund.get_by_label("Reason").fill("Test payment")
        await refund.get_by_role("button", name="Refund").click()
        await expect(phone.get_by_role("main")).to_contain_text("−12.50")
        await manager.open("/portal")
        await _submit(phone, "Add bank account", "Add bank account", holder_name="Kissy Market",
                      bank_code="RCBKSLFR", number="0012345678")  # fmt: skip
        await expect(phone.locator(".toast")).to_contain_text("Bank account added.")
        await expect(phone.get_by_role("region", name="Get started")).to_be_hidden()
        await manager.take_screenshot("first-day-6-done")
        assert await manager.find_axe_violations() == []
        manager.monitor.require_no_problems()
    finally:
        await context.close()
    await tab.open(f"/console/processors/{shop}")
    await expect(steps).to_be_hidden()
    await expect(page.get_by_role("main")).to_contain_text("Isata Sesay")


async def _submit(page: Page, button: str, confirm: str, **fields: str) -> None:
    await page.get_by_role("main").get_by_role("button", name=button).first.click()
    dialog = page.get_by_role("dialog")
    for name, value in fields.items():
        await dialog.locator(f'[name="{name}"]').fill(value)
    await dialog.get_by_role("button", name=confirm, exact=True).click()


async def _add_terminal(manager: Tab, shop: str, ada: Admin) -> Terminal:
    """Add a terminal in the portal, and return it with the key that the dialog shows."""
    page = manager.page
    await _submit(page, "Add terminal", "Add terminal", name="Till 1")
    codes = page.get_by_role("dialog").locator("dl code")
    await expect(codes).to_have_count(3)
    _, key_id, secret = [text.strip() for text in await codes.all_inner_texts()]
    await page.get_by_role("dialog").get_by_role("link", name="I've saved it").click()
    created: dict[str, Any] = {"api_key_id": key_id, "hmac_secret": secret, "processor_id": shop}
    assert HmacAuth(key_id, secret, shop)
    return Terminal(ada.client, created)
