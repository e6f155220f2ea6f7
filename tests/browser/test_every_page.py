"""Every page and every form, at the width of a desk and of a phone, in light and in dark: it opens,
nobody is kept out by how it is built, nothing hangs over its edge.

With a folder in TAPGATE_PICTURES each is also photographed, to be looked at: `make pictures`.
"""

import re
from itertools import chain
from typing import Final

import pytest
from playwright.async_api import Browser, ViewportSize

from browser import chromium
from browser.chromium import DESKTOP, PHONE, Scheme, Tab
from gateway.running import ADMIN
from journeys.caller import done
from journeys.platform import Platform
from journeys.staff import Admin
from tapgate.console.console import ACTS, PAGES
from tapgate.simulators.simulators import PAGES as SIMULATORS

#: Pages of one thing -> the list that such a thing is taken from.
_LISTS: Final = {
    "/console/subscribers/{id}": "subscribers",
    "/console/cards/{serial}": "cards",
    "/console/transactions/{id}": "transactions",
    "/console/agents/{id}": "agents",
    "/console/processors/{id}": "processors",
    "/console/processors/{id}/keys": "processors",
    "/console/processors/{id}/terminals": "processors",
    "/console/partners/{id}": "admin/partners",
    "/console/compliance/alerts/{id}": "compliance/alerts",
    "/console/webhooks/{id}": "admin/webhook-endpoints",
}
#: What pages ask for, and is no page itself; and the one for who is not signed in.
_PARTS: Final = {
    "/console/audit/verify",
    "/console/limits/fees/{type}",
    "/console/sign-in",
    "/console/subscribers/{id}/documents/{document_id}",
    "/console/transactions/export",
    "/simulator/phone/form-key",
    "/simulator/phone/messages",
    "/simulator/phone/people",
    "/simulator/pos/cards",
}

_DECLARED: Final = sorted(
    {page.path for page in chain.from_iterable([*PAGES, *SIMULATORS]) if page.method == "GET"}
    - _PARTS
)
_NAME: Final = re.compile(r"{(\w+)}")
_SIZES: Final[dict[str, ViewportSize]] = {"desktop": DESKTOP, "phone": PHONE}
#: The schemes that a page is looked at in, and by which rule: another one can make nothing worse
#: but contrasts.
_SCHEMES: Final[dict[Scheme, str | None]] = {"light": None, "dark": "color-contrast"}


@pytest.fixture(scope="session")
async def addresses(platform: Platform, ada: Admin) -> dict[str, str]:
    """Where each page is found in the demo."""
    await ada.post("admin/webhook-endpoints", url="http://127.0.0.1:9/hook", events=["*"])
    found = {}
    for path in _DECLARED:
        name = _NAME.search(path)
        found[path] = path
        if name is not None:
            listed = done(await ada.get(_LISTS[path], limit=1))["data"]
            found[path] = path.replace(name[0], listed[0][name[1]])
    return found


@pytest.mark.parametrize("size", _SIZES)
async def test_every_page(
    browser: Browser, platform: Platform, addresses: dict[str, str], size: str
) -> None:
    address = str(platform.client.base_url)
    findings: dict[str, list[str]] = {}
    async with chromium.tab(browser, address, _SIZES[size]) as tab:
        await tab.open("/console/sign-in")
        findings["sign-in"] = await _seen_in_both(tab, f"sign-in-{size}")
        await tab.sign_in(ADMIN["email"], ADMIN["password"])
        for path, where in addresses.items():
            await tab.open(where)
            findings[path] = await _seen_in_both(tab, f"{_named(path)}-{size}")
    assert {path: found for path, found in findings.items() if found} == {}


async def test_every_form(tab: Tab, ada: Admin) -> None:
    """In the dialog that it is shown in; where values are there already, on a page that has it."""
    person = done(await ada.get("subscribers", limit=1))["data"][0]["id"]
    dialog = tab.page.get_by_role("dialog")
    findings: dict[str, list[str]] = {}
    await tab.open("/console/subscribers")
    for act in ACTS:
        if act.reads is not None and "subscribers" not in act.reads:
            continue
        await tab.page.evaluate(
            "address => htmx.ajax('GET', address, '#dialog-body')",
            f"/console/acts/{act.name}?id={person}",
        )
        await dialog.get_by_role("heading", name=act.title).wait_for()
        findings[act.name] = await _looked_at(tab, f"form-{act.name}", within="#dialog")
        await dialog.evaluate("dialog => dialog.close()")
    assert len(findings) > 30
    assert {name: found for name, found in findings.items() if found} == {}


async def _seen_in_both(tab: Tab, name: str) -> list[str]:
    findings = []
    for scheme, rule in _SCHEMES.items():
        await tab.page.emulate_media(color_scheme=scheme)
        findings += await _looked_at(tab, f"{name}-{scheme}", rule)
    return findings


async def _looked_at(
    tab: Tab, name: str, rule: str | None = None, within: str = "html"
) -> list[str]:
    await tab.picture(name)
    too_wide = await tab.page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    found = await tab.grave_findings(rule, within)
    return [*found, f"{too_wide} pixels too wide"] if too_wide > 0 else found


def _named(path: str) -> str:
    return path.strip("/").replace("/", "-").replace("{", "").replace("}", "") or "root"
