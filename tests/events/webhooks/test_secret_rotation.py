"""Rotating an endpoint's secret, with and without a grace period."""

from typing import Any

import httpx2
import pytest

from drivers.webhooks import (
    ENDPOINTS_URL,
    ReceivedWebhook,
    WebhookReceiver,
    attempt_due_deliveries,
    publish_event,
)
from harness import BearerAuth, Harness


class RotatingEndpoint:
    """An endpoint with all its secrets, oldest first."""

    def __init__(self, harness: Harness, admin: BearerAuth, created: dict[str, Any]) -> None:
        self.harness, self.admin, self.id = harness, admin, created["id"]
        self.secrets: list[str] = [created["secret"]]

    async def rotate(self, body: dict[str, Any] | None = None) -> dict[str, Any]:
        response = await self.post(body)
        assert response.status_code == 200, response.text
        rotated: dict[str, Any] = response.json()
        self.secrets.append(rotated["secret"])
        return rotated

    async def post(self, body: Any = None) -> httpx2.Response:
        path = f"{ENDPOINTS_URL}/{self.id}/rotate-secret"
        content = {} if body is None else {"json": body}
        return await self.harness.post(path, **content, auth=self.admin)

    def list_signing_secrets(self, request: ReceivedWebhook) -> list[int]:
        """Return the index for each secret that signed a request; fail on other signatures."""
        indexes = [
            index for index, secret in enumerate(self.secrets) if request.is_signed_with(secret)
        ]
        assert len(request.signatures) == len(indexes)
        return indexes


@pytest.fixture
async def rotating_endpoint(harness: Harness, receiver: WebhookReceiver) -> RotatingEndpoint:
    admin = await harness.create_admin("A")
    body = {"url": receiver.url, "events": ["*"]}
    created = await harness.post(ENDPOINTS_URL, json=body, auth=admin)
    return RotatingEndpoint(harness, admin, created.json())


async def deliver_event(harness: Harness, receiver: WebhookReceiver) -> ReceivedWebhook:
    await publish_event(harness.services)
    await attempt_due_deliveries(harness.services)
    return receiver.received[-1]


@pytest.mark.parametrize("body", [None, {}, {"grace_seconds": 0}, {"grace_seconds": None}])
async def test_rotation_without_grace_period_signs_only_with_the_new_secret(
    rotating_endpoint: RotatingEndpoint,
    harness: Harness,
    receiver: WebhookReceiver,
    body: dict[str, Any] | None,
) -> None:
    rotated = await rotating_endpoint.rotate(body)
    assert rotated["secret"].startswith("whsec_") and len(set(rotating_endpoint.secrets)) == 2
    assert rotated["id"] == rotating_endpoint.id
    assert rotating_endpoint.list_signing_secrets(await deliver_event(harness, receiver)) == [1]


async def test_both_secrets_sign_during_the_grace_period(
    rotating_endpoint: RotatingEndpoint, harness: Harness, receiver: WebhookReceiver
) -> None:
    await rotating_endpoint.rotate({"grace_seconds": 3600})
    during = await deliver_event(harness, receiver)
    assert rotating_endpoint.list_signing_secrets(during) == [0, 1]
    assert during.headers["webhook-signature"].count("v1,") == 2
    harness.advance_clock(seconds=3599)
    assert rotating_endpoint.list_signing_secrets(await deliver_event(harness, receiver)) == [0, 1]
    harness.advance_clock(seconds=1)
    assert rotating_endpoint.list_signing_secrets(await deliver_event(harness, receiver)) == [1]
    assert len({webhook.id for webhook in receiver.received}) == 3


async def test_further_rotation_ends_the_grace_period_of_the_oldest_secret(
    rotating_endpoint: RotatingEndpoint, harness: Harness, receiver: WebhookReceiver
) -> None:
    await rotating_endpoint.rotate({"grace_seconds": 86_400})
    await rotating_endpoint.rotate({"grace_seconds": 60})
    assert rotating_endpoint.list_signing_secrets(await deliver_event(harness, receiver)) == [1, 2]
    await rotating_endpoint.rotate()
    assert rotating_endpoint.list_signing_secrets(await deliver_event(harness, receiver)) == [3]


async def test_retry_is_signed_with_the_current_secrets(
    rotating_endpoint: RotatingEndpoint, harness: Harness, receiver: WebhookReceiver
) -> None:
    receiver.enqueue_statuses(500)
    first = await deliver_event(harness, receiver)
    await rotating_endpoint.rotate({"grace_seconds": 60})
    harness.advance_clock(seconds=10)
    await attempt_due_deliveries(harness.services)
    second = receiver.received[-1]
    assert (first.id, first.body) == (second.id, second.body)
    found = (
        rotating_endpoint.list_signing_secrets(first),
        rotating_endpoint.list_signing_secrets(second),
    )
    assert found == ([0], [0, 1])


@pytest.mark.parametrize(
    ("grace", "status"),
    [(-1, 422), (86_401, 422), (2**70, 422), ("60", 400), (1.5, 400), (True, 400)],
)
async def test_invalid_grace_period_is_rejected_and_changes_nothing(
    rotating_endpoint: RotatingEndpoint,
    harness: Harness,
    receiver: WebhookReceiver,
    grace: Any,
    status: int,
) -> None:
    response = await rotating_endpoint.post({"grace_seconds": grace})
    assert response.status_code == status
    assert list(response.json()["details"]["fields"]) == ["grace_seconds"]
    assert rotating_endpoint.list_signing_secrets(await deliver_event(harness, receiver)) == [0]


async def test_rotated_secrets_are_stored_sealed_and_not_audited_or_returned(
    rotating_endpoint: RotatingEndpoint, harness: Harness
) -> None:
    await rotating_endpoint.rotate({"grace_seconds": 60})
    (entry,) = await harness.list_audit_entries(
        rotating_endpoint.id, "webhook_endpoint.secret_rotated"
    )
    assert entry["actor"]["id"] == rotating_endpoint.admin.id
    assert entry["changes"] == {"grace_seconds": [None, 60]}
    stored = ""
    for table in ("webhook_endpoints", "audit_entries"):
        rows = await harness.database.fetch(f"SELECT {table}::text FROM {table}")
        stored += str(rows)
    response = await harness.get(
        f"{ENDPOINTS_URL}/{rotating_endpoint.id}", auth=rotating_endpoint.admin
    )
    for secret in rotating_endpoint.secrets:
        encoded = secret.removeprefix("whsec_")
        assert encoded not in stored + response.text and encoded.encode().hex() not in stored
