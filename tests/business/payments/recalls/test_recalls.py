"""Recalls over HTTP: request, answer, decision, expiry, access and audit."""

from datetime import timedelta
from typing import Any

import pytest

from builders.recalls import recall, send_p2p
from harness import PIN, WRONG_PIN, Harness, parse_error
from tapgate.business.payments.recalls.operations import RecallWorker

V1 = "/api/v1"


async def end(harness: Harness, recall_id: str, verb: str, auth: Any = None, **body: Any) -> Any:
    return await harness.post(
        f"{V1}/recalls/{recall_id}/{verb}",
        json=body or None,
        auth=auth or harness.get_service_auth(),
    )


async def get_balance(harness: Harness, person: dict[str, Any]) -> dict[str, Any]:
    response = await harness.get(
        f"{V1}/balance/{person['id']}", auth=await harness.create_admin("S")
    )
    return dict(response.json())


@pytest.fixture
async def people(harness: Harness) -> tuple[dict[str, Any], dict[str, Any]]:
    return await harness.create_subscriber(balance="1000"), await harness.create_subscriber()


async def test_receiver_returns_the_money(
    harness: Harness, people: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    sender, receiver = people
    transfer = await send_p2p(harness, sender, receiver)
    before = await get_balance(harness, sender)

    opened = await recall(harness, transfer, reason="Wrong number")

    assert opened.status_code == 201, opened.text
    record = opened.json()
    assert record["id"].startswith("rcl_")
    assert (record["status"], record["reason"]) == ("open", "Wrong number")
    assert (record["amount"], record["held_amount"]) == ("100.00", "100.00")
    held = await get_balance(harness, receiver)
    assert (held["available"], held["held"]) == ("0.00", "100.00")
    pending = await harness.get(
        f"{V1}/subscribers/{receiver['id']}/recalls", auth=harness.get_service_auth()
    )
    assert [row["id"] for row in pending.json()["data"]] == [record["id"]]
    assert sender["phone_number"] not in pending.text
    assert sender["last_name"] not in pending.text

    wrong = await end(harness, record["id"], "return", pin=WRONG_PIN)
    assert parse_error(wrong) == (400, "INVALID_PIN")
    returned = await end(harness, record["id"], "return", pin=PIN)
    assert returned.status_code == 200, returned.text
    assert returned.json()["status"] == "returned"
    after = await get_balance(harness, sender)
    assert float(after["available"]) == float(before["available"]) + 100
    support = await harness.create_admin("S")
    original = (await harness.get(f"{V1}/transactions/{transfer}", auth=support)).json()
    assert original["status"] == "reversed"
    assert parse_error(await end(harness, record["id"], "keep")) == (409, "RECALL_NOT_OPEN")
    for event in ("recall.opened", "recall.returned"):
        (entry,) = await harness.list_audit_entries(record["id"], event)
        assert entry["actor"]["type"] == "service"
    assert await harness.list_audit_entries(transfer, "transaction.reversed")


async def test_replay_returns_the_original_response(
    harness: Harness, people: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    transfer = await send_p2p(harness, *people)
    opened = await recall(harness, transfer)
    await end(harness, opened.json()["id"], "keep")
    replay = await recall(harness, transfer, pin=WRONG_PIN)
    assert (replay.status_code, replay.json()) == (201, opened.json())
    assert replay.headers["Idempotent-Replayed"] == "true"
    changed = await recall(harness, transfer, reason="Other")
    assert parse_error(changed) == (409, "DUPLICATE_REQUEST")
    again = await recall(harness, transfer, request_id="another")
    assert parse_error(again) == (409, "NOT_RECALLABLE")


async def test_sender_pin_is_required_from_a_service(
    harness: Harness, people: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    transfer = await send_p2p(harness, *people)
    assert parse_error(await recall(harness, transfer, pin=None)) == (400, "INVALID_REQUEST")
    assert parse_error(await recall(harness, transfer, pin=WRONG_PIN)) == (400, "INVALID_PIN")
    support = await harness.create_admin("S")
    assert (await recall(harness, transfer, support, pin=None)).status_code == 201


async def test_three_open_recalls_per_sender(
    harness: Harness, people: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    transfers = [await send_p2p(harness, *people, amount="10") for _ in range(4)]
    for transfer in transfers[:3]:
        assert (await recall(harness, transfer)).status_code == 201
    rejected = await recall(harness, transfers[3])
    assert parse_error(rejected) == (409, "NOT_RECALLABLE")
    assert rejected.json()["details"] == {"open": 3}


async def test_recall_period_ends(
    harness: Harness,
    people: tuple[dict[str, Any], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transfer = await send_p2p(harness, *people)
    ledger, clock = harness.services.ledger, harness.services.clock
    hours = harness.services.settings.recall_hours
    monkeypatch.setattr(ledger, "clock", lambda: clock() + timedelta(hours=hours))
    assert parse_error(await recall(harness, transfer)) == (409, "NOT_RECALLABLE")


async def test_staff_decide(
    harness: Harness, people: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    compliance, support = await harness.create_admin("C"), await harness.create_admin("S")
    for decision, status in (("return", "reversed"), ("release", "completed")):
        transfer = await send_p2p(harness, *people)
        opened = (await recall(harness, transfer)).json()
        body = {"decision": decision, "reason": "Checked both"}
        forbidden = await end(harness, opened["id"], "decide", support, **body)
        assert forbidden.status_code == 403
        decided = (await end(harness, opened["id"], "decide", compliance, **body)).json()
        assert (decided["status"], decided["decision"]) == ("decided", decision)
        assert (decided["decided_by"], decided["decision_reason"]) == (
            compliance.id, "Checked both",
        )  # fmt: skip
        original = await harness.get(f"{V1}/transactions/{transfer}", auth=support)
        assert original.json()["status"] == status
        again = await end(harness, opened["id"], "decide", compliance, **body)
        assert parse_error(again) == (409, "RECALL_NOT_OPEN")
    listed = (await harness.get(f"{V1}/recalls?status=decided", auth=support)).json()["data"]
    assert [row["decision"] for row in listed] == ["release", "return"]
    missing = await harness.get(f"{V1}/recalls/rcl_0000000000000", auth=support)
    assert parse_error(missing) == (404, "RECALL_NOT_FOUND")


async def test_staff_see_the_parties_unless_one_is_restricted(
    harness: Harness, people: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    sender, receiver = people
    opened = (await recall(harness, await send_p2p(harness, *people), reason="For Mariama")).json()
    support = await harness.create_admin("S")

    async def load() -> list[dict[str, Any]]:
        one = (await harness.get(f"{V1}/recalls/{opened['id']}", auth=support)).json()
        page = (await harness.get(f"{V1}/recalls", auth=support)).json()
        assert page["data"] == [one]
        assert page.get("masked") == one.get("masked")
        return [one[name] for name in ("sender_id", "sender_name", "receiver_id", "receiver_name")]

    def name(person: dict[str, Any]) -> str:
        return f"{person['first_name']} {person['last_name']}"

    assert await load() == [sender["id"], name(sender), receiver["id"], name(receiver)]
    assert opened.keys().isdisjoint({"sender_id", "sender_name", "receiver_id", "receiver_name"})
    (entry,) = await harness.list_audit_entries(opened["id"], "recall.opened")
    assert sender["last_name"] not in str(entry)
    response = await harness.put(
        f"{V1}/subscribers/{receiver['id']}",
        json={"restricted": True},
        auth=await harness.create_admin("C"),
    )
    assert response.status_code == 200
    assert await load() == [sender["id"], None, receiver["id"], None]


async def test_unanswered_recall_expires(
    harness: Harness, people: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    transfer = await send_p2p(harness, *people)
    opened = (await recall(harness, transfer)).json()
    worker = RecallWorker(harness.services)
    await worker.work()
    support = await harness.create_admin("S")
    url = f"{V1}/recalls/{opened['id']}"
    assert (await harness.get(url, auth=support)).json()["status"] == "open"
    harness.advance_clock(hours=24, seconds=1)
    support = await harness.create_admin("S")
    await worker.work()
    await worker.work()
    assert (await harness.get(url, auth=support)).json()["status"] == "expired"
    assert (await get_balance(harness, people[1]))["held"] == "0.00"
    assert await harness.list_audit_entries(opened["id"], "recall.expired")


async def test_nothing_held_cannot_be_returned(
    harness: Harness, people: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    transfer = await send_p2p(harness, *people)
    spending = {
        "from_account_id": people[1]["account_id"],
        "to_account_id": people[0]["account_id"],
        "amount": "100",
    }
    admin = await harness.create_admin("F")
    spent = await harness.post(f"{V1}/wallet/transfer", json=spending, auth=admin)
    assert spent.status_code == 200, spent.text
    opened = (await recall(harness, transfer)).json()
    assert opened["held_amount"] == "0.00"
    returned = await end(harness, opened["id"], "return", pin=PIN)
    assert parse_error(returned) == (402, "INSUFFICIENT_FUNDS")
    assert (await end(harness, opened["id"], "keep")).json()["status"] == "kept"


async def test_open_recalls_are_counted_in_the_work_queue(
    harness: Harness, people: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    await recall(harness, await send_p2p(harness, *people))
    for role, counted in (("S", 1), ("C", 1), ("F", None)):
        admin = await harness.create_admin(role)
        queues = (await harness.get(f"{V1}/work-queues?fresh=true", auth=admin)).json()["data"]
        counts = {queue["name"]: queue["waiting"] for queue in queues}
        assert counts.get("recalls") == counted


async def test_both_parties_get_a_message_per_step_without_number_or_full_name(
    harness: Harness, people: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    sender, receiver = people
    for verb, outcome in (("keep", "declined"), ("return", "is complete")):
        opened = (await recall(harness, await send_p2p(harness, *people))).json()
        asked = await harness.list_pending_messages(receiver["phone_number"], "recall_request")
        assert asked[0][1:] == ["Aminata K.", "100.00 SLE", "100.00 SLE"]
        told = await harness.list_pending_messages(sender["phone_number"], "recall_update")
        assert "was sent to the recipient" in told[0][2]
        await end(harness, opened["id"], verb, **({"pin": PIN} if verb == "return" else {}))
        for person, other in ((sender, receiver), (receiver, sender)):
            told = await harness.list_pending_messages(person["phone_number"], "recall_update")
            assert outcome in told[0][2]
            text = " ".join(" ".join(parameters) for parameters in [*told, *asked])
            assert other["phone_number"] not in text
            assert "Kamara" not in text
