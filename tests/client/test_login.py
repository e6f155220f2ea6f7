"""Automatic login and token renewal of an admin client."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from admin.builders import EMAIL, PASSWORD
from client.builders import NO_BACKOFF, ClientFactory
from client.flaky_server import SERVE_AND_DROP, FlakyServer
from tapgate.admin import operations
from tapgate.client import AsyncTapgateClient, Login, exceptions

LOGIN = Login(EMAIL, PASSWORD)


@pytest.fixture
async def unsteady(stage: ClientFactory) -> AsyncIterator[FlakyServer]:
    await operations.create_first_admin(stage.services, email=EMAIL, password=PASSWORD)
    async with FlakyServer(stage.transport).listen() as unsteady:
        yield unsteady


@pytest.fixture
async def gateway(unsteady: FlakyServer) -> AsyncIterator[AsyncTapgateClient]:
    async with AsyncTapgateClient(unsteady.url, LOGIN, retries=NO_BACKOFF) as gateway:
        yield gateway


def list_requests(unsteady: FlakyServer) -> list[str]:
    return [seen.target.rpartition("/")[2] for seen in unsteady.requests]


async def test_concurrent_first_requests_log_in_once(
    gateway: AsyncTapgateClient, unsteady: FlakyServer
) -> None:
    first, *others = await asyncio.gather(*(gateway.admin.get_current_user() for _ in range(5)))
    assert first.email == EMAIL
    assert others == [first] * 4
    assert list_requests(unsteady) == ["login"] + ["me"] * 5


async def test_public_operation_needs_no_login(
    gateway: AsyncTapgateClient, unsteady: FlakyServer
) -> None:
    assert (await gateway.health()).healthy
    assert list_requests(unsteady) == ["health"]


async def test_client_logs_in_again_after_the_session_ended(
    gateway: AsyncTapgateClient, unsteady: FlakyServer
) -> None:
    await gateway.admin.logout()
    assert (await gateway.admin.get_current_user()).email == EMAIL
    # The refresh token belongs to the session that ended.
    assert list_requests(unsteady) == ["login", "logout", "me", "refresh", "login", "me"]


async def test_expiring_token_is_refreshed_once(
    gateway: AsyncTapgateClient, unsteady: FlakyServer
) -> None:
    await gateway.admin.get_current_user()
    gateway._own_transport._request_flow._token_expires_at = 0.0
    await asyncio.gather(*(gateway.admin.get_current_user() for _ in range(5)))
    assert list_requests(unsteady).count("refresh") == 1
    assert list_requests(unsteady).count("login") == 1


async def test_refresh_token_is_never_sent_twice(
    gateway: AsyncTapgateClient, unsteady: FlakyServer
) -> None:
    await gateway.admin.get_current_user()
    gateway._own_transport._request_flow._token_expires_at = 0.0
    unsteady.behaviors = [SERVE_AND_DROP]
    await gateway.admin.get_current_user()
    assert list_requests(unsteady) == ["login", "me", "refresh", "login", "me"]


async def test_wrong_password_raises_unauthorized(unsteady: FlakyServer) -> None:
    wrong = Login(EMAIL, "wrong horse battery")
    async with AsyncTapgateClient(unsteady.url, wrong, retries=NO_BACKOFF) as gateway:
        with pytest.raises(exceptions.UnauthorizedError):
            await gateway.admin.get_current_user()
    assert list_requests(unsteady) == ["login"]


async def test_disabled_admin_gets_unauthorized(
    stage: ClientFactory, gateway: AsyncTapgateClient, unsteady: FlakyServer
) -> None:
    other = await stage.create_for_admin()
    me = await gateway.admin.get_current_user()
    await other.admin.disable_user(me.id)
    with pytest.raises(exceptions.UnauthorizedError):
        await gateway.admin.get_current_user()


async def test_concurrent_threads_log_in_once(stage: ClientFactory, unsteady: FlakyServer) -> None:
    with stage.create_sync(LOGIN) as gateway:
        answers = await asyncio.gather(
            *(asyncio.to_thread(gateway.admin.get_current_user) for _ in range(4))
        )
    assert {answer.email for answer in answers} == {EMAIL}
    sessions = await stage.services.database.fetchval("SELECT count(*) FROM sessions")
    assert sessions == 1
