"""What is tried again, and what becomes of money when answers are lost on the way."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from client.stage import AT_ONCE, Stage
from client.unsteady import ACT_AND_DROP, BUSY, DROP, HANG, SERVE, Unsteady, answer, refusal
from gateway.running import free_port
from tapgate.client import (
    AccessToken,
    ApiConnectionError,
    AsyncTapgateClient,
    OutcomeUnknownError,
    PosKey,
    RetryableError,
    RetryPolicy,
    TapgateClient,
    UnexpectedResponseError,
    exceptions,
)
from tapgate.client.records import P2pReceipt
from tapgate.client.retries import RetryBudget
from tapgate.clock import system_clock
from world import PIN


@pytest.fixture
async def unsteady(stage: Stage) -> AsyncIterator[Unsteady]:
    async with Unsteady(stage.transport).listening() as unsteady:
        yield unsteady


@pytest.fixture
async def gateway(stage: Stage, unsteady: Unsteady) -> AsyncIterator[AsyncTapgateClient]:
    async with AsyncTapgateClient(unsteady.url, stage.secret, retries=AT_ONCE) as gateway:
        yield gateway


class Payment:
    """100 from one subscriber to another."""

    def __init__(self, stage: Stage, sender_id: str, serial: str) -> None:
        self._stage = stage
        self._sender_id = sender_id
        self.asked: dict[str, Any] = {
            "sender_id": sender_id,
            "recipient_card_serial": serial,
            "amount": "100",
            "pin": PIN,
        }

    async def moved(self) -> int:
        """How many times the money left."""
        found = self._stage.service().transactions.list(user_id=self._sender_id)
        return len([one async for one in found if one.type == "transfer_p2p"])


@pytest.fixture
async def payment(stage: Stage) -> Payment:
    sender = await stage.world.subscriber(balance="1000")
    serial = await stage.world.card((await stage.world.subscriber())["id"])
    return Payment(stage, sender["id"], serial)


@pytest.mark.parametrize(
    "plan",
    [
        [ACT_AND_DROP],
        [ACT_AND_DROP, ACT_AND_DROP, BUSY],
        [answer(502), ACT_AND_DROP, answer(504, "<html>")],
        [ACT_AND_DROP, refusal(500, "INTERNAL_ERROR"), DROP],
        [ACT_AND_DROP, refusal(429, "RATE_LIMITED", "Retry-After: 0")],
    ],
)
async def test_a_payment_whose_answer_was_lost_is_paid_once(
    gateway: AsyncTapgateClient, unsteady: Unsteady, payment: Payment, plan: list[Any]
) -> None:
    unsteady.plan = list(plan)
    receipt = await gateway.wallet.transfer_p2p(**payment.asked)
    assert receipt.replayed
    assert await payment.moved() == 1
    assert len({seen.body for seen in unsteady.seen}) == 1
    assert {seen.headers["x-request-id"] for seen in unsteady.seen} == {receipt.request_id}


@pytest.mark.parametrize("plan", [[DROP], [BUSY, DROP, BUSY], [answer(502)], [answer(503)]])
async def test_a_payment_that_did_not_arrive_is_sent_again(
    gateway: AsyncTapgateClient, unsteady: Unsteady, payment: Payment, plan: list[Any]
) -> None:
    unsteady.plan = list(plan)
    receipt = await gateway.wallet.transfer_p2p(**payment.asked)
    assert not receipt.replayed
    assert await payment.moved() == 1


async def test_a_payment_that_waits_is_tried_again_too(
    stage: Stage, unsteady: Unsteady, payment: Payment
) -> None:
    unsteady.plan = [ACT_AND_DROP, BUSY]

    def pay() -> P2pReceipt:
        with TapgateClient(unsteady.url, stage.secret, retries=AT_ONCE) as gateway:
            return gateway.wallet.transfer_p2p(**payment.asked)

    assert (await asyncio.to_thread(pay)).replayed
    assert await payment.moved() == 1


@pytest.mark.parametrize(
    "plan",
    [
        [ACT_AND_DROP, DROP, DROP, DROP],
        [ACT_AND_DROP, BUSY, BUSY, BUSY],
        [ACT_AND_DROP, refusal(401, "UNAUTHORIZED")],
        [ACT_AND_DROP, refusal(403, "FORBIDDEN")],
        [ACT_AND_DROP, answer(404, "<html>no such host</html>")],
        [ACT_AND_DROP, answer(200, "<html>welcome to the hotel</html>")],
        [ACT_AND_DROP, refusal(429, "RATE_LIMITED", "Retry-After: 3600")],
    ],
)
async def test_when_nobody_knows_the_request_id_to_try_again_with_is_told(
    gateway: AsyncTapgateClient, unsteady: Unsteady, payment: Payment, plan: list[Any]
) -> None:
    unsteady.plan = list(plan)
    with pytest.raises(OutcomeUnknownError) as unknown:
        await gateway.wallet.transfer_p2p(**payment.asked)
    request_id = unknown.value.request_id
    assert request_id in str(unknown.value)
    assert not unsteady.plan
    receipt = await gateway.wallet.transfer_p2p(**payment.asked, request_id=request_id)
    assert receipt.replayed
    assert await payment.moved() == 1


async def test_not_even_503_says_that_nothing_happened_when_another_than_the_gateway_says_it(
    gateway: AsyncTapgateClient, unsteady: Unsteady, payment: Payment
) -> None:
    """Proxies also answer so when they lost the gateway in the middle of its answer."""
    unsteady.plan = [answer(503, "upstream reset before headers")] * 4
    with pytest.raises(OutcomeUnknownError):
        await gateway.wallet.transfer_p2p(**payment.asked)
    unsteady.plan = [BUSY] * 4
    with pytest.raises(RetryableError):
        await gateway.wallet.transfer_p2p(**payment.asked)


async def test_an_answer_that_cannot_be_read_is_none(
    gateway: AsyncTapgateClient, unsteady: Unsteady, payment: Payment
) -> None:
    unsteady.plan = [answer(200, "<html>welcome to the hotel</html>")]
    with pytest.raises(OutcomeUnknownError) as unknown:
        await gateway.wallet.transfer_p2p(**payment.asked, request_id="mine")
    assert isinstance(unknown.value.__cause__, UnexpectedResponseError)
    assert unknown.value.request_id == "mine"


async def test_a_decline_after_a_lost_answer_is_the_answer(
    gateway: AsyncTapgateClient, unsteady: Unsteady, payment: Payment
) -> None:
    unsteady.plan = [ACT_AND_DROP]
    with pytest.raises(exceptions.InsufficientBalanceError):
        await gateway.wallet.transfer_p2p(**payment.asked | {"amount": "4000"})


REGISTRATION = {"first_name": "Aminata", "last_name": "Kamara", "pin": PIN}


@pytest.mark.parametrize(
    "plan", [[ACT_AND_DROP], [DROP], [answer(504)], [answer(503)], [BUSY, BUSY, DROP]]
)
async def test_what_is_no_payment_is_not_repeated_when_it_may_have_happened(
    gateway: AsyncTapgateClient, unsteady: Unsteady, stage: Stage, plan: list[Any]
) -> None:
    unsteady.plan = [*plan, refusal(500, "MUST_NOT_BE_ASKED")]
    with pytest.raises(OutcomeUnknownError):
        await gateway.subscribers.register(phone_number=stage.world.phone(), **REGISTRATION)
    assert len(unsteady.seen) == len(plan)


async def test_what_is_no_payment_is_repeated_when_nothing_happened(
    gateway: AsyncTapgateClient, unsteady: Unsteady, stage: Stage
) -> None:
    unsteady.plan = [BUSY, refusal(429, "RATE_LIMITED", "Retry-After: 0"), SERVE]
    made = await gateway.subscribers.register(phone_number=stage.world.phone(), **REGISTRATION)
    assert (await gateway.subscribers.get(made.subscriber_id)) == made.subscriber


async def test_reading_is_repeated_whatever_happened(
    gateway: AsyncTapgateClient, unsteady: Unsteady
) -> None:
    unsteady.plan = [ACT_AND_DROP, answer(502), BUSY]
    assert (await gateway.account_rules.get(1)).kyc_level == 1
    unsteady.plan = [DROP] * 4
    with pytest.raises(ApiConnectionError):
        await gateway.account_rules.get(1)
    unsteady.plan = [answer(502, "<html>")] * 4
    with pytest.raises(ApiConnectionError):
        await gateway.account_rules.get(1)
    unsteady.plan = [BUSY] * 4
    with pytest.raises(exceptions.ServiceUnavailableError):
        await gateway.account_rules.get(1)


async def test_an_answer_that_does_not_come_in_time_is_asked_for_again(
    stage: Stage, unsteady: Unsteady, payment: Payment
) -> None:
    unsteady.plan = [HANG]
    async with AsyncTapgateClient(
        unsteady.url, stage.secret, retries=AT_ONCE, timeout=2
    ) as gateway:
        await gateway.wallet.transfer_p2p(**payment.asked)
    assert await payment.moved() == 1


async def test_what_is_gone_by_a_lost_answer_is_deleted(stage: Stage, unsteady: Unsteady) -> None:
    token = stage.token(await stage.world.admin())
    async with AsyncTapgateClient(unsteady.url, token, retries=AT_ONCE) as gateway:
        key = await gateway.admin.create_api_key(name="Shop", scopes=["cards:read"])
        unsteady.plan = [ACT_AND_DROP]
        await gateway.admin.delete_api_key(key.id)
        assert [seen.method for seen in unsteady.seen] == ["POST", "DELETE", "DELETE"]
        with pytest.raises(exceptions.NotFoundError):
            await gateway.admin.delete_api_key(key.id)


@pytest.mark.parametrize("effect", ["reads", "moves", "acts"])
async def test_nobody_there_is_not_an_unknown_outcome(effect: str) -> None:
    async with AsyncTapgateClient(f"http://127.0.0.1:{free_port()}", retries=AT_ONCE) as gateway:
        calls: dict[str, Callable[[], Any]] = {
            "reads": gateway.health,
            "moves": lambda: gateway.partners.fund("ptn_1", amount="1"),
            "acts": gateway.admin.logout,
        }
        with pytest.raises(ApiConnectionError):
            await calls[effect]()


async def test_every_try_is_signed_anew(stage: Stage, unsteady: Unsteady) -> None:
    key = await stage.world.processor()
    serial = await stage.world.card((await stage.world.subscriber(balance="50"))["id"])
    minutes = iter(range(-3, 3))
    later = lambda: system_clock() + timedelta(minutes=next(minutes))  # noqa: E731
    unsteady.plan = [DROP, BUSY]
    credential = PosKey(key.id, key.secret)
    async with AsyncTapgateClient(
        unsteady.url, credential, retries=AT_ONCE, clock=later
    ) as gateway:
        await gateway.pos.pay(card_serial=serial, amount="10")
    assert len({seen.headers["x-timestamp"] for seen in unsteady.seen}) == 3
    assert len({seen.headers["x-signature"] for seen in unsteady.seen}) == 3


async def test_a_long_wait_is_left_to_the_caller(
    gateway: AsyncTapgateClient, unsteady: Unsteady
) -> None:
    unsteady.plan = [refusal(429, "RATE_LIMITED", "Retry-After: 3600")]
    with pytest.raises(exceptions.RateLimitedError) as limited:
        await gateway.account_rules.get(1)
    assert limited.value.retry_after == 3600
    assert isinstance(limited.value, RetryableError)


@pytest.mark.parametrize(
    "came", [answer(200, "hello Ada"), answer(200, "{}"), answer(302), answer(404, "no Ada")]
)
async def test_what_is_not_the_gateway_is_not_believed(
    gateway: AsyncTapgateClient, unsteady: Unsteady, came: bytes
) -> None:
    unsteady.plan = [came]
    with pytest.raises(UnexpectedResponseError) as unexpected:
        await gateway.account_rules.get(1)
    assert "Ada" not in str(unexpected.value) + repr(unexpected.value)


async def test_without_retries_the_first_failure_is_the_last(
    stage: Stage, unsteady: Unsteady
) -> None:
    unsteady.plan = [BUSY]
    async with AsyncTapgateClient(
        unsteady.url, stage.secret, retries=RetryPolicy(max_attempts=1)
    ) as gateway:
        with pytest.raises(RetryableError):
            await gateway.account_rules.get(1)


async def test_a_sick_gateway_says_so(unsteady: Unsteady, gateway: AsyncTapgateClient) -> None:
    core = '{"healthy": false, "version": "1"}'
    body = f'{{"service": "tapgate", "version": "1", "healthy": false, "wallet_core": {core}}}'
    unsteady.plan = [answer(503, body)]
    assert not (await gateway.health()).healthy
    assert (await gateway.health()).healthy


def test_pauses_double_up_to_the_longest_and_end_in_time() -> None:
    seconds = 0.0
    patience = RetryBudget(
        RetryPolicy(max_attempts=7, initial_delay=1, max_delay=4, max_elapsed=60), lambda: seconds
    )
    for longest in (1, 2, 4, 4):
        pause = patience.next_delay(None)
        assert pause is not None and longest / 2 <= pause <= longest
    asked = patience.next_delay(20)
    assert asked is not None and 20 <= asked <= 22
    seconds = 59.0
    assert patience.next_delay(None) is None


def test_no_more_tries_than_said() -> None:
    patience = RetryBudget(RetryPolicy(max_attempts=3, initial_delay=0))
    assert [patience.next_delay(None) is None for _ in range(3)] == [False, False, True]


async def test_a_token_that_ended_is_not_tried_again(stage: Stage) -> None:
    with pytest.raises(exceptions.UnauthorizedError):
        await stage.awaited(AccessToken("nonsense")).admin.get_current_user()
