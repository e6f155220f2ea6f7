"""POS simulator pages, and access to the simulators by environment and session."""

import re
from importlib.resources import files

import httpx2
import pytest

from builders.card_proofs import create_signing_card
from cases import each
from drivers.console import ConsoleClient, ConsoleClients
from drivers.in_process import AppTransport
from harness import Harness
from tapgate.business.merchants.pos.routes import pos_endpoints
from tapgate.cli import start
from tapgate.core.settings.declaration import SettingsError
from tapgate.http.api.app import App
from tapgate.http.api.services import Services
from tapgate.server import gateway
from tapgate_client.errors import Code
from tapgate_sandbox.demo import examples
from tapgate_sandbox.gateway import create_app

XSS_PAYLOAD = "<script>alert(1)</script>"


async def create_terminal(ada: ConsoleClient) -> dict[str, str]:
    """Create a terminal and return its ID and its processor's ID as shown on the page."""
    await ada.post_form("/simulator/pos/terminals")
    page = await ada.get_page_text("/simulator/pos")
    found = re.search(r'<option value="(ter_\w+)" data-processor="(\w+)"', page)
    assert found is not None, page
    return {"terminal_id": found[1], "processor_id": found[2]}


@pytest.mark.parametrize("role", "CSF")
async def test_role_that_cannot_create_keys_gets_403_with_the_allowed_roles(
    console_clients: ConsoleClients, role: str
) -> None:
    console = await console_clients.create_signed_in(role)
    response = await console.get("/simulator/pos")
    assert response.status_code == 403
    assert "Available to: System admin" in response.text
    for path in ("/simulator/pos/keys", "/simulator/pos/terminals", "/simulator/pos/keys/delete"):
        response = await console.post_form(path, {"processor_id": "prc_00000000000000"})
        assert response.status_code == 403, path


async def test_terminal_can_be_created_on_a_new_installation(ada: ConsoleClient) -> None:
    assert "No terminals yet" in await ada.get_page_text("/simulator/pos")
    await create_terminal(ada)
    page = await ada.get_page_text("/simulator/pos")
    assert "Simulator, Till 1" in page
    assert "Create a test terminal" not in page


async def test_key_is_created_shown_once_and_deleted(ada: ConsoleClient, harness: Harness) -> None:
    form = await create_terminal(ada)
    created = (await ada.post_form("/simulator/pos/keys", form)).json()
    assert created["hmac_secret"] not in await ada.get_page_text("/simulator/pos")
    keys_url = f"/api/v1/processors/{form['processor_id']}/keys"
    admin = await harness.create_admin()

    async def list_key_ids() -> list[str]:
        keys = (await harness.get(keys_url, auth=admin)).json()["data"]
        return [key["api_key_id"] for key in keys]

    assert created["api_key_id"] in await list_key_ids()
    delete_form = form | {"api_key_id": created["api_key_id"]}
    assert (await ada.post_form("/simulator/pos/keys/delete", delete_form)).status_code == 200
    assert created["api_key_id"] not in await list_key_ids()


async def test_key_actions_require_the_csrf_token_of_the_session(ada: ConsoleClient) -> None:
    form = await create_terminal(ada)
    for path in ("/simulator/pos/keys", "/simulator/pos/keys/delete", "/simulator/pos/terminals"):
        assert (await ada.post_without_csrf(path, form)).status_code == 403, path
        forged = await ada.post_without_csrf(path, {**form, "csrf": "0" * 64})
        assert forged.status_code == 403, path


@each("form", [{}, {"processor_id": "../admin/users"}, {"terminal_id": "x"}])
async def test_unknown_processor_or_terminal_is_rejected(
    ada: ConsoleClient, form: dict[str, str]
) -> None:
    for path in ("/simulator/pos/keys", "/simulator/pos/keys/delete"):
        assert (await ada.post_form(path, form)).status_code in (400, 404, 422), path


async def test_merchant_names_are_escaped(ada: ConsoleClient, harness: Harness) -> None:
    admin = await harness.create_admin()
    merchant = {"name": "Shop", "phone_number": "+23276000001", "email": "shop@example.com"}
    created = (await harness.post("/api/v1/processors", json=merchant, auth=admin)).json()
    await harness.database.execute(
        "UPDATE accounts SET holder_name = $1, public_name = $1 WHERE kind = 'settlement'",
        XSS_PAYLOAD,
    )
    path = f"/api/v1/processors/{created['processor_id']}/terminals"
    await harness.post(path, json={"name": '"><b>Till'}, auth=admin)
    response = await ada.get("/simulator/pos")
    assert XSS_PAYLOAD not in response.text
    assert "<b>Till" not in response.text
    assert "&lt;script&gt;" in response.text


async def test_cards_are_found_by_number_and_by_holder(
    ada: ConsoleClient, harness: Harness
) -> None:
    found = (await ada.get("/simulator/pos/cards?search=nobody")).json()
    assert found == []
    person = await harness.create_subscriber(first_name="Isatu", last_name="Bangura")
    serial = await harness.create_card(person["id"])
    for search in (serial, serial.lower(), "isatu", "Bangura"):
        found = (await ada.get(f"/simulator/pos/cards?search={search}")).json()
        assert [card["serial"] for card in found] == [serial], search
        assert found[0]["holder_name"] == "Isatu Bangura"
    assert (await ada.get("/simulator/pos/cards")).json()[0]["serial"] == serial


@each("search", ["%00", "x" * 5000, "%FF", "%20"])
async def test_unusual_search_terms_cause_no_server_error(ada: ConsoleClient, search: str) -> None:
    assert (await ada.get(f"/simulator/pos/cards?search={search}")).status_code < 500


async def test_demo_pin_is_shown_in_development_only(
    console_clients: ConsoleClients, services: Services
) -> None:
    example_line = "  # Aminata Kamara: phone +23225000001, card DEMO-000001, PIN 4826"
    examples.save_examples(services.settings.data_dir, [example_line])
    ada = await console_clients.create_signed_in("A")
    await create_terminal(ada)
    page = await ada.get_page_text("/simulator/pos")
    # Match whole words only, because random values of the session may contain these digits.
    pin = re.compile(r"\b4826\b")
    assert pin.search(page) and 'data-example="DEMO-000001"' in page
    services.settings = services.settings.replace(environment="testing")
    assert not pin.search(await ada.get_page_text("/simulator/pos"))


async def test_chip_keys_are_available_in_development_and_to_system_admins_only(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    holder = await harness.create_subscriber()
    serial = await harness.create_card(holder["id"])
    form, path = {"serial": serial}, "/simulator/pos/chip"
    ada, support = [await console_clients.create_signed_in(role) for role in "AS"]
    assert (await ada.post_partial(path, form)).status_code == 404, "the card does not sign"
    await create_signing_card(harness, serial)
    chip = (await ada.post_partial(path, form)).json()
    assert (len(chip["meta_read_key"]), len(chip["file_read_key"])) == (32, 32)
    assert chip["counter"] == 1
    assert (await support.post_partial(path, form)).status_code == 403
    set_environment(harness.services, "testing")
    assert (await ada.post_partial(path, form)).status_code == 404


def test_every_error_code_of_the_pos_endpoints_has_a_message() -> None:
    script = (files("tapgate_sandbox.simulators") / "assets" / "error-texts.js").read_text()
    described = set(re.findall(r"^  ([A-Z_]+): translate\(\"", script, re.MULTILINE))
    assert described <= {code.value for code in Code}
    declared = {code.value for endpoint in pos_endpoints for code in endpoint.errors}
    assert declared <= described


def set_environment(services: Services, environment: str) -> None:
    services.settings = services.settings.replace(environment=environment)


def build_client(app: App) -> httpx2.AsyncClient:
    transport = AppTransport(app)
    return httpx2.AsyncClient(transport=transport, base_url="http://gateway")


@pytest.mark.parametrize("path", ["/simulator", "/simulator/pos", "/simulator/assets/pos.js"])
@pytest.mark.parametrize("environment", ["production", "staging"])
async def test_simulators_are_not_served_in_production_or_staging(
    services: Services, environment: str, path: str
) -> None:
    set_environment(services, environment)
    assert start.build_gateway_services(services.settings)[0].module == "tapgate.server.gateway"
    async with build_client(gateway.create_app(services)) as client:
        assert (await client.get(path)).status_code == 404
    with pytest.raises(SettingsError, match=f"no simulators in {environment}"):
        create_app(services)


@pytest.mark.parametrize("environment", ["development", "testing"])
async def test_anonymous_visitor_is_redirected_to_sign_in(
    services: Services, environment: str
) -> None:
    set_environment(services, environment)
    assert start.build_gateway_services(services.settings)[0].module == "tapgate_sandbox.gateway"
    async with build_client(create_app(services)) as client:
        for path in ("/simulator", "/simulator/pos"):
            response = await client.get(path)
            assert response.status_code == 303
            assert response.headers["Location"].startswith("/console/sign-in?to=")


async def test_index_page_links_to_both_simulators(harness: Harness) -> None:
    harness.client.cookies["tapgate_session"] = (await harness.create_admin("S")).credential
    response = await harness.get("/simulator")
    assert response.status_code == 200
    assert 'href="/simulator/pos"' in response.text
    assert 'href="/simulator/phone"' in response.text
