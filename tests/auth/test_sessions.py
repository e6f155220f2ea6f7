"""Sessions: login tokens, refresh token reuse, and the end of a session in every process."""

import asyncio
from datetime import timedelta

import jwt
import pytest

from builders.auth import (
    EMAIL,
    FakeClock,
    GatewayProcess,
    OwnerBuilder,
    catch_api_error,
    catch_unauthorized,
)
from tapgate.auth import sessions as sessions_module
from tapgate.auth.access_tokens import AccessTokens
from tapgate.auth.principals import Principal
from tapgate.auth.sessions import SessionOrigin, TokenReuseError
from tapgate.core.settings import Settings
from tapgate.runtime.store.signals import Signals, Ticket
from tapgate_client import ids
from tapgate_client.schemas.admin import Tokens

SESSION_ENDED_MESSAGE = "The session has ended. Log in again."
INVALID_REFRESH_MESSAGE = "The refresh token is unknown or expired, or its session has ended."


async def log_in(process: GatewayProcess, admin_id: int) -> Tokens:
    async with process.transaction() as tx:
        return await process.authenticator.sessions.start(tx, admin_id)


async def authenticate(process: GatewayProcess, tokens: Tokens) -> Principal:
    return await process.authenticator.sessions.authenticate(tokens.token)


async def refresh(process: GatewayProcess, tokens: Tokens) -> Tokens:
    return await process.authenticator.sessions.refresh(tokens.refresh_token)


@pytest.fixture
async def admin_id(owners: OwnerBuilder) -> int:
    return await owners.create_admin(role="finance_user")


async def test_login_returns_an_access_token_valid_for_a_day(
    process: GatewayProcess, admin_id: int, test_settings: Settings, clock: FakeClock
) -> None:
    tokens = await log_in(process, admin_id)
    assert tokens.expires_in == 86400
    assert jwt.decode(
        tokens.token, test_settings.jwt_secret, ["HS256"], options={"verify_exp": False}
    ) == {
        "sub": ids.encode(ids.ADMIN, admin_id),
        "email": EMAIL,
        "role": "finance_user",
        "iat": int(clock().timestamp()),
        "exp": int(clock().timestamp()) + 86400,
    }
    last = await process.database.fetchval("SELECT last_login_at FROM admins")
    assert last == clock()


async def test_token_identifies_the_admin(
    process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    principal = await authenticate(process, await log_in(process, admin_id))
    assert principal == Principal(
        kind="admin",
        id=ids.encode(ids.ADMIN, admin_id),
        name="Ada",
        role="finance_user",
        admin_id=admin_id,
        session_id=principal.session_id,
        signed_in_at=clock(),
    )
    assert principal.idempotency_scope == ids.encode(ids.ADMIN, admin_id)


async def test_two_logins_in_one_second_are_two_sessions(
    process: GatewayProcess, admin_id: int
) -> None:
    first_login, second_login = await log_in(process, admin_id), await log_in(process, admin_id)
    assert first_login.token != second_login.token
    first = await authenticate(process, first_login)
    second = await authenticate(process, second_login)
    assert first.session_id != second.session_id
    assert first.idempotency_scope == second.idempotency_scope


async def test_expired_token_is_rejected(
    process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    tokens = await log_in(process, admin_id)
    clock.advance(days=1)
    message = await catch_unauthorized(authenticate(process, tokens))
    assert message == "The access token has expired."


async def test_role_is_read_from_the_database(process: GatewayProcess, admin_id: int) -> None:
    tokens = await log_in(process, admin_id)
    await process.database.execute("UPDATE admins SET role = 'support_user'")
    assert (await authenticate(process, tokens)).role == "support_user"


async def test_token_for_another_admins_session_is_rejected(
    process: GatewayProcess,
    owners: OwnerBuilder,
    admin_id: int,
    test_settings: Settings,
    clock: FakeClock,
) -> None:
    """The token is rejected although it is signed with the platform's key."""
    other_id = await owners.create_admin("eve@example.com")
    session = (await authenticate(process, await log_in(process, other_id))).session_id
    assert session is not None
    forged = AccessTokens(test_settings.jwt_secret).issue(
        session_id=session, admin_id=admin_id, email=EMAIL, role="system_admin", now=clock()
    )
    message = await catch_unauthorized(process.authenticator.sessions.authenticate(forged))
    assert message == SESSION_ENDED_MESSAGE


async def test_token_for_a_missing_session_is_rejected(
    process: GatewayProcess, admin_id: int, test_settings: Settings, clock: FakeClock
) -> None:
    forged = AccessTokens(test_settings.jwt_secret).issue(
        session_id=1, admin_id=admin_id, email=EMAIL, role="system_admin", now=clock()
    )
    message = await catch_unauthorized(process.authenticator.sessions.authenticate(forged))
    assert message == SESSION_ENDED_MESSAGE


async def test_logout_ends_one_session_in_every_process_immediately(
    process: GatewayProcess, other_process: GatewayProcess, admin_id: int
) -> None:
    ended, active = await log_in(process, admin_id), await log_in(process, admin_id)
    for gateway in (process, other_process):
        await authenticate(gateway, ended)
        await authenticate(gateway, active)
    session_id = (await authenticate(process, ended)).session_id
    assert session_id is not None
    async with process.transaction() as tx:
        await process.authenticator.sessions.end(tx, session_id)
    for gateway in (other_process, process):
        assert await catch_unauthorized(authenticate(gateway, ended)) == SESSION_ENDED_MESSAGE
        await authenticate(gateway, active)
    assert await catch_unauthorized(refresh(other_process, ended)) == INVALID_REFRESH_MESSAGE


async def test_disabled_admin_is_rejected_by_another_process_immediately(
    process: GatewayProcess, other_process: GatewayProcess, admin_id: int
) -> None:
    sessions = [await log_in(process, admin_id) for _ in range(2)]
    for tokens in sessions:
        await authenticate(other_process, tokens)
    async with process.transaction() as tx:
        await tx.execute("UPDATE admins SET status = 'disabled' WHERE id = $1", admin_id)
        await process.authenticator.sessions.end_all(tx, admin_id)
    for tokens in sessions:
        rejection_message = await catch_unauthorized(authenticate(other_process, tokens))
        assert rejection_message == SESSION_ENDED_MESSAGE
        assert await catch_unauthorized(refresh(other_process, tokens)) == INVALID_REFRESH_MESSAGE
    message = await catch_unauthorized(log_in(process, admin_id))
    assert message == "This admin is disabled, has a new password or must use single sign-on."


async def test_ending_all_sessions_invalidates_the_tokens_of_an_active_admin(
    process: GatewayProcess, admin_id: int
) -> None:
    tokens = await log_in(process, admin_id)
    async with process.transaction() as tx:
        await process.authenticator.sessions.end_all(tx, admin_id)
    assert await catch_unauthorized(authenticate(process, tokens)) == SESSION_ENDED_MESSAGE


async def test_refresh_continues_the_same_session(
    process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    before = await log_in(process, admin_id)
    clock.advance(hours=23)
    after = await refresh(process, before)
    result = await authenticate(process, before)
    other_result = await authenticate(process, after)
    assert result.session_id == other_result.session_id
    clock.advance(hours=23)
    message = await catch_unauthorized(authenticate(process, before))
    assert message == "The access token has expired."
    await authenticate(process, after)


async def test_refresh_token_expires_after_thirty_days(
    process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    tokens = await log_in(process, admin_id)
    clock.advance(days=30, microseconds=-1)
    tokens = await refresh(process, tokens)
    clock.advance(days=30)
    assert await catch_unauthorized(refresh(process, tokens)) == INVALID_REFRESH_MESSAGE


async def test_session_ends_after_ninety_days_despite_refreshes(
    process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    tokens = await log_in(process, admin_id)
    for _ in range(3):
        clock.advance(days=29)
        tokens = await refresh(process, tokens)
    clock.advance(days=3, microseconds=-1)
    tokens = await refresh(process, tokens)
    clock.advance(microseconds=1)
    assert await catch_unauthorized(refresh(process, tokens)) == INVALID_REFRESH_MESSAGE
    assert await refresh(process, await log_in(process, admin_id))


@pytest.mark.parametrize("token", ["", "x", "é\x00", "a" * 5000])
async def test_unknown_refresh_token_is_rejected(process: GatewayProcess, token: str) -> None:
    message = await catch_unauthorized(process.authenticator.sessions.refresh(token))
    assert message == INVALID_REFRESH_MESSAGE


async def test_access_token_cannot_be_used_to_refresh(
    process: GatewayProcess, admin_id: int
) -> None:
    tokens = await log_in(process, admin_id)
    message = await catch_unauthorized(process.authenticator.sessions.refresh(tokens.token))
    assert message == INVALID_REFRESH_MESSAGE


async def test_refresh_token_is_stored_hashed(process: GatewayProcess, admin_id: int) -> None:
    tokens = await log_in(process, admin_id)
    stored = await process.database.fetchval("SELECT token_hash FROM refresh_tokens")
    assert len(stored) == 32
    assert tokens.refresh_token.encode() not in stored


async def test_refresh_token_reuse_ends_the_session_in_every_process_immediately(
    process: GatewayProcess, other_process: GatewayProcess, admin_id: int
) -> None:
    first = await log_in(process, admin_id)
    second = await refresh(process, first)
    third = await refresh(process, second)
    unrelated = await log_in(process, admin_id)
    for tokens in (first, second, third, unrelated):
        await authenticate(other_process, tokens)

    session_id = (await authenticate(process, first)).session_id
    error = await catch_api_error(refresh(process, first))
    assert isinstance(error, TokenReuseError)
    assert (error.status, error.admin_id, error.session_id) == (401, admin_id, session_id)

    for gateway in (other_process, process):
        for tokens in (first, second, third):
            assert await catch_unauthorized(authenticate(gateway, tokens)) == SESSION_ENDED_MESSAGE
            assert await catch_unauthorized(refresh(gateway, tokens)) == INVALID_REFRESH_MESSAGE
        await authenticate(gateway, unrelated)


async def test_reuse_error_is_raised_after_waiting_for_acknowledgments(
    process: GatewayProcess, admin_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    awaited = []
    wait_for_acks = Signals.wait_for_acks

    async def wait_and_record(self: Signals, ticket: Ticket) -> None:
        await wait_for_acks(self, ticket)
        awaited.append(ticket)

    monkeypatch.setattr(Signals, "wait_for_acks", wait_and_record)
    tokens = await log_in(process, admin_id)
    await refresh(process, tokens)
    assert awaited == []
    await catch_api_error(refresh(process, tokens))
    assert len(awaited) == 1


async def test_concurrent_use_of_a_refresh_token_ends_the_session(
    process: GatewayProcess, other_process: GatewayProcess, admin_id: int
) -> None:
    for _ in range(10):
        tokens = await log_in(process, admin_id)
        results = await asyncio.gather(
            refresh(process, tokens), refresh(other_process, tokens), return_exceptions=True
        )
        succeeded = [result for result in results if isinstance(result, Tokens)]
        rejected = [result for result in results if isinstance(result, TokenReuseError)]
        assert (len(succeeded), len(rejected)) == (1, 1)
        message = await catch_unauthorized(authenticate(process, succeeded[0]))
        assert message == SESSION_ENDED_MESSAGE
        assert await catch_unauthorized(refresh(process, succeeded[0])) == INVALID_REFRESH_MESSAGE


async def test_login_removes_the_expired_sessions_of_the_same_admin(
    process: GatewayProcess, owners: OwnerBuilder, admin_id: int, clock: FakeClock
) -> None:
    other_id = await owners.create_admin("eve@example.com")
    await log_in(process, other_id)
    await refresh(process, await log_in(process, admin_id))
    clock.advance(days=29)
    active = await log_in(process, admin_id)
    clock.now += timedelta(days=2, seconds=1)
    assert await process.database.fetchval("SELECT count(*) FROM sessions") == 3
    await log_in(process, admin_id)
    rows = await process.database.fetch(
        "SELECT admin_id, count(*) AS sessions FROM sessions GROUP BY admin_id"
    )
    assert {row["admin_id"]: row["sessions"] for row in rows} == {admin_id: 2, other_id: 1}
    assert await process.database.fetchval("SELECT count(*) FROM refresh_tokens") == 3
    await refresh(process, active)


async def test_login_above_the_session_limit_ends_the_oldest_session(
    process: GatewayProcess, admin_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "MAX_SESSIONS", 3)
    opened = [await log_in(process, admin_id) for _ in range(5)]
    assert await process.database.fetchval("SELECT count(*) FROM sessions") == 3
    for tokens in opened[2:]:
        await authenticate(process, tokens)
    for tokens in opened[:2]:
        assert await catch_unauthorized(authenticate(process, tokens)) == SESSION_ENDED_MESSAGE
        assert await catch_unauthorized(refresh(process, tokens)) == INVALID_REFRESH_MESSAGE


async def test_reuse_of_the_first_token_is_detected_after_many_refreshes(
    process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    first = tokens = await log_in(process, admin_id)
    for _ in range(120):
        clock.advance(seconds=1)
        tokens = await refresh(process, tokens)
    assert isinstance(await catch_api_error(refresh(process, first)), TokenReuseError)
    assert await catch_unauthorized(authenticate(process, tokens)) == SESSION_ENDED_MESSAGE


async def test_session_ends_after_the_maximum_number_of_refreshes(
    process: GatewayProcess,
    other_process: GatewayProcess,
    admin_id: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions_module, "MAX_REFRESHES", 3)
    tokens = await log_in(process, admin_id)
    for _ in range(3):
        tokens = await refresh(process, tokens)
    await authenticate(other_process, tokens)
    reason = "The session has reached its refresh limit. Log in again."
    assert await catch_unauthorized(refresh(process, tokens)) == reason
    for gateway in (process, other_process):
        assert await catch_unauthorized(authenticate(gateway, tokens)) == SESSION_ENDED_MESSAGE
        assert await catch_unauthorized(refresh(gateway, tokens)) == INVALID_REFRESH_MESSAGE
    assert await process.database.fetchval("SELECT count(*) FROM refresh_tokens") == 4
    await refresh(process, await log_in(process, admin_id))


@pytest.mark.parametrize(("is_console", "minutes"), [(True, 60), (False, 24 * 60)])
async def test_idle_console_session_ends_after_an_hour(
    process: GatewayProcess,
    other_process: GatewayProcess,
    admin_id: int,
    clock: FakeClock,
    is_console: bool,
    minutes: int,
) -> None:
    """An API session has no idle limit; it ends when its token expires."""
    async with process.transaction() as tx:
        tokens = await process.authenticator.sessions.start(
            tx, admin_id, origin=SessionOrigin(is_console=is_console)
        )
    clock.advance(minutes=minutes, seconds=-1)
    await authenticate(process, tokens)
    await process.authenticator.sessions.last_seen.flush()
    if not is_console:
        return
    clock.advance(minutes=59)
    await authenticate(other_process, tokens)
    await other_process.authenticator.sessions.last_seen.flush()
    clock.advance(minutes=60)
    for gateway in (process, other_process):
        message = await catch_unauthorized(authenticate(gateway, tokens))
        assert message == "The session was idle for too long. Log in again."
    assert await catch_unauthorized(refresh(process, tokens)) == INVALID_REFRESH_MESSAGE


async def test_idle_limit_in_the_settings_applies_to_api_sessions(
    process: GatewayProcess, admin_id: int, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = timedelta(minutes=5)
    monkeypatch.setattr(process.authenticator.sessions, "idle_limits", (limit, limit))
    tokens = await log_in(process, admin_id)
    clock.advance(minutes=4)
    await authenticate(process, tokens)
    clock.advance(minutes=5)
    await catch_unauthorized(authenticate(process, tokens))
