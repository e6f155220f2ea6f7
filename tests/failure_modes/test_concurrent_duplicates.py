"""Failure mode: a duplicate request arrives while the original is in progress."""

import asyncio

import pytest

from drivers.actors import new_request_id, require_success
from drivers.deployments import TwoGateways, wait_for_blocked_sessions
from drivers.processes import Client, PendingResponse, count_outcomes
from gateway.money_requests import CASES, ROUTES, count_entries, count_transactions, send_case
from tapgate import ids

parametrize_routes = pytest.mark.parametrize("route", ROUTES)


@parametrize_routes
async def test_concurrent_duplicates_at_two_processes_move_the_money_once(
    two_gateways: TwoGateways, route: str
) -> None:
    """Both processes could look up the key, find nothing, and execute the request."""
    case = await CASES[route](two_gateways.harness)
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
