"""KYC decisions: level and status, requirements, messages, conflicts and the queue."""

import asyncio
from typing import Any

import httpx2
import pytest

from builders.kyc_documents import DOCUMENT_TYPES, URL, build_url, upload_document
from cases import each
from drivers.database_sessions import wait_for_lock_waiters
from harness import Harness, parse_error
from tapgate.events.notifications.notification_messages import list_pending
from tapgate.ledger.verification.verify import verify

LEVEL_2_DOCUMENTS = ("id_front", "selfie")


async def create_waiting(harness: Harness, *document_types: str, **fields: Any) -> dict[str, Any]:
    """Create a subscriber who has uploaded documents, by default those for level 2."""
    record = await harness.create_subscriber(**fields)
    for document_type in document_types or LEVEL_2_DOCUMENTS:
        response = await upload_document(harness, record, document_type=document_type)
        assert response.status_code == 201, response.text
    return record


async def decide(
    harness: Harness, record: dict[str, Any], decision: str, *, caller: Any = None, **fields: Any
) -> httpx2.Response:
    return await harness.client.post(
        f"{URL}/{record['id']}/kyc-decision",
        json={"decision": decision, **fields},
        auth=caller or await harness.create_admin("C"),
    )


async def decide_successfully(
    harness: Harness, record: dict[str, Any], decision: str, **fields: Any
) -> tuple[int, str]:
    response = await decide(harness, record, decision, **fields)
    assert response.status_code == 200, response.text
    subscriber = response.json()["subscriber"]
    assert subscriber["kyc_pending_since"] is None
    return subscriber["kyc_level"], subscriber["kyc_status"]


async def list_document_statuses(harness: Harness, record: dict[str, Any]) -> list[str]:
    response = await harness.client.get(build_url(record), auth=harness.get_service_auth())
    return [document["status"] for document in response.json()["data"]]


async def list_messages(harness: Harness, record: dict[str, Any]) -> list[list[str]]:
    return await harness.list_pending_messages(record["phone_number"], "kyc_decided")


@pytest.mark.parametrize("role", ["A", "C"])
async def test_approval_sets_level_and_status_together_in_one_audit_entry(
    harness: Harness, role: str
) -> None:
    record, admin = await create_waiting(harness), await harness.create_admin(role)
    response = await decide(harness, record, "approve", caller=admin)
    assert response.status_code == 200, response.text
    body = response.json()
    assert (body["success"], body["message"]) == (True, "KYC level approved")
    assert (body["subscriber"]["kyc_level"], body["subscriber"]["kyc_status"]) == (2, "VERIFIED")
    (entry,) = await harness.list_audit_entries(record["id"], "subscriber.kyc_approved")
    assert entry["actor"]["id"] == admin.id
    since = entry["changes"].pop("kyc_pending_since")
    assert since[0] is not None and since[1] is None
    assert entry["changes"] == {"kyc_level": [1, 2], "kyc_status": ["PENDING", "VERIFIED"]}
    assert await list_document_statuses(harness, record) == ["reviewed"] * 2


async def test_approval_can_skip_a_level_and_confirm_the_current_one(harness: Harness) -> None:
    record = await create_waiting(harness, *DOCUMENT_TYPES)
    assert await decide_successfully(harness, record, "approve", kyc_level=3) == (3, "VERIFIED")
    await upload_document(harness, record)
    assert parse_error(await decide(harness, record, "approve")) == (422, "VALIDATION_FAILED")
    assert await decide_successfully(harness, record, "approve", kyc_level=3) == (3, "VERIFIED")


async def test_approval_requires_the_documents_of_the_level(harness: Harness) -> None:
    record = await harness.create_subscriber()
    for uploads, level, missing in (
        ((), 2, ["id_front", "selfie"]),
        (("selfie",), 2, ["id_front"]),
        (("id_front",), 3, ["id_back", "proof_of_address"]),
    ):
        for document_type in uploads:
            await upload_document(harness, record, document_type=document_type)
        response = await decide(harness, record, "approve", kyc_level=level)
        assert parse_error(response) == (422, "KYC_REQUIREMENTS_NOT_MET")
        assert response.json()["details"] == {"missing": missing}
    assert await list_document_statuses(harness, record) == ["pending"] * 2
    assert await list_messages(harness, record) == []
    assert await decide_successfully(harness, record, "approve") == (2, "VERIFIED")


async def test_only_documents_that_were_not_rejected_count(harness: Harness) -> None:
    record = await create_waiting(harness, "selfie")
    await decide_successfully(harness, record, "reject", reason="Not you")
    await upload_document(harness, record)
    response = await decide(harness, record, "approve")
    assert response.json()["details"] == {"missing": ["selfie"]}
    # Documents seen before a request for more still count.
    await decide_successfully(harness, record, "more_needed", reason="A selfie, please")
    await upload_document(harness, record, document_type="selfie")
    assert await list_document_statuses(harness, record) == ["pending", "reviewed", "rejected"]
    assert await decide_successfully(harness, record, "approve") == (2, "VERIFIED")


async def test_changed_requirements_apply_and_free_text_is_not_checked(harness: Harness) -> None:
    admin = await harness.create_admin()
    response = await harness.client.put(
        "/api/v1/account-rules/2",
        json={"requirements": ["A talk in the branch", "selfie", "selfie"]},
        auth=admin,
    )
    assert response.status_code == 200
    record = await create_waiting(harness, "id_back")
    response = await decide(harness, record, "approve")
    assert response.json()["details"] == {"missing": ["selfie"]}
    await upload_document(harness, record, document_type="selfie")
    assert await decide_successfully(harness, record, "approve") == (2, "VERIFIED")


async def test_rejection_keeps_the_level_and_more_needed_leaves_the_status_pending(
    harness: Harness,
) -> None:
    record = await create_waiting(harness)
    assert await decide_successfully(harness, record, "more_needed") == (1, "PENDING")
    assert await list_document_statuses(harness, record) == ["reviewed"] * 2
    await upload_document(harness, record)
    fields = {"reason": "The photo is unreadable"}
    assert await decide_successfully(harness, record, "reject", **fields) == (1, "REJECTED")
    assert await list_document_statuses(harness, record) == ["rejected", "reviewed", "reviewed"]
    for event, reason in (("kyc_more_needed", None), ("kyc_rejected", fields["reason"])):
        (entry,) = await harness.list_audit_entries(record["id"], f"subscriber.{event}")
        assert entry["reason"] == reason


@each(
    "body, status, field",
    [
        ({}, 400, "decision"),
        ({"decision": None}, 400, "decision"),
        ({"decision": "maybe"}, 422, "decision"),
        ({"decision": "reject"}, 400, "reason"),
        ({"decision": "reject", "reason": None}, 400, "reason"),
        ({"decision": "reject", "reason": ""}, 422, "reason"),
        ({"decision": "reject", "reason": "x" * 501}, 422, "reason"),
        ({"decision": "reject", "reason": 1}, 400, "reason"),
        ({"decision": "reject", "reason": "x", "kyc_level": 2}, 422, "kyc_level"),
        ({"decision": "more_needed", "kyc_level": 1}, 422, "kyc_level"),
        ({"decision": "approve", "kyc_level": 4}, 422, "kyc_level"),
        ({"decision": "approve", "kyc_level": 1}, 422, "kyc_level"),
        ({"decision": "approve", "kyc_level": "2"}, 400, "kyc_level"),
        ({"decision": "approve"}, 422, "kyc_level"),
    ],
)
async def test_invalid_decision_is_rejected_by_field(
    harness: Harness, body: dict[str, Any], status: int, field: str
) -> None:
    record, admin = await harness.create_subscriber(), await harness.create_admin("C")
    await harness.client.put(f"{URL}/{record['id']}", json={"kyc_level": 3}, auth=admin)
    response = await harness.client.post(
        f"{URL}/{record['id']}/kyc-decision", json=body, auth=admin
    )
    code = "INVALID_REQUEST" if status == 400 else "VALIDATION_FAILED"
    assert parse_error(response) == (status, code)
    assert field in response.json()["message"]
    assert await list_messages(harness, record) == []


@pytest.mark.parametrize("language", ["en", "fr"])
async def test_message_has_the_outcome_and_reason_in_the_subscribers_language(
    harness: Harness, language: str
) -> None:
    record = await create_waiting(harness, "selfie", language=language)
    await decide_successfully(harness, record, "more_needed")
    await upload_document(harness, record)
    await decide_successfully(harness, record, "reject", reason="Too dark.\n\nTry   again")
    await create_documents_and_approve(harness, record)
    expected = {
        "en": [
            ["approved", "Your account is now at level 2, and its limits apply immediately."],
            ["not approved", "Too dark. Try again"],
            ["more documents needed", "Please send: the front of your ID."],
        ],
        "fr": [
            [
                "approuvée",
                "Votre compte est maintenant au niveau 2 et ses limites s'appliquent "
                "immédiatement.",
            ],
            ["refusée", "Too dark. Try again"],
            [
                "documents supplémentaires demandés",
                "Veuillez envoyer : le recto de votre pièce d'identité.",
            ],
        ],
    }
    assert await list_messages(harness, record) == expected[language]
    services = harness.services
    pending = await list_pending(services.database, services.vault, record["phone_number"])
    assert {message.language for message in pending} == {language}


async def create_documents_and_approve(harness: Harness, record: dict[str, Any]) -> None:
    for document_type in LEVEL_2_DOCUMENTS:
        await upload_document(harness, record, document_type=document_type)
    await decide_successfully(harness, record, "approve")


async def test_decided_documents_cannot_be_decided_again(harness: Harness) -> None:
    record = await create_waiting(harness, *DOCUMENT_TYPES)
    await decide_successfully(harness, record, "approve")
    for decision in ("approve", "reject", "more_needed"):
        response = await decide(harness, record, decision, reason="late")
        assert parse_error(response) == (409, "ALREADY_RESOLVED")
    await upload_document(harness, record)
    await decide_successfully(harness, record, "more_needed", reason="A clearer photo")
    response = await decide(harness, record, "more_needed", reason="A clearer photo")
    assert parse_error(response) == (409, "ALREADY_RESOLVED")
    # The reviewer can still decide, for example after seeing the original document.
    assert await decide_successfully(harness, record, "approve") == (3, "VERIFIED")
    assert len(await list_messages(harness, record)) == 3


@each(
    "decisions",
    [(("approve",) * 4), ("approve", "reject"), ("approve", "more_needed"), ("reject",) * 3],
)
async def test_of_parallel_decisions_one_wins(harness: Harness, decisions: tuple[str, ...]) -> None:
    record = await create_waiting(harness, *DOCUMENT_TYPES)
    admins = [await harness.create_admin("C") for _ in decisions]
    account_id = await harness.services.database.fetchval(
        "SELECT account_id FROM subscribers WHERE phone_number = $1", record["phone_number"]
    )
    async with harness.services.database.transaction() as tx:
        # All decisions wait for this lock, so all of them have read the subscriber before.
        await tx.execute("SELECT FROM accounts WHERE id = $1 FOR UPDATE", account_id)
        tasks = [
            asyncio.create_task(decide(harness, record, decision, caller=admin, reason="seen"))
            for decision, admin in zip(decisions, admins, strict=True)
        ]
        await wait_for_lock_waiters(harness, len(tasks))
    responses = await asyncio.gather(*tasks)
    assert sorted(response.status_code for response in responses) == [
        200,
        *([409] * (len(decisions) - 1)),
    ]
    losers = [response for response in responses if response.status_code == 409]
    assert {response.json()["code"] for response in losers} == {"ALREADY_RESOLVED"}
    assert len(await list_messages(harness, record)) == 1
    entries = await harness.services.database.fetchval(
        """SELECT count(*) FROM audit_entries
           WHERE resource_id = $1 AND event ~ 'kyc_(approved|rejected|more_needed)'""",
        record["id"],
    )
    assert entries == 1


async def test_new_limits_apply_to_the_next_payment(harness: Harness) -> None:
    record = await create_waiting(harness, balance="400000.00")
    payee = await harness.create_subscriber()
    card, key = (
        await harness.create_card(payee["id"]),
        await harness.create_api_key("payments:write"),
    )

    async def send(request_id: str) -> httpx2.Response:
        return await harness.client.post(
            "/api/v1/wallet/transfer-p2p",
            json={
                "request_id": request_id,
                "sender_id": record["id"],
                "recipient_card_serial": card,
                "amount": "60000",
                "pin": "4071",
            },
            auth=key,
        )

    assert parse_error(await send("before")) == (403, "TRANSACTION_LIMIT_EXCEEDED")
    await decide_successfully(harness, record, "approve")
    assert (await send("after")).status_code == 200
    async with harness.services.database.connection() as connection:
        assert (await verify(connection)).is_valid


async def test_decision_about_a_hidden_closed_or_unknown_subscriber_is_rejected(
    harness: Harness,
) -> None:
    restricted = await harness.create_restricted_subscriber()
    assert parse_error(await decide(harness, restricted, "approve")) == (403, "OTP_REQUIRED")
    closed = await create_waiting(harness)
    response = await harness.client.post(
        f"{URL}/{closed['id']}/close",
        json={"reason": "moved"},
        auth=await harness.create_admin(),
    )
    assert response.json()["subscriber"]["kyc_pending_since"] is None
    assert parse_error(await decide(harness, closed, "approve")) == (409, "NOT_CLOSABLE")
    for public_id in ("sub_0000000000000", "x"):
        response = await decide(harness, {"id": public_id}, "approve")
        assert parse_error(response) == (404, "SUBSCRIBER_NOT_FOUND")


async def test_level_set_by_update_is_audited_as_an_override(harness: Harness) -> None:
    record, admin = await create_waiting(harness), await harness.create_admin("C")
    url = f"{URL}/{record['id']}"
    response = await harness.client.put(url, json={"kyc_level": 3}, auth=admin)
    # The documents are covered, so the subscriber no longer waits.
    assert response.json()["kyc_pending_since"] is None
    for body in ({"kyc_status": "REJECTED"}, {"kyc_level": 3, "address": "Bo"}):
        assert (await harness.client.put(url, json=body, auth=admin)).status_code == 200
    level, status = await harness.list_audit_entries(record["id"], "subscriber.kyc_override")
    assert level["changes"]["kyc_level"] == [1, 3]
    assert status["changes"] == {"kyc_status": ["PENDING", "REJECTED"]}
    assert await list_messages(harness, record) == []


async def list_pending_names(harness: Harness, **query: Any) -> list[str]:
    """Return the first names of all pending subscribers, page by page."""
    names: list[str] = []
    params = {"kyc_status": "PENDING", "limit": "2", **query}
    while True:
        response = await harness.client.get(URL, params=params, auth=harness.get_service_auth())
        assert response.status_code == 200, response.text
        page = response.json()
        names += [record["first_name"] for record in page["data"]]
        if not page["has_more"]:
            assert page["next_cursor"] is None
            return names
        params["cursor"] = page["next_cursor"]


async def test_pending_subscribers_are_listed_by_waiting_time(harness: Harness) -> None:
    people = [
        await harness.create_subscriber(first_name=name)
        for name in ("Third", "First", "Asked", "Second", "Fourth", "Other")
    ]
    third, first, asked, second, fourth, other = people
    for record in (asked, first, second, third, fourth):
        await upload_document(harness, record)
        harness.advance_clock(seconds=1)
    await upload_document(harness, first, document_type="selfie")  # keeps the place in the queue
    await decide_successfully(harness, asked, "more_needed", reason="More")
    assert await list_pending_names(harness) == ["First", "Second", "Third", "Fourth", "Asked"]
    assert await list_pending_names(harness, search="four") == ["Fourth"]
    # Another document puts the subscriber at the end of the queue.
    await upload_document(harness, asked)
    await decide_successfully(harness, other, "more_needed", reason="Send documents")
    expected = ["First", "Second", "Third", "Fourth", "Asked", "Other"]
    assert await list_pending_names(harness) == expected


async def test_cursor_stays_valid_while_the_queue_is_worked_off(harness: Harness) -> None:
    people = [
        await create_waiting(harness, first_name=name) for name in ("Ada", "Ben", "Cora", "Dan")
    ]
    params = {"kyc_status": "PENDING", "limit": "2"}
    service = harness.get_service_auth()
    page = (await harness.client.get(URL, params=params, auth=service)).json()
    assert [record["first_name"] for record in page["data"]] == ["Ada", "Ben"]
    await decide_successfully(harness, people[1], "approve")
    await decide_successfully(harness, people[0], "more_needed", reason="More")
    await create_waiting(harness, first_name="Eve")
    rest = await list_pending_names(harness, limit="50", cursor=page["next_cursor"])
    assert rest == ["Cora", "Dan", "Eve", "Ada"]


async def test_other_kyc_statuses_are_listed_newest_first(harness: Harness) -> None:
    for name in ("Old", "New"):
        record = await create_waiting(harness, first_name=name)
        await decide_successfully(harness, record, "approve")
    await harness.create_subscriber()
    response = await harness.client.get(
        URL, params={"kyc_status": "VERIFIED"}, auth=harness.get_service_auth()
    )
    assert [record["first_name"] for record in response.json()["data"]] == ["New", "Old"]


@each("query", ["kyc_status=WAITING", "kyc_status=pending", "kyc_status=PENDING&cursor=cur_x"])
async def test_invalid_filter_is_rejected(harness: Harness, query: str) -> None:
    response = await harness.client.get(f"{URL}?{query}", auth=harness.get_service_auth())
    assert parse_error(response) == (422, "VALIDATION_FAILED")


@each(
    "cursor, status",
    [
        ("cur_0000000000001", 422),  # of another list
        ("cur_0000000000001" + "0" * 13, 200),
        ("cur_7zzzzzzzzzzzz7zzzzzzzzzzzz", 200),
        ("cur_" + "0" * 39, 422),
        ("cur_" + "0" * 25, 422),
        ("cur_", 422),
        ("0" * 26, 422),
    ],
)
async def test_forged_cursor_of_the_queue_is_rejected_or_harmless(
    harness: Harness, cursor: str, status: int
) -> None:
    response = await harness.client.get(
        URL, params={"kyc_status": "PENDING", "cursor": cursor}, auth=harness.get_service_auth()
    )
    assert response.status_code == status, response.text


async def test_restricted_subscribers_are_left_out_of_the_queue(harness: Harness) -> None:
    record = await harness.create_restricted_subscriber()
    await upload_document(harness, record)
    officer = await harness.create_admin("C")
    response = await harness.client.get(f"{URL}?kyc_status=PENDING", auth=officer)
    assert response.json()["data"] == []
    assert len(await list_pending_names(harness)) == 1  # to the messenger


async def test_services_can_set_only_the_language(harness: Harness) -> None:
    record, service = await harness.create_subscriber(), harness.get_service_auth()
    url = f"{URL}/{record['id']}"
    assert record["language"] == "en"
    response = await harness.client.put(url, json={"language": "fr"}, auth=service)
    assert (response.status_code, response.json()["language"]) == (200, "fr")
    for body in ({"first_name": "Eve", "language": "en"}, {"kyc_level": 3}, {"phone_number": 1}):
        response = await harness.client.put(url, json=body, auth=service)
        assert parse_error(response) == (403, "FORBIDDEN")
        assert next(iter(body)) in response.json()["message"]
    response = await harness.client.get(url, auth=service)
    assert (response.json()["language"], response.json()["first_name"]) == ("fr", "Aminata")
    response = await harness.client.put(url, json={"language": "de"}, auth=service)
    assert parse_error(response) == (422, "VALIDATION_FAILED")
    assert "language" in response.json()["details"]["fields"]
