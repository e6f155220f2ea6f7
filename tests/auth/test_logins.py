"""Logins: password checks of active admins, and lockout after five failures."""

import asyncio
from collections.abc import Awaitable, Sequence

import pytest

from builders.auth import (
    EMAIL,
    PASSWORD,
    FakeClock,
    GatewayProcess,
    OwnerBuilder,
    catch_api_error,
    catch_unauthorized,
)
from tapgate.auth.logins import Logins
from tapgate.auth.passwords import OWASP_PARAMETERS, Passwords
from tapgate.core.vault import Vault
from tapgate_client.errors import ApiError, Code, unavailable

ADDRESS, OTHER_ADDRESS = "192.0.2.1", "192.0.2.2"
WRONG_CREDENTIALS_MESSAGE = "Incorrect email or password."


@pytest.fixture
async def admin_id(owners: OwnerBuilder) -> int:
    return await owners.create_admin()


async def attempt_wrong_password(
    process: GatewayProcess, email: str = EMAIL, address: str = ADDRESS
) -> None:
    message = await catch_unauthorized(process.logins.authenticate(email, "wrong", address))
    assert message == WRONG_CREDENTIALS_MESSAGE


async def gather_error_codes(attempts: Sequence[Awaitable[int]]) -> list[Code | None]:
    """Run the attempts concurrently; return their error codes, or None for a success."""
    results = await asyncio.gather(*attempts, return_exceptions=True)
    return [result.code if isinstance(result, ApiError) else None for result in results]


async def test_correct_password_returns_the_admin(process: GatewayProcess, admin_id: int) -> None:
    assert (await process.logins.authenticate(EMAIL, PASSWORD, ADDRESS)).id == admin_id
    assert (await process.logins.authenticate("Ada@Example.COM", PASSWORD, ADDRESS)).id == admin_id


async def test_wrong_password_unknown_email_and_disabled_admin_get_the_same_error(
    process: GatewayProcess, admin_id: int
) -> None:
    await attempt_wrong_password(process)
    await attempt_wrong_password(process, "nobody@example.com")
    await process.database.execute("UPDATE admins SET status = 'disabled'")
    message = await catch_unauthorized(process.logins.authenticate(EMAIL, PASSWORD, ADDRESS))
    assert message == WRONG_CREDENTIALS_MESSAGE


async def test_password_check_also_runs_for_an_unknown_email(
    process: GatewayProcess, admin_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []
    matches = Passwords.matches

    async def record_and_match(self: Passwords, stored: str | None, *arguments: str) -> bool:
        checked.append(stored)
        return await matches(self, stored, *arguments)

    monkeypatch.setattr(Passwords, "matches", record_and_match)
    await attempt_wrong_password(process)
    await attempt_wrong_password(process, "nobody@example.com")
    assert checked[0] is not None
    assert checked[1] is None


async def test_password_is_rehashed_when_the_parameters_change(
    process: GatewayProcess, admin_id: int, clock: FakeClock, vault: Vault
) -> None:
    auth = process.authenticator
    logins = Logins(
        process.database,
        Passwords(OWASP_PARAMETERS),
        clock,
        vault,
        auth.factors,
        auth.passkeys,
    )
    await attempt_wrong_password(process)
    before = await process.database.fetchval("SELECT password_hash FROM admins")
    # Of concurrent logins, one replaces the hash. All of them have the stored one.
    verified = await asyncio.gather(
        *(logins.authenticate(EMAIL, PASSWORD, f"192.0.2.{n}") for n in range(3))
    )
    after = await process.database.fetchval("SELECT password_hash FROM admins")
    assert {each.password_hash for each in verified} == {after}
    assert before != after
    assert after.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    await logins.authenticate(EMAIL, PASSWORD, ADDRESS)
    assert await process.database.fetchval("SELECT password_hash FROM admins") == after


async def test_correct_password_is_rejected_after_five_failures(
    process: GatewayProcess, other_process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    for _ in range(5):
        await attempt_wrong_password(process)
        clock.advance(minutes=1)
    for gateway in (process, other_process):
        error = await catch_api_error(gateway.logins.authenticate(EMAIL.upper(), PASSWORD, ADDRESS))
        assert error.code is Code.RATE_LIMITED
        assert error.headers == {"Retry-After": "600"}


async def test_lockout_is_limited_to_one_email_and_address(
    process: GatewayProcess, owners: OwnerBuilder, admin_id: int
) -> None:
    eve_id = await owners.create_admin("eve@example.com")
    for _ in range(5):
        await attempt_wrong_password(process)
    assert (await process.logins.authenticate(EMAIL, PASSWORD, OTHER_ADDRESS)).id == admin_id
    assert (await process.logins.authenticate("eve@example.com", PASSWORD, ADDRESS)).id == eve_id
    error = await catch_api_error(process.logins.authenticate(EMAIL, PASSWORD, ADDRESS))
    assert error.status == 429


async def test_addresses_of_one_ipv6_network_share_the_lockout(
    process: GatewayProcess, admin_id: int
) -> None:
    for n in range(5):
        with pytest.raises(ApiError):
            await process.logins.authenticate(EMAIL, "wrong", f"2001:db8::{n}")
    error = await catch_api_error(process.logins.authenticate(EMAIL, PASSWORD, "2001:db8::f00"))
    assert error.status == 429
    assert (await process.logins.authenticate(EMAIL, PASSWORD, "2001:db8:0:1::1")).id == admin_id


async def test_failure_counts_for_fifteen_minutes(
    process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    for _ in range(5):
        await attempt_wrong_password(process)
        clock.advance(seconds=10)
    error = await catch_api_error(process.logins.authenticate(EMAIL, PASSWORD, ADDRESS))
    wait = int(error.headers["Retry-After"])
    clock.advance(seconds=wait - 1)
    error = await catch_api_error(process.logins.authenticate(EMAIL, PASSWORD, ADDRESS))
    assert error.status == 429
    clock.advance(seconds=1)
    # One attempt is available again, not five.
    await attempt_wrong_password(process)
    error = await catch_api_error(process.logins.authenticate(EMAIL, PASSWORD, ADDRESS))
    assert error.status == 429


async def test_rejected_attempts_do_not_extend_the_lockout(
    process: GatewayProcess, admin_id: int, clock: FakeClock
) -> None:
    for _ in range(5):
        await attempt_wrong_password(process)
    clock.advance(minutes=14)
    for _ in range(3):
        await catch_api_error(process.logins.authenticate(EMAIL, PASSWORD, ADDRESS))
    clock.advance(minutes=1)
    assert (await process.logins.authenticate(EMAIL, PASSWORD, ADDRESS)).id == admin_id


async def test_success_does_not_reset_earlier_failures(
    process: GatewayProcess, admin_id: int
) -> None:
    for _ in range(4):
        await attempt_wrong_password(process)
    for _ in range(3):
        await process.logins.authenticate(EMAIL, PASSWORD, ADDRESS)
    await attempt_wrong_password(process)
    error = await catch_api_error(process.logins.authenticate(EMAIL, PASSWORD, ADDRESS))
    assert error.code is Code.RATE_LIMITED


@pytest.mark.parametrize("email", [EMAIL, "nobody@example.com"])
async def test_concurrent_attempts_cannot_exceed_the_limit(
    process: GatewayProcess, other_process: GatewayProcess, admin_id: int, email: str
) -> None:
    attempts = [
        gateway.logins.authenticate(email, "wrong", ADDRESS)
        for gateway in (process, other_process) * 15
    ]
    codes = await gather_error_codes(attempts)
    assert codes.count(Code.UNAUTHORIZED) == 5
    assert codes.count(Code.RATE_LIMITED) == 25


async def test_correct_password_among_concurrent_attempts_does_not_bypass_the_lockout(
    process: GatewayProcess, other_process: GatewayProcess, admin_id: int
) -> None:
    for _ in range(5):
        await attempt_wrong_password(process)
    attempts = [
        gateway.logins.authenticate(EMAIL, password, ADDRESS)
        for gateway in (process, other_process)
        for password in ("wrong", PASSWORD) * 5
    ]
    assert await gather_error_codes(attempts) == [Code.RATE_LIMITED] * 20


async def test_concurrent_logins_with_the_correct_password_all_succeed(
    process: GatewayProcess, admin_id: int
) -> None:
    for _ in range(4):
        await attempt_wrong_password(process)
    attempts = [process.logins.authenticate(EMAIL, PASSWORD, ADDRESS) for _ in range(20)]
    assert [admin.id for admin in await asyncio.gather(*attempts)] == [admin_id] * 20


async def test_attempt_without_a_password_check_does_not_count(
    process: GatewayProcess, admin_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def raise_unavailable(self: Passwords, *arguments: str | None) -> bool:
        raise unavailable("busy")

    await attempt_wrong_password(process)
    with monkeypatch.context() as patch:
        patch.setattr(Passwords, "matches", raise_unavailable)
        for _ in range(10):
            rejection = await catch_api_error(process.logins.authenticate(EMAIL, PASSWORD, ADDRESS))
            assert rejection.status == 503
    for _ in range(4):
        await attempt_wrong_password(process)
    error = await catch_api_error(process.logins.authenticate(EMAIL, PASSWORD, ADDRESS))
    assert error.status == 429


async def test_expired_failures_are_removed_from_a_row(
    process: GatewayProcess, clock: FakeClock
) -> None:
    for _ in range(12):
        await attempt_wrong_password(process)
        clock.advance(minutes=4)
    failed_at = await process.database.fetchval("SELECT failed_at FROM login_failures")
    assert len(failed_at) == 4


async def test_source_lock_is_released_after_the_attempt(
    process: GatewayProcess, admin_id: int
) -> None:
    await process.logins.authenticate(EMAIL, PASSWORD, ADDRESS)
    assert not process.logins.source_locks


async def test_failed_login_neither_returns_nor_stores_the_password(
    process: GatewayProcess, admin_id: int
) -> None:
    error = await catch_api_error(process.logins.authenticate(EMAIL, "hunter2hunter2", ADDRESS))
    assert "hunter2" not in str(error.body())
    stored = await process.database.fetch("SELECT * FROM login_failures")
    assert "hunter2" not in str([dict(row) for row in stored])


class TokenBudget:
    """A cost with a limited number of tokens; raises `RATE_LIMITED` when none is left."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    async def take(self) -> None:
        if self.tokens == 0:
            raise ApiError(Code.RATE_LIMITED)
        self.tokens -= 1

    async def refund(self) -> None:
        self.tokens += 1


async def test_only_failed_password_checks_are_charged_to_the_address(
    process: GatewayProcess, admin_id: int
) -> None:
    budget = TokenBudget(3)
    await process.logins.authenticate(EMAIL, PASSWORD, ADDRESS, budget)
    assert budget.tokens == 3
    await catch_api_error(process.logins.authenticate(EMAIL, "wrong", ADDRESS, budget))
    assert budget.tokens == 2
    for _ in range(4):
        await attempt_wrong_password(process)
    # After five failures the password is not checked, and no token is taken.
    error = await catch_api_error(process.logins.authenticate(EMAIL, PASSWORD, ADDRESS, budget))
    assert error.status == 429
    assert budget.tokens == 2


async def test_address_without_tokens_causes_no_hashing_and_no_rows(
    process: GatewayProcess, admin_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail_if_called(self: Passwords, *arguments: str | None) -> bool:
        raise AssertionError("the password was checked")

    monkeypatch.setattr(Passwords, "matches", fail_if_called)
    error = await catch_api_error(
        process.logins.authenticate(EMAIL, PASSWORD, ADDRESS, TokenBudget(0))
    )
    assert error.code is Code.RATE_LIMITED
    assert await process.database.fetchval("SELECT count(*) FROM login_failures") == 0
