"""Builders for compliance tests: API requests as a compliance user or a service."""

import asyncio
from typing import Any

import httpx2

from harness import Harness
from tapgate import ids, money
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, Outcome

RULES_URL = "/api/v1/compliance/rules"
ALERTS_URL = "/api/v1/compliance/alerts"
RESOLUTION = {"status": "resolved", "resolution_notes": "Talked to the customer"}


def decode_id(public_id: str) -> int:
    return ids.decode(public_id[:4], public_id) or 0


async def get_rules_by_name(world: Harness) -> dict[str, dict[str, Any]]:
    """Return all rules keyed by name."""
    answer = await world.client.get(RULES_URL, auth=await world.create_admin("C"))
    assert answer.status_code == 200, answer.text
    return {rule["name"]: rule for rule in answer.json()["data"]}


async def update_rule(world: Harness, name: str, **changes: Any) -> dict[str, Any]:
    rule_id = (await get_rules_by_name(world))[name]["id"]
    answer = await world.client.put(
        f"{RULES_URL}/{rule_id}", json=changes, auth=await world.create_admin("C")
    )
    assert answer.status_code == 200, answer.text
    record: dict[str, Any] = answer.json()
    return record


async def list_alerts(world: Harness, **filters: str) -> list[dict[str, Any]]:
    """Return the matching alerts, newest first."""
    answer = await world.client.get(ALERTS_URL, params=filters, auth=await world.create_admin("C"))
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def resolve_alert(world: Harness, alert_id: str, **fields: Any) -> httpx2.Response:
    return await world.client.post(
        f"{ALERTS_URL}/{alert_id}/resolve",
        json=RESOLUTION | fields,
        auth=await world.create_admin("C"),
    )


def build_transfer(sender: str, receiver: str, amount: str) -> Command:
    return Command(
        type=chart.TRANSFER,
        channel="admin",
        payer=commands.subscriber_party(decode_id(sender)),
        payee=commands.subscriber_party(decode_id(receiver)),
        amount=money.parse(amount, "SLE"),
    )


async def submit_transfer(world: Harness, sender: str, receiver: str, amount: str) -> Outcome:
    return await world.services.ledger.submit(build_transfer(sender, receiver, amount))


async def create_held_transfer(
    world: Harness, amount: str = "100.01"
) -> tuple[dict[str, Any], str, str]:
    """Create a transfer held for review and return its alert, sender id and receiver id."""
    await update_rule(world, "Large amount", threshold="100")
    sender, receiver = await asyncio.gather(
        world.create_subscriber(balance="1000"), world.create_subscriber()
    )
    outcome = await submit_transfer(world, sender["id"], receiver["id"], amount)
    assert outcome.require_accepted().status == "under_review"
    (alert,) = await list_alerts(world, subscriber_id=sender["id"])
    return alert, sender["id"], receiver["id"]


async def get_funds(world: Harness, subscriber_id: str) -> tuple[int, int]:
    """Return the balance and the held amount in minor units."""
    row = await world.services.database.fetchrow(
        "SELECT balance, held FROM accounts WHERE owner_id = $1 AND kind = 'wallet'",
        decode_id(subscriber_id),
    )
    assert row is not None
    return row["balance"], row["held"]


async def get_transaction_status(world: Harness, public_id: str) -> tuple[str, str | None]:
    """Return the status and the failure code."""
    row = await world.services.database.fetchrow(
        "SELECT status, failure_code FROM transactions WHERE id = $1", decode_id(public_id)
    )
    assert row is not None
    return row["status"], row["failure_code"]


async def subscribe_to_events(world: Harness) -> None:
    """Create a webhook endpoint subscribed to all events."""
    await world.services.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES (1, 'https://example.com', '{*}', '', now())"""
    )


async def list_events(world: Harness, event: str) -> list[Any]:
    rows = await world.services.database.fetch(
        "SELECT data FROM events WHERE type = $1 AND data IS NOT NULL ORDER BY id", event
    )
    return [row["data"] for row in rows]
