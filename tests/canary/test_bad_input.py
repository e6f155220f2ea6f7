"""A secret in the wrong place: the answer names the field and never repeats the value, and nothing
of it is logged or kept. Generated from the declarations, so a new endpoint is asked too."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import msgspec
import pytest

from canary.overhearing import names_a_secret
from canary.watch import Watch
from edge.log_lines import Lines
from gateway.test_hostile_input import WITH_BODY, caller, fields_of, path_of
from tapgate.edge.endpoint import Endpoint
from world import PIN, World

PIN_IN_THE_WRONG_PLACE = "4826"
PASSWORD = "Tr0ub4dor@parrot-cage"


@pytest.fixture(autouse=True)
def _looked_for(watch: Watch, lines: Lines) -> Iterator[None]:
    watch.knows("a PIN in the wrong place", PIN_IN_THE_WRONG_PLACE)
    watch.knows("a long one", PIN_IN_THE_WRONG_PLACE * 2)
    yield
    assert lines.text, "there is something to search"
    watch.look_into("logs", lines.text)


def secret_fields(endpoint: Endpoint) -> list[str]:
    return [name for name in fields_of(endpoint) if names_a_secret(name)]


TAKING_SECRETS = [endpoint for endpoint in WITH_BODY if secret_fields(endpoint)]


def wrong_values() -> list[Any]:
    pin = PIN_IN_THE_WRONG_PLACE
    return [int(pin), float(pin), [pin], {pin: pin}, {"pin": pin}, True]


def wrong_texts() -> list[str]:
    pin = PIN_IN_THE_WRONG_PLACE
    return [pin * 2, pin * 2500, f" {pin}", f"{pin}\0", f"{pin}\u202e", f"pin: {pin}", f"+{pin}"]


def broken_bodies(name: str) -> list[bytes]:
    pin = PIN_IN_THE_WRONG_PLACE.encode()
    start = b'{"' + name.encode() + b'": '
    return [
        start + b'"' + pin,
        start + b'"' + pin + b"\xff" + b'"}',
        start + b'"\\ud800' + pin + b'"}',
        start + pin + b"}",
        start + b'"' + pin + b'", "' + name.encode() + b'": ' + pin + b"}",
        b'"' + pin + b'"',
        b"[" + pin + b"]",
        name.encode() + b"=" + pin,
    ]


async def test_in_the_body(client: httpx2.AsyncClient, world: World) -> None:
    assert len(TAKING_SECRETS) >= 20
    for endpoint in TAKING_SECRETS:
        path, auth = await path_of(world, endpoint), await caller(world, endpoint)

        async def answered(
            body: bytes, path: str = path, auth: Any = auth, method: str = endpoint.method
        ) -> httpx2.Response:
            answer = await client.request(method, path, content=body, auth=auth)
            assert 400 <= answer.status_code < 500, (path, body[:80], answer.text)
            assert PIN_IN_THE_WRONG_PLACE not in json.dumps(answer.json().get("message"))
            return answer

        for name in secret_fields(endpoint):
            for value in wrong_values():
                answer = await answered(msgspec.json.encode({name: value}))
                assert answer.status_code == 400, (path, value, answer.text)
                assert list(answer.json()["details"]["fields"]) == [name], answer.text
            for text in wrong_texts():
                await answered(msgspec.json.encode({name: text}))
            for body in broken_bodies(name):
                await answered(body)
            # Under a name that nobody asked for.
            await answered(json.dumps({name.upper(): PIN_IN_THE_WRONG_PLACE}).encode())


async def test_in_the_query_the_path_and_the_headers(
    client: httpx2.AsyncClient, world: World, lines: Lines
) -> None:
    pin = PIN_IN_THE_WRONG_PLACE
    for endpoint in TAKING_SECRETS[:8]:
        auth = await caller(world, endpoint)
        path = await path_of(world, endpoint)
        for url in (f"{path}?pin={pin}&password={pin}", f"{path}/{pin}"):
            headers = {"X-Pin": pin, "Referer": f"http://shop/?pin={pin}", "Cookie": f"pin={pin}"}
            for method in (endpoint.method, "GET", "DELETE"):
                answer = await client.request(method, url, json={}, headers=headers, auth=auth)
                assert answer.status_code < 500, (url, answer.text)
    assert "unmatched" in lines.text


async def test_a_credential_in_the_place_of_another(
    client: httpx2.AsyncClient, world: World, watch: Watch
) -> None:
    admin, app = await world.admin(), await world.api_key("balance:read")
    till = await world.processor()
    secrets = [admin._credential, app._credential, till.secret, world.service()._secret.decode()]
    for secret in [*secrets, PASSWORD]:
        watch.knows("a credential", secret)
        basic = base64.b64encode(f"ada@example.com:{secret}".encode()).decode()
        moment = {"X-Timestamp": secret, "X-Service-Timestamp": secret}
        for headers in (
            {"Authorization": secret},
            {"Authorization": f"Bearer {secret}x"},
            {"Authorization": f"Bearer  {secret[:-1]}"},
            {"Authorization": f"Basic {basic}"},
            {"Authorization": f"Token {secret}"},
            {"X-API-Key-ID": secret, "X-Signature": secret, **moment},
            {"X-Service-Name": secret, "X-Service-Signature": secret, **moment},
            {"X-API-Key": secret},
            {"X-Request-ID": f"{secret} "},
        ):
            answer = await client.get("/api/v1/subscribers", headers=headers)
            assert answer.status_code == 401, (headers, answer.text)
        for url in (f"/api/v1/subscribers?token={secret}", f"/api/v1/statements/{secret}"):
            assert (await client.get(url)).status_code in (401, 404)


async def test_a_password_in_the_place_of_an_email(
    client: httpx2.AsyncClient, world: World, watch: Watch
) -> None:
    """In the fields of an e-mail that is no admin's; that it is asked for is all the database
    hears of it, so its talk is not looked through for this one."""
    for email in ("Tr0ub4dor", "a b", "1@", "@x"):
        body = {"email": email, "password": PASSWORD}
        assert (await client.post("/api/v1/admin/login", json=body)).status_code == 422
    body = {"email": "ada@example.com", "password": PASSWORD, "name": 5, "role": PASSWORD}
    answer = await client.post("/api/v1/admin/users", json=body, auth=await world.admin())
    assert answer.status_code == 400
    body |= {"name": "Ada"}
    answer = await client.post("/api/v1/admin/users", json=body, auth=await world.admin())
    assert answer.status_code == 422


async def test_in_the_name_of_a_file(client: httpx2.AsyncClient, world: World) -> None:
    pin = PIN_IN_THE_WRONG_PLACE
    subscriber, admin = await world.subscriber(), await world.admin()
    for url in (
        "/api/v1/cards/upload-csv",
        f"/api/v1/subscribers/{subscriber['id']}/kyc-documents",
    ):
        for content in (b"Serial No.,MAC Address\n", pin.encode(), b"\xff" + pin.encode()):
            parts = {"file": (f"my pin {pin}.csv", content, f"text/{pin}")}
            data = {"pin": pin, "document_type": pin}
            answer = await client.post(url, files=parts, data=data, auth=admin)
            assert answer.status_code < 500, answer.text


async def test_the_link_to_a_statement(
    client: httpx2.AsyncClient, world: World, watch: Watch, lines: Lines
) -> None:
    subscriber = await world.subscriber(balance="12.00")
    order = {"subscriber_id": subscriber["id"], "format": "csv", "pin": PIN}
    order |= {"from_date": "2026-01-01", "to_date": "2026-01-31"}
    answer = await client.post("/api/v1/wallet/account-statement", json=order, auth=world.service())
    assert answer.status_code == 200, answer.text
    token = answer.json()["statement_url"].rpartition("/")[2]
    assert token in watch.register
    url = f"/api/v1/statements/{token}"
    fetched = await client.get(url, headers={"Referer": f"http://gateway{url}"})
    assert fetched.status_code == 200
    assert fetched.headers["cache-control"] == "no-store"
    for method, path in (("HEAD", url), ("POST", url), ("GET", f"{url}/"), ("GET", f"{url}x")):
        await client.request(method, path)
    assert "/api/v1/statements/{token}" in lines.text
    metrics = await client.get("/metrics")
    watch.look_into("metrics", metrics.content)
    assert "/api/v1/statements/{token}" in metrics.text
