"""Rotation of an endpoint's secret, with and without a grace period."""

from typing import Any

import httpx2
import pytest

from notifications.receiver import Received, Receiver
from notifications.stage import ENDPOINTS, deliver, happen
from world import Bearer, World


class Shop:
    """An endpoint, and the secrets that it has had."""

    def __init__(self, world: World, admin: Bearer, created: dict[str, Any]) -> None:
        self.world, self.admin, self.id = world, admin, created["id"]
        self.secrets: list[str] = [created["secret"]]

    async def rotate(self, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = await self.post(body)
        assert answer.status_code == 200, answer.text
        rotated: dict[str, Any] = answer.json()
        self.secrets.append(rotated["secret"])
        return rotated

    async def post(self, body: Any = None) -> httpx2.Response:
        path = f"{ENDPOINTS}/{self.id}/rotate-secret"
        content = {} if body is None else {"json": body}
        return await self.world.client.post(path, **content, auth=self.admin)

    def signing(self, request: Received) -> list[int]:
        """Return which secrets signed a request; every signature must be by one of them."""
        found = [
            number for number, secret in enumerate(self.secrets) if request.is_signed_with(secret)
        ]
        assert len(request.signatures) == len(found)
        return found


@pytest.fixture
async def shop(world: World, receiver: Receiver) -> Shop:
    admin = await world.admin("A")
    body = {"url": receiver.url, "events": ["*"]}
    created = await world.client.post(ENDPOINTS, json=body, auth=admin)
    return Shop(world, admin, created.json())


async def send(world: World, receiver: Receiver) -> Received:
    await happen(world.services)
    await deliver(world.services)
    return receiver.received[-1]


@pytest.mark.parametrize("body", [None, {}, {"grace_seconds": 0}, {"grace_seconds": None}])
async def test_without_grace_only_the_new_secret_signs(
    shop: Shop, world: World, receiver: Receiver, body: dict[str, Any] | None
) -> None:
    rotated = await shop.rotate(body)
    assert rotated["secret"].startswith("whsec_") and len(set(shop.secrets)) == 2
    assert rotated["id"] == shop.id
    assert shop.signing(await send(world, receiver)) == [1]


async def test_during_the_grace_both_secrets_sign_under_one_id(
    shop: Shop, world: World, receiver: Receiver
) -> None:
    await shop.rotate({"grace_seconds": 3600})
    during = await send(world, receiver)
    assert shop.signing(during) == [0, 1]
    assert during.headers["webhook-signature"].count("v1,") == 2
    world.forward(seconds=3599)
    assert shop.signing(await send(world, receiver)) == [0, 1]
    world.forward(seconds=1)
    assert shop.signing(await send(world, receiver)) == [1]
    assert len({one.id for one in receiver.received}) == 3


async def test_a_further_rotation_ends_the_older_secret_immediately(
    shop: Shop, world: World, receiver: Receiver
) -> None:
    await shop.rotate({"grace_seconds": 86_400})
    await shop.rotate({"grace_seconds": 60})
    assert shop.signing(await send(world, receiver)) == [1, 2]
    await shop.rotate()
    assert shop.signing(await send(world, receiver)) == [3]


async def test_a_retry_is_signed_with_the_current_secrets(
    shop: Shop, world: World, receiver: Receiver
) -> None:
    receiver.status(500)
    first = await send(world, receiver)
    await shop.rotate({"grace_seconds": 60})
    world.forward(seconds=10)
    await deliver(world.services)
    second = receiver.received[-1]
    assert (first.id, first.body) == (second.id, second.body)
    assert (shop.signing(first), shop.signing(second)) == ([0], [0, 1])


@pytest.mark.parametrize(
    ("grace", "status"),
    [(-1, 422), (86_401, 422), (2**70, 422), ("60", 400), (1.5, 400), (True, 400)],
)
async def test_an_invalid_grace_is_refused_and_changes_nothing(
    shop: Shop, world: World, receiver: Receiver, grace: Any, status: int
) -> None:
    refused = await shop.post({"grace_seconds": grace})
    assert refused.status_code == status
    assert list(refused.json()["details"]["fields"]) == ["grace_seconds"]
    assert shop.signing(await send(world, receiver)) == [0]


async def test_secrets_are_sealed_and_not_logged(shop: Shop, world: World) -> None:
    await shop.rotate({"grace_seconds": 60})
    (entry,) = await world.audit(shop.id, "webhook_endpoint.secret_rotated")
    assert entry["actor"]["id"] == shop.admin.id
    assert entry["changes"] == {"grace_seconds": [None, 60]}
    stored = ""
    for table in ("webhook_endpoints", "audit_entries"):
        rows = await world.services.database.fetch(f"SELECT {table}::text FROM {table}")
        stored += str(rows)
    shown = await world.client.get(f"{ENDPOINTS}/{shop.id}", auth=shop.admin)
    for secret in shop.secrets:
        encoded = secret.removeprefix("whsec_")
        assert encoded not in stored + shown.text and encoded.encode().hex() not in stored
