"""An admin who stays logged in."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from admin.stage import EMAIL, PASSWORD
from client.stage import AT_ONCE, Stage
from client.unsteady import ACT_AND_DROP, Unsteady
from tapgate.admin import operations
from tapgate.client import AsyncTapgateClient, Login, exceptions

LOGIN = Login(EMAIL, PASSWORD)


@pytest.fixture
async def unsteady(stage: Stage) -> AsyncIterator[Unsteady]:
    await operations.create_first_admin(stage.services, email=EMAIL, password=PASSWORD)
    async with Unsteady(stage.transport).listening() as unsteady:
        yield unsteady


@pytest.fixture
async def gateway(unsteady: Unsteady) -> AsyncIterator[AsyncTapgateClient]:
    async with AsyncTapgateClient(unsteady.url, LOGIN, retries=AT_ONCE) as gateway:
        yield gateway


def asked(unsteady: Unsteady) -> list[str]:
    return [seen.target.rpartition("/")[2] for seen in unsteady.seen]


async def test_logged_in_when_first_needed_and_once(
    gateway: AsyncTapgateClient, unsteady: Unsteady
) -> None:
    first, *others = await asyncio.gather(*(gateway.admin.get_current_user() for _ in range(5)))
    assert first.email == EMAIL
    assert others == [first] * 4
    assert asked(unsteady) == ["login"] + ["me"] * 5


async def test_what_is_public_needs_no_login(
    gateway: AsyncTapgateClient, unsteady: Unsteady
) -> None:
    assert (await gateway.health()).healthy
    assert asked(unsteady) == ["health"]


async def test_logged_in_again_after_the_session_ended(
    gateway: AsyncTapgateClient, unsteady: Unsteady
) -> None:
    await gateway.admin.logout()
    assert (await gateway.admin.get_current_user()).email == EMAIL
    # The refresh token is of the session that ended.
    assert asked(unsteady) == ["login", "logout", "me", "refresh", "login", "me"]


async def test_renewed_before_it_ends_and_only_once(
    gateway: AsyncTapgateClient, unsteady: Unsteady
) -> None:
    await gateway.admin.get_current_user()
    gateway._own_transport._request_flow._token_expires_at = 0.0
    await asyncio.gather(*(gateway.admin.get_current_user() for _ in range(5)))
    assert asked(unsteady).count("refresh") == 1
    assert asked(unsteady).count("login") == 1


async def test_a_refresh_token_is_never_sent_twice(
    gateway: AsyncTapgateClient, unsteady: Unsteady
) -> None:
    await gateway.admin.get_current_user()
    gateway._own_transport._request_flow._token_expires_at = 0.0
    unsteady.plan = [ACT_AND_DROP]
    await gateway.admin.get_current_user()
    assert asked(unsteady) == ["login", "me", "refresh", "login", "me"]


async def test_a_wrong_password_is_told(unsteady: Unsteady) -> None:
    wrong = Login(EMAIL, "wrong horse battery")
    async with AsyncTapgateClient(unsteady.url, wrong, retries=AT_ONCE) as gateway:
        with pytest.raises(exceptions.UnauthorizedError):
            await gateway.admin.get_current_user()
    assert asked(unsteady) == ["login"]


async def test_an_admin_who_was_disabled_is_told(
    stage: Stage, gateway: AsyncTapgateClient, unsteady: Unsteady
) -> None:
    other = await stage.admin()
    me = await gateway.admin.get_current_user()
    await other.admin.disable_user(me.id)
    with pytest.raises(exceptions.UnauthorizedError):
        await gateway.admin.get_current_user()


async def test_several_threads_log_in_once(stage: Stage, unsteady: Unsteady) -> None:
    with stage.waiting(LOGIN) as gateway:
        answers = await asyncio.gather(
            *(asyncio.to_thread(gateway.admin.get_current_user) for _ in range(4))
        )
    assert {answer.email for answer in answers} == {EMAIL}
    sessions = await stage.services.database.fetchval("SELECT count(*) FROM sessions")
    assert sessions == 1
