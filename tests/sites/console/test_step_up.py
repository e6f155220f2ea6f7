"""The prompt for a second factor, in a sensitive action's form."""

import html
import json
import re
from importlib.resources import files
from itertools import chain
from pathlib import Path
from urllib.parse import urlencode

import pytest

from builders.auth import EMAIL, PASSWORD, enroll_app
from builders.participants import create_card
from builders.passkeys import Passkey, build_passkey
from drivers.console import ConsoleClient
from harness import Harness
from tapgate.http.api.services import Services
from tapgate.server.gateway import list_endpoints
from tapgate.server.gateway_installation import create_first_admin
from tapgate.sites.console import console as console_site
from tapgate.sites.console.console import ACTIONS
from tapgate_sandbox.simulators import site as simulator_site

ACTION = "api_key.create"
FORM = {"name": "Card reports", "scopes": ["cards:read"]}


@pytest.fixture
async def admin_id(services: Services) -> int:
    await create_first_admin(services, EMAIL, PASSWORD)
    number: int = await services.database.fetchval("SELECT id FROM admins")
    return number


@pytest.fixture
async def console(signed_out_client: ConsoleClient, admin_id: int) -> ConsoleClient:
    await signed_out_client.sign_in(EMAIL, PASSWORD)
    return signed_out_client


async def count_keys(services: Services) -> int:
    count: int = await services.database.fetchval("SELECT count(*) FROM api_keys")
    return count


async def add_passkey(console: ConsoleClient) -> Passkey:
    """Enroll a passkey in the console, as the first factor."""
    started = await console.submit_action(
        "account.start_first_passkey", {"current_password": PASSWORD}
    )
    match = re.search(r"data-passkey-create='([^']+)'", started.text)
    assert match is not None, started.text
    passkey = build_passkey()
    credential = json.dumps(passkey.create(json.loads(html.unescape(match[1]))))
    form = {"name": "Work laptop", "credential": credential}
    added = await console.post_partial("/console/actions/account.add_passkey", form)
    assert "Save these recovery codes" in added.text
    return passkey


async def prove(console: ConsoleClient, passkey: Passkey) -> str:
    response = await console.post_without_csrf("/console/passkey-options")
    return json.dumps(passkey.get(response.json()))


async def expire_factors(services: Services) -> None:
    await services.database.execute("UPDATE sessions SET factor_at = NULL")
    async with services.transaction() as tx:
        await services.authenticator.sessions.publish_change(tx)


async def test_sensitive_action_asks_for_a_code_in_its_form(
    console: ConsoleClient, services: Services, admin_id: int
) -> None:
    app = await enroll_app(services, admin_id)
    prompt = await console.submit_action(ACTION, FORM)
    assert prompt.headers["HX-Retarget"] == "find [data-step-up]"
    assert "Verify your identity" in prompt.text
    assert 'name="step_up_code"' in prompt.text
    assert "Use a passkey" not in prompt.text
    assert "Card reports" not in prompt.text, "the form stays in the page"

    wrong = await console.submit_action(ACTION, {**FORM, "step_up_code": "000000"})
    assert wrong.headers["HX-Retarget"] == "find [data-step-up]"
    assert "The code is wrong" in wrong.text
    assert await count_keys(services) == 0
    code = app.at(services.clock())
    created = await console.submit_action(ACTION, {**FORM, "step_up_code": code})
    assert "svc_test_" in created.text
    again = await console.submit_action(ACTION, FORM)
    assert "svc_test_" in again.text, "the factor is valid for 15 minutes"


async def test_sensitive_action_asks_for_a_passkey_in_its_form(
    console: ConsoleClient, services: Services
) -> None:
    passkey = await add_passkey(console)
    await expire_factors(services)
    prompt = await console.submit_action(ACTION, FORM)
    assert "Use a passkey" in prompt.text
    assert "Use a recovery code" in prompt.text
    for wrong in ("{}", "[", "no JSON", '{"id": 5}'):
        response = await console.submit_action(ACTION, {**FORM, "step_up_passkey": wrong})
        assert "was not accepted" in response.text, wrong
    assert await count_keys(services) == 0
    proof = await prove(console, passkey)
    created = await console.submit_action(ACTION, {**FORM, "step_up_passkey": proof})
    assert "svc_test_" in created.text


#: Pages with forms, except actions: what the form submits if it can need a factor, or None.
FORM_PAGES: dict[str, dict[str, str] | None] = {
    "/console/approvals/rules": {"roles_agent_fund": "finance_user"},
    "/console/cards/{serial}/personalize": {"keyset_id": "cks_1"},
    "/console/limits/commission": {},
    "/console/limits/fees/{type}": {"rate_last": "1", "payer": "sender"},
    "/simulator/pos/keys": {"processor_id": "prc_1", "terminal_id": "trm_1"},
    "/simulator/pos/terminals": {},
    # Public pages:
    "/console/invitation": None,
    "/console/passkey-options": None,
    "/console/sign-in": None,
    "/console/sign-in/passkey": None,
    "/console/sso/callback": None,
    "/simulator/sign-in": None,
    # No sensitive action:
    "/console/bank-statements/import": None,
    "/console/batches/{id}/lines": None,
    "/console/cards/upload": None,
    "/console/ledger/gl-codes": None,
    "/console/sign-out": None,
    "/simulator/pos/chip": None,
    "/simulator/pos/keys/delete": None,
    "/stage/call": None,
}
#: Templates for forms that need no prompt, because their endpoints are public or not sensitive.
FORMS_WITHOUT_PROMPT = {
    "bank_statements/import.html",
    "batches/batch.html",  # upload
    "cards/upload.html",
    "invitation.html",
    "layout.html",  # sign out
    "sign_in.html",
    "sign_in_link.html",
    "single_sign_on.html",
    "support/request.html",  # reply
}
SENSITIVE_ACTIONS = [
    action
    for action in ACTIONS
    if next(item for item in list_endpoints() if item.name == action.endpoint).step_up is True
]


def list_form_pages() -> list[str]:
    routes = chain.from_iterable([*console_site.PAGES, *simulator_site.PAGES])
    return [route.path for route in routes if route.method == "POST"]


def test_every_page_with_a_form_is_listed() -> None:
    pages = [path for path in list_form_pages() if not path.startswith("/simulator/phone/")]
    assert sorted(pages) == sorted(FORM_PAGES)


def test_every_form_has_a_place_for_the_prompt() -> None:
    missing = set()
    for package in ("tapgate.sites.console", "tapgate_sandbox.simulators"):
        folder = Path(str(files(package))) / "templates"
        for template in folder.rglob("*.html"):
            forms = re.findall(r'<form[^>]*method="post".*?</form>', template.read_text(), re.S)
            if not all("hx-post=" in form and "data-step-up" in form for form in forms):
                missing.add(str(template.relative_to(folder)))
    assert missing == FORMS_WITHOUT_PROMPT


@pytest.mark.parametrize(
    ("path", "form"), [(path, form) for path, form in FORM_PAGES.items() if form is not None]
)
async def test_form_of_a_page_shows_the_prompt(
    console: ConsoleClient,
    harness: Harness,
    services: Services,
    admin_id: int,
    path: str,
    form: dict[str, str],
) -> None:
    await enroll_app(services, admin_id)
    serial = await create_card(harness)
    address = path.replace("{serial}", serial).replace("{type}", "transfer_p2p")
    page = await console.get_partial(address)
    seen = re.search(r'name="seen" value="([^"]*)"', page.text)
    prompt = await console.post_partial(address, {**form, "seen": seen[1]} if seen else form)
    assert prompt.headers.get("HX-Retarget") == "find [data-step-up]", prompt.text
    assert "Verify your identity" in prompt.text


async def test_every_sensitive_action_shows_the_prompt(
    console: ConsoleClient, services: Services, admin_id: int
) -> None:
    await enroll_app(services, admin_id)
    assert len(SENSITIVE_ACTIONS) > 20
    for action in SENSITIVE_ACTIONS:
        if action.prefill_path is not None:
            continue  # the form first reads the record
        names = re.findall(r"{(\w+)}", action.path)
        query = urlencode(dict.fromkeys(names, "none"))
        prompt = await console.post_partial(f"/console/actions/{action.name}?{query}", {})
        assert "Verify your identity" in prompt.text, action.name


async def test_passkey_signs_in_to_the_console(console: ConsoleClient, services: Services) -> None:
    passkey = await add_passkey(console)
    page = await console.get_page_text("/console/account")
    assert "Work laptop" in page
    await console.post_form("/console/sign-out")
    asked = await console.sign_in(EMAIL, PASSWORD)
    assert (asked.status_code, "Sign in with a passkey" in asked.text) == (403, True)
    assert "authenticator app" not in asked.text
    assert "Use a recovery code" in asked.text

    path = "/console/sign-in/passkey?to=%2Fconsole%2Faccount"
    for wrong in ("", "{}", "no JSON"):
        rejected = await console.post_without_csrf(path, {"credential": wrong})
        assert "The passkey was not accepted" in rejected.text
        assert rejected.status_code in (400, 401, 422)
    form = {"credential": await prove(console, passkey)}
    signed_in = await console.post_without_csrf(path, form)
    assert (signed_in.status_code, signed_in.headers["Location"]) == (303, "/console/account")
    replayed = await console.post_without_csrf(path, form)
    assert replayed.status_code == 401
    sessions = await services.database.fetch(
        "SELECT is_console, factor_at FROM sessions WHERE ended_at IS NULL"
    )
    assert [(row["is_console"], row["factor_at"] is not None) for row in sessions] == [(True, True)]


async def test_recovery_code_signs_in_and_verifies_without_the_passkey(
    console: ConsoleClient, services: Services
) -> None:
    await add_passkey(console)
    created = await console.submit_action("account.recovery_codes")
    codes = re.findall(r"\b[0-9a-z]{5}-[0-9a-z]{5}\b", created.text)
    assert len(set(codes)) == 10
    await console.post_form("/console/sign-out")
    asked = await console.sign_in(EMAIL, PASSWORD)
    pending = re.search(r'name="pending" value="([^"]+)"', asked.text)
    assert pending is not None
    form = {"pending": pending[1], "otp": codes[0]}
    assert (await console.post_without_csrf("/console/sign-in", form)).status_code == 303
    await expire_factors(services)
    used = await console.submit_action(ACTION, {**FORM, "step_up_code": codes[0]})
    assert "The code is wrong" in used.text
    created = await console.submit_action(ACTION, {**FORM, "step_up_code": codes[1]})
    assert "svc_test_" in created.text


async def test_passkey_form_of_another_site_is_rejected(
    console: ConsoleClient, services: Services
) -> None:
    passkey = await add_passkey(console)
    form = {"credential": await prove(console, passkey)}
    headers = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    response = await console.client.post("/console/sign-in/passkey", data=form, headers=headers)
    assert response.status_code == 403
