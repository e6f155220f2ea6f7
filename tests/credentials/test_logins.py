"""Logins: the right password of an active admin, and five failures at most."""

import asyncio
from collections.abc import Awaitable, Sequence

import pytest

from credentials.stage import EMAIL, PASSWORD, Process, SetClock, World, refusal, unauthorized
from tapgate.credentials.logins import Logins
from tapgate.credentials.passwords import OWASP_PARAMETERS, Passwords
from tapgate.errors import ApiError, Code, unavailable
from tapgate.vault import Vault

HERE, THERE = "192.0.2.1", "192.0.2.2"
WRONG = "The e-mail or the password is wrong"


@pytest.fixture
async def admin_id(world: World) -> int:
    return await world.admin()


async def fail(process: Process, email: str = EMAIL, address: str = HERE) -> None:
    assert await unauthorized(process.logins.authenticate(email, "wrong", address)) == WRONG


async def codes(tries: Sequence[Awaitable[int]]) -> list[Code | None]:
    """How each of the tries at the same time ended; None: logged in."""
    answers = await asyncio.gather(*tries, return_exceptions=True)
    return [answer.code if isinstance(answer, ApiError) else None for answer in answers]


async def test_the_right_password_is_the_admins(process: Process, admin_id: int) -> None:
    assert await process.logins.authenticate(EMAIL, PASSWORD, HERE) == admin_id
    assert await process.logins.authenticate("Ada@Example.COM", PASSWORD, HERE) == admin_id


async def test_a_wrong_password_an_unknown_email_and_a_disabled_admin_look_the_same(
    process: Process, admin_id: int
) -> None:
    await fail(process)
    await fail(process, "nobody@example.com")
    await process.database.execute("UPDATE admins SET status = 'disabled'")
    assert await unauthorized(process.logins.authenticate(EMAIL, PASSWORD, HERE)) == WRONG


async def test_an_unknown_email_takes_the_same_work(
    process: Process, admin_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []
    matches = Passwords.matches

    async def counted(self: Passwords, stored: str | None, *arguments: str) -> bool:
        checked.append(stored)
        return await matches(self, stored, *arguments)

    monkeypatch.setattr(Passwords, "matches", counted)
    await fail(process)
    await fail(process, "nobody@example.com")
    assert checked[0] is not None
    assert checked[1] is None


async def test_a_password_is_stored_anew_when_the_parameters_change(
    process: Process, admin_id: int, clock: SetClock, vault: Vault
) -> None:
    logins = Logins(process.database, Passwords(OWASP_PARAMETERS), clock, vault)
    await fail(process)
    before = await process.database.fetchval("SELECT password_hash FROM admins")
    await logins.authenticate(EMAIL, PASSWORD, HERE)
    after = await process.database.fetchval("SELECT password_hash FROM admins")
    assert before != after
    assert after.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    await logins.authenticate(EMAIL, PASSWORD, HERE)
    assert await process.database.fetchval("SELECT password_hash FROM admins") == after


async def test_after_five_failures_the_right_password_is_refused_too(
    process: Process, other: Process, admin_id: int, clock: SetClock
) -> None:
    for _ in range(5):
        await fail(process)
        clock.forward(minutes=1)
    for where in (process, other):
        error = await refusal(where.logins.authenticate(EMAIL.upper(), PASSWORD, HERE))
        assert error.code is Code.RATE_LIMITED
        assert error.headers == {"Retry-After": "600"}


async def test_others_are_not_locked_out(process: Process, world: World, admin_id: int) -> None:
    eve_id = await world.admin("eve@example.com")
    for _ in range(5):
        await fail(process)
    assert await process.logins.authenticate(EMAIL, PASSWORD, THERE) == admin_id
    assert await process.logins.authenticate("eve@example.com", PASSWORD, HERE) == eve_id
    assert (await refusal(process.logins.authenticate(EMAIL, PASSWORD, HERE))).status == 429


async def test_other_addresses_of_one_household_are_no_way_around(
    process: Process, admin_id: int
) -> None:
    for n in range(5):
        with pytest.raises(ApiError):
            await process.logins.authenticate(EMAIL, "wrong", f"2001:db8::{n}")
    refused = await refusal(process.logins.authenticate(EMAIL, PASSWORD, "2001:db8::f00"))
    assert refused.status == 429
    assert await process.logins.authenticate(EMAIL, PASSWORD, "2001:db8:0:1::1") == admin_id


async def test_a_failure_counts_for_a_quarter_of_an_hour(
    process: Process, admin_id: int, clock: SetClock
) -> None:
    for _ in range(5):
        await fail(process)
        clock.forward(seconds=10)
    error = await refusal(process.logins.authenticate(EMAIL, PASSWORD, HERE))
    wait = int(error.headers["Retry-After"])
    clock.forward(seconds=wait - 1)
    assert (await refusal(process.logins.authenticate(EMAIL, PASSWORD, HERE))).status == 429
    clock.forward(seconds=1)
    # One place is free again, not five.
    await fail(process)
    assert (await refusal(process.logins.authenticate(EMAIL, PASSWORD, HERE))).status == 429


async def test_refused_tries_do_not_make_the_wait_longer(
    process: Process, admin_id: int, clock: SetClock
) -> None:
    for _ in range(5):
        await fail(process)
    clock.forward(minutes=14)
    for _ in range(3):
        await refusal(process.logins.authenticate(EMAIL, PASSWORD, HERE))
    clock.forward(minutes=1)
    assert await process.logins.authenticate(EMAIL, PASSWORD, HERE) == admin_id


async def test_a_success_does_not_undo_the_failures_before_it(
    process: Process, admin_id: int
) -> None:
    for _ in range(4):
        await fail(process)
    for _ in range(3):
        await process.logins.authenticate(EMAIL, PASSWORD, HERE)
    await fail(process)
    assert (
        await refusal(process.logins.authenticate(EMAIL, PASSWORD, HERE))
    ).code is Code.RATE_LIMITED


@pytest.mark.parametrize("email", [EMAIL, "nobody@example.com"])
async def test_parallel_tries_do_not_outrun_the_count(
    process: Process, other: Process, admin_id: int, email: str
) -> None:
    tries = [where.logins.authenticate(email, "wrong", HERE) for where in (process, other) * 15]
    ended = await codes(tries)
    assert ended.count(Code.UNAUTHORIZED) == 5
    assert ended.count(Code.RATE_LIMITED) == 25


async def test_a_right_password_among_parallel_wrong_ones_is_no_way_around(
    process: Process, other: Process, admin_id: int
) -> None:
    for _ in range(5):
        await fail(process)
    tries = [
        where.logins.authenticate(EMAIL, password, HERE)
        for where in (process, other)
        for password in ("wrong", PASSWORD) * 5
    ]
    assert await codes(tries) == [Code.RATE_LIMITED] * 20


async def test_parallel_right_passwords_do_not_refuse_each_other(
    process: Process, admin_id: int
) -> None:
    for _ in range(4):
        await fail(process)
    tries = [process.logins.authenticate(EMAIL, PASSWORD, HERE) for _ in range(20)]
    assert await asyncio.gather(*tries) == [admin_id] * 20


async def test_a_try_that_was_not_judged_does_not_count(
    process: Process, admin_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(self: Passwords, *arguments: str | None) -> bool:
        raise unavailable("busy")

    await fail(process)
    with monkeypatch.context() as patch:
        patch.setattr(Passwords, "matches", busy)
        for _ in range(10):
            assert (await refusal(process.logins.authenticate(EMAIL, PASSWORD, HERE))).status == 503
    for _ in range(4):
        await fail(process)
    assert (await refusal(process.logins.authenticate(EMAIL, PASSWORD, HERE))).status == 429


async def test_the_table_holds_little_more_than_what_counts(
    process: Process, clock: SetClock
) -> None:
    for number in range(30):
        await fail(process, f"{number}@example.com")
    clock.forward(minutes=15)
    for _ in range(3):
        await fail(process)
    assert await process.database.fetchval("SELECT count(*) FROM login_failures") == 1


async def test_a_row_does_not_grow(process: Process, clock: SetClock) -> None:
    for _ in range(12):
        await fail(process)
        clock.forward(minutes=4)
    failed_at = await process.database.fetchval("SELECT failed_at FROM login_failures")
    assert len(failed_at) == 4


async def test_nothing_is_kept_for_who_is_not_waiting(process: Process, admin_id: int) -> None:
    await process.logins.authenticate(EMAIL, PASSWORD, HERE)
    assert not process.logins._source_locks


async def test_no_secret_is_repeated(process: Process, admin_id: int) -> None:
    error = await refusal(process.logins.authenticate(EMAIL, "hunter2hunter2", HERE))
    assert "hunter2" not in str(error.body())
    stored = await process.database.fetch("SELECT * FROM login_failures")
    assert "hunter2" not in str([dict(row) for row in stored])


class Purse:
    """A charge with a number of tokens."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    async def charge(self) -> None:
        if self.tokens == 0:
            raise ApiError(Code.RATE_LIMITED)
        self.tokens -= 1

    async def refund(self) -> None:
        self.tokens += 1


async def test_only_failures_are_charged_to_the_address(process: Process, admin_id: int) -> None:
    purse = Purse(3)
    await process.logins.authenticate(EMAIL, PASSWORD, HERE, purse)
    assert purse.tokens == 3
    await refusal(process.logins.authenticate(EMAIL, "wrong", HERE, purse))
    assert purse.tokens == 2
    for _ in range(4):
        await fail(process)
    # Five failures: refused without a look at the password.
    assert (await refusal(process.logins.authenticate(EMAIL, PASSWORD, HERE, purse))).status == 429
    assert purse.tokens == 2


async def test_an_address_without_tokens_causes_no_hashing_and_no_rows(
    process: Process, admin_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unexpected(self: Passwords, *arguments: str | None) -> bool:
        raise AssertionError("the password was checked")

    monkeypatch.setattr(Passwords, "matches", unexpected)
    error = await refusal(process.logins.authenticate(EMAIL, PASSWORD, HERE, Purse(0)))
    assert error.code is Code.RATE_LIMITED
    assert await process.database.fetchval("SELECT count(*) FROM login_failures") == 0
