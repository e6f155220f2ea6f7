"""What is decided at one process holds at the other with the next request."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from journeys.caller import done, refused
from journeys.people import App, Customer, Till
from journeys.platform import Platform
from journeys.staff import Admin
from notifications.receiver import Receiver
from notifications.stage import until
from world import PIN


@pytest.fixture
async def app(ada: Admin) -> App:
    return await ada.app()


@pytest.fixture
async def aminata(ada: Admin, app: App) -> Customer:
    return await ada.customer_with("100000.00", app)


@pytest.fixture
async def till(ada: Admin) -> Till:
    return (await ada.merchant()).server


@pytest.fixture
async def lines(
    platform: Platform, aminata: Customer, till: Till
) -> AsyncIterator[list[httpx2.AsyncClient]]:
    """To processes that have both taken payments, and so have read the rules."""
    async with platform.lines() as lines:
        for line in lines:
            done(await till.over(line).pay("1.00", aminata.card))
        yield lines


async def test_a_compliance_rule(
    ada: Admin, aminata: Customer, till: Till, lines: list[httpx2.AsyncClient]
) -> None:
    rules = done(await ada.get("compliance/rules"))["data"]
    (large,) = [rule["id"] for rule in rules if rule["name"] == "Large amount"]
    for asked, threshold, status in (
        (0, "100", "under_review"),
        (1, "500000", "completed"),
        (1, "100", "under_review"),
        (0, "500000", "completed"),
    ):
        done(await ada.over(lines[asked]).put(f"compliance/rules/{large}", threshold=threshold))
        for line in lines:
            paid = done(await till.over(line).pay("101.00", aminata.card))
            assert paid["status"] == status


async def test_a_fee(
    ada: Admin, aminata: Customer, till: Till, lines: list[httpx2.AsyncClient]
) -> None:
    before = done(await ada.get("fee-rules"))["data"]
    doubled = [{**step, "rate": "2"} if step["type"] == "pos_payment" else step for step in before]
    for asked, steps, fee in ((0, doubled, "2.00 SLE"), (1, before, "1.00 SLE")):
        done(await ada.over(lines[asked]).put("fee-rules", data=steps))
        for line in lines:
            paid = done(await till.over(line).pay("100.00", aminata.card))
            assert paid["fee_amount"] == fee


async def test_a_limit(
    ada: Admin, aminata: Customer, till: Till, lines: list[httpx2.AsyncClient]
) -> None:
    done(await ada.over(lines[0]).put("account-rules/1", max_transaction="1000"))
    for line in lines:
        answer = await till.over(line).pay("1000.01", aminata.card, PIN)
        assert refused(answer) == (403, "TRANSACTION_LIMIT_EXCEEDED")
    done(await ada.over(lines[1]).put("account-rules/1", max_transaction="50000"))
    for line in lines:
        done(await till.over(line).pay("1000.01", aminata.card, PIN))


async def test_who_is_told(
    ada: Admin, aminata: Customer, till: Till, lines: list[httpx2.AsyncClient]
) -> None:
    receiver = Receiver()

    async def told() -> set[str]:
        return {one.content["data"]["id"] for one in receiver.received}

    async with receiver.listening():
        wanted = {"url": receiver.url, "events": ["transaction.completed"]}
        created = done(await ada.over(lines[0]).post("admin/webhook-endpoints", **wanted))
        paid = {
            done(await till.over(line).pay("1.00", aminata.card))["transaction_id"]
            for line in lines
        }
        await until(told, paid)
        url = f"/api/v1/admin/webhook-endpoints/{created['id']}"
        assert (await lines[1].delete(url, auth=ada.auth)).status_code == 204
        for line in lines:
            done(await till.over(line).pay("1.00", aminata.card))
    assert await told() == paid
    assert len(receiver.received) == 2


async def test_a_terminal_that_is_blocked_and_a_key_that_is_deleted(
    ada: Admin, aminata: Customer, lines: list[httpx2.AsyncClient]
) -> None:
    merchant = await ada.merchant()
    till, terminal = await ada.till(merchant, "Front")
    url = f"processors/{merchant.id}/terminals/{terminal['id']}"
    for here, there in (lines, reversed(lines)):
        done(await till.over(there).pay("1.00", aminata.card))
        done(await ada.over(here).post(f"{url}/block", reason="stolen"))
        answer = await till.over(there).pay("1.00", aminata.card)
        assert refused(answer) == (403, "TERMINAL_BLOCKED")
        done(await ada.over(here).post(f"{url}/unblock"))
        done(await till.over(there).pay("1.00", aminata.card))
    key = f"/api/v1/processors/{merchant.id}/keys/{terminal['api_key_id']}"
    assert (await lines[0].delete(key, auth=ada.auth)).status_code == 204
    for line in lines:
        assert refused(await till.over(line).pay("1.00", aminata.card)) == (401, "UNAUTHORIZED")
