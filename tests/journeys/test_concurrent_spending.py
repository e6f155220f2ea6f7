"""Concurrent requests to two processes: balances, limits and attempt counts hold."""

import httpx2
import pytest

from harness import PIN, WRONG_PIN
from journeys.actors import Customer, Merchant, new_request_id
from journeys.admin import Admin
from journeys.api_caller import require_error, require_error_details, require_success
from journeys.concurrency import (
    Client,
    PendingResponse,
    SendRequest,
    count_outcomes,
    send_round_robin,
)
from journeys.deployment import Deployment


@pytest.fixture(scope="module", autouse=True)
async def _disable_compliance_rules(module_deployment: Deployment) -> None:
    await module_deployment.disable_compliance_rules()


@pytest.fixture
async def merchant(ada: Admin) -> Merchant:
    return await ada.create_merchant()


async def send_concurrently(
    deployment: Deployment, *requests: SendRequest
) -> list[httpx2.Response]:
    async with deployment.open_client_per_process() as clients:
        assert len(clients) == 2
        return await send_round_robin(clients, *requests)


async def create_customer(ada: Admin, balance: str) -> Customer:
    return await ada.create_funded_customer(balance, await ada.create_app())


async def test_concurrent_payments_cannot_overdraw_a_wallet(
    deployment: Deployment, ada: Admin, merchant: Merchant
) -> None:
    aminata = await create_customer(ada, "100.00")

    def pay(client: Client) -> PendingResponse:
        return merchant.server.with_client(client).pay("1.00", aminata.card)

    responses = await send_concurrently(deployment, *[pay] * 200)
    assert count_outcomes(responses) == {200: 100, (402, "INSUFFICIENT_FUNDS"): 100}
    assert await aminata.get_balance() == "0.00"
    assert await ada.get_balance(merchant.id) == "99.00"
    # Each payment saw a different balance.
    balances = {
        require_success(response)["remaining_balance"]
        for response in responses
        if response.is_success
    }
    assert balances == {f"{number}.00 SLE" for number in range(100)}


async def test_concurrent_refunds_cannot_exceed_the_payment(
    deployment: Deployment, ada: Admin, merchant: Merchant
) -> None:
    aminata, terminal = await create_customer(ada, "100.00"), merchant.server
    paid = require_success(await terminal.pay("100.00", aminata.card))["transaction_id"]
    responses = await send_concurrently(
        deployment, *[lambda client: terminal.with_client(client).refund(paid, "7.00")] * 20
    )
    assert count_outcomes(responses) == {200: 14, (422, "REFUND_EXCEEDS_REMAINING"): 6}
    assert await aminata.get_balance() == "98.00"
    # Concurrent refunds of the remaining amount succeed once.
    responses = await send_concurrently(
        deployment, *[lambda client: terminal.with_client(client).refund(paid)] * 10
    )
    assert count_outcomes(responses) == {200: 1, (409, "ALREADY_REFUNDED"): 9}
    assert await aminata.get_balance() == "100.00"
    assert await ada.get_balance(merchant.id) == "0.00"


async def test_concurrent_payments_cannot_exceed_the_daily_limit(
    deployment: Deployment, ada: Admin, merchant: Merchant
) -> None:
    aminata, mohamed = await create_customer(ada, "300000.00"), await create_customer(ada, "1.00")
    terminal = merchant.server

    def pay(client: Client) -> PendingResponse:
        return terminal.with_client(client).pay("15000", aminata.card, PIN)

    def send(client: Client) -> PendingResponse:
        return aminata.with_client(client).send_money("15000", mohamed)

    responses = await send_concurrently(deployment, *[pay, pay, send, send] * 5)
    # KYC level 1 allows 100,000 per day.
    assert count_outcomes(responses) == {200: 6, (403, "DAILY_LIMIT_EXCEEDED"): 14}
    used = {
        require_error_details(response)["used"] for response in responses if not response.is_success
    }
    assert used == {"90000.00"}
    require_success(await terminal.pay("10000", aminata.card, PIN))
    assert require_error(await terminal.pay("0.01", aminata.card)) == (403, "DAILY_LIMIT_EXCEEDED")


async def test_concurrent_duplicates_of_one_request_pay_once(
    deployment: Deployment, ada: Admin, merchant: Merchant
) -> None:
    aminata, same_request_id = (
        await create_customer(ada, "100.00"),
        {"request_id": new_request_id()},
    )

    def pay(client: Client) -> PendingResponse:
        return merchant.server.with_client(client).pay("10.00", aminata.card, **same_request_id)

    responses = await send_concurrently(deployment, *[pay] * 50)
    assert count_outcomes(responses) == {200: 50}
    assert len({response.content for response in responses}) == 1
    replayed = [response for response in responses if "Idempotent-Replayed" in response.headers]
    assert len(replayed) == 49
    assert await aminata.get_balance() == "90.00"


async def test_concurrent_requests_with_one_idempotency_key_and_two_amounts_execute_one_payment(
    deployment: Deployment, ada: Admin, merchant: Merchant
) -> None:
    aminata, same_request_id = (
        await create_customer(ada, "100.00"),
        {"request_id": new_request_id()},
    )

    def pay_twenty(client: Client) -> PendingResponse:
        return merchant.server.with_client(client).pay("20.00", aminata.card, **same_request_id)

    def pay_thirty(client: Client) -> PendingResponse:
        return merchant.server.with_client(client).pay("30.00", aminata.card, **same_request_id)

    responses = await send_concurrently(deployment, *[pay_twenty, pay_thirty] * 20)
    assert count_outcomes(responses) == {200: 20, (409, "DUPLICATE_REQUEST"): 20}
    (amount,) = {
        require_success(response)["amount"] for response in responses if response.is_success
    }
    expected = {"20.00 SLE": "80.00", "30.00 SLE": "70.00"}
    assert await aminata.get_balance() == expected[amount]


async def test_concurrent_transfers_in_both_directions_all_succeed(
    deployment: Deployment, ada: Admin
) -> None:
    aminata, mohamed = await create_customer(ada, "1000.00"), await create_customer(ada, "1000.00")

    def send_to_mohamed(client: Client) -> PendingResponse:
        return aminata.with_client(client).send_money("1.00", mohamed)

    def send_to_aminata(client: Client) -> PendingResponse:
        return mohamed.with_client(client).send_money("1.00", aminata)

    responses = await send_concurrently(
        deployment, *[send_to_mohamed, send_to_mohamed, send_to_aminata, send_to_aminata] * 25
    )
    assert count_outcomes(responses) == {200: 100}
    # Each customer paid fifty fees of 1.5 cents, rounded half up to two cents.
    assert [await aminata.get_balance(), await mohamed.get_balance()] == ["999.00", "999.00"]


async def test_concurrent_wrong_pins_share_three_attempts(
    deployment: Deployment, ada: Admin, merchant: Merchant
) -> None:
    aminata, mohamed = await create_customer(ada, "100.00"), await create_customer(ada, "1.00")
    terminal, url = merchant.server, f"subscribers/{aminata.id}/verify-pin"
    # POS, app and P2P share one failure count.
    tries: list[SendRequest] = [
        lambda client: terminal.with_client(client).pay("1.00", aminata.card, WRONG_PIN),
        lambda client: terminal.with_client(client).verify_card(aminata.card, WRONG_PIN),
        lambda client: aminata.app.with_client(client).post(url, pin=WRONG_PIN),
        lambda client: aminata.with_client(client).send_money("1.00", mohamed, pin=WRONG_PIN),
        lambda client: terminal.with_client(client).verify_card(aminata.card, "0000"),
    ]
    responses = await send_concurrently(deployment, *tries * 8)
    assert count_outcomes(responses) == {(400, "INVALID_PIN"): 3, (403, "ACCOUNT_LOCKED"): 37}
    evaluated = [
        require_error_details(response) for response in responses if response.status_code == 400
    ]
    assert sorted(item["attempts_remaining"] for item in evaluated) == [0, 1, 2]
    locks = {
        require_error_details(response)["locked_until"]
        for response in responses
        if response.status_code == 403
    }
    assert len(locks) == 1
    assert require_error(await terminal.pay("1.00", aminata.card, PIN)) == (403, "ACCOUNT_LOCKED")
    assert await aminata.get_balance() == "100.00"
