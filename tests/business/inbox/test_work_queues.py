"""Work queues: counts by role, filters of what waits, and assignment to an admin."""

from typing import Any

import pytest

from builders.alerts import create_alert
from builders.disputes import create_driver
from builders.kyc_documents import upload_document
from builders.participants import create_agent
from builders.payments import ALERTS_URL, create_held_transfer, resolve_alert
from cases import each
from harness import BearerAuth, Harness

URL = "/api/v1/work-queues"
REVIEWS_URL = "/api/v1/kyc-reviews"
PHONE = "+23276555001"


async def get_counts(harness: Harness, role: str = "A", **query: str) -> dict[str, int]:
    params = {"fresh": "true", **query}
    response = await harness.get(URL, params=params, auth=await harness.create_admin(role))
    assert response.status_code == 200, response.text
    return {queue["name"]: queue["waiting"] for queue in response.json()["data"]}


async def open_support_request(harness: Harness, phone: str = PHONE) -> dict[str, Any]:
    response = await harness.post(
        "/api/v1/support/requests",
        json={"phone_number": phone, "text": "Hello"},
        auth=harness.get_service_auth(),
    )
    record: dict[str, Any] = response.json()
    return record


async def get_admin_id(harness: Harness, admin: BearerAuth) -> str:
    response = await harness.get("/api/v1/admin/me", auth=admin)
    return str(response.json()["id"])


async def list_ids(harness: Harness, url: str, admin: BearerAuth, **query: str) -> list[str]:
    response = await harness.get(url, params=query, auth=admin)
    assert response.status_code == 200, response.text
    return [item.get("id") or item["subscriber_id"] for item in response.json()["data"]]


async def test_every_queue_counts_what_waits(harness: Harness) -> None:
    assert set((await get_counts(harness)).values()) == {0}
    await upload_document(harness, await harness.create_subscriber())
    await upload_document(harness, await harness.create_restricted_subscriber())
    await open_support_request(harness)
    await create_alert(harness)
    held, *_ = await create_held_transfer(harness)
    await (await create_driver(harness)).create_dispute()
    await create_agent(harness, balance="999.99")
    await create_agent(harness, balance="1000.00")
    await harness.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at, failing_since)
           VALUES (1, 'http://127.0.0.1:9/', '{*}', '\\x00', now(), now()),
                  (2, 'http://127.0.0.1:9/', '{*}', '\\x00', now(), NULL)"""
    )
    harness.advance_clock(minutes=1)
    assert await get_counts(harness) == {
        "approvals": 0,
        "kyc_reviews": 1,
        "support_requests": 1,
        "alerts": 1,
        "held_payments": 1,
        "failing_webhooks": 1,
        "disputes": 1,
        "low_float": 1,
        "float_requests": 0,
        "recalls": 0,
        "payouts": 0,
    }
    await resolve_alert(harness, held["id"], transaction_decision="release")
    assert (await get_counts(harness))["held_payments"] == 0


@each(
    "role, queues",
    [
        (
            "C",
            {
                "approvals", "kyc_reviews", "alerts", "held_payments", "disputes", "low_float",
                "recalls",
            },
        ),
        ("S", {"approvals", "support_requests", "disputes", "low_float", "recalls"}),
        ("F", {"approvals", "disputes", "low_float", "float_requests", "payouts"}),
    ],
)  # fmt: skip
async def test_role_sees_only_queues_that_it_may_list(
    harness: Harness, role: str, queues: set[str]
) -> None:
    assert (await get_counts(harness, role)).keys() == queues


async def test_counts_are_cached_for_a_few_seconds(harness: Harness) -> None:
    now = harness.services.clock()
    harness.services.clock = lambda: now
    assert (await get_counts(harness, fresh="false"))["support_requests"] == 0
    request = await open_support_request(harness)
    assert (await get_counts(harness, fresh="false"))["support_requests"] == 0
    harness.advance_clock(minutes=1)
    response = await harness.get(URL, auth=await harness.create_admin("S"))
    assert {
        "name": "support_requests",
        "waiting": 1,
        "oldest_at": request["created_at"],
    } in response.json()["data"]


async def test_queue_is_counted_up_to_a_limit(harness: Harness) -> None:
    await harness.database.execute(
        """INSERT INTO support_requests (id, phone_number, created_at, updated_at)
           SELECT n, '+2327600' || n, now(), now() FROM generate_series(1000, 1120) AS n"""
    )
    assert (await get_counts(harness))["support_requests"] == 100


async def test_alert_is_assigned_and_unassigned(harness: Harness) -> None:
    officer = await harness.create_admin("C")
    officer_id = await get_admin_id(harness, officer)
    first, second = await create_alert(harness), await create_alert(harness)
    assert await list_ids(harness, ALERTS_URL, officer, order="oldest") == [
        first["id"],
        second["id"],
    ]
    response = await harness.post(f"{ALERTS_URL}/{first['id']}/assign", auth=officer)
    assert response.json()["alert"]["assignee"] == officer_id
    assert response.json()["alert"]["assignee_name"]
    assert await list_ids(harness, ALERTS_URL, officer, assignee=officer_id) == [first["id"]]
    assert await list_ids(harness, ALERTS_URL, officer, assignee="none") == [second["id"]]
    response = await harness.post(f"{ALERTS_URL}/{first['id']}/unassign", auth=officer)
    assert response.json()["alert"]["assignee"] is None
    (entry,) = await harness.list_audit_entries(first["id"], "alert.unassigned")
    assert entry["changes"]["assignee"] == [officer_id, None]
    await resolve_alert(harness, first["id"])
    response = await harness.post(f"{ALERTS_URL}/{first['id']}/assign", auth=officer)
    assert (response.status_code, response.json()["code"]) == (409, "ALREADY_RESOLVED")


async def test_alerts_with_held_payments_can_be_listed_alone(harness: Harness) -> None:
    officer = await harness.create_admin("C")
    alert = await create_alert(harness)
    held, *_ = await create_held_transfer(harness)
    assert await list_ids(harness, ALERTS_URL, officer, held="true") == [held["id"]]
    assert await list_ids(harness, ALERTS_URL, officer, held="false") == [alert["id"]]
    await resolve_alert(harness, held["id"], transaction_decision="reject")
    assert await list_ids(harness, ALERTS_URL, officer, held="true") == []


async def test_support_request_is_unassigned(harness: Harness) -> None:
    support = await harness.create_admin("S")
    url = f"/api/v1/support/requests/{(await open_support_request(harness))['id']}"
    assigned = await harness.post(f"{url}/assign", auth=support)
    assert assigned.json()["assignee"] == await get_admin_id(harness, support)
    requests_url = "/api/v1/support/requests"
    assert await list_ids(harness, requests_url, support, assignee="none") == []
    response = await harness.post(f"{url}/unassign", auth=support)
    assert (response.json()["assignee"], response.json()["assignee_name"]) == (None, None)
    assert len(await list_ids(harness, requests_url, support, assignee="none")) == 1
    response = await harness.get(requests_url, params={"assignee": "nobody"}, auth=support)
    assert list(response.json()["details"]["fields"]) == ["assignee"]


async def test_kyc_review_is_assigned_until_the_decision(harness: Harness) -> None:
    officer = await harness.create_admin("C")
    officer_id = await get_admin_id(harness, officer)
    first, second = [await harness.create_subscriber() for _ in range(2)]
    await upload_document(harness, first)
    harness.advance_clock(minutes=5)
    await upload_document(harness, second)
    assert await list_ids(harness, REVIEWS_URL, officer) == [first["id"], second["id"]]
    url = f"/api/v1/subscribers/{first['id']}"
    response = await harness.post(f"{url}/kyc-review/assign", auth=officer)
    assert response.status_code == 200, response.text
    assert response.json() == {
        "subscriber_id": first["id"],
        "first_name": first["first_name"],
        "last_name": first["last_name"],
        "phone_number": first["phone_number"],
        "kyc_level": 1,
        "waiting_since": response.json()["waiting_since"],
        "assignee": officer_id,
        "assignee_name": response.json()["assignee_name"],
        "documents": ["id_front"],
    }
    assert await list_ids(harness, REVIEWS_URL, officer, assignee=officer_id) == [first["id"]]
    assert await list_ids(harness, REVIEWS_URL, officer, assignee="none") == [second["id"]]
    (entry,) = await harness.list_audit_entries(first["id"], "subscriber.kyc_assigned")
    assert entry["changes"] == {"kyc_assignee": [None, officer_id]}
    decision = {"decision": "reject", "reason": "Unreadable"}
    await harness.post(f"{url}/kyc-decision", json=decision, auth=officer)
    response = await harness.post(f"{url}/kyc-review/assign", auth=officer)
    assert (response.status_code, response.json()["code"]) == (409, "ALREADY_RESOLVED")
    await upload_document(harness, first, document_type="selfie")
    assert await list_ids(harness, REVIEWS_URL, officer, assignee="none") == [
        second["id"],
        first["id"],
    ]


async def test_kyc_reviews_are_paginated(harness: Harness) -> None:
    officer = await harness.create_admin("C")
    expected = []
    for _ in range(3):
        subscriber = await harness.create_subscriber()
        await upload_document(harness, subscriber)
        expected.append(subscriber["id"])
    first = await harness.get(REVIEWS_URL, params={"limit": "2"}, auth=officer)
    cursor = first.json()["next_cursor"]
    rest = await harness.get(REVIEWS_URL, params={"cursor": cursor}, auth=officer)
    listed = [item["subscriber_id"] for page in (first, rest) for item in page.json()["data"]]
    assert listed == expected


async def test_review_of_a_restricted_subscriber_requires_a_code(harness: Harness) -> None:
    officer = await harness.create_admin("C")
    subscriber = await harness.create_restricted_subscriber()
    await upload_document(harness, subscriber)
    assert await list_ids(harness, REVIEWS_URL, officer) == []
    url = f"/api/v1/subscribers/{subscriber['id']}/kyc-review/assign"
    response = await harness.post(url, auth=officer)
    assert (response.status_code, response.json()["code"]) == (403, "OTP_REQUIRED")


async def test_agents_with_low_float_can_be_listed(harness: Harness) -> None:
    admin = await harness.create_admin("F")
    low = await create_agent(harness, balance="10")
    full = await create_agent(harness, balance="5000")
    agents_url = "/api/v1/agents"
    assert await list_ids(harness, agents_url, admin, low_float="true") == [low["id"]]
    assert await list_ids(harness, agents_url, admin, low_float="false") == [full["id"]]


@pytest.mark.parametrize("verb", ["assign", "unassign"])
async def test_unknown_records_cannot_be_assigned(harness: Harness, verb: str) -> None:
    admin = await harness.create_admin("A")
    for path in ("compliance/alerts/alr_0000000000001", "support/requests/req_0000000000001"):
        response = await harness.post(f"/api/v1/{path}/{verb}", auth=admin)
        assert response.status_code == 404
    url = f"/api/v1/subscribers/sub_0000000000001/kyc-review/{verb}"
    assert (await harness.post(url, auth=admin)).status_code == 404
