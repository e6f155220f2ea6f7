"""Malformed and rejected console requests: error pages, security headers, no server errors."""

import itertools
import random
import string
from pathlib import Path

import msgspec

from drivers.console import ConsoleClient, ConsoleClients
from tapgate.console.page_request import SECURITY_HEADERS
from tapgate.http.throttle import Throttle

PATHS = ("/console", "/console/subscribers", "/console/audit", "/console/actions/subscriber.block")
QUERIES = (
    "%", "%zz", "%00", "a=%ff", "search=%ED%A0%80", "cursor=x", "cursor=%F0%9F%98%80", "limit=x",
    "search=%00", "from=yesterday", "&&&===", "id=..%2F..", "id=%7Bid%7D", "id=", "id=x&id=y",
    "x=1&" * 300, "search=" + "x" * 5000, "é", "kyc_level=" + "9" * 4000, "result=%27%22%3E",
)  # fmt: skip


async def test_pages_and_error_responses_have_the_security_headers(
    ada: ConsoleClient, signed_out_client: ConsoleClient
) -> None:
    responses = [
        await ada.get("/console"),
        await ada.get("/console/nowhere"),
        await ada.get("/console/assets/console.js"),
        await ada.get("/console/assets/nowhere.js"),
        await ada.get_partial("/console/subscribers"),
        await ada.client.put("/console"),
        await signed_out_client.get("/console"),
        await signed_out_client.get("/console/sign-in"),
        await signed_out_client.post_without_csrf("/console/sign-in", {"email": "x" * 20_000}),
    ]
    for response in responses:
        for name, value in SECURITY_HEADERS.items():
            if response.request.url.path.startswith("/console/assets/") and response.is_error:
                continue
            assert response.headers[name] == value, f"{response.request.url}: {name}"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]


async def test_unknown_path_gets_a_page_with_status_404(
    ada: ConsoleClient, signed_out_client: ConsoleClient
) -> None:
    for console in (ada, signed_out_client):
        for path in ("/console/nowhere", "/console/", "/console//", "/console/subscribers/"):
            response = await console.get(path)
            assert response.status_code == 404 and "<h1>Page not found</h1>" in response.text


async def test_unsupported_method_gets_405_with_an_allow_header(ada: ConsoleClient) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "POST"):
        response = await ada.client.request(method, "/console/subscribers")
        assert response.status_code == 405
        assert response.headers["Allow"] == "GET, HEAD"
        assert response.headers["Content-Type"].startswith("text/html")


async def test_head_response_matches_get_without_a_body(ada: ConsoleClient) -> None:
    for path in ("/console", "/console/subscribers", "/console/nowhere"):
        full, head = await ada.get(path), await ada.client.head(path)
        assert head.status_code == full.status_code and head.content == b""
        assert head.headers["Content-Length"] == full.headers["Content-Length"]


async def test_malformed_query_causes_no_server_error(ada: ConsoleClient) -> None:
    for path, query in itertools.product(PATHS, QUERIES):
        address = f"{path}?{query}".encode("utf-8", "replace").decode("latin-1")
        for response in (await ada.client.get(address), await ada.get_partial(address)):
            assert response.status_code < 500, f"{address}: {response.text}"


UNKNOWN_PATHS = (
    "%", "%zz", "%00", "subscribers/%ff", "subscribers/%2e%2e%2fapi", "subscribers/" + "x" * 3000,
    "subscribers/sub_%F0%9F%98%80", "actions/%3Cscript%3E", "webhooks/x", "webhooks/%00",
    "assets/..%2fconsole.py", "assets/htmx.LICENSE",
)  # fmt: skip


async def test_malformed_path_gets_400_or_404(ada: ConsoleClient) -> None:
    for path in UNKNOWN_PATHS:
        response = await ada.get(f"/console/{path}")
        assert response.status_code in (400, 404), path
        assert "<script>" not in response.text


BODIES = (
    b"\xff\xfe", b"a=%ff", b"a=%zz", b"%", b"=", b"&" * 1000, b"a=1&" * 300, b"{}",
    b"reason=" + b"x" * 500_000, b"reason=%00", b"reason=%ED%A0%80", b"\0" * 100,
)  # fmt: skip
CONTENT_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x")


async def test_malformed_form_causes_no_server_error(
    ada: ConsoleClient, signed_out_client: ConsoleClient
) -> None:
    csrf = await ada.get_csrf_token()
    for body, content_type in itertools.product(BODIES, CONTENT_TYPES):
        headers = {"Content-Type": content_type, "X-CSRF-Token": csrf}
        for console, path in (
            (ada, "/console/actions/subscriber.block?id=sub_x"),
            (signed_out_client, "/console/sign-in"),
        ):
            response = await console.client.post(path, content=body, headers=headers)
            assert response.status_code < 500, response.text


async def test_random_paths_cause_no_server_error(ada: ConsoleClient) -> None:
    rng = random.Random(7)
    for _ in range(150):
        noise = "".join(rng.choices(string.printable.strip() + "%%&&==//??", k=30))
        response = await ada.client.get(f"/console/{noise.replace('#', '')}")
        assert response.status_code < 500, noise


async def test_large_form_is_rejected_with_413_only_when_signed_out(
    signed_out_client: ConsoleClient, ada: ConsoleClient
) -> None:
    large = {"email": "a" * 20_000, "password": "x"}
    response = await signed_out_client.post_without_csrf("/console/sign-in", large)
    assert response.status_code == 413
    assert response.headers["Content-Type"].startswith("text/html")
    partial = await signed_out_client.post_without_csrf(
        "/console/sign-in", large, **{"HX-Request": "true"}
    )
    assert partial.status_code == 413 and "<html" not in partial.text
    response = await ada.post_without_csrf(
        "/console/actions/subscriber.block", {"reason": "x" * 20_000}
    )
    assert response.status_code == 403, "rejected for the missing CSRF token, not for its size"


async def test_rate_limited_request_gets_an_html_page(
    console_clients: ConsoleClients, tmp_path: Path
) -> None:
    services = console_clients.harness.services
    console = await console_clients.create_signed_in("S")
    settings = msgspec.structs.replace(services.settings, data_dir=tmp_path / "slow", rate_burst=1)
    original_throttle, services.throttle = (
        services.throttle,
        Throttle(msgspec.structs.replace(settings, rate_limit=1)),
    )
    try:
        response = await console.get("/console")
        while response.status_code == 200:
            response = await console.get("/console")
    finally:
        await services.throttle.close()
        services.throttle = original_throttle
    assert response.status_code == 429 and int(response.headers["Retry-After"]) > 0
    assert response.headers["Content-Type"].startswith("text/html")
    assert "Customers" in response.text, "the page has the navigation"
