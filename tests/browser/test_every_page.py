"""Every page at desktop and phone width, some of them in dark mode too, and the forms.

Each page must open and fit the viewport, and be accessible at desktop width. If TAPGATE_PICTURES
names a folder, screenshots are saved there: `make pictures`.
"""

import asyncio
import csv
import os
import re
from collections.abc import AsyncIterator
from itertools import chain
from pathlib import Path
from typing import Final, get_args
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser

from drivers import chromium
from drivers.actors import Admin, require_success
from drivers.chromium import DESKTOP_VIEWPORT, PHONE_VIEWPORT, ColorScheme, Tab
from drivers.deployments import Deployment
from drivers.page_weights import PageWeight, disable_cache, weigh
from drivers.processes import ADMIN
from tapgate.sites.console.actions import Action
from tapgate.sites.console.console import ACTIONS, PAGES
from tapgate.sites.console.pages.compliance_rules import CHANGE_ACTIONS
from tapgate_sandbox.simulators.site import PAGES as SIMULATORS

#: Detail pages, and the list from which a record is taken.
_DETAIL_PAGE_LISTS: Final = {
    "/console/subscribers/{id}": "subscribers",
    "/console/subscribers/{id}/timeline": "subscribers",
    "/console/cards/{serial}": "cards",
    "/console/cards/{serial}/personalize": "cards",
    "/console/cards/{serial}/taps": "cards",
    "/console/transactions/{id}": "transactions",
    "/console/agents/{id}": "agents",
    "/console/processors/{id}": "processors",
    "/console/processors/{id}/keys": "processors",
    "/console/processors/{id}/terminals": "processors",
    "/console/partners/{id}": "admin/partners",
    "/console/partners/{id}/keys": "admin/partners",
    "/console/compliance/alerts/{id}": "compliance/alerts",
    "/console/kyc/{id}": "subscribers",
    "/console/support/{id}": "support/requests",
    "/console/webhooks/{id}": "admin/webhook-endpoints",
    "/console/approvals/{id}": "approvals",
    "/console/request-logs/{id}": "admin/request-logs",
    "/console/disputes/{id}": "disputes",
    "/console/recalls/{id}": "recalls",
    "/console/administrators/{id}": "admin/users",
    "/console/float-requests/{id}": "float-requests",
    "/console/payouts/{id}": "payouts",
    "/console/payout-runs/{id}": "payout-runs",
    "/console/bank-accounts/{id}": "bank-accounts",
    "/console/bank-statements/{id}": "bank-statements",
    "/console/batches/{id}": "batches",
    "/console/batches/{id}/lines": "batches",
}
_REPLACE_PATH: Final = "/console/cards/{serial}/replace"
_ENTRIES_PATH: Final = "/console/ledger/entries"
_DELIVERY_PATH: Final = "/console/webhooks/{id}/deliveries/{delivery_id}"
#: Paths that return redirects, fragments, files or data rather than pages, and the sign-in page.
_PARTIAL_PATHS: Final = {
    "/console/approvals/banner",
    "/console/audit/verify",
    "/console/brand.css",
    "/console/logo.png",
    "/console/ledger/gl-codes",
    "/console/ledger/journal",
    "/console/ledger/seal",
    "/console/kyc/next",
    "/console/payout-runs/{id}/file",
    "/console/bank-statements/lines/{id}/candidates",
    "/console/finance/safeguarding",
    "/console/batches/{id}/file",
    "/console/reports/export",
    "/console/compliance/next",
    "/console/export/{name}",
    "/console/support/next",
    "/console/limits/commission",
    "/console/limits/fees/{type}",
    "/console/invitation",
    "/console/search/pick",
    "/console/search/recent",
    "/console/sign-in",
    "/console/sso/callback",
    "/console/sso/start",
    "/console/sso/verify",
    "/console/subscribers/{id}/documents/{document_id}",
    "/console/transactions/export",
    "/console/transactions/{id}/decline",
    "/console/texts/{file}",
    "/console/transactions/totals",
    "/console/agents/totals",
    "/console/processors/totals",
    "/console/partners/totals",
    "/console/processors/{id}/summary",
    "/simulator/phone/form-key",
    "/simulator/phone/messages",
    "/simulator/phone/people",
    "/simulator/pos/cards",
    "/simulator/sign-in",
    "/simulator/texts/{file}",
    "/simulator/try-it",
    "/stage/feed",
}

_DECLARED_PATHS: Final = sorted(
    {page.path for page in chain.from_iterable([*PAGES, *SIMULATORS]) if page.method == "GET"}
    - _PARTIAL_PATHS
)
#: Removes most rows of each table: rows are alike, and axe would check each of them.
_TRUNCATE_TABLES: Final = """
    for (const body of document.querySelectorAll("tbody")) {
      for (const row of [...body.rows].slice(4, -1)) row.remove();
    }"""
#: The page behind a dialog is checked on its own, and axe is slow in large documents.
_REMOVE_TABLES: Final = 'document.querySelectorAll("table, nav").forEach(part => part.remove())'
#: The navigation is the same on all pages of the console, so it is checked on the first one.
_REMOVE_NAVIGATION: Final = 'document.querySelector("nav.side")?.remove()'
#: Public page of a tapped card.
_TAP_PATH: Final = "/t"
_MAX_PAGE_BYTES: Final = 200_000
_MAX_TASK_MS: Final = 100
_MAX_REPEATS: Final = 3
_PATH_PARAMETER: Final = re.compile(r"{(\w+)}")
#: Dark mode affects only contrast, and these pages contain all components. The remaining pages are
#: checked in dark mode when screenshots are taken.
_DARK_MODE_PATHS: Final = {
    "/console/sign-in",
    "/console",
    "/console/subscribers/{id}",
    "/console/transactions/{id}",
    "/console/compliance/alerts/{id}",
    "/console/limits",
    "/console/audit",
    "/simulator/pos",
    "/simulator/phone",
    "/stage",
    _TAP_PATH,
}


@pytest.fixture(scope="session")
async def records(ada: Admin) -> None:
    """Create the record kinds that the demo data lacks."""
    await ada.create_app("cards:read")
    hook = {"url": "http://127.0.0.1:9/form", "events": ["*"]}
    require_success(await ada.post("admin/webhook-endpoints", **hook))
    require_success(await ada.post("cards/keysets", name="First supplier"))
    rule = {"type": "CUMULATIVE_AMOUNT", "threshold": "90000000.00", "window_seconds": 3600}
    rule |= {"name": "Total", "subject": "payer", "action": "alert", "severity": "LOW"}
    types = ["transfer_p2p"]
    require_success(await ada.post("compliance/rules", transaction_types=types, **rule))
    agent = require_success(await ada.get("agents", status="active", limit=1))["data"][0]
    require_success(await ada.post(f"agents/{agent['id']}/float-requests", amount="10.00"))


@pytest.fixture(scope="session")
async def page_urls(deployment: Deployment, ada: Admin, records: None) -> dict[str, str]:
    """Return the URL of each page, with IDs from the demo data."""
    hook = require_success(
        await ada.post("admin/webhook-endpoints", url="http://127.0.0.1:9/hook", events=["*"])
    )["id"]
    delivery = require_success(await ada.post(f"admin/webhook-endpoints/{hook}/test"))["id"]
    await ada.create_admin("Approver", "A")
    rule = {"operation": "keysets", "roles": ["system_admin"], "approvers": 1}
    require_success(await ada.put("admin/approval-rules", data=[rule]))
    require_success(await ada.post("cards/keysets", name="Second supplier"))
    await _log_request(ada)
    urls = {}
    for path in _DECLARED_PATHS:
        name = _PATH_PARAMETER.search(path)
        urls[path] = path
        if path == _DELIVERY_PATH:
            urls[path] = f"/console/webhooks/{hook}/deliveries/{delivery}"
        elif path == _REPLACE_PATH:
            (card, *_) = require_success(await ada.get("cards", status="ACTIVE"))["data"]
            require_success(await ada.post(f"cards/{card['serial']}/replace", reason="lost"))
            urls[path] = path.replace("{serial}", card["serial"])
        elif path == _ENTRIES_PATH:
            urls[path] = f"{path}?gl_code=2100"
        elif name is not None:
            listed = require_success(await ada.get(_DETAIL_PAGE_LISTS[path], limit=1))["data"]
            urls[path] = path.replace(name[0], listed[0][name[1]])
    _, tap_url = await deployment.run_command("card", "tap", "DEMO-000002")
    return urls | {_TAP_PATH: f"{_TAP_PATH}?{urlsplit(tap_url.strip()).query}"}


async def _log_request(ada: Admin) -> None:
    """Send a request with an API key, and wait until it is listed."""
    app = await ada.create_app("cards:read")
    await app.get("cards/NONE-1")
    while not require_success(await ada.get("admin/request-logs"))["data"]:
        await asyncio.sleep(0.1)


async def test_every_page_is_accessible_and_fits_a_phone_and_a_desktop(
    browser: Browser, deployment: Deployment, page_urls: dict[str, str]
) -> None:
    """On a phone, in a single column, no page may overflow horizontally either."""
    findings: dict[str, list[str]] = {}
    async with chromium.open_tab(browser, str(deployment.client.base_url), PHONE_VIEWPORT) as tab:
        async for path, name in _open_pages(tab, page_urls):
            findings[path] = _describe_overflow("a phone", await _get_overflow(tab))
            if chromium.should_take_screenshots():
                for scheme in get_args(ColorScheme):
                    await tab.page.emulate_media(color_scheme=scheme)
                    await tab.take_screenshot(f"{name}-phone-{scheme}")
                await tab.page.emulate_media(color_scheme="light")
            await tab.page.set_viewport_size(DESKTOP_VIEWPORT)
            findings[path] += await _check_page(
                tab, f"{name}-desktop-light", with_navigation=path == "/console"
            )
            findings[path] += await tab.find_contrast_violations()
            if path in _DARK_MODE_PATHS or chromium.should_take_screenshots():
                await tab.page.emulate_media(color_scheme="dark")
                await tab.take_screenshot(f"{name}-desktop-dark")
                findings[path] += await tab.find_contrast_violations()
                await tab.page.emulate_media(color_scheme="light")
            await tab.page.set_viewport_size(PHONE_VIEWPORT)
    assert {path: found for path, found in findings.items() if found} == {}


@pytest.mark.usefixtures("french")
async def test_every_page_fits_a_phone_and_a_desktop_in_french(
    tab: Tab, page_urls: dict[str, str]
) -> None:
    """French texts are longer than English ones."""
    findings: dict[str, str | int] = {}
    devices = [("phone", PHONE_VIEWPORT), ("desktop", DESKTOP_VIEWPORT)]
    for path, url in page_urls.items():
        if not path.startswith(("/console", "/simulator", "/stage")):
            continue
        await tab.open(url)
        if (language := await tab.page.evaluate("document.documentElement.lang")) != "fr":
            findings[path] = language
        devices.reverse()  # start with the previous page's size, since resizing takes long
        for device, viewport in devices:
            await tab.page.set_viewport_size(viewport)
            await tab.take_screenshot(f"french-{_build_screenshot_name(path)}-{device}")
            if (pixels := await _get_overflow(tab)) > 0:
                findings[f"{path} on a {device}"] = pixels
    assert findings == {}


async def test_every_page_is_light_and_does_not_block(
    browser: Browser, tab: Tab, page_urls: dict[str, str]
) -> None:
    """A first view, with an empty cache, of each page and of the API reference."""
    await disable_cache(tab)
    urls = {**page_urls, "/guide": "/guide", "/guide/api": "/guide/api"}
    weights = {path: await weigh(browser, tab, url) for path, url in urls.items()}
    for _ in range(_MAX_REPEATS):  # the host of a virtual machine can lengthen a task
        for path in _list_slow(weights):
            weights[path] = min(weights[path], await weigh(browser, tab, urls[path]), key=_get_task)
    if chromium.should_take_screenshots():
        rows = [
            ("page", *PageWeight.__annotations__),
            *((path, *found) for path, found in weights.items()),
        ]
        with (Path(os.environ["TAPGATE_PICTURES"]) / "page-weights.csv").open("w") as file:
            csv.writer(file).writerows(rows)
    heavy = {path: found for path, found in weights.items() if found.bytes > _MAX_PAGE_BYTES}
    slow = {path: weights[path] for path in _list_slow(weights)}
    assert (heavy, slow) == ({}, {})


def _list_slow(weights: dict[str, PageWeight]) -> list[str]:
    return [path for path, found in weights.items() if found.longest_task_ms > _MAX_TASK_MS]


def _get_task(weight: PageWeight) -> float:
    return weight.longest_task_ms


async def _open_pages(tab: Tab, urls: dict[str, str]) -> AsyncIterator[tuple[str, str]]:
    """Open each page, and yield its path and a screenshot name."""
    await tab.load_axe_in_every_page()
    await tab.open("/console/sign-in")
    yield "/console/sign-in", "sign-in"
    await tab.sign_in(ADMIN["email"], ADMIN["password"])
    for path, url in urls.items():
        await tab.open(url)
        yield path, _build_screenshot_name(path)


@pytest.mark.usefixtures("records")
async def test_every_form_is_accessible(tab: Tab, ada: Admin, records: None) -> None:
    """Each form opens in the dialog, with the record kind that it loads."""
    dialog = tab.page.get_by_role("dialog")
    findings: dict[str, list[str]] = {}
    await tab.open("/console/subscribers")
    await tab.page.evaluate(_REMOVE_TABLES)
    for action in ACTIONS:
        name, value = await _find_parameter(ada, action)
        await tab.page.evaluate(
            "address => htmx.ajax('GET', address, '#dialog-body')",
            f"/console/actions/{action.name}?{name}={value}",
        )
        await dialog.get_by_role("heading", name=action.title).wait_for()
        findings[action.name] = await _check_page(tab, f"form-{action.name}", "#dialog")
        await dialog.evaluate("dialog => dialog.close()")
    assert {name: found for name, found in findings.items() if found} == {}


async def _find_parameter(ada: Admin, action: Action) -> tuple[str, str]:
    """Return the name and value that identify a record for a form: by default a subscriber."""
    path = action.prefill_path or action.preview_path or "/api/v1/subscribers/{id}"
    parameter = _PATH_PARAMETER.search(path)
    if parameter is None:
        return "id", ""
    name = parameter[1]
    if name == "kyc_level":
        return name, action.name[-1]
    path = path[: parameter.start() - 1].removeprefix("/api/v1/")
    # Not every list has pages.
    records = require_success(await ada.get(path))["data"]
    if action in CHANGE_ACTIONS.values():
        records = [record for record in records if CHANGE_ACTIONS[record["type"]] == action]
    return name, records[0][name]


async def _check_page(
    tab: Tab, name: str, within: str = "html", *, with_navigation: bool = True
) -> list[str]:
    await tab.take_screenshot(name)
    too_wide = await _get_overflow(tab)
    await tab.page.evaluate(_TRUNCATE_TABLES)
    if not with_navigation and not chromium.should_take_screenshots():
        await tab.page.evaluate(_REMOVE_NAVIGATION)
    found = await tab.find_axe_violations(within)
    return found + _describe_overflow("a desktop", too_wide)


def _describe_overflow(device: str, pixels: int) -> list[str]:
    return [f"{pixels} pixels too wide for {device}"] if pixels > 0 else []


async def _get_overflow(tab: Tab) -> int:
    pixels: int = await tab.page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return pixels


def _build_screenshot_name(path: str) -> str:
    return path.strip("/").replace("/", "-").replace("{", "").replace("}", "") or "root"
