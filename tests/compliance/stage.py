"""What the tests of compliance share: its routes, asked as a compliance user or a service."""

import asyncio
from typing import Any

import httpx2

from tapgate import ids, money
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, Outcome
from world import World

RULES = "/api/v1/compliance/rules"
ALERTS = "/api/v1/compliance/alerts"
RESOLUTION = {"status": "resolved", "resolution_notes": "Talked to the customer"}


def number(public_id: str) -> int:
    return ids.decode(public_id[:4], public_id) or 0


async def rules(world: World) -> dict[str, dict[str, Any]]:
    """By name."""
    answer = await world.client.get(RULES, auth=await world.admin("C"))
    assert answer.status_code == 200, answer.text
    return {rule["name"]: rule for rule in answer.json()["data"]}


async def change_rule(world: World, name: str, **changes: Any) -> dict[str, Any]:
    rule_id = (await rules(world))[name]["id"]
    answer = await world.client.put(f"{RULES}/{rule_id}", json=changes, auth=await world.admin("C"))
    assert answer.status_code == 200, answer.text
    record: dict[str, Any] = answer.json()
    return record


async def alerts(world: World, **filters: str) -> list[dict[str, Any]]:
    """Newest first."""
    answer = await world.client.get(ALERTS, params=filters, auth=await world.admin("C"))
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def resolve(world: World, alert_id: str, **fields: Any) -> httpx2.Response:
    return await world.client.post(
        f"{ALERTS}/{alert_id}/resolve", json=RESOLUTION | fields, auth=await world.admin("C")
    )


def transfer(sender: str, receiver: str, amount: str) -> Command:
    return Command(
        type=chart.TRANSFER,
        channel="admin",
        payer=commands.subscriber_party(number(sender)),
        payee=commands.subscriber_party(number(receiver)),
        amount=money.parse(amount, "SLE"),
    )


async def send(world: World, sender: str, receiver: str, amount: str) -> Outcome:
    return await world.services.ledger.submit(transfer(sender, receiver, amount))


async def held(world: World, amount: str = "100.01") -> tuple[dict[str, Any], str, str]:
    """The alert of a transfer that is held for review, its sender and its receiver."""
    await change_rule(world, "Large amount", threshold="100")
    sender, receiver = await asyncio.gather(world.subscriber(balance="1000"), world.subscriber())
    outcome = await send(world, sender["id"], receiver["id"], amount)
    assert outcome.require_accepted().status == "under_review"
    (alert,) = await alerts(world, subscriber_id=sender["id"])
    return alert, sender["id"], receiver["id"]


async def funds(world: World, subscriber_id: str) -> tuple[int, int]:
    """Balance and held, in minor units."""
    row = await world.services.database.fetchrow(
        "SELECT balance, held FROM accounts WHERE owner_id = $1 AND kind = 'wallet'",
        number(subscriber_id),
    )
    assert row is not None
    return row["balance"], row["held"]


async def transaction(world: World, public_id: str) -> tuple[str, str | None]:
    """Status and failure code."""
    row = await world.services.database.fetchrow(
        "SELECT status, failure_code FROM transactions WHERE id = $1", number(public_id)
    )
    assert row is not None
    return row["status"], row["failure_code"]


async def listen(world: World) -> None:
    """Somebody wants to be told everything."""
    await world.services.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES (1, 'https://example.com', '{*}', '', now())"""
    )


async def told(world: World, event: str) -> list[Any]:
    rows = await world.services.database.fetch(
        "SELECT data FROM events WHERE type = $1 AND data IS NOT NULL ORDER BY id", event
    )
    return [row["data"] for row in rows]
