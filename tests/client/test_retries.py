"""Retries over HTTP: money moves once even if requests or responses are lost."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from cases import each
from drivers.in_process import NO_BACKOFF, ClientFactory
from drivers.network_faults import (
    DROP,
    HANG,
    SERVE,
    SERVE_AND_DROP,
    UNAVAILABLE_RESPONSE,
    FlakyServer,
    build_error_response,
    build_response,
)
from drivers.processes import free_port
from harness import PIN
from tapgate_client import (
    AccessToken,
    ApiConnectionError,
    AsyncTapgateClient,
    AuthenticationError,
    DeclinedError,
    NotFoundError,
    OutcomeUnknownError,
    PosKey,
    RateLimitedError,
    RetryPolicy,
    TapgateClient,
    UnavailableError,
    UnexpectedResponseError,
)
from tapgate_client.clock import system_clock
from tapgate_client.retries import RetryBudget
from tapgate_client.schemas.wallets import P2pReceipt


@pytest.fixture
async def flaky_server(client_factory: ClientFactory) -> AsyncIterator[FlakyServer]:
    async with FlakyServer(client_factory.transport).listen() as server:
        yield server


@pytest.fixture
async def gateway(
    client_factory: ClientFactory, flaky_server: FlakyServer
) -> AsyncIterator[AsyncTapgateClient]:
    async with AsyncTapgateClient(
        flaky_server.url, client_factory.secret, retries=NO_BACKOFF
    ) as gateway:
        yield gateway


class TransferProbe:
    """The request for a transfer of 100, and a counter for executed transfers."""

    def __init__(self, client_factory: ClientFactory, sender_id: str, serial: str) -> None:
        self._client_factory = client_factory
        self._sender_id = sender_id
        self.request: dict[str, Any] = {
            "sender_id": sender_id,
            "recipient_card_serial": serial,
            "amount": "100",
            "pin": PIN,
        }

    async def count_transfers(self) -> int:
        """Return the number of P2P transfers from the sender."""
        transactions = self._client_factory.create_for_service().transactions.list(
            user_id=self._sender_id
        )
        return len(
            [
                transaction
                async for transaction in transactions
                if transaction.type == "transfer_p2p"
            ]
        )


@pytest.fixture
async def transfer_probe(client_factory: ClientFactory) -> TransferProbe:
    sender = await client_factory.harness.create_subscriber(balance="1000")
    serial = await client_factory.harness.create_card(
        (await client_factory.harness.create_subscriber())["id"]
    )
    return TransferProbe(client_factory, sender["id"], serial)


@pytest.mark.parametrize(
    "behaviors",
    [
        [SERVE_AND_DROP],
        [SERVE_AND_DROP, SERVE_AND_DROP, UNAVAILABLE_RESPONSE],
        [build_response(502), SERVE_AND_DROP, build_response(504, "<html>")],
        [SERVE_AND_DROP, build_error_response(500, "INTERNAL_ERROR"), DROP],
        [SERVE_AND_DROP, build_error_response(429, "RATE_LIMITED", "Retry-After: 0")],
    ],
)
async def test_transfer_with_a_lost_response_is_executed_once(
    gateway: AsyncTapgateClient,
    flaky_server: FlakyServer,
    transfer_probe: TransferProbe,
    behaviors: list[Any],
) -> None:
    flaky_server.behaviors = list(behaviors)
    receipt = await gateway.wallet.transfer_p2p(**transfer_probe.request)
    assert receipt.replayed
    assert await transfer_probe.count_transfers() == 1
    assert len({request.body for request in flaky_server.requests}) == 1
    expected = {receipt.request_id}
    assert {request.headers["x-request-id"] for request in flaky_server.requests} == expected


@pytest.mark.parametrize(
    "behaviors",
    [
        [DROP],
        [UNAVAILABLE_RESPONSE, DROP, UNAVAILABLE_RESPONSE],
        [build_response(502)],
        [build_response(503)],
    ],
)
async def test_transfer_that_was_not_executed_is_retried(
    gateway: AsyncTapgateClient,
    flaky_server: FlakyServer,
    transfer_probe: TransferProbe,
    behaviors: list[Any],
) -> None:
    flaky_server.behaviors = list(behaviors)
    receipt = await gateway.wallet.transfer_p2p(**transfer_probe.request)
    assert not receipt.replayed
    assert await transfer_probe.count_transfers() == 1


async def test_transfer_retried_by_the_sync_client_is_executed_once(
    client_factory: ClientFactory, flaky_server: FlakyServer, transfer_probe: TransferProbe
) -> None:
    flaky_server.behaviors = [SERVE_AND_DROP, UNAVAILABLE_RESPONSE]

    def pay() -> P2pReceipt:
        with TapgateClient(flaky_server.url, client_factory.secret, retries=NO_BACKOFF) as gateway:
            return gateway.wallet.transfer_p2p(**transfer_probe.request)

    assert (await asyncio.to_thread(pay)).replayed
    assert await transfer_probe.count_transfers() == 1


@pytest.mark.parametrize(
    "behaviors",
    [
        [SERVE_AND_DROP, DROP, DROP, DROP],
        [SERVE_AND_DROP, UNAVAILABLE_RESPONSE, UNAVAILABLE_RESPONSE, UNAVAILABLE_RESPONSE],
        [SERVE_AND_DROP, build_error_response(401, "UNAUTHORIZED")],
        [SERVE_AND_DROP, build_error_response(403, "FORBIDDEN")],
        [SERVE_AND_DROP, build_response(404, "<html>no such host</html>")],
        [SERVE_AND_DROP, build_response(200, "<html>welcome to the hotel</html>")],
        [SERVE_AND_DROP, build_error_response(429, "RATE_LIMITED", "Retry-After: 3600")],
    ],
)
async def test_unknown_outcome_reports_the_request_id_to_retry_with(
    gateway: AsyncTapgateClient,
    flaky_server: FlakyServer,
    transfer_probe: TransferProbe,
    behaviors: list[Any],
) -> None:
    flaky_server.behaviors = list(behaviors)
    with pytest.raises(OutcomeUnknownError) as unknown:
        await gateway.wallet.transfer_p2p(**transfer_probe.request)
    request_id = unknown.value.request_id
    assert request_id in str(unknown.value)
    assert not flaky_server.behaviors
    receipt = await gateway.wallet.transfer_p2p(**transfer_probe.request, request_id=request_id)
    assert receipt.replayed
    assert await transfer_probe.count_transfers() == 1


async def test_503_from_a_proxy_leaves_the_outcome_unknown(
    gateway: AsyncTapgateClient, flaky_server: FlakyServer, transfer_probe: TransferProbe
) -> None:
    """A proxy may return 503 after it has forwarded the request and lost the connection."""
    flaky_server.behaviors = [build_response(503, "upstream reset before headers")] * 4
    with pytest.raises(OutcomeUnknownError):
        await gateway.wallet.transfer_p2p(**transfer_probe.request)
    flaky_server.behaviors = [UNAVAILABLE_RESPONSE] * 4
    with pytest.raises(UnavailableError):
        await gateway.wallet.transfer_p2p(**transfer_probe.request)


async def test_unreadable_response_leaves_the_outcome_unknown(
    gateway: AsyncTapgateClient, flaky_server: FlakyServer, transfer_probe: TransferProbe
) -> None:
    flaky_server.behaviors = [build_response(200, "<html>welcome to the hotel</html>")]
    with pytest.raises(OutcomeUnknownError) as unknown:
        await gateway.wallet.transfer_p2p(**transfer_probe.request, request_id="mine")
    assert isinstance(unknown.value.__cause__, UnexpectedResponseError)
    assert unknown.value.request_id == "mine"


async def test_decline_after_a_lost_response_is_raised(
    gateway: AsyncTapgateClient, flaky_server: FlakyServer, transfer_probe: TransferProbe
) -> None:
    flaky_server.behaviors = [SERVE_AND_DROP]
    with pytest.raises(DeclinedError) as declined:
        await gateway.wallet.transfer_p2p(**transfer_probe.request | {"amount": "4000"})
    assert declined.value.code == "INSUFFICIENT_FUNDS"


REGISTRATION = {"first_name": "Aminata", "last_name": "Kamara", "pin": PIN}


@pytest.mark.parametrize(
    "behaviors",
    [
        [SERVE_AND_DROP],
        [DROP],
        [build_response(504)],
        [build_response(503)],
        [UNAVAILABLE_RESPONSE, UNAVAILABLE_RESPONSE, DROP],
    ],
)
async def test_non_idempotent_write_is_not_retried_if_it_may_have_been_executed(
    gateway: AsyncTapgateClient,
    flaky_server: FlakyServer,
    client_factory: ClientFactory,
    behaviors: list[Any],
) -> None:
    flaky_server.behaviors = [*behaviors, build_error_response(500, "MUST_NOT_BE_REQUESTED")]
    with pytest.raises(OutcomeUnknownError):
        await gateway.subscribers.register(
            phone_number=client_factory.harness.new_phone_number(), **REGISTRATION
        )
    assert len(flaky_server.requests) == len(behaviors)


async def test_non_idempotent_write_is_retried_if_it_was_not_executed(
    gateway: AsyncTapgateClient, flaky_server: FlakyServer, client_factory: ClientFactory
) -> None:
    flaky_server.behaviors = [
        UNAVAILABLE_RESPONSE,
        build_error_response(429, "RATE_LIMITED", "Retry-After: 0"),
        SERVE,
    ]
    created = await gateway.subscribers.register(
        phone_number=client_factory.harness.new_phone_number(), **REGISTRATION
    )
    assert (await gateway.subscribers.get(created.subscriber_id)) == created.subscriber


async def test_read_is_retried_after_any_failure(
    gateway: AsyncTapgateClient, flaky_server: FlakyServer
) -> None:
    flaky_server.behaviors = [SERVE_AND_DROP, build_response(502), UNAVAILABLE_RESPONSE]
    assert (await gateway.account_rules.get(1)).kyc_level == 1
    flaky_server.behaviors = [DROP] * 4
    with pytest.raises(ApiConnectionError):
        await gateway.account_rules.get(1)
    flaky_server.behaviors = [build_response(502, "<html>")] * 4
    with pytest.raises(ApiConnectionError):
        await gateway.account_rules.get(1)
    flaky_server.behaviors = [UNAVAILABLE_RESPONSE] * 4
    with pytest.raises(UnavailableError):
        await gateway.account_rules.get(1)


async def test_transfer_is_retried_after_a_timeout(
    client_factory: ClientFactory, flaky_server: FlakyServer, transfer_probe: TransferProbe
) -> None:
    flaky_server.behaviors = [HANG]
    async with AsyncTapgateClient(
        flaky_server.url, client_factory.secret, retries=NO_BACKOFF, timeout=2
    ) as gateway:
        await gateway.wallet.transfer_p2p(**transfer_probe.request)
    assert await transfer_probe.count_transfers() == 1


async def test_delete_retried_after_a_lost_response_succeeds_despite_the_404(
    client_factory: ClientFactory, flaky_server: FlakyServer
) -> None:
    token = client_factory.get_token(await client_factory.harness.create_admin())
    async with AsyncTapgateClient(flaky_server.url, token, retries=NO_BACKOFF) as gateway:
        key = await gateway.admin.create_api_key(name="Shop", scopes=["cards:read"])
        flaky_server.behaviors = [SERVE_AND_DROP]
        await gateway.admin.delete_api_key(key.id)
        assert [request.method for request in flaky_server.requests] == ["POST", "DELETE", "DELETE"]
        with pytest.raises(NotFoundError):
            await gateway.admin.delete_api_key(key.id)


@each("effect", ["reads", "moves", "acts"])
async def test_refused_connection_raises_a_connection_error_for_every_effect(effect: str) -> None:
    async with AsyncTapgateClient(f"http://127.0.0.1:{free_port()}", retries=NO_BACKOFF) as gateway:
        calls: dict[str, Callable[[], Any]] = {
            "reads": gateway.system.get_health,
            "moves": lambda: gateway.partners.fund("ptn_1", amount="1"),
            "acts": gateway.admin.log_out,
        }
        with pytest.raises(ApiConnectionError):
            await calls[effect]()


async def test_every_attempt_has_a_new_signature(
    client_factory: ClientFactory, flaky_server: FlakyServer
) -> None:
    key = await client_factory.harness.create_processor()
    serial = await client_factory.harness.create_card(
        (await client_factory.harness.create_subscriber(balance="50"))["id"]
    )
    minutes = iter(range(-3, 3))
    later = lambda: system_clock() + timedelta(minutes=next(minutes))  # noqa: E731
    flaky_server.behaviors = [DROP, UNAVAILABLE_RESPONSE]
    credential = PosKey(key.id, key.secret)
    async with AsyncTapgateClient(
        flaky_server.url, credential, retries=NO_BACKOFF, clock=later
    ) as gateway:
        await gateway.pos.pay(card_serial=serial, amount="10")
    assert len({request.headers["x-timestamp"] for request in flaky_server.requests}) == 3
    assert len({request.headers["x-signature"] for request in flaky_server.requests}) == 3


async def test_retry_after_beyond_the_retry_budget_is_raised_to_the_caller(
    gateway: AsyncTapgateClient, flaky_server: FlakyServer
) -> None:
    flaky_server.behaviors = [build_error_response(429, "RATE_LIMITED", "Retry-After: 3600")]
    with pytest.raises(RateLimitedError) as limited:
        await gateway.account_rules.get(1)
    assert limited.value.retry_after == 3600


@pytest.mark.parametrize(
    "received",
    [
        build_response(200, "hello Ada"),
        build_response(200, "{}"),
        build_response(302),
        build_response(404, "no Ada"),
    ],
)
async def test_response_from_another_server_raises_an_error_that_does_not_quote_it(
    gateway: AsyncTapgateClient, flaky_server: FlakyServer, received: bytes
) -> None:
    flaky_server.behaviors = [received]
    with pytest.raises(UnexpectedResponseError) as unexpected:
        await gateway.account_rules.get(1)
    assert "Ada" not in str(unexpected.value) + repr(unexpected.value)


async def test_first_failure_is_raised_when_retries_are_disabled(
    client_factory: ClientFactory, flaky_server: FlakyServer
) -> None:
    flaky_server.behaviors = [UNAVAILABLE_RESPONSE]
    async with AsyncTapgateClient(
        flaky_server.url, client_factory.secret, retries=RetryPolicy(max_attempts=1)
    ) as gateway:
        with pytest.raises(UnavailableError):
            await gateway.account_rules.get(1)


async def test_unhealthy_gateway_is_reported_by_health(
    flaky_server: FlakyServer, gateway: AsyncTapgateClient
) -> None:
    core = '{"healthy": false, "version": "1"}'
    body = f'{{"service": "tapgate", "version": "1", "healthy": false, "wallet_core": {core}}}'
    flaky_server.behaviors = [build_response(503, body)]
    assert not (await gateway.system.get_health()).healthy
    assert (await gateway.system.get_health()).healthy


def test_delays_double_up_to_the_maximum_and_end_with_the_budget() -> None:
    seconds = 0.0
    budget = RetryBudget(
        RetryPolicy(max_attempts=7, initial_delay=1, max_delay=4, max_elapsed=60), lambda: seconds
    )
    for max_delay in (1, 2, 4, 4):
        delay = budget.next_delay(None)
        assert delay is not None and max_delay / 2 <= delay <= max_delay
    delay_with_retry_after = budget.next_delay(20)
    assert delay_with_retry_after is not None and 20 <= delay_with_retry_after <= 22
    seconds = 59.0
    assert budget.next_delay(None) is None


def test_number_of_attempts_is_limited() -> None:
    budget = RetryBudget(RetryPolicy(max_attempts=3, initial_delay=0))
    assert [budget.next_delay(None) is None for _ in range(3)] == [False, False, True]


async def test_invalid_access_token_is_not_retried(client_factory: ClientFactory) -> None:
    with pytest.raises(AuthenticationError):
        await client_factory.create_async(AccessToken("nonsense")).admin.get_me()
