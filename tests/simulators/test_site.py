"""Where the simulators are, and for whom."""

import httpx2
import msgspec
import pytest

from harness import Harness
from tapgate.edge.services import Services
from tapgate.gateway import create_app


def build_client(services: Services, environment: str) -> httpx2.AsyncClient:
    settings = msgspec.structs.replace(services.settings, environment=environment)
    services.settings = settings
    transport = httpx2.ASGITransport(app=create_app(services), raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://gateway")


@pytest.mark.parametrize("path", ["/simulator", "/simulator/pos", "/simulator/assets/pos.js"])
@pytest.mark.parametrize("environment", ["production", "staging"])
async def test_there_are_none_where_money_is_real(
    services: Services, environment: str, path: str
) -> None:
    async with build_client(services, environment) as client:
        assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize("environment", ["development", "testing"])
async def test_a_stranger_signs_in_first(services: Services, environment: str) -> None:
    async with build_client(services, environment) as client:
        for path in ("/simulator", "/simulator/pos"):
            answer = await client.get(path)
            assert answer.status_code == 303
            assert answer.headers["Location"].startswith("/console/sign-in?to=")


async def test_the_first_page_leads_to_both(world: Harness) -> None:
    world.client.cookies["tapgate_session"] = (await world.create_admin("S"))._credential
    answer = await world.client.get("/simulator")
    assert answer.status_code == 200
    assert 'href="/simulator/pos"' in answer.text
    assert 'href="/simulator/phone"' in answer.text
