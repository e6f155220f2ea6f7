"""A development start's sign-in link works once, for minutes, and not with a second factor."""

import pytest

from drivers.console import ConsoleClient, ConsoleClients
from drivers.in_process import AppTransport
from harness import Harness
from tapgate.cli import start
from tapgate.core.settings.nodes import Environment
from tapgate.http.api.services import Services
from tapgate.server.gateway_installation import get_first_admin_path
from tapgate_sandbox import sign_in_link
from tapgate_sandbox.gateway import create_app


@pytest.fixture
def visitor(harness: Harness) -> ConsoleClient:
    clients = ConsoleClients(harness, AppTransport(create_app(harness.services)))
    return clients.create_signed_out()


async def create_token(services: Services) -> str:
    url = await sign_in_link.create_link(services.settings, services.database)
    page, _, token = url.partition("#")
    assert page == f"{services.settings.public_url}/simulator/sign-in"
    return token


async def use(visitor: ConsoleClient, token: str) -> int:
    response = await visitor.post_without_csrf("/simulator/sign-in", {"token": token})
    assert token not in response.text
    return response.status_code


async def test_link_signs_the_first_admin_in_once(
    harness: Harness, services: Services, visitor: ConsoleClient
) -> None:
    first, _ = await harness.create_admin(), await harness.create_admin()
    assert "Sign in as first administrator" in await visitor.get_page_text("/simulator/sign-in")
    token = await create_token(services)
    assert await use(visitor, "wrong") == 400
    assert await use(visitor, token) == 303
    assert "Home" in await visitor.get_page_text("/console")
    (entry,) = await harness.list_audit_entries(first.id, "admin.login")
    assert entry["actor"]["id"] == first.id
    assert await use(visitor, token) == 400
    stored = await services.database.fetch("SELECT value FROM installation")
    assert token not in str(stored)


async def test_new_link_replaces_the_earlier_one(
    harness: Harness, services: Services, visitor: ConsoleClient
) -> None:
    await harness.create_admin()
    earlier = await create_token(services)
    await create_token(services)
    assert await use(visitor, earlier) == 400


async def test_link_expires(
    harness: Harness,
    services: Services,
    visitor: ConsoleClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await harness.create_admin()
    monkeypatch.setattr(sign_in_link, "LIFETIME", -sign_in_link.LIFETIME)
    assert await use(visitor, await create_token(services)) == 400


async def test_link_works_in_development_only_and_without_second_factor(
    harness: Harness,
    services: Services,
    visitor: ConsoleClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await harness.create_admin()
    token = await create_token(services)
    development = services.settings
    services.settings = development.replace(environment=Environment.TESTING)
    assert await use(visitor, token) == 400
    services.settings = development

    async def list_enrolled(admin_id: int) -> list[str]:
        return ["totp"]

    monkeypatch.setattr(services.authenticator.factors, "list_enrolled", list_enrolled)
    assert await use(visitor, token) == 400


def test_password_is_printed_once_and_only_on_a_terminal(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = get_first_admin_path(services.settings.data_dir)
    assert start.list_credential_hints(path, is_new=True) == []
    path.write_text("ada@example.com\nsecret words\n")
    path.chmod(0o600)

    def is_printed(*, is_new: bool, terminal: bool) -> bool:
        monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
        return "secret words" in str(start.list_credential_hints(path, is_new=is_new))

    assert is_printed(is_new=True, terminal=True)
    assert not is_printed(is_new=False, terminal=True)
    assert not is_printed(is_new=True, terminal=False)
