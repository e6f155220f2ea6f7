"""Availability of the simulators by environment and session."""

import httpx2
import msgspec
import pytest

from drivers.in_process import AppTransport
from harness import Harness
from tapgate import gateway
from tapgate.api.app import App
from tapgate.api.services import Services
from tapgate.cli import start
from tapgate.sandbox.gateway import create_app
from tapgate.settings import SettingsError


def set_environment(services: Services, environment: str) -> None:
    services.settings = msgspec.structs.replace(services.settings, environment=environment)


def build_client(app: App) -> httpx2.AsyncClient:
    transport = AppTransport(app)
    return httpx2.AsyncClient(transport=transport, base_url="http://gateway")


@pytest.mark.parametrize("path", ["/simulator", "/simulator/pos", "/simulator/assets/pos.js"])
@pytest.mark.parametrize("environment", ["production", "staging"])
async def test_simulators_are_not_served_in_production_or_staging(
    services: Services, environment: str, path: str
) -> None:
    set_environment(services, environment)
    assert start._build_gateway_service(services.settings).module == "tapgate.gateway"
    async with build_client(gateway.create_app(services)) as client:
        assert (await client.get(path)).status_code == 404
    with pytest.raises(SettingsError, match=f"no simulators in {environment}"):
        create_app(services)


@pytest.mark.parametrize("environment", ["development", "testing"])
async def test_anonymous_visitor_is_redirected_to_sign_in(
    services: Services, environment: str
) -> None:
    set_environment(services, environment)
    assert start._build_gateway_service(services.settings).module == "tapgate.sandbox.gateway"
    async with build_client(create_app(services)) as client:
        for path in ("/simulator", "/simulator/pos"):
            response = await client.get(path)
            assert response.status_code == 303
            assert response.headers["Location"].startswith("/console/sign-in?to=")


async def test_index_page_links_to_both_simulators(harness: Harness) -> None:
    harness.client.cookies["tapgate_session"] = (await harness.create_admin("S"))._credential
    response = await harness.client.get("/simulator")
    assert response.status_code == 200
    assert 'href="/simulator/pos"' in response.text
    assert 'href="/simulator/phone"' in response.text
