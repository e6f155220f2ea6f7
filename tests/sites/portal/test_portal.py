"""The portal: who reaches it, sign-in, and the home page."""

import html
import re

import httpx2
import pytest

from builders.auth import PASSWORD
from builders.branding import build_png
from builders.kyc_documents import build_data_uri
from builders.payments import PosDriver
from cases import each
from drivers.console import ConsoleClient, ConsoleClients
from harness import PIN, BearerAuth, Harness


@pytest.fixture
async def pos(harness: Harness) -> PosDriver:
    return await PosDriver.create(harness)


@pytest.fixture
async def shop(harness: Harness, pos: PosDriver) -> str:
    return await harness.get_processor_id(pos.merchant_auth)


def get_redirect(response: httpx2.Response) -> tuple[int, str | None]:
    return response.status_code, response.headers.get("location")


async def open_portal(clients: ConsoleClients, user: BearerAuth) -> ConsoleClient:
    client = clients.create_signed_out()
    client.set_session(user)
    return client


@each("path", ["/console", "/console/transactions", "/console/account", "/console/nowhere"])
async def test_owner_user_is_redirected_from_the_console(
    harness: Harness, console_clients: ConsoleClients, shop: str, path: str
) -> None:
    client = await open_portal(console_clients, await harness.create_owner_user("M", shop))
    assert get_redirect(await client.get(path)) == (303, "/portal")


@each("path", ["/portal", "/portal/account", "/portal/nowhere"])
async def test_admin_is_redirected_from_the_portal(
    harness: Harness, console_clients: ConsoleClients, path: str
) -> None:
    client = await open_portal(console_clients, await harness.create_admin())
    assert get_redirect(await client.get(path)) == (303, "/console")


async def test_visitor_signs_in_and_reaches_the_portal(
    harness: Harness, console_clients: ConsoleClients, shop: str
) -> None:
    user = {"email": "musa@example.com", "name": "Musa", "password": PASSWORD}
    created = await harness.post(
        "/api/v1/admin/users",
        json={**user, "role": "merchant_manager", "owner_id": shop},
        auth=await harness.create_admin(),
    )
    assert created.status_code == 201, created.text
    client = console_clients.create_signed_out()
    client.site = client.referer = "/portal"
    assert get_redirect(await client.get("/portal")) == (303, "/portal/sign-in")
    assert get_redirect(await client.get("/portal/team")) == (
        303,
        "/portal/sign-in?to=%2Fportal%2Fteam",
    )
    response = await client.sign_in("musa@example.com", PASSWORD)
    assert get_redirect(response) == (303, "/portal")
    assert (await client.get("/portal")).status_code == 200


async def test_sign_in_page_says_who_resets_a_password(
    harness: Harness, console_clients: ConsoleClients
) -> None:
    """As `POST /admin/users/{id}/reset-password`, for which there is no form before sign-in."""
    branding = {"name": "Kamara Pay", "support_contact": "+232 76 123 456"}
    admin = await harness.create_admin()
    changed = await harness.put("/api/v1/admin/branding", json=branding, auth=admin)
    assert changed.status_code == 200, changed.text
    text = (await console_clients.create_signed_out().get("/portal/sign-in")).text
    assert "Only Kamara Pay can reset it" in text and 'href="tel:+23276123456"' in text


async def test_home_shows_the_owner_balance_and_payments(
    harness: Harness, console_clients: ConsoleClients, pos: PosDriver, shop: str
) -> None:
    other = await PosDriver.create(harness)
    assert (await pos.pay("100.00", pin=PIN)).status_code == 200
    assert (await other.pay("55.00", pin=PIN)).status_code == 200
    manager = await open_portal(console_clients, await harness.create_owner_user("M", shop))
    text = await manager.get_page_text("/portal")
    assert "Aminata K." in text
    assert "100.00" in text
    assert "55.00" not in text
    assert "Balance" in text
    cashier = await open_portal(console_clients, await harness.create_owner_user("K", shop))
    text = await cashier.get_page_text("/portal")
    assert "100.00" in text
    assert "Balance" not in text


async def test_user_manages_a_user_account_and_signs_out(
    harness: Harness, console_clients: ConsoleClients, shop: str
) -> None:
    client = await open_portal(console_clients, await harness.create_owner_user("M", shop))
    text = await client.get_page_text("/portal/account")
    assert "/portal/actions/account.password" in text
    form = await client.get_partial("/portal/actions/account.password")
    assert form.status_code == 200, form.text


async def test_portal_pages_and_files_have_no_path_of_the_console(
    harness: Harness, console_clients: ConsoleClients, shop: str
) -> None:
    """A proxy may publish `/portal` alone."""
    admin = await harness.create_admin()
    logo = build_data_uri(build_png())
    branding = {"name": "Kamara Pay", "color": "#123456", "logo": logo}
    changed = await harness.put("/api/v1/admin/branding", json=branding, auth=admin)
    assert changed.status_code == 200, changed.text
    client = await open_portal(console_clients, await harness.create_owner_user("M", shop))
    visitor = console_clients.create_signed_out()
    visitor.client.headers["Accept-Language"] = client.client.headers["Accept-Language"] = "fr"
    files = set[str]()
    for browser, path in (
        (visitor, "/portal/sign-in"),
        (visitor, "/portal/invitation"),
        (client, "/portal"),
        (client, "/portal/transactions"),
        (client, "/portal/account"),
        (client, "/portal/nowhere"),
    ):
        text = (await browser.get(path)).text
        assert re.findall(r"""["'(]/console[^"')]*""", text) == [], path
        files |= set(re.findall(r'(?:href|src)="(/portal/[^"?#]*\.[^"#]*)', text))
    names = {file.partition("?")[0] for file in files}
    assert {"/portal/brand.css", "/portal/logo.png", "/portal/texts/fr.js"} <= names
    for file in files:
        response = await visitor.get(html.unescape(file))
        assert response.status_code == 200 and "/console" not in response.text, file


async def test_invitation_leads_to_the_portal(
    harness: Harness, console_clients: ConsoleClients, shop: str
) -> None:
    user = {"email": "fatu@example.com", "name": "Fatu", "role": "merchant_cashier"}
    invited = await harness.post(
        "/api/v1/admin/users", json={**user, "owner_id": shop}, auth=await harness.create_admin()
    )
    path, _, token = invited.json()["invitation"]["url"].removeprefix("http://").partition("#")
    assert path.partition("/")[2] == "portal/invitation"
    client = console_clients.create_signed_out()
    client.site = client.referer = "/portal"
    form = {"token": token, "password": PASSWORD}
    accepted = await client.post_without_csrf("/portal/invitation", form)
    assert get_redirect(accepted) == (303, "/portal/sign-in")
    assert get_redirect(await client.sign_in("fatu@example.com", PASSWORD)) == (303, "/portal")
