"""Alerts on held transactions: resolving the alert decides the review, exactly once."""

import asyncio
from unittest.mock import AsyncMock

import httpx2
import pytest

from builders.payments import (
    ALERTS_URL,
    RESOLUTION,
    create_held_transfer,
    decode_id,
    get_funds,
    get_transaction_status,
    list_alerts,
    list_events,
    resolve_alert,
    submit_transfer,
    subscribe_to_events,
    update_rule,
)
from drivers.in_process import AppTransport
from harness import Harness, parse_error
from tapgate.core.settings import Settings
from tapgate.http.api.services import Services
from tapgate.ledger.commands import LedgerCommand, Outcome, ReviewDecision
from tapgate.ledger.verification.verify import verify
from tapgate.server.gateway import create_app, open_gateway_services
from tapgate_client.errors import unavailable


async def test_resolution_without_a_transaction_decision_is_rejected(harness: Harness) -> None:
    alert, sender, _ = await create_held_transfer(harness)
    response = await resolve_alert(harness, alert["id"])
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == ["transaction_decision"]
    assert await get_funds(harness, sender) == (1000_00, 100_01)
    assert (await list_alerts(harness))[0]["status"] == "open"


async def test_release_completes_the_transaction(harness: Harness) -> None:
    await subscribe_to_events(harness)
    alert, sender, receiver = await create_held_transfer(harness)
    assert alert["details"]["action"] == "review"
    await harness.post(
        f"{ALERTS_URL}/{alert['id']}/investigate", auth=await harness.create_admin("C")
    )
    response = await resolve_alert(harness, alert["id"], transaction_decision="release")
    assert response.status_code == 200, response.text
    assert response.json()["message"] == "Alert resolved. The transaction was released."
    assert response.json()["alert"]["status"] == "resolved"
    assert await get_funds(harness, sender) == (899_99, 0)
    assert await get_funds(harness, receiver) == (100_01, 0)
    assert await get_transaction_status(harness, alert["transaction_id"]) == ("completed", None)
    (entry,) = await harness.list_audit_entries(alert["id"], "alert.resolved")
    assert entry["changes"]["status"] == ["investigating", "resolved"]
    assert entry["changes"]["transaction_decision"] == [None, "release"]
    assert entry["changes"]["transaction_status"] == ["under_review", "completed"]
    assert await list_events(harness, "alert.resolved") == [response.json()["alert"]]


async def test_reject_fails_the_transaction_and_releases_the_hold(harness: Harness) -> None:
    alert, sender, receiver = await create_held_transfer(harness)
    response = await resolve_alert(
        harness, alert["id"], status="false_positive", transaction_decision="reject"
    )
    assert response.status_code == 200
    assert "its funds returned to the sender" in response.json()["message"]
    assert response.json()["alert"]["status"] == "false_positive"
    assert await get_funds(harness, sender) == (1000_00, 0)
    assert await get_funds(harness, receiver) == (0, 0)
    failed = ("failed", "COMPLIANCE_REJECTED")
    assert await get_transaction_status(harness, alert["transaction_id"]) == failed


async def test_release_to_a_blocked_receiver_fails_the_transaction(harness: Harness) -> None:
    alert, sender, receiver = await create_held_transfer(harness)
    admin = await harness.create_admin()
    url = f"/api/v1/subscribers/{receiver}/block"
    await harness.post(url, json={"reason": "fraud"}, auth=admin)
    response = await resolve_alert(harness, alert["id"], transaction_decision="release")
    assert response.status_code == 200
    assert "(SUBSCRIBER_BLOCKED)" in response.json()["message"]
    assert response.json()["alert"]["status"] == "resolved"
    assert await get_funds(harness, sender) == (1000_00, 0)
    assert await get_transaction_status(harness, alert["transaction_id"]) == (
        "failed",
        "SUBSCRIBER_BLOCKED",
    )


async def test_each_held_transaction_has_its_own_alert(harness: Harness) -> None:
    first, sender, receiver = await create_held_transfer(harness)
    await submit_transfer(harness, sender, receiver, "200")
    second, _ = await list_alerts(harness, subscriber_id=sender)
    assert second["id"] != first["id"]
    await resolve_alert(harness, first["id"], transaction_decision="reject")
    assert await get_funds(harness, sender) == (1000_00, 200_00)
    await resolve_alert(harness, second["id"], transaction_decision="release")
    assert await get_funds(harness, sender) == (800_00, 0)


async def test_only_one_of_many_concurrent_review_decisions_is_executed(
    harness: Harness, settings: Settings, database_url: str
) -> None:
    """The requests are split between two simulated gateway processes."""
    async with (
        open_gateway_services(settings, database_url) as second,
        httpx2.AsyncClient(
            transport=AppTransport(create_app(second)), base_url="http://second"
        ) as second_client,
    ):
        for _ in range(3):
            alert, sender, receiver = await create_held_transfer(harness)
            admins = [await harness.create_admin("C") for _ in range(10)]
            responses = await asyncio.gather(
                *(
                    (harness.client, second_client)[index % 2].post(
                        f"{ALERTS_URL}/{alert['id']}/resolve",
                        json=RESOLUTION
                        | {"transaction_decision": ("release", "reject")[index // 2 % 2]},
                        auth=admin,
                    )
                    for index, admin in enumerate(admins)
                )
            )
            assert sorted(response.status_code for response in responses) == [200] + [409] * 9
            codes = {
                response.json()["code"] for response in responses if response.status_code == 409
            }
            assert codes == {"ALREADY_RESOLVED"}
            (winner,) = [
                index for index, response in enumerate(responses) if response.status_code == 200
            ]
            released = winner // 2 % 2 == 0
            assert await get_funds(harness, sender) == ((899_99 if released else 1000_00), 0)
            assert await get_funds(harness, receiver) == ((100_01 if released else 0), 0)
            alert_response = await harness.get(f"{ALERTS_URL}/{alert['id']}", auth=admins[0])
            assert alert_response.json()["resolved_by"] == admins[winner].id
            assert len(await harness.list_audit_entries(alert["id"], "alert.resolved")) == 1
    async with harness.database.connection() as connection:
        assert (await verify(connection)).is_valid


async def test_review_decision_and_alert_resolution_are_committed_together(
    harness: Harness,
) -> None:
    """If the alert cannot be updated, the funds stay on hold and the request can be retried."""
    alert, sender, receiver = await create_held_transfer(harness)
    await harness.database.execute(
        "ALTER TABLE alerts ADD CONSTRAINT broken CHECK (resolution_notes IS NULL)"
    )
    response = await resolve_alert(harness, alert["id"], transaction_decision="release")
    assert response.status_code == 500
    assert await get_funds(harness, sender) == (1000_00, 100_01)
    assert (await list_alerts(harness))[0]["status"] == "open"
    assert (await submit_transfer(harness, receiver, sender, "1")).code == "INSUFFICIENT_FUNDS"
    await harness.database.execute("ALTER TABLE alerts DROP CONSTRAINT broken")
    response = await resolve_alert(harness, alert["id"], transaction_decision="release")
    assert response.status_code == 200
    assert await get_funds(harness, sender) == (899_99, 0)


async def test_database_failure_after_the_decision_does_not_change_the_response(
    harness: Harness, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    alert, sender, _ = await create_held_transfer(harness)
    submit = services.ledger.submit

    async def submit_and_disconnect(command: LedgerCommand) -> Outcome:
        outcome = await submit(command)
        fail = AsyncMock(side_effect=unavailable("The database cannot be reached"))
        monkeypatch.setattr(services.database, "fetchrow", fail)
        return outcome

    monkeypatch.setattr(services.ledger, "submit", submit_and_disconnect)
    response = await resolve_alert(harness, alert["id"], transaction_decision="release")
    monkeypatch.undo()
    assert (response.status_code, response.json()["alert"]["status"]) == (200, "resolved")
    assert await get_funds(harness, sender) == (899_99, 0)


async def test_alert_is_resolved_when_its_transaction_was_already_decided(harness: Harness) -> None:
    alert, sender, _ = await create_held_transfer(harness)
    decision = ReviewDecision(transaction_id=decode_id(alert["transaction_id"]), release=False)
    (await harness.services.ledger.submit(decision)).require_accepted()
    response = await resolve_alert(harness, alert["id"], transaction_decision="release")
    assert response.status_code == 200
    assert response.json()["message"].endswith("was decided earlier: failed.")
    assert await get_funds(harness, sender) == (1000_00, 0)
    again = await resolve_alert(harness, alert["id"], transaction_decision="release")
    assert (again.status_code, again.json()["code"]) == (409, "ALREADY_RESOLVED")


async def test_resolving_again_is_rejected_before_the_decision_is_validated(
    harness: Harness,
) -> None:
    alert, _, _ = await create_held_transfer(harness)
    await resolve_alert(harness, alert["id"], transaction_decision="reject")
    assert parse_error(await resolve_alert(harness, alert["id"])) == (409, "ALREADY_RESOLVED")


async def test_held_transaction_of_a_restricted_subscriber_can_be_released(
    harness: Harness,
) -> None:
    await update_rule(harness, "Large amount", threshold="100")
    sender = await harness.create_restricted_subscriber()
    receiver = await harness.create_subscriber()
    await harness.deposit(sender["id"], "500")
    assert (await submit_transfer(harness, sender["id"], receiver["id"], "101")).code is None
    (alert,) = await list_alerts(harness)
    response = await resolve_alert(harness, alert["id"], transaction_decision="release")
    assert response.status_code == 200
    assert await get_funds(harness, receiver["id"]) == (101_00, 0)
