"""Failure mode: a retry moves the money twice."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import httpx2
import pytest
import time_machine

from client.builders import NO_BACKOFF
from client.flaky_server import (
    DROP,
    SERVE_AND_DROP,
    UNAVAILABLE_RESPONSE,
    FlakyServer,
    build_response,
)
from failure_modes.two_gateways import TwoGateways
from gateway.money_requests import CASES, ROUTES, count_entries, count_transactions, send_case
from harness import PIN, BearerAuth
from journeys.actors import new_request_id
from journeys.api_caller import require_error, require_success
from messenger.journeys.services_driver import ServicesDriver
from tapgate import ids
from tapgate.client import ApiKey, AsyncTapgateClient, PosKey
from tapgate.clock import system_clock
from tapgate.errors import unavailable
from tapgate.gateway import create_app
from tapgate.ledger.commands import LedgerCommand, Outcome
from tapgate.ledger.engine import Ledger

parametrize_routes = pytest.mark.parametrize("route", ROUTES)


@parametrize_routes
async def test_retry_moves_the_money_once(two_gateways: TwoGateways, route: str) -> None:
    """Every process must recognize the idempotency key, even after 32 days."""
    case = await CASES[route](two_gateways.harness)
    first = await send_case(two_gateways.harness, case, "one")
    assert first.status_code == 200, first.text
    entry_count = await count_entries(two_gateways.harness)
    replayed = await send_case(two_gateways.harness, case, "one", client=two_gateways.clients[1])
    assert (replayed.status_code, replayed.content) == (200, first.content)
    with time_machine.travel(system_clock() + timedelta(days=32), tick=True):
        renewed_case = case._replace(auth=await _renew_session(two_gateways, case.auth))
        replayed = await send_case(
            two_gateways.harness, renewed_case, "one", client=two_gateways.clients[1]
        )
        assert (replayed.status_code, replayed.content) == (200, first.content)
    assert await count_entries(two_gateways.harness) == entry_count


async def _renew_session(two_gateways: TwoGateways, auth: Any) -> Any:
    """Return a new session if the caller is an admin, because the old session has expired."""
    admin_id = ids.decode(ids.ADMIN, auth.id)
    if admin_id is None:
        return auth
    services = two_gateways.harness.services
    async with services.transaction() as tx:
        tokens = await services.authenticator.sessions.start(tx, admin_id)
    return BearerAuth(tokens.token, auth.id)


async def test_retry_with_the_key_in_the_header_moves_the_money_once(
    two_gateways: TwoGateways,
) -> None:
    """The key in the body and the key in the header share one namespace."""
    aminata, terminal = (
        await two_gateways.create_customer("100"),
        (await two_gateways.create_merchant()).server,
    )
    request_id = new_request_id()
    first = await terminal.pay("10", aminata.card, request_id=request_id)
    body = {"card_serial": aminata.card, "amount": "10"}
    replayed = await two_gateways.clients[1].post(
        "/api/v1/pos/payment",
        json=body,
        auth=terminal.auth,
        headers={"Idempotency-Key": request_id},
    )
    assert replayed.content == first.content
    assert await aminata.get_balance() == "90.00"


async def test_retry_after_a_client_timeout_moves_the_money_once(two_gateways: TwoGateways) -> None:
    """The client gives up on a request in progress and retries at another process."""
    aminata, terminal = (
        await two_gateways.create_customer("100"),
        (await two_gateways.create_merchant()).server,
    )
    idempotency = {"request_id": new_request_id()}
    async with two_gateways.harness.services.transaction() as tx:
        await tx.fetch(
            "SELECT FROM accounts WHERE owner_id = $1 FOR UPDATE",
            ids.decode(ids.SUBSCRIBER, aminata.id),
        )
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await terminal.pay("10", aminata.card, **idempotency)
        retry = asyncio.create_task(
            terminal.with_client(two_gateways.clients[1]).pay("10", aminata.card, **idempotency)
        )
        await asyncio.sleep(0.1)
    assert require_success(await retry)["remaining_balance"] == "90.00 SLE"
    assert await aminata.get_balance() == "90.00"
    assert await count_transactions(two_gateways.harness, idempotency["request_id"]) == 1


async def test_retry_after_a_commit_with_a_lost_response_moves_the_money_once(
    two_gateways: TwoGateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database committed, but the gateway lost the connection and returned 503."""
    aminata, terminal = (
        await two_gateways.create_customer("100"),
        (await two_gateways.create_merchant()).server,
    )
    run_batch, request_ids = Ledger._run_batch, [new_request_id() for _ in range(5)]

    async def run_and_disconnect(
        ledger: Ledger, commands: Sequence[LedgerCommand]
    ) -> list[Outcome]:
        await run_batch(ledger, commands)
        raise unavailable("The database cannot be reached")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_run_batch", run_and_disconnect)
        responses = await asyncio.gather(
            *(terminal.pay("10", aminata.card, request_id=request_id) for request_id in request_ids)
        )
    assert {require_error(response) for response in responses} == {(503, "SERVICE_UNAVAILABLE")}
    for request_id in request_ids:
        replayed = await terminal.with_client(two_gateways.clients[1]).pay(
            "10", aminata.card, request_id=request_id
        )
        assert replayed.headers["Idempotent-Replayed"] == "true"
    assert await aminata.get_balance() == "50.00"


async def test_retry_of_a_decline_returns_the_same_decline(two_gateways: TwoGateways) -> None:
    """A declined payment must not succeed later when its request is retried."""
    aminata, terminal = (
        await two_gateways.create_customer("5"),
        (await two_gateways.create_merchant()).server,
    )
    idempotency = {"request_id": new_request_id()}
    assert require_error(await terminal.pay("10", aminata.card, **idempotency)) == (
        402,
        "INSUFFICIENT_FUNDS",
    )
    await two_gateways.harness.deposit(aminata.id, "100")
    replayed = await terminal.with_client(two_gateways.clients[1]).pay(
        "10", aminata.card, **idempotency
    )
    assert require_error(replayed) == (402, "INSUFFICIENT_FUNDS")
    assert await aminata.get_balance() == "105.00"


@pytest.fixture
async def flaky_server(two_gateways: TwoGateways) -> AsyncIterator[FlakyServer]:
    """Flaky server in front of the gateway."""
    transport = httpx2.ASGITransport(create_app(two_gateways.harness.services))
    async with FlakyServer(transport).listen() as server:
        yield server


FAILURE_PLANS = [
    [SERVE_AND_DROP],
    [DROP, SERVE_AND_DROP, UNAVAILABLE_RESPONSE],
    [SERVE_AND_DROP, build_response(502), SERVE_AND_DROP],
]


@pytest.mark.parametrize("plan", FAILURE_PLANS)
async def test_retries_by_the_client_library_move_the_money_once(
    two_gateways: TwoGateways, flaky_server: FlakyServer, plan: list[str | bytes]
) -> None:
    """Automatic retries must reuse the idempotency key."""
    aminata, merchant = (
        await two_gateways.create_customer("100"),
        await two_gateways.create_merchant(),
    )
    agent = await two_gateways.create_agent("100")
    key, terminal_auth = two_gateways.app.auth, merchant.server.auth
    assert isinstance(key, BearerAuth)
    pos = PosKey(terminal_auth.id, terminal_auth.secret)
    async with (
        AsyncTapgateClient(flaky_server.url, pos, retries=NO_BACKOFF) as merchant_client,
        AsyncTapgateClient(
            flaky_server.url, ApiKey(key._credential), retries=NO_BACKOFF
        ) as agent_client,
    ):
        flaky_server.behaviors = list(plan)
        paid = await merchant_client.pos.pay(card_serial=aminata.card, amount="10")
        flaky_server.behaviors = list(plan)
        refund = await merchant_client.pos.refund(
            original_transaction_id=paid.transaction_id, reason="returned", amount="4"
        )
        flaky_server.behaviors = list(plan)
        cash = await agent_client.agents.cash_in(
            agent_id=agent.id, subscriber_id=aminata.id, amount="17", agent_pin=agent.pin
        )
    assert (paid.replayed, refund.replayed, cash.replayed) == (True, True, True)
    assert await aminata.get_balance() == "111.00"
    assert await agent.get_balances() == ("83.00", "0.17")


class ResponseDroppingTransport(httpx2.AsyncBaseTransport):
    """Transport from messenger to gateway that drops the first `drop_count` transfer responses."""

    def __init__(self, transport: httpx2.AsyncBaseTransport, drop_count: int) -> None:
        self._transport = transport
        self._drops_left = drop_count

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._transport.handle_async_request(request)
        if request.url.path.endswith("transfer-p2p") and self._drops_left:
            self._drops_left -= 1
            await response.aclose()
            raise httpx2.ReadError("the response was lost", request=request)
        return response


@pytest.mark.parametrize("drop_count", [1, 2])
async def test_chat_transfer_with_a_lost_response_moves_the_money_once(
    two_gateways: TwoGateways, database_url: str, drop_count: int
) -> None:
    """The messenger does not know the outcome, and the user confirms again."""
    aminata, mohamed = (
        await two_gateways.create_customer("100"),
        await two_gateways.create_customer(),
    )
    transport = ResponseDroppingTransport(
        httpx2.ASGITransport(create_app(two_gateways.harness.services)), drop_count
    )
    services_driver = ServicesDriver(two_gateways.harness, database_url)
    async with services_driver.run_messenger(http=transport) as messenger:
        phone = messenger.create_phone(aminata.phone)
        await phone.send_by_bridge(f"send 10 to {mohamed.card}")
        await phone.send_by_bridge("yes")
        await phone.send_by_bridge(PIN)
        for repeated in ("yes", PIN):
            await phone.send_by_bridge(repeated)
    assert len(await services_driver.list_transfers(aminata.id)) == 1
    assert [await aminata.get_balance(), await mohamed.get_balance()] == ["89.85", "10.00"]


async def test_partner_webhook_retried_after_a_phone_number_change_credits_no_other_subscriber(
    two_gateways: TwoGateways,
) -> None:
    """The phone number moves to another subscriber between two deliveries of one webhook."""
    bank, aminata, mohamed = (
        await two_gateways.create_bank("100"),
        await two_gateways.create_customer(),
        await two_gateways.create_customer(),
    )
    require_success(await bank.send_webhook("10", aminata, "INV-1"))
    old_phone = aminata.phone
    require_success(
        await two_gateways.admin.put(
            f"subscribers/{aminata.id}", phone_number=two_gateways.harness.new_phone_number()
        )
    )
    require_success(
        await two_gateways.admin.put(f"subscribers/{mohamed.id}", phone_number=old_phone)
    )
    mohamed.phone = old_phone
    retried = await bank.with_client(two_gateways.clients[1]).send_webhook("10", mohamed, "INV-1")
    assert require_error(retried) == (409, "DUPLICATE_REFERENCE")
    assert [await aminata.get_balance(), await mohamed.get_balance()] == ["10.00", "0.00"]
