"""Creating, deduplicating, listing, investigating and resolving alerts."""

import asyncio
from typing import Any

import httpx2

from builders.payments import (
    ALERTS_URL,
    decode_id,
    get_rules_by_name,
    list_alerts,
    list_events,
    resolve_alert,
    submit_and_get_id,
    submit_transfer,
    subscribe_to_events,
    update_rule,
)
from harness import Harness, parse_error
from tapgate.business.compliance.alerts import queries
from tapgate.ledger import chart

NEW_ALERT: dict[str, Any] = {"alert_type": "UNUSUAL_AMOUNT", "details": {"seen": "twice"}}


async def post_alert(harness: Harness, **fields: Any) -> httpx2.Response:
    return await harness.post(ALERTS_URL, json=NEW_ALERT | fields, auth=harness.get_service_auth())


async def create_alert(harness: Harness, **fields: Any) -> dict[str, Any]:
    response = await post_alert(harness, **fields)
    assert response.status_code == 201, response.text
    alert: dict[str, Any] = response.json()["alert"]
    return alert


async def test_alert_with_only_required_fields_is_created(harness: Harness) -> None:
    response = await post_alert(harness)
    assert response.status_code == 201
    body = response.json()
    assert list(body) == ["success", "message", "alert_id", "alert"]
    alert = body["alert"]
    assert body["alert_id"] == alert["id"]
    assert alert["id"].startswith("alr_")
    assert alert["created_at"] == alert["updated_at"]
    assert alert["created_at"].endswith("Z")
    fields = {name: value for name, value in alert.items() if name not in ("id", "created_at")}
    del fields["updated_at"]
    assert fields == {
        "subscriber_id": None,
        "transaction_id": None,
        "rule_id": None,
        "alert_type": "UNUSUAL_AMOUNT",
        "severity": "MEDIUM",
        "status": "open",
        "details": {"seen": "twice"},
        "occurrences": 1,
        "assignee": None,
        "assignee_name": None,
        "investigation_notes": None,
        "resolution_notes": None,
        "resolved_by": None,
        "resolved_at": None,
    }
    fetched = await harness.get(f"{ALERTS_URL}/{alert['id']}", auth=await harness.create_admin("C"))
    assert (fetched.status_code, fetched.json()) == (200, alert)
    (entry,) = await harness.list_audit_entries(alert["id"], "alert.created")
    assert entry["changes"] == {"status": [None, "open"]}
    assert (entry["actor"]["type"], entry["actor"]["id"]) == ("service", "messenger")


async def test_repeated_alert_for_a_rule_and_subscriber_increments_its_occurrences(
    harness: Harness,
) -> None:
    subscriber = await harness.create_subscriber()
    rule = (await get_rules_by_name(harness))["Large amount"]
    subject = {"rule_id": rule["id"], "subscriber_id": subscriber["id"]}
    first = await create_alert(harness, **subject)
    repeat = await post_alert(harness, **subject, details={"seen": "thrice"}, severity="CRITICAL")
    assert repeat.status_code == 200
    alert = repeat.json()["alert"]
    assert (alert["id"], alert["occurrences"], alert["severity"]) == (first["id"], 2, "CRITICAL")
    assert alert["details"] == {"seen": "thrice"}
    lower_severity = (await post_alert(harness, **subject, severity="LOW")).json()["alert"]
    assert (lower_severity["occurrences"], lower_severity["severity"]) == (3, "CRITICAL")
    await harness.post(
        f"{ALERTS_URL}/{first['id']}/investigate", auth=await harness.create_admin("C")
    )
    assert (await post_alert(harness, **subject)).status_code == 200
    assert (await resolve_alert(harness, first["id"])).status_code == 200
    assert (await post_alert(harness, **subject)).status_code == 201


async def test_alerts_without_a_rule_or_subscriber_are_not_merged(harness: Harness) -> None:
    subscriber = await harness.create_subscriber()
    rule_id = (await get_rules_by_name(harness))["Large amount"]["id"]
    for subject in ({}, {"subscriber_id": subscriber["id"]}, {"rule_id": rule_id}):
        alert = await create_alert(harness, **subject)
        other_alert = await create_alert(harness, **subject)
        assert alert["id"] != other_alert["id"]


async def test_concurrent_alerts_for_a_rule_and_subscriber_are_merged(harness: Harness) -> None:
    subscriber = await harness.create_subscriber()
    rule = (await get_rules_by_name(harness))["Large amount"]
    responses = await asyncio.gather(
        *(
            post_alert(harness, rule_id=rule["id"], subscriber_id=subscriber["id"])
            for _ in range(20)
        )
    )
    assert sorted(response.status_code for response in responses) == [200] * 19 + [201]
    (alert,) = await list_alerts(harness)
    assert alert["occurrences"] == 20


async def test_client_alert_is_merged_into_the_alert_raised_by_the_same_rule(
    harness: Harness,
) -> None:
    await update_rule(harness, "Large amount", threshold="10", action="alert")
    sender = await harness.create_subscriber(balance="100")
    receiver = await harness.create_subscriber()
    assert (await submit_transfer(harness, sender["id"], receiver["id"], "10.01")).code is None
    (alert,) = await list_alerts(harness)
    assert alert["subscriber_id"] == sender["id"]
    assert alert["details"] == {
        "rule_type": "AMOUNT_THRESHOLD",
        "action": "alert",
        "transaction_type": "transfer",
        "figure": "10.01",
    }
    response = await post_alert(harness, rule_id=alert["rule_id"], subscriber_id=sender["id"])
    assert (response.status_code, response.json()["alert"]["occurrences"]) == (200, 2)
    assert response.json()["alert"]["transaction_id"] == alert["transaction_id"]


async def test_referenced_records_must_exist(harness: Harness) -> None:
    for field, code in (
        ("subscriber_id", "SUBSCRIBER_NOT_FOUND"),
        ("transaction_id", "TRANSACTION_NOT_FOUND"),
        ("rule_id", "RULE_NOT_FOUND"),
    ):
        prefix = field[:3].replace("tra", "txn") + "_"
        for unknown in (f"{prefix}0000000000001", "nonsense", "sub_zzzzzzzzzzzzz"):
            assert parse_error(await post_alert(harness, **{field: unknown})) == (404, code)
    assert await list_alerts(harness) == []


async def test_invalid_field_is_named_in_the_error(harness: Harness) -> None:
    bodies: list[tuple[dict[str, Any], int, str]] = [
        ({"details": {}}, 400, "alert_type"),
        ({"alert_type": "X"}, 400, "details"),
        (NEW_ALERT | {"details": "text"}, 400, "details"),
        (NEW_ALERT | {"details": {"a": "b" * 5000}}, 422, "details"),
        (NEW_ALERT | {"alert_type": ""}, 422, "alert_type"),
        (NEW_ALERT | {"severity": "worst"}, 422, "severity"),
    ]
    for body, status, field in bodies:
        response = await harness.post(ALERTS_URL, json=body, auth=harness.get_service_auth())
        assert response.status_code == status, response.text
        assert list(response.json()["details"]["fields"]) == [field]


async def test_alerts_are_filtered_and_paginated(harness: Harness) -> None:
    subscriber = await harness.create_subscriber(balance="10")
    recipient = await harness.create_subscriber()
    transfer_id = await submit_and_get_id(harness, chart.TRANSFER_P2P, subscriber, recipient, "1")
    transaction_alert = await create_alert(harness, transaction_id=transfer_id)
    high = await create_alert(harness, severity="HIGH")
    subscriber_alert = await create_alert(harness, subscriber_id=subscriber["id"])
    await resolve_alert(harness, transaction_alert["id"], status="false_positive")

    async def list_ids(**filters: str) -> list[str]:
        return [alert["id"] for alert in await list_alerts(harness, **filters)]

    assert await list_ids() == [subscriber_alert["id"], high["id"], transaction_alert["id"]]
    assert await list_ids(status="open") == [subscriber_alert["id"], high["id"]]
    assert await list_ids(status="false_positive") == [transaction_alert["id"]]
    assert await list_ids(severity="HIGH") == [high["id"]]
    assert await list_ids(subscriber_id=subscriber["id"]) == [subscriber_alert["id"]]
    assert await list_ids(subscriber_id=subscriber["id"], severity="LOW") == []
    assert await list_ids(subscriber_id="sub_0000000000001") == []
    assert await list_ids(transaction_id=transfer_id) == [transaction_alert["id"]]
    assert await list_ids(transaction_id="txn_0000000000001") == []
    admin = await harness.create_admin("C")
    page = (await harness.get(f"{ALERTS_URL}?limit=2", auth=admin)).json()
    rest = await harness.get(f"{ALERTS_URL}?cursor={page['next_cursor']}", auth=admin)
    assert [alert["id"] for alert in rest.json()["data"]] == [transaction_alert["id"]]
    for query in ("status=closed", "severity=high", "limit=0", "transaction_id=sub_0000000000001"):
        response = await harness.get(f"{ALERTS_URL}?{query}", auth=admin)
        assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")


async def test_alerts_about_restricted_subscribers_are_masked_and_can_be_resolved(
    harness: Harness,
) -> None:
    """No access code is required, because it would alert the subscriber under investigation."""
    restricted = await harness.create_restricted_subscriber(balance="50")
    other = await harness.create_subscriber()
    sent = await submit_and_get_id(harness, chart.TRANSFER_P2P, restricted, other, "5")
    details = {"asked_by": restricted["phone_number"], "action": "alert", "figure": "5.00"}
    invalid_values = {"rule_type": "Aminata", "action": "Aminata", "figure": ["Aminata"]}
    admin, url = await harness.create_admin("C"), f"/api/v1/subscribers/{restricted['id']}"
    unrestricted = await create_alert(harness, subscriber_id=other["id"], details=details)
    masked = [
        await create_alert(harness, subscriber_id=restricted["id"], details=details),
        await create_alert(harness, transaction_id=sent, details=details | invalid_values),
    ]
    assert masked[0]["details"] == details  # services see unmasked details
    page = (await harness.get(ALERTS_URL, auth=admin)).json()
    by_transaction, by_subscriber, unmasked = page["data"]
    assert page["masked"] is True
    assert (unmasked["id"], unmasked["details"]) == (unrestricted["id"], details)
    assert "masked" not in unmasked
    assert by_subscriber["masked"] is True and by_transaction["masked"] is True
    assert by_subscriber["details"] == {"action": "alert", "figure": "5.00"}
    assert by_transaction["details"] == {}
    assert by_subscriber["subscriber_id"] == restricted["id"]

    alert_url = f"{ALERTS_URL}/{masked[0]['id']}"
    note = {"note": "Aminata called"}
    responses = [await harness.post(f"{alert_url}/investigate", json=note, auth=admin)]
    resolution = {"status": "resolved", "resolution_notes": "Aminata was right"}
    responses.append(await harness.post(f"{alert_url}/resolve", json=resolution, auth=admin))
    responses.append(await harness.get(alert_url, auth=admin))
    log_url = f"/api/v1/audit/logs?resource_id={masked[0]['id']}"
    responses.append(await harness.get(log_url, auth=admin))
    for response in responses:
        assert response.status_code == 200, response.text
        assert "Aminata" not in response.text and restricted["phone_number"] not in response.text

    await harness.post(f"{url}/restricted-access", auth=admin)
    code = await harness.get_pending_code(restricted["phone_number"])
    await harness.post(f"{url}/restricted-access/verify", json={"otp": code}, auth=admin)
    alert = (await harness.get(alert_url, auth=admin)).json()
    assert (alert["details"], alert["resolution_notes"]) == (details, "Aminata was right")
    assert "masked" not in alert
    assert "Aminata called" in (await harness.get(log_url, auth=admin)).text


async def test_investigation_sets_the_status_and_is_audited(harness: Harness) -> None:
    alert = await create_alert(harness)
    admin = await harness.create_admin("C")
    url = f"{ALERTS_URL}/{alert['id']}/investigate"
    response = await harness.post(url, json={"note": "Called the customer"}, auth=admin)
    assert response.status_code == 200
    assert list(response.json()) == ["success", "message", "alert"]
    assert response.json()["alert"]["status"] == "investigating"
    second_response = await harness.post(url, auth=admin)
    assert (second_response.status_code, second_response.json()["alert"]["status"]) == (
        200,
        "investigating",
    )
    first, second = await harness.list_audit_entries(alert["id"], "alert.investigated")
    assert (first["reason"], second["reason"]) == ("Called the customer", None)
    await harness.post(url, json={"note": "No answer"}, auth=admin)
    record = (await harness.get(f"{ALERTS_URL}/{alert['id']}", auth=admin)).json()
    assert record["investigation_notes"] == "Called the customer\nNo answer"
    assert first["changes"] == {"status": ["open", "investigating"]}


async def test_resolution_is_stored_and_audited(harness: Harness) -> None:
    alert = await create_alert(harness)
    admin = await harness.create_admin("C")
    body = {"status": "false_positive", "resolution_notes": "A birthday"}
    response = await harness.post(f"{ALERTS_URL}/{alert['id']}/resolve", json=body, auth=admin)
    assert response.status_code == 200
    assert list(response.json()) == ["success", "message", "alert"]
    after = response.json()["alert"]
    assert after["resolved_at"] == after["updated_at"]
    assert after == alert | body | {
        "resolved_by": admin.id,
        "resolved_at": after["resolved_at"],
        "updated_at": after["updated_at"],
    }
    (entry,) = await harness.list_audit_entries(alert["id"], "alert.resolved")
    assert entry["changes"]["status"] == ["open", "false_positive"]
    assert (entry["reason"], entry["actor"]["id"]) == ("A birthday", admin.id)


async def test_resolved_alert_cannot_be_resolved_or_investigated_again(harness: Harness) -> None:
    alert = await create_alert(harness)
    responses = await asyncio.gather(*(resolve_alert(harness, alert["id"]) for _ in range(5)))
    assert sorted(response.status_code for response in responses) == [200] + [409] * 4
    (entry,) = await harness.list_audit_entries(alert["id"], "alert.resolved")
    late = await harness.post(
        f"{ALERTS_URL}/{alert['id']}/investigate", auth=await harness.create_admin("C")
    )
    assert (late.status_code, late.json()["code"]) == (409, "ALREADY_RESOLVED")
    assert entry["result"] == "success"


async def test_invalid_resolution_field_is_named_in_the_error(harness: Harness) -> None:
    alert = await create_alert(harness)
    bodies: list[tuple[dict[str, Any], int, str]] = [
        ({"status": "resolved"}, 400, "resolution_notes"),
        ({"resolution_notes": "x"}, 400, "status"),
        ({"status": "open", "resolution_notes": "x"}, 422, "status"),
        ({"status": "resolved", "resolution_notes": "x" * 501}, 422, "resolution_notes"),
        (
            {"status": "resolved", "resolution_notes": "x", "transaction_decision": "keep"},
            422,
            "transaction_decision",
        ),
        (
            {"status": "resolved", "resolution_notes": "x", "transaction_decision": "release"},
            422,
            "transaction_decision",
        ),
    ]
    for body, status, field in bodies:
        response = await harness.post(
            f"{ALERTS_URL}/{alert['id']}/resolve", json=body, auth=await harness.create_admin("C")
        )
        assert response.status_code == status, response.text
        assert list(response.json()["details"]["fields"]) == [field]
    assert (await list_alerts(harness))[0]["status"] == "open"


async def test_unknown_alert_is_not_found(harness: Harness) -> None:
    admin = await harness.create_admin("C")
    for alert_id in ("1", "alr_", "alr_0000000000001", "sub_0000000000001"):
        for response in (
            await harness.get(f"{ALERTS_URL}/{alert_id}", auth=admin),
            await harness.post(f"{ALERTS_URL}/{alert_id}/investigate", auth=admin),
            await resolve_alert(harness, alert_id),
        ):
            assert (response.status_code, response.json()["code"]) == (404, "ALERT_NOT_FOUND")


async def test_new_and_resolved_alerts_are_published(harness: Harness) -> None:
    await subscribe_to_events(harness)
    subscriber = await harness.create_subscriber()
    rule_id = (await get_rules_by_name(harness))["Large amount"]["id"]
    alert = await create_alert(harness, rule_id=rule_id, subscriber_id=subscriber["id"])
    await post_alert(harness, rule_id=rule_id, subscriber_id=subscriber["id"])
    assert await list_events(harness, "alert.created") == [alert]
    resolved = (await resolve_alert(harness, alert["id"])).json()["alert"]
    assert await list_events(harness, "alert.resolved") == [resolved]


async def test_alert_record_matches_the_created_alert(harness: Harness) -> None:
    alert = await create_alert(harness)
    alert_id = decode_id(alert["id"])
    record = (await queries.load_records(harness.services, [alert_id]))[alert_id]
    assert (record.id, record.details) == (alert["id"], alert["details"])


SUPPORT_REQUEST: dict[str, Any] = {"alert_type": "SUPPORT_REQUEST", "severity": "LOW"}


async def test_phone_number_has_at_most_one_open_support_request(harness: Harness) -> None:
    first = await create_alert(harness, **SUPPORT_REQUEST, details={"asked_by": "+23276000001"})
    repeat = await post_alert(harness, **SUPPORT_REQUEST, details={"asked_by": "+23276000001"})
    assert repeat.status_code == 200
    assert repeat.json()["alert"]["id"] == first["id"]
    assert repeat.json()["alert"]["occurrences"] == 2
    other = await create_alert(harness, **SUPPORT_REQUEST, details={"asked_by": "+23276000002"})
    assert other["id"] != first["id"]
    assert (await resolve_alert(harness, first["id"])).status_code == 200
    alert = await create_alert(harness, **SUPPORT_REQUEST, details={"asked_by": "+23276000001"})
    assert alert["id"] not in (first["id"], other["id"])


async def test_concurrent_support_requests_are_merged(harness: Harness) -> None:
    details = {"asked_by": "+23276000001"}
    responses = await asyncio.gather(
        *(post_alert(harness, **SUPPORT_REQUEST, details=details) for _ in range(20))
    )
    assert sorted(response.status_code for response in responses) == [200] * 19 + [201]
    (alert,) = await list_alerts(harness)
    assert alert["occurrences"] == 20


async def test_only_support_requests_are_merged_by_phone_number(harness: Harness) -> None:
    for details in ({"asked_by": "+23276000001"}, {"asked_by": 1}, {}):
        for _ in range(2):
            fields = {} if details == {"asked_by": "+23276000001"} else SUPPORT_REQUEST
            await create_alert(harness, **fields, details=details)
