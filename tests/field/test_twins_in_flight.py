"""Failure: the same request arrives twice while the first is still on its way."""

import asyncio

import pytest

from field.market import Market
from gateway.money_cases import CASES, ROUTES, entries, send, transactions
from journeys.at_once import Asked, Line, said
from journeys.caller import done
from journeys.people import new_request_id
from tapgate import ids

every_route = pytest.mark.parametrize("route", ROUTES)


@every_route
async def test_twins_at_two_processes_move_the_money_once(market: Market, route: str) -> None:
    """Each process looks for the key, neither finds it, both pay."""
    case = await CASES[route](market.world)
    before = await entries(market.world)

    def ask(line: Line) -> Asked:
        return send(market.world, case, "one", client=line)

    answers = await market.at_once(*[ask] * 8)
    assert said(answers) == {200: 8}
    assert len({answer.content for answer in answers}) == 1
    assert len([one for one in answers if "Idempotent-Replayed" not in one.headers]) == 1
    assert await transactions(market.world, "one") == 1
    # As many entries as it takes alone.
    moved = await entries(market.world) - before
    await send(market.world, case, "one", client=market.lines[1])
    assert await entries(market.world) - before == moved


async def test_the_twin_of_a_request_whose_session_dies_moves_the_money_once(
    market: Market,
) -> None:
    """The first dies at the database; its twin must neither be lost with it nor pay beside it."""
    aminata, till = await market.customer("100"), (await market.merchant()).server
    name = {"request_id": new_request_id()}
    database = market.world.services.database
    async with database.transaction() as tx:
        await tx.fetch(
            "SELECT FROM accounts WHERE owner_id = $1 FOR UPDATE",
            ids.decode(ids.SUBSCRIBER, aminata.id),
        )
        first = asyncio.create_task(till.pay("10", aminata.card, **name))
        await _waiting(market, 1)
        twin = asyncio.create_task(till.over(market.lines[1]).pay("10", aminata.card, **name))
        await _waiting(market, 2)
        await tx.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event = 'transactionid'
               ORDER BY query_start LIMIT 1"""
        )
    assert (await first).status_code == 503
    assert done(await twin)["remaining_balance"] == "90.00 SLE"
    # Who was told 503 asks again.
    again = await till.pay("10", aminata.card, **name)
    assert again.content == (await twin).content
    assert await aminata.balance() == "90.00"


async def _waiting(market: Market, many: int) -> None:
    """That many sessions wait for a lock."""
    async with asyncio.timeout(30):
        while many != await market.world.services.database.fetchval(
            """SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event_type = 'Lock'"""
        ):
            await asyncio.sleep(0.01)
