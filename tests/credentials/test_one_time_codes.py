"""One-time codes: single use, limited lifetime, three attempts."""

import asyncio
import itertools
import re
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from credentials.builders import FakeClock, GatewayProcess, OwnerBuilder, catch_api_error
from tapgate.credentials import one_time_codes
from tapgate.credentials.one_time_codes import CodeRequest
from tapgate.errors import ApiError, Code
from tapgate.vault import Vault

_sequence = itertools.count(1)


class CodeDriver:
    """Issues and redeems codes in one process."""

    def __init__(self, process: GatewayProcess, vault: Vault, clock: FakeClock) -> None:
        self.database = process.database
        self._vault = vault
        self._clock = clock

    async def issue(self, question: CodeRequest) -> str:
        """Issue a code to a new phone number, so that the limit per number is not reached."""
        phone = f"+2327{next(_sequence):07}"
        async with self.database.transaction() as tx:
            return await one_time_codes.issue(tx, self._vault, question, phone, self._clock())

    def redeem_context(self, question: CodeRequest, code: str) -> AbstractAsyncContextManager[Any]:
        return one_time_codes.redeem(self.database, self._vault, question, code, self._clock())

    async def redeem(self, question: CodeRequest, code: str) -> int | None:
        """Return None if the code was accepted, otherwise the attempts remaining."""
        try:
            async with self.redeem_context(question, code):
                return None
        except ApiError as error:
            assert error.code is Code.INVALID_OTP
            assert error.details is not None
            assert error.details.keys() == {"attempts_remaining"}
            return int(error.details["attempts_remaining"])


@pytest.fixture
def codes(process: GatewayProcess, vault: Vault, clock: FakeClock) -> CodeDriver:
    return CodeDriver(process, vault, clock)


@pytest.fixture
async def question(owners: OwnerBuilder) -> CodeRequest:
    return CodeRequest("reset_pin", await owners.create_subscriber(), "adm_0000000000001")


def build_wrong_code(code: str) -> str:
    return f"{(int(code) + 1) % 1_000_000:06d}"


async def test_code_has_six_digits_and_is_stored_hashed(
    codes: CodeDriver, question: CodeRequest
) -> None:
    code = await codes.issue(question)
    assert re.fullmatch(r"[0-9]{6}", code)
    stored = await codes.database.fetchval("SELECT code_hash FROM one_time_codes")
    assert len(stored) == 32
    assert code.encode() not in stored


async def test_code_can_be_redeemed_only_once(codes: CodeDriver, question: CodeRequest) -> None:
    code = await codes.issue(question)
    assert await codes.redeem(question, code) is None
    assert await codes.redeem(question, code) == 0


async def test_code_allows_three_attempts(codes: CodeDriver, question: CodeRequest) -> None:
    code = await codes.issue(question)
    assert [await codes.redeem(question, build_wrong_code(code)) for _ in range(4)] == [2, 1, 0, 0]
    assert await codes.redeem(question, code) == 0


async def test_code_is_accepted_on_the_third_attempt(
    codes: CodeDriver, question: CodeRequest
) -> None:
    code = await codes.issue(question)
    for _ in range(2):
        await codes.redeem(question, build_wrong_code(code))
    assert await codes.redeem(question, code) is None


@pytest.mark.parametrize("code", ["", "12345", "1234567", "é\x00", "12345٣"])
async def test_malformed_code_counts_as_a_wrong_attempt(
    codes: CodeDriver, question: CodeRequest, code: str
) -> None:
    await codes.issue(question)
    assert await codes.redeem(question, code) == 2


async def test_code_expires_after_five_minutes(
    codes: CodeDriver, question: CodeRequest, clock: FakeClock
) -> None:
    code = await codes.issue(question)
    clock.advance(minutes=5, microseconds=-1)
    assert await codes.redeem(question, build_wrong_code(code)) == 2
    clock.advance(microseconds=1)
    assert await codes.redeem(question, code) == 0


async def test_missing_code_has_no_attempts_remaining(
    codes: CodeDriver, question: CodeRequest
) -> None:
    assert await codes.redeem(question, "123456") == 0


async def test_new_code_replaces_the_old_one_and_resets_the_attempts(
    codes: CodeDriver, question: CodeRequest
) -> None:
    old = await codes.issue(question)
    for _ in range(3):
        await codes.redeem(question, build_wrong_code(old))
    new = await codes.issue(question)
    while new == old:
        new = await codes.issue(question)
    assert await codes.redeem(question, old) == 2
    assert await codes.redeem(question, new) is None


async def test_failed_attempts_limit_the_issue_of_new_codes(
    codes: CodeDriver, question: CodeRequest, clock: FakeClock
) -> None:
    for _ in range(5):
        code = await codes.issue(question)
        for _ in range(3):
            await codes.redeem(question, build_wrong_code(code))
    clock.advance(hours=1)
    refused = await catch_api_error(codes.issue(question))
    assert (refused.code, refused.headers) == (Code.RATE_LIMITED, {"Retry-After": "82800"})
    assert await codes.issue(question._replace(requester="adm_0000000000002"))
    clock.advance(hours=23, seconds=-1)
    assert (await catch_api_error(codes.issue(question))).code is Code.RATE_LIMITED
    clock.advance(seconds=1)
    code = await codes.issue(question)
    assert await codes.redeem(question, build_wrong_code(code)) == 2
    assert await codes.redeem(question, code) is None


async def test_failure_limit_restarts_after_a_day(
    codes: CodeDriver, question: CodeRequest, clock: FakeClock
) -> None:
    for _ in range(30):
        code = await codes.issue(question)
        assert await codes.redeem(question, build_wrong_code(code)) == 2
        clock.advance(hours=2)


async def test_code_is_bound_to_purpose_requester_and_subscriber(
    codes: CodeDriver, question: CodeRequest, owners: OwnerBuilder
) -> None:
    others = [
        question._replace(purpose="restricted_access"),
        question._replace(requester="adm_0000000000002"),
        question._replace(subscriber_id=await owners.create_subscriber()),
    ]
    code = await codes.issue(question)
    for other in others:
        assert await codes.redeem(other, code) == 0
        while (other_code := await codes.issue(other)) == code:
            pass
        assert await codes.redeem(other, code) == 2
        assert await codes.redeem(other, other_code) is None
    assert await codes.redeem(question, code) is None


async def test_code_is_redeemed_only_if_the_operation_succeeds(
    codes: CodeDriver, question: CodeRequest
) -> None:
    """If the operation fails, it is rolled back and the code remains valid."""
    code = await codes.issue(question)
    with pytest.raises(ZeroDivisionError):
        async with codes.redeem_context(question, code) as tx:
            await tx.execute("UPDATE subscribers SET restricted = true")
            raise ZeroDivisionError
    assert await codes.database.fetchval("SELECT restricted FROM subscribers") is False
    async with codes.redeem_context(question, code) as tx:
        await tx.execute("UPDATE subscribers SET restricted = true")
    assert await codes.database.fetchval("SELECT restricted FROM subscribers") is True
    assert await codes.redeem(question, code) == 0


async def test_wrong_code_does_not_run_the_operation(
    codes: CodeDriver, question: CodeRequest
) -> None:
    code = await codes.issue(question)
    with pytest.raises(ApiError):
        async with codes.redeem_context(question, build_wrong_code(code)):
            pytest.fail("a wrong code was let in")
    assert await codes.database.fetchval("SELECT failures FROM one_time_codes") == 1


async def test_concurrent_attempts_cannot_exceed_the_limit(
    codes: CodeDriver,
    other_process: GatewayProcess,
    question: CodeRequest,
    vault: Vault,
    clock: FakeClock,
) -> None:
    code = await codes.issue(question)
    desks = [codes, CodeDriver(other_process, vault, clock)]
    left = await asyncio.gather(*(d.redeem(question, build_wrong_code(code)) for d in desks * 6))
    assert sorted(left) == [0] * 10 + [1, 2]  # type: ignore[type-var]
    assert await codes.redeem(question, code) == 0


async def test_concurrent_redemptions_accept_the_code_once(
    codes: CodeDriver,
    other_process: GatewayProcess,
    question: CodeRequest,
    vault: Vault,
    clock: FakeClock,
) -> None:
    code = await codes.issue(question)
    desks = [codes, CodeDriver(other_process, vault, clock)]
    left = await asyncio.gather(*(d.redeem(question, code) for d in desks * 5))
    assert left.count(None) == 1
    assert left.count(0) == 9
