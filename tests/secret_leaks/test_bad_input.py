"""Misplaced secrets: responses, logs and tables never contain them.

The endpoints come from the declarations, so new endpoints are covered automatically.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import msgspec
import pytest

from builders.hostile_input import (
    ENDPOINTS_WITH_BODY,
    build_path,
    create_caller,
    list_fields,
)
from builders.http_apps import LogCapture
from harness import PIN, Harness
from secret_leaks.capture import is_secret_field
from secret_leaks.detector import LeakDetector
from tapgate.auth.second_factors import STEP_UP_LIFETIME
from tapgate.http.endpoint import Endpoint

MISPLACED_PIN = "4826"
PASSWORD = "Tr0ub4dor@parrot-cage"


@pytest.fixture(autouse=True)
def _detect_leaks(leak_detector: LeakDetector, log_capture: LogCapture) -> Iterator[None]:
    leak_detector.add_secret("a misplaced PIN", MISPLACED_PIN)
    leak_detector.add_secret("a misplaced PIN written twice", MISPLACED_PIN * 2)
    yield
    assert log_capture.text, "no log output to search"
    leak_detector.add_source("logs", log_capture.text)


def list_secret_fields(endpoint: Endpoint) -> list[str]:
    return [name for name in list_fields(endpoint) if is_secret_field(name)]


ENDPOINTS_WITH_SECRETS = [
    endpoint for endpoint in ENDPOINTS_WITH_BODY if list_secret_fields(endpoint)
]


def build_invalid_values() -> list[Any]:
    pin = MISPLACED_PIN
    return [int(pin), float(pin), [pin], {pin: pin}, {"pin": pin}, True]


def build_invalid_texts() -> list[str]:
    pin = MISPLACED_PIN
    return [pin * 2, pin * 2500, f" {pin}", f"{pin}\0", f"{pin}\u202e", f"pin: {pin}", f"+{pin}"]


def build_broken_bodies(name: str) -> list[bytes]:
    pin = MISPLACED_PIN.encode()
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


async def test_misplaced_secret_in_the_body_is_not_leaked(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    assert len(ENDPOINTS_WITH_SECRETS) >= 20
    for endpoint in ENDPOINTS_WITH_SECRETS:
        path, auth = await build_path(harness, endpoint), await create_caller(harness, endpoint)
        # Right after the login, an admin can enroll the first factor without a password.
        harness.advance_clock(seconds=STEP_UP_LIFETIME.total_seconds() + 1)

        async def send_body(
            body: bytes, path: str = path, auth: Any = auth, method: str = endpoint.method
        ) -> httpx2.Response:
            response = await client.request(method, path, content=body, auth=auth)
            assert 400 <= response.status_code < 500, (path, body[:80], response.text)
            assert MISPLACED_PIN not in json.dumps(response.json().get("message"))
            return response

        for name in list_secret_fields(endpoint):
            for value in build_invalid_values():
                response = await send_body(msgspec.json.encode({name: value}))
                assert response.status_code == 400, (path, value, response.text)
                assert list(response.json()["details"]["fields"]) == [name], response.text
            for text in build_invalid_texts():
                await send_body(msgspec.json.encode({name: text}))
            for body in build_broken_bodies(name):
                await send_body(body)
            # Send the PIN under an undeclared field name.
            await send_body(json.dumps({name.upper(): MISPLACED_PIN}).encode())


async def test_misplaced_secret_in_query_path_or_headers_is_not_leaked(
    client: httpx2.AsyncClient, harness: Harness, log_capture: LogCapture
) -> None:
    pin = MISPLACED_PIN
    for endpoint in ENDPOINTS_WITH_SECRETS[:8]:
        auth = await create_caller(harness, endpoint)
        path = await build_path(harness, endpoint)
        for url in (f"{path}?pin={pin}&password={pin}", f"{path}/{pin}"):
            headers = {"X-Pin": pin, "Referer": f"http://shop/?pin={pin}", "Cookie": f"pin={pin}"}
            for method in (endpoint.method, "GET", "DELETE"):
                response = await client.request(method, url, json={}, headers=headers, auth=auth)
                assert response.status_code < 500, (url, response.text)
    assert "unmatched" in log_capture.text


async def test_credential_sent_in_place_of_another_is_not_leaked(
    client: httpx2.AsyncClient, harness: Harness, leak_detector: LeakDetector
) -> None:
    admin, app = await harness.create_admin(), await harness.create_api_key("balance:read")
    terminal_auth = await harness.create_processor()
    secrets = [
        admin.credential,
        app.credential,
        terminal_auth.secret,
        harness.get_service_auth().secret.decode(),
    ]
    for secret in [*secrets, PASSWORD]:
        leak_detector.add_secret("a credential", secret)
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
            response = await client.get("/api/v1/subscribers", headers=headers)
            assert response.status_code == 401, (headers, response.text)
        for url in (f"/api/v1/subscribers?token={secret}", f"/api/v1/statements/{secret}"):
            assert (await client.get(url)).status_code in (401, 404)


async def test_password_sent_in_place_of_an_email_is_not_leaked(
    client: httpx2.AsyncClient, harness: Harness, leak_detector: LeakDetector
) -> None:
    """Login emails are invalid, because a valid email is looked up and so appears in the log."""
    for email in ("Tr0ub4dor", "a b", "1@", "@x"):
        body = {"email": email, "password": PASSWORD}
        assert (await client.post("/api/v1/admin/login", json=body)).status_code == 422
    body = {"email": "ada@example.com", "password": PASSWORD, "name": 5, "role": PASSWORD}
    response = await client.post(
        "/api/v1/admin/users", json=body, auth=await harness.create_admin()
    )
    assert response.status_code == 400
    body |= {"name": "Ada"}
    response = await client.post(
        "/api/v1/admin/users", json=body, auth=await harness.create_admin()
    )
    assert response.status_code == 422


async def test_misplaced_secret_in_a_file_name_is_not_leaked(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    pin = MISPLACED_PIN
    subscriber, admin = await harness.create_subscriber(), await harness.create_admin()
    for url in (
        "/api/v1/cards/upload-csv",
        f"/api/v1/subscribers/{subscriber['id']}/kyc-documents",
    ):
        for content in (b"Serial No.,MAC Address\n", pin.encode(), b"\xff" + pin.encode()):
            parts = {"file": (f"my pin {pin}.csv", content, f"text/{pin}")}
            data = {"pin": pin, "document_type": pin}
            response = await client.post(url, files=parts, data=data, auth=admin)
            assert response.status_code < 500, response.text


async def test_statement_token_is_not_leaked(
    client: httpx2.AsyncClient,
    harness: Harness,
    leak_detector: LeakDetector,
    log_capture: LogCapture,
) -> None:
    subscriber = await harness.create_subscriber(balance="12.00")
    body = {"subscriber_id": subscriber["id"], "format": "csv", "pin": PIN}
    body |= {"from_date": "2026-01-01", "to_date": "2026-01-31"}
    response = await client.post(
        "/api/v1/wallet/account-statement", json=body, auth=harness.get_service_auth()
    )
    assert response.status_code == 200, response.text
    token = response.json()["statement_url"].rpartition("/")[2]
    assert token in leak_detector.secrets
    url = f"/api/v1/statements/{token}"
    fetched = await client.get(url, headers={"Referer": f"http://gateway{url}"})
    assert fetched.status_code == 200
    assert fetched.headers["cache-control"] == "no-store"
    for method, path in (("HEAD", url), ("POST", url), ("GET", f"{url}/"), ("GET", f"{url}x")):
        await client.request(method, path)
    assert "/api/v1/statements/{token}" in log_capture.text
    metrics = await client.get("/metrics")
    leak_detector.add_source("metrics", metrics.content)
    assert "/api/v1/statements/{token}" in metrics.text
