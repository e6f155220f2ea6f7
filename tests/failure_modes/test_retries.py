"""Failure mode: a retry, a duplicate or a reused idempotency key moves the money twice."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, NoReturn

import pytest
import time_machine

from drivers.actors import new_request_id, require_error, require_error_details, require_success
from drivers.deployments import TwoGateways, wait_for_blocked_sessions
from drivers.processes import Client, PendingResponse, SendRequest, count_outcomes
from harness import PIN, WRONG_PIN, BearerAuth
from server.gateway.money_requests import (
    CASES,
    ROUTES,
    MoneyCase,
    count_entries,
    count_transactions,
    send_case,
)
from tapgate.http.api.services import Services
from tapgate.ledger.commands import LedgerCommand
from tapgate.ledger.engine.group_commit import Ledger
from tapgate_client import ids
from tapgate_client.clock import system_clock
from tapgate_client.errors import unavailable

PrepareCase = Callable[[str], Awaitable[MoneyCase]]

parametrize_routes = pytest.mark.parametrize("route", ROUTES)


@pytest.fixture
def prepare_case(two_gateways: TwoGateways, other_services: Services) -> PrepareCase:
    """Return a function that prepares a request. Both processes know the same books."""

    async def prepare(route: str) -> MoneyCase:
        case = await CASES[route](two_gateways.harness)
        other_services.book_peers = two_gateways.harness.services.book_peers
        return case

    return prepare


@parametrize_routes
async def test_retry_moves_the_money_once(
    two_gateways: TwoGateways, prepare_case: PrepareCase, route: str
) -> None:
    """Every process must recognize the idempotency key, even after 32 days."""
    case = await prepare_case(route)
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


async def test_retry_after_a_client_timeout_moves_the_money_once(two_gateways: TwoGateways) -> None:
    """The client gives up on a request in progress and retries at another process."""
    aminata = await two_gateways.create_customer("100")
    terminal = (await two_gateways.create_merchant()).server
    idempotency = {"request_id": new_request_id()}
    database = two_gateways.harness.database
    async with database.transaction() as tx:
        await tx.fetch(
            "SELECT FROM accounts WHERE owner_id = $1 FOR UPDATE",
            ids.decode(ids.SUBSCRIBER, aminata.id),
        )
        abandoned = asyncio.create_task(terminal.pay("10", aminata.card, **idempotency))
        await wait_for_blocked_sessions(database, 1)
        abandoned.cancel()
        retry = asyncio.create_task(
            terminal.with_client(two_gateways.clients[1]).pay("10", aminata.card, **idempotency)
        )
        await wait_for_blocked_sessions(database, 2)
    assert require_success(await retry)["remaining_balance"] == "90.00 SLE"
    assert await aminata.get_balance() == "90.00"
    assert await count_transactions(two_gateways.harness, idempotency["request_id"]) == 1


async def test_retry_after_a_commit_with_a_lost_response_moves_the_money_once(
    two_gateways: TwoGateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database committed, but the gateway lost the connection and returned 503."""
    aminata = await two_gateways.create_customer("100")
    terminal = (await two_gateways.create_merchant()).server
    run_batch, request_ids = Ledger.run_batch, [new_request_id() for _ in range(5)]

    async def run_and_disconnect(ledger: Ledger, commands: Sequence[LedgerCommand]) -> NoReturn:
        await run_batch(ledger, commands)
        raise unavailable("The database cannot be reached")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "run_batch", run_and_disconnect)
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


async def test_partner_webhook_retried_after_a_phone_number_change_credits_no_other_subscriber(
    two_gateways: TwoGateways,
) -> None:
    """The phone number moves to another subscriber between two deliveries of one webhook."""
    bank = await two_gateways.create_bank("100")
    aminata = await two_gateways.create_customer()
    mohamed = await two_gateways.create_customer()
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


@parametrize_routes
async def test_concurrent_duplicates_at_two_processes_move_the_money_once(
    two_gateways: TwoGateways, prepare_case: PrepareCase, route: str
) -> None:
    """Both processes could look up the key, find nothing, and execute the request."""
    case = await prepare_case(route)
    before = await count_entries(two_gateways.harness)

    def send(client: Client) -> PendingResponse:
        return send_case(two_gateways.harness, case, "one", client=client)

    responses = await two_gateways.run_concurrently(*[send] * 8)
    assert count_outcomes(responses) == {200: 8}
    assert len({response.content for response in responses}) == 1
    assert len([item for item in responses if "Idempotent-Replayed" not in item.headers]) == 1
    assert await count_transactions(two_gateways.harness, "one") == 1
    # A further replay adds no entries.
    entry_count = await count_entries(two_gateways.harness) - before
    await send_case(two_gateways.harness, case, "one", client=two_gateways.clients[1])
    assert await count_entries(two_gateways.harness) - before == entry_count


async def test_duplicate_of_a_request_whose_database_session_dies_moves_the_money_once(
    two_gateways: TwoGateways,
) -> None:
    """The duplicate must neither fail with the original nor be executed in addition to it."""
    aminata = await two_gateways.create_customer("100")
    terminal = (await two_gateways.create_merchant()).server
    idempotency = {"request_id": new_request_id()}
    database = two_gateways.harness.database
    async with database.transaction() as tx:
        await tx.fetch(
            "SELECT FROM accounts WHERE owner_id = $1 FOR UPDATE",
            ids.decode(ids.SUBSCRIBER, aminata.id),
        )
        first = asyncio.create_task(terminal.pay("10", aminata.card, **idempotency))
        await wait_for_blocked_sessions(database, 1)
        duplicate = asyncio.create_task(
            terminal.with_client(two_gateways.clients[1]).pay("10", aminata.card, **idempotency)
        )
        await wait_for_blocked_sessions(database, 2)
        await tx.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event = 'transactionid'
               ORDER BY query_start LIMIT 1"""
        )
    assert (await first).status_code == 503
    assert require_success(await duplicate)["remaining_balance"] == "90.00 SLE"
    # The client that received 503 retries.
    retried = await terminal.pay("10", aminata.card, **idempotency)
    assert retried.content == (await duplicate).content
    assert await aminata.get_balance() == "90.00"


#: PINs are not compared, so a client may correct a mistyped PIN.
UNCOMPARED_FIELDS = ("pin", "agent_pin")
#: The other book may learn another sender name between two attempts.
_UNCOMPARED_IN_TRANSFERS = ("sender_name", "memo")
CHANGED_VALUES = {
    "amount": "7.77",
    "memo": "rent",
    "description": "rent",
    "reason": "another",
    "sender_name": "Fatu S.",
}


def _change_value(name: str, value: str) -> str:
    return CHANGED_VALUES.get(name) or value[:-1] + ("1" if value[-1] != "1" else "2")


@parametrize_routes
async def test_idempotency_key_reused_with_any_changed_field_is_rejected(
    two_gateways: TwoGateways, prepare_case: PrepareCase, route: str
) -> None:
    """Comparing only the amount would treat a different card, payee, or reference as a replay."""
    case = await prepare_case(route)
    first = await send_case(two_gateways.harness, case, "one")
    entry_count = await count_entries(two_gateways.harness)
    changes: list[dict[str, Any]] = [
        {name: _change_value(name, value)}
        for name, value in case.body.items()
        if name not in UNCOMPARED_FIELDS
        and not (route.endswith("/books/transfers") and name in _UNCOMPARED_IN_TRANSFERS)
    ]
    if case.changed_fields:
        changes.append(case.changed_fields)
    for change in changes:
        for client in two_gateways.clients:
            response = await send_case(two_gateways.harness, case, "one", client=client, **change)
            assert require_error(response) == (409, "DUPLICATE_REQUEST"), change
    assert await count_entries(two_gateways.harness) == entry_count
    # The original response is still replayed.
    assert (await send_case(two_gateways.harness, case, "one")).content == first.content


def _build_equivalent_bodies(body: dict[str, Any], request_id: str) -> list[bytes]:
    """Return the same request in different encodings."""
    full_body = body | {"request_id": request_id}
    reordered = dict(reversed(full_body.items()))
    return [
        json.dumps(reordered).encode(),
        json.dumps(full_body, indent="\t").encode(),
        json.dumps(full_body | {"no_such_field": 1, "another": None}).encode(),
        json.dumps(full_body | {"currency": "SLE", "metadata": None}).encode(),
        "".join(["{", ",".join(_escape_member(*item) for item in full_body.items()), "}"]).encode(),
        *(
            json.dumps(full_body | {"amount": amount}).encode()
            for amount in _list_equivalent_amounts(body.get("amount"))
        ),
    ]


def _escape_member(name: str, value: str) -> str:
    return ":".join(
        '"' + "".join(f"\\u{ord(letter):04x}" for letter in word) + '"' for word in (name, value)
    )


def _list_equivalent_amounts(amount: str | None) -> list[str]:
    return [] if amount is None else [f"{amount}.00", f"{amount}.0", f"00{amount}"]


@parametrize_routes
async def test_equivalent_encodings_of_a_request_are_replays(
    two_gateways: TwoGateways, prepare_case: PrepareCase, route: str
) -> None:
    """Comparing raw bytes would break retries by clients that reorder fields."""
    case = await prepare_case(route)
    first = await send_case(two_gateways.harness, case, "one")
    entry_count = await count_entries(two_gateways.harness)
    for body in _build_equivalent_bodies(case.body, "one"):
        replayed = await two_gateways.clients[1].post(case.path, content=body, auth=case.auth)
        assert (replayed.status_code, replayed.content) == (200, first.content), body
        assert replayed.headers["Idempotent-Replayed"] == "true"
    assert await count_entries(two_gateways.harness) == entry_count


async def test_numeric_amount_is_rejected_without_consuming_the_idempotency_key(
    two_gateways: TwoGateways,
) -> None:
    """A client that sends the amount as a number can correct it and reuse the key."""
    aminata = await two_gateways.create_customer("100")
    terminal = (await two_gateways.create_merchant()).server
    request_id = new_request_id()
    for number in (10, 10.0):
        response = await terminal.post(
            "pos/payment", request_id=request_id, card_serial=aminata.card, amount=number
        )
        assert require_error(response) == (400, "INVALID_REQUEST")
    require_success(await terminal.pay("10", aminata.card, request_id=request_id))
    assert await aminata.get_balance() == "90.00"


async def test_metadata_is_compared_by_value_regardless_of_key_order(
    two_gateways: TwoGateways,
) -> None:
    """Free-form fields must be part of the comparison, but not compared byte by byte."""
    aminata = await two_gateways.create_customer("100")
    terminal = (await two_gateways.create_merchant()).server
    request_id = new_request_id()
    metadata = {"a": 1, "b": {"c": [1, 2], "d": None}}
    first = await terminal.pay("10", aminata.card, request_id=request_id, metadata=metadata)
    reordered = {"b": {"d": None, "c": [1, 2]}, "a": 1}
    replayed = await terminal.pay("10", aminata.card, request_id=request_id, metadata=reordered)
    assert replayed.json() == first.json()
    for other in ({"a": 2, "b": metadata["b"]}, {"a": 1, "b": {"c": [2, 1], "d": None}}, {}):
        response = await terminal.pay("10", aminata.card, request_id=request_id, metadata=other)
        assert require_error(response) == (409, "DUPLICATE_REQUEST")
    assert await aminata.get_balance() == "90.00"


async def test_wrong_pin_in_a_replayed_request_does_not_count_as_an_attempt(
    two_gateways: TwoGateways,
) -> None:
    """Otherwise retries with a mistyped PIN would lock a wallet that has already paid."""
    aminata = await two_gateways.create_customer("100")
    terminal = (await two_gateways.create_merchant()).server
    idempotency = {"request_id": new_request_id()}
    first = await terminal.pay("10", aminata.card, PIN, **idempotency)
    for _ in range(5):
        replayed = await terminal.pay("10", aminata.card, WRONG_PIN, **idempotency)
        assert replayed.content == first.content
    response = await terminal.pay("10", aminata.card, WRONG_PIN)
    assert require_error_details(response) == {"attempts_remaining": 2}
    assert await aminata.get_balance() == "90.00"


async def test_concurrent_top_ups_with_one_reference_and_two_amounts_execute_one_amount(
    two_gateways: TwoGateways,
) -> None:
    """A partner corrects an amount and sends both versions under one reference."""
    bank, aminata = await two_gateways.create_bank("1000"), await two_gateways.create_customer()

    def build_webhook(amount: str) -> SendRequest:
        return lambda client: bank.with_client(client).send_webhook(amount, aminata, "INV-1")

    def build_top_up(amount: str) -> SendRequest:
        return lambda client: bank.with_client(client).top_up(amount, aminata, "INV-1")

    responses = await two_gateways.run_concurrently(
        *[build_webhook("40"), build_webhook("50"), build_top_up("50"), build_top_up("40")] * 4
    )
    assert count_outcomes(responses) == {200: 8, (409, "DUPLICATE_REFERENCE"): 8}
    (paid,) = {require_success(response)["amount"] for response in responses if response.is_success}
    assert await aminata.get_balance() == paid.removesuffix(" SLE")


@pytest.mark.parametrize("seed", range(2))
async def test_duplicated_and_reordered_partner_webhooks_credit_each_reference_once(
    two_gateways: TwoGateways, seed: int
) -> None:
    """Each webhook is delivered three times, shuffled, across two processes."""
    bank, aminata = await two_gateways.create_bank("1000"), await two_gateways.create_customer()

    def build_webhook(number: int) -> SendRequest:
        return lambda client: bank.with_client(client).send_webhook(
            f"{number}", aminata, f"INV-{number}"
        )

    deliveries = [number for number in range(1, 11) for _ in range(3)]
    random.Random(seed).shuffle(deliveries)
    responses = await two_gateways.run_concurrently(*map(build_webhook, deliveries))
    assert count_outcomes(responses) == {200: 30}
    found = Counter(Counter(response.json()["transaction_id"] for response in responses).values())
    assert found == {3: 10}
    assert await aminata.get_balance() == "55.00"
