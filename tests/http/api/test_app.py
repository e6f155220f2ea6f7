"""A request through the whole edge, and the ways in which it can be rejected."""

import httpx2
import pytest

from builders.http_apps import (
    ADMIN,
    PARTNER,
    READER,
    SUPPORT,
    TERMINAL,
    TRACE_HEADERS,
    VALID_THING,
    WRITER,
    EdgeApp,
    build_bearer_headers,
)
from harness import split_words
from tapgate.http.api.services import Services
from tapgate.runtime.store.database import RaiseAfterCommit
from tapgate_client.errors import ApiError, Code

RATE_HEADERS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}


def assert_error(response: httpx2.Response, status: int, code: str) -> dict[str, object]:
    body: dict[str, object] = response.json()
    assert (response.status_code, body["code"]) == (status, code)
    assert body["error"]
    assert response.headers["x-request-id"]
    assert response.headers["content-type"] == "application/json"
    return body


async def test_valid_request_succeeds(gateway: EdgeApp) -> None:
    response = await gateway.client.post(
        "/api/v1/things", json=VALID_THING, headers=build_bearer_headers(WRITER)
    )
    assert response.status_code == 201
    assert response.json() == {
        "name": "Lamp",
        "amount": "5.00",
        "colour": "red",
        "phone_number": None,
        "by": WRITER.id,
    }
    assert response.headers.keys() >= RATE_HEADERS | {"x-request-id"}
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/things/lamp"),
        ("DELETE", "/api/v1/things/lamp"),  # without a body
        ("POST", "/api/v1/things"),  # rejected
        ("PATCH", "/api/v1/things"),  # unsupported method
        ("GET", "/nothing"),
        ("GET", "/health"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
    ],
)
async def test_every_response_has_nosniff_and_a_content_security_policy(
    gateway: EdgeApp, method: str, path: str
) -> None:
    response = await gateway.client.request(method, path, headers=build_bearer_headers(WRITER))
    assert response.headers.get_list("x-content-type-options") == ["nosniff"]
    (policy,) = response.headers.get_list("content-security-policy")
    found = set(policy.split("; "))
    assert {"default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"} <= found
    assert "script-src" not in policy
    caching = "no-cache" if path == "/openapi.json" else "no-store"
    assert response.status_code == 204 or response.headers["cache-control"] == caching


async def test_content_type_is_not_required(gateway: EdgeApp) -> None:
    response = await gateway.client.post(
        "/api/v1/things",
        content=b'{"name":"Lamp","pin":"4071","amount":"5"}',
        headers=build_bearer_headers(WRITER),
    )
    assert response.status_code == 201


async def test_no_content_response_has_no_body_or_length(gateway: EdgeApp) -> None:
    response = await gateway.client.delete(
        "/api/v1/things/lamp", headers=build_bearer_headers(WRITER)
    )
    assert (response.status_code, response.content) == (204, b"")
    assert "content-length" not in response.headers


async def test_reply_headers_and_bytes_are_sent_unchanged(gateway: EdgeApp) -> None:
    response = await gateway.client.post("/pay", headers={"X-API-Key-ID": TERMINAL.id})
    assert response.status_code == 200
    assert response.headers["idempotent-replayed"] == "true"
    assert response.json() == {"status": "completed"}


async def test_head_returns_the_headers_of_get_without_the_body(gateway: EdgeApp) -> None:
    get_response = await gateway.client.get(
        "/api/v1/things/lamp", headers=build_bearer_headers(READER)
    )
    head_response = await gateway.client.head(
        "/api/v1/things/lamp", headers=build_bearer_headers(READER)
    )
    assert (head_response.status_code, head_response.content) == (200, b"")
    assert head_response.headers["content-length"] == get_response.headers["content-length"]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api/v1/nothing",
        "/api/v1/things/",
        "/api/v1/things//",
        "//api/v1/things",
        "/api/v1/things/a/parts",
        "/api/v1/things//parts/b/use",
        "/api/v1/things/%ff",
        "/api/v1/things/%00",
        "/api/v1/things/%zz",
        "/api/v1/things/%",
        f"/api/v1/things/{'x' * 256}",
        "/API/V1/THINGS",
        "/health/",
        "/health/..%2fapp.py",
    ],
)
async def test_unknown_paths_return_404(gateway: EdgeApp, path: str) -> None:
    response = await gateway.client.get(httpx2.URL("http://gateway", raw_path=path.encode()))
    assert_error(response, 404, "NOT_FOUND")


async def test_path_parameters_are_decoded(gateway: EdgeApp) -> None:
    url = httpx2.URL("http://gateway", raw_path=b"/api/v1/things/caf%C3%A9%2F..")
    response = await gateway.client.get(url, headers=build_bearer_headers(READER))
    assert response.json() == {"name": "café/.."}


async def test_literal_path_takes_precedence_over_a_template(gateway: EdgeApp) -> None:
    response = await gateway.client.post(
        "/api/v1/things/change-pin",
        json={"old_pin": "1111", "new_pin": "2222"},
        headers=build_bearer_headers(WRITER),
    )
    assert response.json() == {"success": True}


async def test_path_with_several_parameters_is_matched_and_its_body_is_optional(
    gateway: EdgeApp,
) -> None:
    response = await gateway.client.post(
        "/api/v1/things/a/parts/b/use", headers=build_bearer_headers(WRITER)
    )
    assert response.json() == {"name": "a", "part": "b", "reason": None}


async def test_unsupported_method_returns_405_with_allow(gateway: EdgeApp) -> None:
    response = await gateway.client.put("/api/v1/things/lamp", headers=build_bearer_headers(WRITER))
    assert_error(response, 405, "METHOD_NOT_ALLOWED")
    assert response.headers["allow"] == "DELETE, GET, HEAD"
    assert (await gateway.client.request("BREW", "/health")).status_code == 405


async def test_missing_credential_returns_401(gateway: EdgeApp) -> None:
    response = await gateway.client.get("/api/v1/things")
    body = assert_error(response, 401, "UNAUTHORIZED")
    assert body["message"]
    assert response.headers["www-authenticate"] == "Bearer"


async def test_unknown_credential_returns_401(gateway: EdgeApp) -> None:
    response = await gateway.client.get("/api/v1/things", headers={"Authorization": "Bearer no"})
    body = assert_error(response, 401, "UNAUTHORIZED")
    assert body["message"] == "Unknown or inactive key"
    assert response.headers["www-authenticate"] == "Bearer"


async def test_suspended_credential_returns_403(gateway: EdgeApp) -> None:
    response = await gateway.client.get(
        "/api/v1/things", headers={"Authorization": "Bearer suspended"}
    )
    assert_error(response, 403, "PROCESSOR_SUSPENDED")


@pytest.mark.parametrize(
    ("headers", "path", "required"),
    [
        (build_bearer_headers(READER), "/api/v1/things", ["things:write"]),
        (build_bearer_headers(SUPPORT), "/api/v1/things", ["system_admin"]),
        ({"X-Service-Name": "messenger"}, "/api/v1/things", ["things:write", "system_admin"]),
        ({"X-API-Key-ID": TERMINAL.id}, "/api/v1/things", ["things:write", "system_admin"]),
        ({"X-API-Key-ID": PARTNER.id}, "/pay", ["pos_signature"]),
        (build_bearer_headers(ADMIN), "/api/v1/fund", ["things:write", "partner_signature"]),
    ],
)
async def test_missing_permission_returns_403_and_is_reported(
    gateway: EdgeApp, headers: dict[str, str], path: str, required: list[str]
) -> None:
    response = await gateway.client.post(path, json=VALID_THING, headers=headers)
    body = assert_error(response, 403, "FORBIDDEN")
    assert body["details"] == {"required": required}
    assert response.headers.keys() >= RATE_HEADERS
    ((actor, denial),) = gateway.denials
    assert (denial.event, denial.resource_id) == ("access.denied", f"POST {path}")
    assert (denial.result, denial.reason) == ("denied", body["message"])
    assert actor.request_id == response.headers["x-request-id"]
    assert actor.ip == "127.0.0.1"


async def test_denial_by_a_handler_is_reported(gateway: EdgeApp) -> None:
    response = await gateway.client.post("/api/v1/refuses", headers=build_bearer_headers(WRITER))
    assert_error(response, 403, "FORBIDDEN")
    expected = [{"type": "api_key", "id": WRITER.id, "name": "writer"}]
    assert [actor.record for actor, _ in gateway.denials] == expected


async def test_denial_that_cannot_be_recorded_still_returns_403(
    gateway: EdgeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(gateway.services.rejection_log, "record", fail)
    response = await gateway.client.post("/api/v1/refuses", headers=build_bearer_headers(WRITER))
    assert_error(response, 403, "FORBIDDEN")


@pytest.mark.parametrize("path", ["/pay", "/api/v1/pos/pay"])
async def test_signed_route_without_a_signature_returns_401(gateway: EdgeApp, path: str) -> None:
    for headers in (
        {},
        build_bearer_headers(ADMIN),
        build_bearer_headers(WRITER),
        {"X-Service-Name": "messenger"},
    ):
        response = await gateway.client.post(path, headers=headers)
        assert_error(response, 401, "UNAUTHORIZED")
    assert gateway.denials == []


@pytest.mark.parametrize(
    "headers",
    [
        build_bearer_headers(ADMIN),
        build_bearer_headers(SUPPORT),
        build_bearer_headers(READER),
        {"X-Service-Name": "messenger"},
    ],
)
async def test_every_declared_kind_of_caller_is_allowed(
    gateway: EdgeApp, headers: dict[str, str]
) -> None:
    assert (await gateway.client.get("/api/v1/things", headers=headers)).status_code == 200


async def test_partner_signature_is_accepted_as_an_alternative_to_a_scope(gateway: EdgeApp) -> None:
    response = await gateway.client.post("/api/v1/fund", headers={"X-API-Key-ID": PARTNER.id})
    assert response.json() == {"by": PARTNER.id}


async def test_errors_are_checked_in_the_documented_order(gateway: EdgeApp) -> None:
    too_large = b'{"name": 1' + b" " * 2_000_000
    broken = b'{"name": 1'
    wrong_type = b'{"name": 1, "pin": "x", "amount": "0"}'
    bad_value = b'{"name": "", "pin": "x", "amount": "0"}'
    expected = [
        (413, None, too_large),
        (401, None, broken),
        (403, READER, broken),
        (400, WRITER, broken),
        (400, WRITER, wrong_type),
        (422, WRITER, bad_value),
    ]
    for status, principal, content in expected:
        headers = build_bearer_headers(principal) if principal else {}
        response = await gateway.client.post("/api/v1/things", content=content, headers=headers)
        assert response.status_code == status


async def test_unexpected_error_returns_500_without_values(gateway: EdgeApp) -> None:
    headers = build_bearer_headers(WRITER) | TRACE_HEADERS
    response = await gateway.client.post("/api/v1/fails", json=VALID_THING, headers=headers)
    body = assert_error(response, 500, "INTERNAL_ERROR")
    assert body["details"] == {"request_id": response.headers["x-request-id"]}
    assert VALID_THING["pin"] not in split_words(response.text)
    assert response.headers.keys() >= RATE_HEADERS


@pytest.mark.parametrize("value", ["a", "A-z.0_9", "x" * 128])
async def test_valid_request_id_is_echoed(gateway: EdgeApp, value: str) -> None:
    for path in ("/health", "/api/v1/things", "/nowhere"):
        response = await gateway.client.get(path, headers={"X-Request-ID": value})
        assert response.headers["x-request-id"] == value


@pytest.mark.parametrize("value", ["", "x" * 129, "a b", "ä", "a/b", "<script>"])
async def test_invalid_request_id_is_replaced(gateway: EdgeApp, value: str) -> None:
    headers = {b"X-Request-ID": value.encode("latin-1")}
    request_ids = {(await gateway.client.get("/health", headers=headers)).headers["x-request-id"]}
    request_ids |= {(await gateway.client.get("/health", headers=headers)).headers["x-request-id"]}
    assert len(request_ids) == 2
    assert value not in request_ids


async def test_public_endpoint_treats_the_caller_as_anonymous(gateway: EdgeApp) -> None:
    response = await gateway.client.get("/api/v1/open", headers=build_bearer_headers(ADMIN))
    assert response.json() | {"ip": ""} == {"type": "anonymous", "id": "anonymous", "ip": ""}


async def test_raw_body_is_accepted_up_to_its_limit(gateway: EdgeApp) -> None:
    response = await gateway.client.post(
        "/api/v1/upload", content=b"\xff" * 64, headers=build_bearer_headers(WRITER)
    )
    assert response.json() == {"size": 64}
    response = await gateway.client.post(
        "/api/v1/upload", content=b"x" * 65, headers=build_bearer_headers(WRITER)
    )
    assert_error(response, 413, "PAYLOAD_TOO_LARGE")


CREATE = "CREATE TABLE probe (id int PRIMARY KEY)"
INSERT = "INSERT INTO probe VALUES (1)"
COUNT = "SELECT count(*) FROM probe"


async def test_callbacks_run_after_the_commit(services: Services) -> None:
    await services.database.execute(CREATE)
    counts = []

    async def count_rows() -> None:
        counts.append(await services.database.fetchval(COUNT))

    async with services.transaction() as tx:
        await tx.execute(INSERT)
        tx.after_commit(count_rows)
    assert counts == [1]


async def test_error_raised_after_the_commit_keeps_the_changes(services: Services) -> None:
    await services.database.execute(CREATE)
    calls = []

    async def record_call() -> None:
        calls.append("after commit")

    with pytest.raises(ApiError) as caught:
        async with services.transaction() as tx:
            await tx.execute(INSERT)
            tx.after_commit(record_call)
            raise RaiseAfterCommit(ApiError(Code.INVALID_PIN))
    assert caught.value.code is Code.INVALID_PIN
    assert await services.database.fetchval(COUNT) == 1
    assert calls == ["after commit"]


async def test_rolled_back_transaction_runs_no_callback(services: Services) -> None:
    await services.database.execute(CREATE)

    async def fail() -> None:
        raise AssertionError

    with pytest.raises(ApiError):
        async with services.transaction() as tx:
            await tx.execute(INSERT)
            tx.after_commit(fail)
            raise ApiError(Code.NOT_FOUND)
    assert await services.database.fetchval(COUNT) == 0
