"""The interface description of the whole gateway."""

from typing import Any

import httpx2
import pytest
from jsonschema_rs import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from notifications.receiver import Receiver
from notifications.stage import ENDPOINTS, deliver
from tapgate.errors import TABLE
from tapgate.gateway import EVENT_RECORDS, NOUNS
from tapgate.notifications.events import TYPES
from tapgate.notifications.webhooks.model import TEST
from world import World


@pytest.fixture
async def document(client: httpx2.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get("/openapi.json")).json()
    return found


async def test_it_validates_and_describes_every_endpoint(document: dict[str, Any]) -> None:
    OpenAPIV31SpecValidator(document).validate()
    paths = document["paths"]
    assert isinstance(paths, dict)
    for endpoint in (endpoint for noun in NOUNS for endpoint in noun):
        operation = paths[endpoint.path][endpoint.method.lower()]
        assert operation["summary"]
        assert str(endpoint.status) in operation["responses"]
        for code in endpoint.errors:
            assert str(TABLE[code][0]) in operation["responses"], (endpoint.path, code)


async def test_health_has_one_form_whether_well_or_not(document: dict[str, Any]) -> None:
    paths = document["paths"]
    assert isinstance(paths, dict)
    responses = paths["/health"]["get"]["responses"]
    assert responses["503"]["content"] == responses["200"]["content"]


def test_every_event_is_described_with_its_headers_and_payload(document: dict[str, Any]) -> None:
    assert list(document["webhooks"]) == [*TYPES, TEST]
    components = document["components"]
    for name, path in document["webhooks"].items():
        operation = path["post"]
        assert operation["summary"] and operation["security"] == []
        headers = [
            components["parameters"][one["$ref"].rpartition("/")[2]]
            for one in operation["parameters"]
        ]
        assert [header["name"] for header in headers] == [
            "webhook-id",
            "webhook-timestamp",
            "webhook-signature",
        ]
        assert all(header["in"] == "header" and header["required"] for header in headers)
        assert "HMAC-SHA-256" in headers[2]["description"]
        payload = operation["requestBody"]["content"]["application/json"]["schema"]
        assert payload["properties"]["type"] == {"const": name}
        assert {"2XX", "410", "429", "503", "default"} == operation["responses"].keys()


async def test_sent_events_match_their_description(world: World, document: dict[str, Any]) -> None:
    admin, receiver = await world.admin("A"), Receiver()

    async def create(path: str, event: str) -> str:
        body = {"url": f"{receiver.url}/{path}", "events": [event]}
        created = await world.client.post(ENDPOINTS, json=body, auth=admin)
        return str(created.json()["id"])

    async with receiver.listening():
        await create("watch", "*")
        gone = await create("gone", "card.blocked")
        await world.client.post(f"{ENDPOINTS}/{gone}/test", auth=admin)
        receiver.status(410)
        await deliver(world.services, EVENT_RECORDS)
        subscriber = await world.subscriber(balance="5.00")
        await world.give(subscriber["id"], "1.00")
        await deliver(world.services, EVENT_RECORDS)
    types = {one.content["type"] for one in receiver.received}
    assert types == {
        TEST, "transaction.completed", "subscriber.created", "webhook_endpoint.disabled"
    }  # fmt: skip
    for one in receiver.received:
        kind = one.content["type"]
        reference = f"#/webhooks/{kind}/post/requestBody/content/application~1json/schema"
        Draft202012Validator({**document, "$ref": reference}).validate(one.content)
