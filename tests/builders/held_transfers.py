"""Transfers under review, as the console shows them."""

from typing import Any

from builders.payments import build_transfer, update_rule
from harness import Harness


async def create_held_transfer(
    harness: Harness, sender: dict[str, Any], receiver: dict[str, Any]
) -> str:
    """Create a held transfer of 100.00 and return its alert ID."""
    await update_rule(harness, "Large amount", threshold="50")
    command = build_transfer(sender["id"], receiver["id"], "100.00")
    outcome = await harness.services.ledger.submit(command)
    assert outcome.require_accepted().status == "under_review"
    response = await harness.get("/api/v1/compliance/alerts", auth=await harness.create_admin("C"))
    return str(response.json()["data"][0]["id"])


DECISION = {"status": "resolved", "resolution_notes": "Asked for the deed"}
