"""One-time codes: single use, limited lifetime, three attempts."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from builders.auth import FakeClock, OwnerBuilder, catch_api_error
from tapgate.core.id_generator import IdGenerator
from tapgate.core.vault import Vault
from tapgate.ledger.one_time_codes import codes as one_time_codes
from tapgate.ledger.one_time_codes.codes import CodeRequest
from tapgate.runtime.store.database import Database, RaiseAfterCommit
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code

PHONE, OTHER_PHONE = "+23270000001", "+23270000002"
NEW_ID = IdGenerator(0)


class CodeDriver:
    """Issues and redeems codes in one process."""

    def __init__(self, database: Database, clock: FakeClock) -> None:
        self.database = database
        self._vault = Vault("k" * 32)
        self._clock = clock

    async def issue(self, code_request: CodeRequest) -> str:
        """Issue a code, without the limit per phone number."""
        async with self.database.transaction() as connection:
            await connection.execute("DELETE FROM one_time_code_sends")
            tx = Transaction(connection, self._clock, NEW_ID)
            return await one_time_codes.issue(tx, self._vault, code_request, PHONE)

    @asynccontextmanager
    async def redeem_context(
        self, code_request: CodeRequest, code: str, phone_number: str = PHONE
    ) -> AsyncIterator[Transaction]:
        async with self.database.transaction() as connection:
            tx = Transaction(connection, self._clock, NEW_ID)
            error = await one_time_codes.redeem(tx, self._vault, code_request, phone_number, code)
            if error is not None:
                raise RaiseAfterCommit(error)
            yield tx

    async def redeem(
        self, code_request: CodeRequest, code: str, phone_number: str = PHONE
    ) -> int | None:
        """Return None if the code was accepted, otherwise the attempts remaining."""
        try:
            async with self.redeem_context(code_request, code, phone_number):
                return None
        except ApiError as error:
            assert error.code is Code.INVALID_OTP
            assert error.details is not None
            assert error.details.keys() == {"attempts_remaining"}
            return int(error.details["attempts_remaining"])


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def codes(database: Database, clock: FakeClock) -> CodeDriver:
    return CodeDriver(database, clock)


@pytest.fixture
async def other_codes(database_url: str, clock: FakeClock) -> AsyncIterator[CodeDriver]:
    """A driver with its own connections, as in another process."""
    database = await Database.connect(database_url)
    yield CodeDriver(database, clock)
    await database.close()


@pytest.fixture
def owners(database: Database, clock: FakeClock) -> OwnerBuilder:
    return OwnerBuilder(database, clock, NEW_ID)


@pytest.fixture
async def code_request(owners: OwnerBuilder) -> CodeRequest:
    return CodeRequest("reset_pin", await owners.create_subscriber(), "adm_0000000000001")


def build_wrong_code(code: str) -> str:
    return f"{(int(code) + 1) % 1_000_000:06d}"


async def test_code_has_six_digits_and_is_stored_hashed(
    codes: CodeDriver, code_request: CodeRequest
) -> None:
    code = await codes.issue(code_request)
    assert re.fullmatch(r"[0-9]{6}", code)
    stored = await codes.database.fetchval("SELECT code_hash FROM one_time_codes")
    assert len(stored) == 32
    assert code.encode() not in stored


async def test_code_can_be_redeemed_only_once(codes: CodeDriver, code_request: CodeRequest) -> None:
    code = await codes.issue(code_request)
    assert await codes.redeem(code_request, code) is None
    assert await codes.redeem(code_request, code) == 0


async def test_code_allows_three_attempts(codes: CodeDriver, code_request: CodeRequest) -> None:
    code = await codes.issue(code_request)
    assert [await codes.redeem(code_request, build_wrong_code(code)) for _ in range(4)] == [
        2,
        1,
        0,
        0,
    ]
    assert await codes.redeem(code_request, code) == 0


async def test_code_is_accepted_on_the_third_attempt(
    codes: CodeDriver, code_request: CodeRequest
) -> None:
    code = await codes.issue(code_request)
    for _ in range(2):
        await codes.redeem(code_request, build_wrong_code(code))
    assert await codes.redeem(code_request, code) is None


@pytest.mark.parametrize("code", ["", "12345", "1234567", "é\x00", "12345٣"])
async def test_malformed_code_counts_as_a_wrong_attempt(
    codes: CodeDriver, code_request: CodeRequest, code: str
) -> None:
    await codes.issue(code_request)
    assert await codes.redeem(code_request, code) == 2


async def test_code_expires_after_five_minutes(
    codes: CodeDriver, code_request: CodeRequest, clock: FakeClock
) -> None:
    code = await codes.issue(code_request)
    clock.advance(minutes=5, microseconds=-1)
    assert await codes.redeem(code_request, build_wrong_code(code)) == 2
    clock.advance(microseconds=1)
    assert await codes.redeem(code_request, code) == 0


async def test_redemption_without_an_issued_code_reports_no_attempts_remaining(
    codes: CodeDriver, code_request: CodeRequest
) -> None:
    assert await codes.redeem(code_request, "123456") == 0


async def test_new_code_replaces_the_old_one_and_resets_the_attempts(
    codes: CodeDriver, code_request: CodeRequest
) -> None:
    old = await codes.issue(code_request)
    for _ in range(3):
        await codes.redeem(code_request, build_wrong_code(old))
    new = await codes.issue(code_request)
    while new == old:
        new = await codes.issue(code_request)
    assert await codes.redeem(code_request, old) == 2
    assert await codes.redeem(code_request, new) is None


async def test_fifteen_failures_block_new_codes_for_the_requester_for_a_day(
    codes: CodeDriver, code_request: CodeRequest, clock: FakeClock
) -> None:
    for _ in range(5):
        code = await codes.issue(code_request)
        for _ in range(3):
            await codes.redeem(code_request, build_wrong_code(code))
    clock.advance(hours=1)
    error = await catch_api_error(codes.issue(code_request))
    assert (error.code, error.headers) == (Code.RATE_LIMITED, {"Retry-After": "82800"})
    assert await codes.issue(code_request._replace(requester="adm_0000000000002"))
    clock.advance(hours=23, seconds=-1)
    assert (await catch_api_error(codes.issue(code_request))).code is Code.RATE_LIMITED
    clock.advance(seconds=1)
    code = await codes.issue(code_request)
    assert await codes.redeem(code_request, build_wrong_code(code)) == 2
    assert await codes.redeem(code_request, code) is None


async def test_failure_limit_applies_per_day(
    codes: CodeDriver, code_request: CodeRequest, clock: FakeClock
) -> None:
    for _ in range(30):
        code = await codes.issue(code_request)
        assert await codes.redeem(code_request, build_wrong_code(code)) == 2
        clock.advance(hours=2)


async def test_code_is_bound_to_purpose_requester_and_holder(
    codes: CodeDriver, code_request: CodeRequest, owners: OwnerBuilder
) -> None:
    others = [
        code_request._replace(purpose="restricted_access"),
        code_request._replace(requester="adm_0000000000002"),
        code_request._replace(holder_id=await owners.create_subscriber()),
    ]
    code = await codes.issue(code_request)
    for other in others:
        assert await codes.redeem(other, code) == 0
        while (other_code := await codes.issue(other)) == code:
            pass
        assert await codes.redeem(other, code) == 2
        assert await codes.redeem(other, other_code) is None
    assert await codes.redeem(code_request, code) is None


async def test_code_is_bound_to_the_phone_number(
    codes: CodeDriver, code_request: CodeRequest
) -> None:
    code = await codes.issue(code_request)
    assert await codes.redeem(code_request, code, OTHER_PHONE) == 2
    assert await codes.redeem(code_request, code) is None


async def test_code_is_redeemed_only_if_the_operation_succeeds(
    codes: CodeDriver, code_request: CodeRequest
) -> None:
    """If the operation fails, it is rolled back and the code remains valid."""
    code = await codes.issue(code_request)
    with pytest.raises(ZeroDivisionError):
        async with codes.redeem_context(code_request, code) as tx:
            await tx.execute("UPDATE subscribers SET restricted = true")
            raise ZeroDivisionError
    assert await codes.database.fetchval("SELECT restricted FROM subscribers") is False
    async with codes.redeem_context(code_request, code) as tx:
        await tx.execute("UPDATE subscribers SET restricted = true")
    assert await codes.database.fetchval("SELECT restricted FROM subscribers") is True
    assert await codes.redeem(code_request, code) == 0


async def test_concurrent_attempts_cannot_exceed_the_limit(
    codes: CodeDriver, other_codes: CodeDriver, code_request: CodeRequest
) -> None:
    code = await codes.issue(code_request)
    drivers = [codes, other_codes]
    remaining = await asyncio.gather(
        *(driver.redeem(code_request, build_wrong_code(code)) for driver in drivers * 6)
    )
    assert sorted(remaining) == [0] * 10 + [1, 2]  # type: ignore[type-var]
    assert await codes.redeem(code_request, code) == 0


async def test_concurrent_redemptions_accept_the_code_once(
    codes: CodeDriver, other_codes: CodeDriver, code_request: CodeRequest
) -> None:
    code = await codes.issue(code_request)
    drivers = [codes, other_codes]
    remaining = await asyncio.gather(*(driver.redeem(code_request, code) for driver in drivers * 5))
    assert remaining.count(None) == 1
    assert remaining.count(0) == 9
