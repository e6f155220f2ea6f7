"""Failure: a retry moves the money twice."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import httpx2
import pytest
import time_machine

from client.stage import AT_ONCE
from client.unsteady import ACT_AND_DROP, BUSY, DROP, Unsteady, answer
from field.market import Market
from gateway.money_cases import CASES, ROUTES, entries, send, transactions
from journeys.caller import done, refused
from journeys.people import new_request_id
from messenger.journeys.town import Town
from tapgate import ids
from tapgate.client import ApiKey, AsyncTapgateClient, PosKey
from tapgate.clock import system_clock
from tapgate.errors import unavailable
from tapgate.gateway import create_app
from tapgate.ledger.commands import LedgerCommand, Outcome
from tapgate.ledger.engine import Ledger
from world import PIN, Bearer

every_route = pytest.mark.parametrize("route", ROUTES)


@every_route
async def test_a_retry_moves_the_money_once(market: Market, route: str) -> None:
    """The answer was lost. The key is known only to the process that saw it first, or for a day."""
    case = await CASES[route](market.world)
    first = await send(market.world, case, "one")
    assert first.status_code == 200, first.text
    moved = await entries(market.world)
    again = await send(market.world, case, "one", client=market.lines[1])
    assert (again.status_code, again.content) == (200, first.content)
    with time_machine.travel(system_clock() + timedelta(days=32), tick=True):
        later = case._replace(auth=await _still(market, case.auth))
        again = await send(market.world, later, "one", client=market.lines[1])
        assert (again.status_code, again.content) == (200, first.content)
    assert await entries(market.world) == moved


async def _still(market: Market, auth: Any) -> Any:
    """Whose session has ended has to log in again: as the same admin."""
    admin_id = ids.decode(ids.ADMIN, auth.id)
    if admin_id is None:
        return auth
    services = market.world.services
    async with services.database.transaction() as tx:
        tokens = await services.authenticator.sessions.start(tx, admin_id)
    return Bearer(tokens.token, auth.id)


async def test_a_retry_with_the_key_in_the_header_moves_the_money_once(market: Market) -> None:
    """Body and header are two keys that do not know of each other."""
    aminata, till = await market.customer("100"), (await market.merchant()).server
    name = new_request_id()
    first = await till.pay("10", aminata.card, request_id=name)
    body = {"card_serial": aminata.card, "amount": "10"}
    again = await market.lines[1].post(
        "/api/v1/pos/payment", json=body, auth=till.auth, headers={"Idempotency-Key": name}
    )
    assert again.content == first.content
    assert await aminata.balance() == "90.00"


async def test_a_retry_after_a_time_out_moves_the_money_once(market: Market) -> None:
    """The client gave up on a request that was still on its way, and asks again elsewhere."""
    aminata, till = await market.customer("100"), (await market.merchant()).server
    name = {"request_id": new_request_id()}
    async with market.world.services.database.transaction() as tx:
        await tx.fetch(
            "SELECT FROM accounts WHERE owner_id = $1 FOR UPDATE",
            ids.decode(ids.SUBSCRIBER, aminata.id),
        )
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await till.pay("10", aminata.card, **name)
        retry = asyncio.create_task(till.over(market.lines[1]).pay("10", aminata.card, **name))
        await asyncio.sleep(0.1)
    assert done(await retry)["remaining_balance"] == "90.00 SLE"
    assert await aminata.balance() == "90.00"
    assert await transactions(market.world, name["request_id"]) == 1


async def test_a_retry_after_a_commit_whose_answer_was_lost_moves_the_money_once(
    market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database did it, and the gateway, cut off from it at that moment, says 503."""
    aminata, till = await market.customer("100"), (await market.merchant()).server
    run, names = Ledger._run_batch, [new_request_id() for _ in range(5)]

    async def cut_off(ledger: Ledger, orders: Sequence[LedgerCommand]) -> list[Outcome]:
        await run(ledger, orders)
        raise unavailable("The database cannot be reached")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_run_batch", cut_off)
        answers = await asyncio.gather(
            *(till.pay("10", aminata.card, request_id=name) for name in names)
        )
    assert {refused(answer) for answer in answers} == {(503, "SERVICE_UNAVAILABLE")}
    for name in names:
        again = await till.over(market.lines[1]).pay("10", aminata.card, request_id=name)
        assert again.headers["Idempotent-Replayed"] == "true"
    assert await aminata.balance() == "50.00"


async def test_a_retry_of_a_decline_is_no_second_chance(market: Market) -> None:
    """The retry of a declined payment goes through later, when nobody expects it any more."""
    aminata, till = await market.customer("5"), (await market.merchant()).server
    name = {"request_id": new_request_id()}
    assert refused(await till.pay("10", aminata.card, **name)) == (402, "INSUFFICIENT_FUNDS")
    await market.world.give(aminata.id, "100")
    again = await till.over(market.lines[1]).pay("10", aminata.card, **name)
    assert refused(again) == (402, "INSUFFICIENT_FUNDS")
    assert await aminata.balance() == "105.00"


@pytest.fixture
async def unsteady(market: Market) -> AsyncIterator[Unsteady]:
    """A line to the gateway that loses answers."""
    transport = httpx2.ASGITransport(create_app(market.world.services))
    async with Unsteady(transport).listening() as unsteady:
        yield unsteady


LOSSES = [
    [ACT_AND_DROP],
    [DROP, ACT_AND_DROP, BUSY],
    [ACT_AND_DROP, answer(502), ACT_AND_DROP],
]


@pytest.mark.parametrize("plan", LOSSES)
async def test_the_sdks_own_retries_move_the_money_once(
    market: Market, unsteady: Unsteady, plan: list[str | bytes]
) -> None:
    """The library tries again by itself, under a new key each time."""
    aminata, merchant = await market.customer("100"), await market.merchant()
    agent = await market.agent("100")
    key, till = market.app.auth, merchant.server.auth
    assert isinstance(key, Bearer)
    pos = PosKey(till.id, till.secret)
    async with (
        AsyncTapgateClient(unsteady.url, pos, retries=AT_ONCE) as shop,
        AsyncTapgateClient(unsteady.url, ApiKey(key._credential), retries=AT_ONCE) as counter,
    ):
        unsteady.plan = list(plan)
        paid = await shop.pos.pay(card_serial=aminata.card, amount="10")
        unsteady.plan = list(plan)
        back = await shop.pos.refund(
            original_transaction_id=paid.transaction_id, reason="returned", amount="4"
        )
        unsteady.plan = list(plan)
        cash = await counter.agents.cash_in(
            agent_id=agent.id, subscriber_id=aminata.id, amount="17", agent_pin=agent.pin
        )
    assert (paid.replayed, back.replayed, cash.replayed) == (True, True, True)
    assert await aminata.balance() == "111.00"
    assert await agent.purse() == ("83.00", "0.17")


class LosesAnswers(httpx2.AsyncBaseTransport):
    """Between messenger and gateway: the first answers about money do not arrive."""

    def __init__(self, there: httpx2.AsyncBaseTransport, lost: int) -> None:
        self._there = there
        self._lost = lost

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answered = await self._there.handle_async_request(request)
        if request.url.path.endswith("transfer-p2p") and self._lost:
            self._lost -= 1
            await answered.aclose()
            raise httpx2.ReadError("the answer was lost", request=request)
        return answered


@pytest.mark.parametrize("lost", [1, 2])
async def test_a_payment_in_a_chat_whose_answer_is_lost_moves_the_money_once(
    market: Market, database_url: str, lost: int
) -> None:
    """The chat does not know whether it worked, and the person says yes again."""
    aminata, mohamed = await market.customer("100"), await market.customer()
    way = LosesAnswers(httpx2.ASGITransport(create_app(market.world.services)), lost)
    town = Town(market.world, database_url)
    async with town.messenger(http=way) as messenger:
        phone = messenger.phone(aminata.phone)
        await phone.ask(f"send 10 to {mohamed.card}")
        await phone.ask("yes")
        await phone.ask(PIN)
        for repeated in ("yes", PIN):
            await phone.ask(repeated)
    assert len(await town.transfers(aminata.id)) == 1
    assert [await aminata.balance(), await mohamed.balance()] == ["89.85", "10.00"]


async def test_a_partners_webhook_retried_after_the_number_changed_hands_pays_nobody_else(
    market: Market,
) -> None:
    """Between two deliveries of one webhook the phone number becomes somebody else's."""
    bank, aminata, mohamed = (
        await market.bank("100"),
        await market.customer(),
        await market.customer(),
    )
    done(await bank.tell("10", aminata, "INV-1"))
    given_up = aminata.phone
    done(await market.ada.put(f"subscribers/{aminata.id}", phone_number=market.world.phone()))
    done(await market.ada.put(f"subscribers/{mohamed.id}", phone_number=given_up))
    mohamed.phone = given_up
    again = await bank.over(market.lines[1]).tell("10", mohamed, "INV-1")
    assert refused(again) == (409, "DUPLICATE_REFERENCE")
    assert [await aminata.balance(), await mohamed.balance()] == ["10.00", "0.00"]
