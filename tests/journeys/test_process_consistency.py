"""Two operating system processes: changes apply in both, and both share balances and attempts."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from drivers.actors import (
    Admin,
    App,
    Customer,
    Terminal,
    require_error,
    require_error_details,
    require_success,
)
from drivers.deployments import Deployment
from drivers.processes import Client, PendingResponse, SendRequest, count_outcomes, send_round_robin
from drivers.webhooks import WebhookReceiver, wait_until_equal
from harness import PIN, WRONG_PIN


@pytest.fixture
async def app(ada: Admin) -> App:
    return await ada.create_app()


@pytest.fixture
async def aminata(ada: Admin, app: App) -> Customer:
    return await ada.create_funded_customer("100000.00", app)


@pytest.fixture
async def terminal(ada: Admin) -> Terminal:
    return (await ada.create_merchant()).server


@pytest.fixture
async def process_clients(
    deployment: Deployment, aminata: Customer, terminal: Terminal
) -> AsyncIterator[list[httpx2.AsyncClient]]:
    """Yield one client per process; each process has cached the rules by taking a payment."""
    async with deployment.open_client_per_process() as clients:
        for client in clients:
            require_success(await terminal.with_client(client).pay("1.00", aminata.card))
        yield clients


async def test_compliance_rule_change_applies_in_every_process(
    ada: Admin, aminata: Customer, terminal: Terminal, process_clients: list[httpx2.AsyncClient]
) -> None:
    rules = require_success(await ada.get("compliance/rules"))["data"]
    (large,) = [rule["id"] for rule in rules if rule["name"] == "Large amount"]
    for index, threshold, status in (
        (0, "100", "under_review"),
        (1, "500000", "completed"),
        (1, "100", "under_review"),
        (0, "500000", "completed"),
    ):
        require_success(
            await ada.with_client(process_clients[index]).put(
                f"compliance/rules/{large}", threshold=threshold, status="active"
            )
        )
        for client in process_clients:
            paid = require_success(await terminal.with_client(client).pay("101.00", aminata.card))
            assert paid["status"] == status


async def test_fee_change_applies_in_every_process(
    ada: Admin, aminata: Customer, terminal: Terminal, process_clients: list[httpx2.AsyncClient]
) -> None:
    before = require_success(await ada.get("fee-rules"))["data"]
    doubled = [{**rule, "rate": "2"} if rule["type"] == "pos_payment" else rule for rule in before]
    for index, rules, fee in ((0, doubled, "2.00 SLE"), (1, before, "1.00 SLE")):
        require_success(await ada.with_client(process_clients[index]).put("fee-rules", data=rules))
        for client in process_clients:
            paid = require_success(await terminal.with_client(client).pay("100.00", aminata.card))
            assert paid["fee_amount"] == fee


async def test_limit_change_applies_in_every_process(
    ada: Admin, aminata: Customer, terminal: Terminal, process_clients: list[httpx2.AsyncClient]
) -> None:
    require_success(
        await ada.with_client(process_clients[0]).put("account-rules/1", max_transaction="1000")
    )
    for client in process_clients:
        response = await terminal.with_client(client).pay("1000.01", aminata.card, PIN)
        assert require_error(response) == (403, "TRANSACTION_LIMIT_EXCEEDED")
    require_success(
        await ada.with_client(process_clients[1]).put("account-rules/1", max_transaction="50000")
    )
    for client in process_clients:
        require_success(await terminal.with_client(client).pay("1000.01", aminata.card, PIN))


async def test_webhook_endpoint_change_applies_in_every_process(
    ada: Admin, aminata: Customer, terminal: Terminal, process_clients: list[httpx2.AsyncClient]
) -> None:
    receiver = WebhookReceiver()

    async def list_received_ids() -> set[str]:
        return {webhook.content["data"]["id"] for webhook in receiver.received}

    async with receiver.listen():
        endpoint = {"url": receiver.url, "events": ["transaction.completed"]}
        created = require_success(
            await ada.with_client(process_clients[0]).post("admin/webhook-endpoints", **endpoint)
        )
        paid = {
            require_success(await terminal.with_client(client).pay("1.00", aminata.card))[
                "transaction_id"
            ]
            for client in process_clients
        }
        await wait_until_equal(list_received_ids, paid)
        url = f"/api/v1/admin/webhook-endpoints/{created['id']}"
        assert (await process_clients[1].delete(url, auth=ada.auth)).status_code == 204
        for client in process_clients:
            require_success(await terminal.with_client(client).pay("1.00", aminata.card))
    assert await list_received_ids() == paid
    assert len(receiver.received) == 2


async def test_blocked_terminal_and_deleted_key_are_rejected_by_every_process(
    ada: Admin, aminata: Customer, process_clients: list[httpx2.AsyncClient]
) -> None:
    merchant = await ada.create_merchant()
    pos_terminal, terminal = await ada.create_terminal(merchant, "Front")
    url = f"processors/{merchant.id}/terminals/{terminal['id']}"
    for client, other_client in (process_clients, reversed(process_clients)):
        require_success(await pos_terminal.with_client(other_client).pay("1.00", aminata.card))
        require_success(await ada.with_client(client).post(f"{url}/block", reason="stolen"))
        response = await pos_terminal.with_client(other_client).pay("1.00", aminata.card)
        assert require_error(response) == (403, "TERMINAL_BLOCKED")
        require_success(await ada.with_client(client).post(f"{url}/unblock"))
        require_success(await pos_terminal.with_client(other_client).pay("1.00", aminata.card))
    key = f"/api/v1/processors/{merchant.id}/keys/{terminal['api_key_id']}"
    assert (await process_clients[0].delete(key, auth=ada.auth)).status_code == 204
    for client in process_clients:
        assert require_error(await pos_terminal.with_client(client).pay("1.00", aminata.card)) == (
            401,
            "UNAUTHORIZED",
        )


async def test_concurrent_payments_cannot_overdraw_a_wallet(
    deployment: Deployment,
    ada: Admin,
    app: App,
    terminal: Terminal,
    process_clients: list[httpx2.AsyncClient],
) -> None:
    await deployment.disable_compliance_rules()
    aminata = await ada.create_funded_customer("50.00", app)

    def pay(client: Client) -> PendingResponse:
        return terminal.with_client(client).pay("1.00", aminata.card)

    responses = await send_round_robin(process_clients, *[pay] * 100)
    assert count_outcomes(responses) == {200: 50, (402, "INSUFFICIENT_FUNDS"): 50}
    assert await aminata.get_balance() == "0.00"
    # Each payment saw a different balance.
    balances = {item.json()["remaining_balance"] for item in responses if item.is_success}
    assert balances == {f"{number}.00 SLE" for number in range(50)}


async def test_concurrent_wrong_pins_share_three_attempts(
    aminata: Customer, terminal: Terminal, process_clients: list[httpx2.AsyncClient]
) -> None:
    url = f"subscribers/{aminata.id}/verify-pin"
    attempts: list[SendRequest] = [
        lambda client: terminal.with_client(client).pay("1.00", aminata.card, WRONG_PIN),
        lambda client: terminal.with_client(client).verify_card(aminata.card, WRONG_PIN),
        lambda client: aminata.app.with_client(client).post(url, pin=WRONG_PIN),
    ]
    responses = await send_round_robin(process_clients, *attempts * 8)
    assert count_outcomes(responses) == {(400, "INVALID_PIN"): 3, (403, "ACCOUNT_LOCKED"): 21}
    remaining = [
        require_error_details(response)["attempts_remaining"]
        for response in responses
        if response.status_code == 400
    ]
    assert sorted(remaining) == [0, 1, 2]
    for client in process_clients:
        response = await terminal.with_client(client).pay("1.00", aminata.card, PIN)
        assert require_error(response) == (403, "ACCOUNT_LOCKED")
