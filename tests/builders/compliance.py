"""Builders for compliance tests: compliance user requests, transfers and database queries."""

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


async def get_rules_by_name(harness: Harness) -> dict[str, dict[str, Any]]:
    """Return all rules keyed by name."""
    response = await harness.client.get(RULES_URL, auth=await harness.create_admin("C"))
    assert response.status_code == 200, response.text
    return {rule["name"]: rule for rule in response.json()["data"]}


async def update_rule(harness: Harness, name: str, **changes: Any) -> dict[str, Any]:
    rule_id = (await get_rules_by_name(harness))[name]["id"]
    response = await harness.client.put(
        f"{RULES_URL}/{rule_id}", json=changes, auth=await harness.create_admin("C")
    )
    assert response.status_code == 200, response.text
    record: dict[str, Any] = response.json()
    return record


async def list_alerts(harness: Harness, **filters: str) -> list[dict[str, Any]]:
    """Return the matching alerts, newest first."""
    response = await harness.client.get(
        ALERTS_URL, params=filters, auth=await harness.create_admin("C")
    )
    assert response.status_code == 200, response.text
    alerts: list[dict[str, Any]] = response.json()["data"]
    return alerts


async def resolve_alert(harness: Harness, alert_id: str, **fields: Any) -> httpx2.Response:
    return await harness.client.post(
        f"{ALERTS_URL}/{alert_id}/resolve",
        json=RESOLUTION | fields,
        auth=await harness.create_admin("C"),
    )


def build_transfer(sender: str, receiver: str, amount: str) -> Command:
    return Command(
        type=chart.TRANSFER,
        channel="admin",
        payer=commands.subscriber_party(decode_id(sender)),
        payee=commands.subscriber_party(decode_id(receiver)),
        amount=money.parse(amount, "SLE"),
    )


async def submit_transfer(harness: Harness, sender: str, receiver: str, amount: str) -> Outcome:
    return await harness.services.ledger.submit(build_transfer(sender, receiver, amount))


async def create_held_transfer(
    harness: Harness, amount: str = "100.01"
) -> tuple[dict[str, Any], str, str]:
    """Create a transfer held for review and return its alert, sender ID and receiver ID."""
    await update_rule(harness, "Large amount", threshold="100")
    sender, receiver = await asyncio.gather(
        harness.create_subscriber(balance="1000"), harness.create_subscriber()
    )
    outcome = await submit_transfer(harness, sender["id"], receiver["id"], amount)
    assert outcome.require_accepted().status == "under_review"
    (alert,) = await list_alerts(harness, subscriber_id=sender["id"])
    return alert, sender["id"], receiver["id"]


async def get_funds(harness: Harness, subscriber_id: str) -> tuple[int, int]:
    """Return the balance and the held amount in minor units."""
    row = await harness.services.database.fetchrow(
        "SELECT balance, held FROM accounts WHERE owner_id = $1 AND kind = 'wallet'",
        decode_id(subscriber_id),
    )
    assert row is not None
    return row["balance"], row["held"]


async def get_transaction_status(harness: Harness, public_id: str) -> tuple[str, str | None]:
    """Return the status and the failure code."""
    row = await harness.services.database.fetchrow(
        "SELECT status, failure_code FROM transactions WHERE id = $1", decode_id(public_id)
    )
    assert row is not None
    return row["status"], row["failure_code"]


async def subscribe_to_events(harness: Harness) -> None:
    """Create a webhook endpoint subscribed to all events."""
    await harness.services.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES (1, 'https://example.com', '{*}', '', now())"""
    )


async def list_events(harness: Harness, event: str) -> list[Any]:
    rows = await harness.services.database.fetch(
        "SELECT data FROM events WHERE type = $1 AND data IS NOT NULL ORDER BY id", event
    )
    return [row["data"] for row in rows]
