"""Creating, deduplicating, listing, investigating and resolving alerts."""

import asyncio
from typing import Any

import httpx2

from compliance.builders import (
    ALERTS_URL,
    decode_id,
    get_rules_by_name,
    list_alerts,
    list_events,
    resolve_alert,
    submit_transfer,
    subscribe_to_events,
    update_rule,
)
from harness import Harness
from tapgate.compliance.alerts import queries
from tapgate.ledger import chart
from transactions.builders import submit_and_get_id

NEW_ALERT: dict[str, Any] = {"alert_type": "UNUSUAL_AMOUNT", "details": {"seen": "twice"}}


async def post_alert(world: Harness, **fields: Any) -> httpx2.Response:
    return await world.client.post(
        ALERTS_URL, json=NEW_ALERT | fields, auth=world.get_service_auth()
    )


async def create_alert(world: Harness, **fields: Any) -> dict[str, Any]:
    answer = await post_alert(world, **fields)
    assert answer.status_code == 201, answer.text
    alert: dict[str, Any] = answer.json()["alert"]
    return alert


async def test_alert_with_only_required_fields_is_created(world: Harness) -> None:
    answer = await post_alert(world)
    assert answer.status_code == 201
    body = answer.json()
    assert list(body) == ["success", "message", "alert_id", "alert"]
    alert = body["alert"]
    assert body["alert_id"] == alert["id"]
    assert alert["id"].startswith("alr_")
    assert alert["created_at"] == alert["updated_at"]
    assert alert["created_at"].endswith("Z")
    shown = {name: value for name, value in alert.items() if name not in ("id", "created_at")}
    del shown["updated_at"]
    assert shown == {
        "subscriber_id": None,
        "transaction_id": None,
        "rule_id": None,
        "alert_type": "UNUSUAL_AMOUNT",
        "severity": "MEDIUM",
        "status": "open",
        "details": {"seen": "twice"},
        "occurrences": 1,
        "resolution_notes": None,
        "resolved_by": None,
        "resolved_at": None,
    }
    found = await world.client.get(
        f"{ALERTS_URL}/{alert['id']}", auth=await world.create_admin("C")
    )
    assert (found.status_code, found.json()) == (200, alert)
    (entry,) = await world.list_audit_entries(alert["id"], "alert.created")
    assert entry["changes"] == {"status": [None, "open"]}
    assert (entry["actor"]["type"], entry["actor"]["id"]) == ("service", "messenger")


async def test_repeated_alert_for_a_rule_and_subject_increments_its_occurrences(
    world: Harness,
) -> None:
    subscriber = await world.create_subscriber()
    rule = (await get_rules_by_name(world))["Large amount"]
    about = {"rule_id": rule["id"], "subscriber_id": subscriber["id"]}
    first = await create_alert(world, **about)
    again = await post_alert(world, **about, details={"seen": "thrice"}, severity="CRITICAL")
    assert again.status_code == 200
    alert = again.json()["alert"]
    assert (alert["id"], alert["occurrences"], alert["severity"]) == (first["id"], 2, "CRITICAL")
    assert alert["details"] == {"seen": "thrice"}
    milder = (await post_alert(world, **about, severity="LOW")).json()["alert"]
    assert (milder["occurrences"], milder["severity"]) == (3, "CRITICAL")
    await world.client.post(
        f"{ALERTS_URL}/{first['id']}/investigate", auth=await world.create_admin("C")
    )
    assert (await post_alert(world, **about)).status_code == 200
    assert (await resolve_alert(world, first["id"])).status_code == 200
    assert (await post_alert(world, **about)).status_code == 201


async def test_alerts_without_both_rule_and_subscriber_are_not_merged(world: Harness) -> None:
    subscriber = await world.create_subscriber()
    rule_id = (await get_rules_by_name(world))["Large amount"]["id"]
    for about in ({}, {"subscriber_id": subscriber["id"]}, {"rule_id": rule_id}):
        assert (await create_alert(world, **about))["id"] != (await create_alert(world, **about))[
            "id"
        ]


async def test_concurrent_alerts_for_a_rule_and_subject_are_merged(world: Harness) -> None:
    subscriber = await world.create_subscriber()
    rule = (await get_rules_by_name(world))["Large amount"]
    answers = await asyncio.gather(
        *(post_alert(world, rule_id=rule["id"], subscriber_id=subscriber["id"]) for _ in range(20))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]
    (alert,) = await list_alerts(world)
    assert alert["occurrences"] == 20


async def test_alerts_from_rules_and_clients_about_a_subject_are_merged(
    world: Harness,
) -> None:
    await update_rule(world, "Large amount", threshold="10", action="alert")
    sender, receiver = await world.create_subscriber(balance="100"), await world.create_subscriber()
    assert (await submit_transfer(world, sender["id"], receiver["id"], "10.01")).code is None
    (alert,) = await list_alerts(world)
    assert alert["subscriber_id"] == sender["id"]
    assert alert["details"] == {
        "rule_type": "AMOUNT_THRESHOLD",
        "action": "alert",
        "transaction_type": "transfer",
        "figure": "10.01",
    }
    answer = await post_alert(world, rule_id=alert["rule_id"], subscriber_id=sender["id"])
    assert (answer.status_code, answer.json()["alert"]["occurrences"]) == (200, 2)
    assert answer.json()["alert"]["transaction_id"] == alert["transaction_id"]


async def test_referenced_records_must_exist(world: Harness) -> None:
    for field, code in (
        ("subscriber_id", "SUBSCRIBER_NOT_FOUND"),
        ("transaction_id", "TRANSACTION_NOT_FOUND"),
        ("rule_id", "RULE_NOT_FOUND"),
    ):
        prefix = field[:3].replace("tra", "txn") + "_"
        for unknown in (f"{prefix}0000000000001", "nonsense", "sub_zzzzzzzzzzzzz"):
            answer = await post_alert(world, **{field: unknown})
            assert (answer.status_code, answer.json()["code"]) == (404, code)
    assert await list_alerts(world) == []


async def test_invalid_field_is_named(world: Harness) -> None:
    bodies: list[tuple[dict[str, Any], int, str]] = [
        ({"details": {}}, 400, "alert_type"),
        ({"alert_type": "X"}, 400, "details"),
        (NEW_ALERT | {"details": "text"}, 400, "details"),
        (NEW_ALERT | {"details": {"a": "b" * 5000}}, 422, "details"),
        (NEW_ALERT | {"alert_type": ""}, 422, "alert_type"),
        (NEW_ALERT | {"severity": "worst"}, 422, "severity"),
    ]
    for body, status, field in bodies:
        answer = await world.client.post(ALERTS_URL, json=body, auth=world.get_service_auth())
        assert answer.status_code == status, answer.text
        assert list(answer.json()["details"]["fields"]) == [field]


async def test_alerts_are_filtered_and_paged(world: Harness) -> None:
    subscriber = await world.create_subscriber(balance="10")
    friend = await world.create_subscriber()
    paid = await submit_and_get_id(world, chart.TRANSFER_P2P, subscriber["id"], friend["id"], "1")
    plain = await create_alert(world, transaction_id=paid)
    grave = await create_alert(world, severity="HIGH")
    about = await create_alert(world, subscriber_id=subscriber["id"])
    await resolve_alert(world, plain["id"], status="false_positive")

    async def listed(**filters: str) -> list[str]:
        return [alert["id"] for alert in await list_alerts(world, **filters)]

    assert await listed() == [about["id"], grave["id"], plain["id"]]
    assert await listed(status="open") == [about["id"], grave["id"]]
    assert await listed(status="false_positive") == [plain["id"]]
    assert await listed(severity="HIGH") == [grave["id"]]
    assert await listed(subscriber_id=subscriber["id"]) == [about["id"]]
    assert await listed(subscriber_id=subscriber["id"], severity="LOW") == []
    assert await listed(subscriber_id="sub_0000000000001") == []
    assert await listed(transaction_id=paid) == [plain["id"]]
    assert await listed(transaction_id="txn_0000000000001") == []
    admin = await world.create_admin("C")
    page = (await world.client.get(f"{ALERTS_URL}?limit=2", auth=admin)).json()
    rest = await world.client.get(f"{ALERTS_URL}?cursor={page['next_cursor']}", auth=admin)
    assert [alert["id"] for alert in rest.json()["data"]] == [plain["id"]]
    for query in ("status=closed", "severity=high", "limit=0", "transaction_id=sub_0000000000001"):
        answer = await world.client.get(f"{ALERTS_URL}?{query}", auth=admin)
        assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_FAILED")


async def test_alerts_about_restricted_subscribers_are_masked_and_can_be_resolved(
    world: Harness,
) -> None:
    """Resolving needs no access code, which would go to the phone under investigation."""
    restricted, other = (
        await world.create_restricted_subscriber(balance="50"),
        await world.create_subscriber(),
    )
    sent = await submit_and_get_id(world, chart.TRANSFER_P2P, restricted["id"], other["id"], "5")
    details = {"asked_by": restricted["phone_number"], "action": "alert", "figure": "5.00"}
    odd = {"rule_type": "Aminata", "action": "Aminata", "figure": ["Aminata"]}
    admin, url = await world.create_admin("C"), f"/api/v1/subscribers/{restricted['id']}"
    plain = await create_alert(world, subscriber_id=other["id"], details=details)
    masked = [
        await create_alert(world, subscriber_id=restricted["id"], details=details),
        await create_alert(world, transaction_id=sent, details=details | odd),
    ]
    assert masked[0]["details"] == details  # services see unmasked details
    page = (await world.client.get(ALERTS_URL, auth=admin)).json()
    by_transaction, by_subscriber, unmasked = page["data"]
    assert page["masked"] is True
    assert (unmasked["id"], unmasked["details"]) == (plain["id"], details)
    assert "masked" not in unmasked
    assert by_subscriber["masked"] is True and by_transaction["masked"] is True
    assert by_subscriber["details"] == {"action": "alert", "figure": "5.00"}
    assert by_transaction["details"] == {}
    assert by_subscriber["subscriber_id"] == restricted["id"]

    one = f"{ALERTS_URL}/{masked[0]['id']}"
    note = {"note": "Aminata called"}
    answers = [await world.client.post(f"{one}/investigate", json=note, auth=admin)]
    resolution = {"status": "resolved", "resolution_notes": "Aminata was right"}
    answers.append(await world.client.post(f"{one}/resolve", json=resolution, auth=admin))
    answers.append(await world.client.get(one, auth=admin))
    log = f"/api/v1/audit/logs?resource_id={masked[0]['id']}"
    answers.append(await world.client.get(log, auth=admin))
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert "Aminata" not in answer.text and restricted["phone_number"] not in answer.text

    await world.client.post(f"{url}/restricted-access", auth=admin)
    code = await world.get_pending_code(restricted["phone_number"])
    await world.client.post(f"{url}/restricted-access/verify", json={"otp": code}, auth=admin)
    found = (await world.client.get(one, auth=admin)).json()
    assert (found["details"], found["resolution_notes"]) == (details, "Aminata was right")
    assert "masked" not in found
    assert "Aminata called" in (await world.client.get(log, auth=admin)).text


async def test_investigation_sets_the_status_and_is_audited(world: Harness) -> None:
    alert = await create_alert(world)
    admin = await world.create_admin("C")
    url = f"{ALERTS_URL}/{alert['id']}/investigate"
    answer = await world.client.post(url, json={"note": "Called the customer"}, auth=admin)
    assert answer.status_code == 200
    assert list(answer.json()) == ["success", "message", "alert"]
    assert answer.json()["alert"]["status"] == "investigating"
    again = await world.client.post(url, auth=admin)
    assert (again.status_code, again.json()["alert"]["status"]) == (200, "investigating")
    first, second = await world.list_audit_entries(alert["id"], "alert.investigated")
    assert (first["reason"], second["reason"]) == ("Called the customer", None)
    assert first["changes"] == {"status": ["open", "investigating"]}


async def test_resolution_is_stored_and_audited(world: Harness) -> None:
    alert = await create_alert(world)
    admin = await world.create_admin("C")
    body = {"status": "false_positive", "resolution_notes": "A birthday"}
    answer = await world.client.post(f"{ALERTS_URL}/{alert['id']}/resolve", json=body, auth=admin)
    assert answer.status_code == 200
    assert list(answer.json()) == ["success", "message", "alert"]
    after = answer.json()["alert"]
    assert after["resolved_at"] == after["updated_at"]
    assert after == alert | body | {
        "resolved_by": admin.id,
        "resolved_at": after["resolved_at"],
        "updated_at": after["updated_at"],
    }
    (entry,) = await world.list_audit_entries(alert["id"], "alert.resolved")
    assert entry["changes"]["status"] == ["open", "false_positive"]
    assert (entry["reason"], entry["actor"]["id"]) == ("A birthday", admin.id)


async def test_resolved_alert_cannot_be_resolved_or_investigated_again(world: Harness) -> None:
    alert = await create_alert(world)
    answers = await asyncio.gather(*(resolve_alert(world, alert["id"]) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 4
    (entry,) = await world.list_audit_entries(alert["id"], "alert.resolved")
    late = await world.client.post(
        f"{ALERTS_URL}/{alert['id']}/investigate", auth=await world.create_admin("C")
    )
    assert (late.status_code, late.json()["code"]) == (409, "ALREADY_RESOLVED")
    assert entry["result"] == "success"


async def test_invalid_resolution_field_is_named(world: Harness) -> None:
    alert = await create_alert(world)
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
        answer = await world.client.post(
            f"{ALERTS_URL}/{alert['id']}/resolve", json=body, auth=await world.create_admin("C")
        )
        assert answer.status_code == status, answer.text
        assert list(answer.json()["details"]["fields"]) == [field]
    assert (await list_alerts(world))[0]["status"] == "open"


async def test_unknown_alert_is_not_found(world: Harness) -> None:
    admin = await world.create_admin("C")
    for alert_id in ("1", "alr_", "alr_0000000000001", "sub_0000000000001"):
        for answer in (
            await world.client.get(f"{ALERTS_URL}/{alert_id}", auth=admin),
            await world.client.post(f"{ALERTS_URL}/{alert_id}/investigate", auth=admin),
            await resolve_alert(world, alert_id),
        ):
            assert (answer.status_code, answer.json()["code"]) == (404, "ALERT_NOT_FOUND")


async def test_new_and_resolved_alerts_are_published(world: Harness) -> None:
    await subscribe_to_events(world)
    subscriber = await world.create_subscriber()
    rule_id = (await get_rules_by_name(world))["Large amount"]["id"]
    alert = await create_alert(world, rule_id=rule_id, subscriber_id=subscriber["id"])
    await post_alert(world, rule_id=rule_id, subscriber_id=subscriber["id"])
    assert await list_events(world, "alert.created") == [alert]
    resolved = (await resolve_alert(world, alert["id"])).json()["alert"]
    assert await list_events(world, "alert.resolved") == [resolved]


async def test_get_record_matches_the_created_alert(world: Harness) -> None:
    alert = await create_alert(world)
    record = await queries.get_record(world.services, decode_id(alert["id"]))
    assert (record.id, record.details) == (alert["id"], alert["details"])


SUPPORT_REQUEST: dict[str, Any] = {"alert_type": "SUPPORT_REQUEST", "severity": "LOW"}


async def test_phone_number_has_at_most_one_open_support_request(world: Harness) -> None:
    first = await create_alert(world, **SUPPORT_REQUEST, details={"asked_by": "+23276000001"})
    again = await post_alert(world, **SUPPORT_REQUEST, details={"asked_by": "+23276000001"})
    assert again.status_code == 200
    assert again.json()["alert"]["id"] == first["id"]
    assert again.json()["alert"]["occurrences"] == 2
    other = await create_alert(world, **SUPPORT_REQUEST, details={"asked_by": "+23276000002"})
    assert other["id"] != first["id"]
    assert (await resolve_alert(world, first["id"])).status_code == 200
    assert (await create_alert(world, **SUPPORT_REQUEST, details={"asked_by": "+23276000001"}))[
        "id"
    ] not in (
        first["id"],
        other["id"],
    )


async def test_concurrent_support_requests_are_merged(world: Harness) -> None:
    details = {"asked_by": "+23276000001"}
    answers = await asyncio.gather(
        *(post_alert(world, **SUPPORT_REQUEST, details=details) for _ in range(20))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]
    (alert,) = await list_alerts(world)
    assert alert["occurrences"] == 20


async def test_other_alerts_about_a_phone_number_are_not_merged(world: Harness) -> None:
    for details in ({"asked_by": "+23276000001"}, {"asked_by": 1}, {}):
        for _ in range(2):
            fields = {} if details == {"asked_by": "+23276000001"} else SUPPORT_REQUEST
            await create_alert(world, **fields, details=details)
