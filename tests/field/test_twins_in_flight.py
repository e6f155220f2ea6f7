"""Failure mode: a duplicate request arrives while the original is in progress."""

import asyncio

import pytest

from field.market import TwoGateways
from gateway.money_requests import CASES, ROUTES, count_entries, count_transactions, send_case
from journeys.actors import new_request_id
from journeys.api_caller import require_success
from journeys.concurrency import Client, PendingResponse, count_outcomes
from tapgate import ids

every_route = pytest.mark.parametrize("route", ROUTES)


@every_route
async def test_concurrent_duplicates_at_two_processes_move_the_money_once(
    market: TwoGateways, route: str
) -> None:
    """Both processes could look up the key, find nothing, and execute the request."""
    case = await CASES[route](market.harness)
    before = await count_entries(market.harness)

    def ask(line: Client) -> PendingResponse:
        return send_case(market.harness, case, "one", client=line)

    answers = await market.run_concurrently(*[ask] * 8)
    assert count_outcomes(answers) == {200: 8}
    assert len({answer.content for answer in answers}) == 1
    assert len([one for one in answers if "Idempotent-Replayed" not in one.headers]) == 1
    assert await count_transactions(market.harness, "one") == 1
    # A further replay adds no entries.
    moved = await count_entries(market.harness) - before
    await send_case(market.harness, case, "one", client=market.clients[1])
    assert await count_entries(market.harness) - before == moved


async def test_duplicate_of_a_request_whose_database_session_dies_moves_the_money_once(
    market: TwoGateways,
) -> None:
    """The duplicate must neither fail with the original nor be executed in addition to it."""
    aminata, till = await market.create_customer("100"), (await market.create_merchant()).server
    name = {"request_id": new_request_id()}
    database = market.harness.services.database
    async with database.transaction() as tx:
        await tx.fetch(
            "SELECT FROM accounts WHERE owner_id = $1 FOR UPDATE",
            ids.decode(ids.SUBSCRIBER, aminata.id),
        )
        first = asyncio.create_task(till.pay("10", aminata.card, **name))
        await _wait_for_blocked_sessions(market, 1)
        twin = asyncio.create_task(
            till.with_client(market.clients[1]).pay("10", aminata.card, **name)
        )
        await _wait_for_blocked_sessions(market, 2)
        await tx.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event = 'transactionid'
               ORDER BY query_start LIMIT 1"""
        )
    assert (await first).status_code == 503
    assert require_success(await twin)["remaining_balance"] == "90.00 SLE"
    # The client that received 503 retries.
    again = await till.pay("10", aminata.card, **name)
    assert again.content == (await twin).content
    assert await aminata.get_balance() == "90.00"


async def _wait_for_blocked_sessions(market: TwoGateways, many: int) -> None:
    """Wait until exactly `many` sessions are blocked by a lock."""
    async with asyncio.timeout(30):
        while many != await market.harness.services.database.fetchval(
            """SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event_type = 'Lock'"""
        ):
            await asyncio.sleep(0.01)
