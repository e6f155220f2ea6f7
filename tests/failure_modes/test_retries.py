"""Failure mode: a retry moves the money twice."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from drivers.actors import new_request_id, require_error, require_success
from drivers.deployments import TwoGateways, wait_for_blocked_sessions
from gateway.money_requests import CASES, ROUTES, count_entries, count_transactions, send_case
from harness import BearerAuth
from tapgate import ids
from tapgate.clock import system_clock
from tapgate.errors import unavailable
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


async def test_retry_after_a_client_timeout_moves_the_money_once(two_gateways: TwoGateways) -> None:
    """The client gives up on a request in progress and retries at another process."""
    aminata, terminal = (
        await two_gateways.create_customer("100"),
        (await two_gateways.create_merchant()).server,
    )
    idempotency = {"request_id": new_request_id()}
    database = two_gateways.harness.services.database
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
