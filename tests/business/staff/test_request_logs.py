"""Request log: recorded requests, redaction, and behavior under load."""

from typing import Any

import msgspec
import pytest

from builders.payments import PosDriver
from cases import each
from client.operation_catalog import list_structs
from harness import PIN, Harness, parse_error, split_words
from tapgate.business.staff.request_logs.recorder import RequestLog
from tapgate.business.staff.request_logs.redaction import (
    redact_body,
    redact_error,
    redact_path,
    redact_query,
)
from tapgate.core.secret_names import is_secret_name
from tapgate.core.settings import Settings, load_settings
from tapgate.http.api.services import Services
from tapgate.http.json_schema import get_struct
from tapgate.server.gateway import list_endpoints
from tapgate_client import ids
from tapgate_client.schemas.admin import NewApiKey
from tapgate_client.schemas.cards import CardRecord
from tapgate_client.schemas.pagination import Page, PageQuery
from tapgate_client.schemas.pos import PaymentReceipt, PosPaymentRequest
from tapgate_client.schemas.subscribers import SubscriberFilters

URL = "/api/v1/admin/request-logs"


async def list_logs(harness: Harness, **filters: Any) -> list[Any]:
    await harness.services.request_log.flush()
    response = await harness.get(URL, params=filters, auth=await harness.create_admin())
    assert response.status_code == 200, response.text
    logs: list[Any] = response.json()["data"]
    return logs


async def get_details(harness: Harness, log: Any) -> Any:
    response = await harness.get(f"{URL}/{log['id']}", auth=await harness.create_admin())
    assert response.status_code == 200, response.text
    return response.json()


async def test_request_with_an_api_key_is_logged(harness: Harness) -> None:
    key = await harness.create_api_key("cards:read")
    response = await harness.get("/api/v1/cards/NONE-1", auth=key)
    (log,) = await list_logs(harness)
    assert (log["method"], log["endpoint"]) == ("GET", "/api/v1/cards/{serial}")
    assert log["path"] == "/api/v1/cards/NONE-1"
    assert (log["status"], log["error_code"]) == (404, "CARD_NOT_FOUND")
    assert log["request_id"] == response.headers["x-request-id"]
    assert (log["caller_type"], log["caller_name"]) == ("api_key", "Shop")
    assert log["api_key_id"] == key.id
    details = await get_details(harness, log)
    assert details["request_body"] is None
    assert details["response_body"] == response.json()
    await harness.get("/api/v1/cards?limit=5&search=Aminata", auth=key)
    log, _ = await list_logs(harness)
    assert (await get_details(harness, log))["query"] == {"limit": "5", "search": "***"}


async def test_payment_is_logged_without_pin_and_personal_data(harness: Harness) -> None:
    pos = await PosDriver.create(harness, balance="300")
    paid = await pos.pay("100", request_id="first-1", pin=PIN, metadata={"to": "Aminata"})
    (log,) = await list_logs(harness, endpoint="/api/v1/pos/payment")
    assert (log["caller_type"], log["status"]) == ("processor", paid.status_code)
    details = await get_details(harness, log)
    sent, returned = details["request_body"], details["response_body"]
    assert (sent["pin"], sent["amount"], sent["metadata"]) == ("***", "100", "***")
    assert sent["request_id"] == "first-1"
    for name in ("transaction_id", "amount", "fee_amount"):
        assert returned[name] == paid.json()[name]
    assert returned["remaining_balance"] == "***"
    text = msgspec.json.encode(details).decode()
    assert PIN not in split_words(text)
    assert "Aminata" not in text


async def test_payment_and_its_request_name_each_other(harness: Harness) -> None:
    pos = await PosDriver.create(harness, balance="300")
    paid = await pos.pay("100", request_id="till-1-000017")
    await pos.pay("100", request_id="4" * 12)  # could be a misplaced secret
    transaction_id = paid.json()["transaction_id"]
    (log,) = await list_logs(harness, transaction_id=transaction_id)
    assert (log["idempotency_key"], log["transaction_id"]) == ("till-1-000017", transaction_id)
    assert [each["id"] for each in await list_logs(harness, idempotency_key="till-1-000017")] == [
        log["id"]
    ]
    assert await list_logs(harness, idempotency_key="4" * 12) == []
    for text in ("till-1-000017", log["request_id"], log["id"]):
        response = await harness.get(
            "/api/v1/search", params={"q": text}, auth=await harness.create_admin()
        )
        found = {(each["type"], each["id"]) for each in response.json()["data"]}
        assert ("api_request", log["id"]) in found, text
    response = await harness.get(
        "/api/v1/search", params={"q": log["request_id"]}, auth=await harness.create_admin("S")
    )
    assert response.json()["data"] == []


def test_field_is_masked_on_both_sides_of_a_request() -> None:
    body = b'{"name": "x", "overdraft_limit": "5.00", "status": "active"}'
    endpoint = next(each for each in list_endpoints() if each.name == "POST /api/v1/admin/partners")
    sent = redact_body(body, endpoint.body_struct, endpoint.response_type)
    returned = redact_body(body, endpoint.response_type, endpoint.body_struct)
    assert sent is not None and returned is not None
    for side in (sent, returned):
        assert msgspec.json.decode(side)["overdraft_limit"] == "***"


async def test_requests_of_admins_services_and_strangers_are_not_logged(harness: Harness) -> None:
    await harness.get("/api/v1/cards", auth=await harness.create_admin())
    await harness.get("/api/v1/cards", auth=harness.get_service_auth())
    await harness.get("/api/v1/cards", headers={"Authorization": "Bearer svc_test_unknown"})
    await harness.get("/api/v1/none", auth=await harness.create_api_key("cards:read"))
    assert await list_logs(harness) == []


async def test_logs_are_filtered_and_paginated(harness: Harness) -> None:
    first, second = [await harness.create_api_key("cards:read") for _ in range(2)]
    for key in (first, second):
        await harness.get("/api/v1/cards", auth=key, headers={"X-Request-ID": f"r-{key.id}"})
        await harness.get("/api/v1/cards/NONE-1", auth=key)
    await harness.post("/api/v1/cards/link", json={}, auth=first)
    assert len(await list_logs(harness)) == 5
    assert len(await list_logs(harness, api_key_id=first.id)) == 3
    assert len(await list_logs(harness, method="POST")) == 1
    assert len(await list_logs(harness, result="failed")) == 3
    assert len(await list_logs(harness, result="succeeded")) == 2
    assert len(await list_logs(harness, status=404)) == 2
    assert len(await list_logs(harness, error_code="FORBIDDEN")) == 1
    assert len(await list_logs(harness, endpoint="/api/v1/cards")) == 2
    (log,) = await list_logs(harness, request_id=f"r-{second.id}")
    assert log["api_key_id"] == second.id
    today = log["created_at"][:10]
    assert len(await list_logs(harness, **{"from": today, "to": today})) == 5
    assert await list_logs(harness, to="2020-01-01") == []
    admin = await harness.create_admin()
    page = (await harness.get(URL, params={"limit": 2}, auth=admin)).json()
    rest = (await harness.get(URL, params={"cursor": page["next_cursor"]}, auth=admin)).json()
    assert len({log["id"] for log in page["data"] + rest["data"]}) == 5


async def test_unknown_or_expired_log_is_not_found(harness: Harness, settings: Settings) -> None:
    admin = await harness.create_admin()
    for id in (ids.encode(ids.REQUEST_LOG, 5), "log_x", "req_1"):
        response = await harness.get(f"{URL}/{id}", auth=admin)
        assert parse_error(response) == (404, "REQUEST_NOT_FOUND")
    await harness.get("/api/v1/cards", auth=await harness.create_api_key("cards:read"))
    (log,) = await list_logs(harness)
    harness.advance_clock(days=settings.request_log_days, minutes=1)
    assert await list_logs(harness) == []
    response = await harness.get(f"{URL}/{log['id']}", auth=admin)
    assert parse_error(response) == (404, "REQUEST_NOT_FOUND")


@pytest.fixture
def request_log(services: Services) -> RequestLog:
    log = services.request_log
    assert isinstance(log, RequestLog)
    return log


async def test_full_queue_drops_and_counts_successful_requests_but_keeps_failed_ones(
    harness: Harness, request_log: RequestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log.succeeded, "rate", 1)
    key = await harness.create_api_key("cards:read")
    for _ in range(7):
        assert (await harness.get("/api/v1/cards", auth=key)).status_code == 200
        assert (await harness.get("/api/v1/cards/NONE-1", auth=key)).status_code == 404
    metrics = (await harness.get("/metrics")).text
    assert "tapgate_request_logs_dropped_total 2.0" in metrics  # one second's queue is five
    logs = await list_logs(harness)
    assert sorted(log["status"] for log in logs) == [200] + [404] * 7  # one batch
    assert len(await list_logs(harness)) == 9


@pytest.mark.parametrize(("workers", "rate"), [(1, 25), (2, 12), (4, 6), (64, 1)])
def test_workers_share_the_rate_of_successful_requests(
    services: Services, settings: Settings, workers: int, rate: int
) -> None:
    base = {"TAPGATE_DATA_DIR": str(settings.data_dir), "TAPGATE_WORKERS": str(workers)}
    log = RequestLog(load_settings(base), services.database, services.new_id, lambda _count: None)
    assert (log.succeeded.rate, log.failed.rate) == (rate, 1000)


async def test_requests_stay_queued_while_the_database_is_unavailable(
    harness: Harness, request_log: RequestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.get("/api/v1/cards", auth=await harness.create_api_key("cards:read"))
    await harness.services.queue_database.close()
    with pytest.raises(Exception, match="SERVICE_UNAVAILABLE"):
        await request_log.flush()
    monkeypatch.setattr(request_log, "database", harness.services.database)
    assert len(await list_logs(harness)) == 1


async def test_log_can_be_without_bodies_or_off(
    harness: Harness, request_log: RequestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await harness.create_api_key("cards:read")
    monkeypatch.setattr(request_log, "has_bodies", False)
    await harness.get("/api/v1/cards/NONE-1", auth=key)
    (log,) = await list_logs(harness)
    assert log["error_code"] == "CARD_NOT_FOUND"
    details = await get_details(harness, log)
    assert (details["request_body"], details["response_body"]) == (None, None)
    monkeypatch.setattr(request_log, "is_enabled", False)
    await harness.get("/api/v1/cards", auth=key)
    assert await list_logs(harness) == [log]


def test_bodies_are_logged_in_development_only(settings: Settings) -> None:
    assert (settings.request_log_days, settings.request_log_bodies) == (7, True)
    base = {"TAPGATE_DATA_DIR": str(settings.data_dir), "TAPGATE_ENVIRONMENT": "testing"}
    assert load_settings(base).request_log_bodies
    assert not load_settings(base | {"TAPGATE_REQUEST_LOG_BODIES": "off"}).request_log_bodies
    assert load_settings(base | {"TAPGATE_REQUEST_LOG_DAYS": "0"}).request_log_days == 0


#: Fields that are not personal despite their names: a limit, and an enum of block reasons.
HARMLESS_FIELDS = {"max_balance", "reason"}


def list_kept_fields() -> set[tuple[str, str]]:
    """Return the endpoint and name of each field of which a word or number is logged."""
    kept = set()
    for endpoint in list_endpoints():
        if not (endpoint.access.scope or endpoint.access.hmac):
            continue  # only requests with a key are logged
        for kind in (endpoint.body_struct, endpoint.query_type, endpoint.response_type):
            for struct in list_structs(kind):
                for name in struct.__struct_encode_fields__:
                    for value in ("word", 5, ["word"], [5]):
                        logged = redact_body(msgspec.json.encode({name: value}), struct) or ""
                        if msgspec.json.decode(logged) == {name: value}:
                            kept.add((endpoint.name, name))
    return kept


def test_kept_fields_do_not_denote_secrets_or_personal_data() -> None:
    personal = "name phone email address birth number text note reason balance ip memo description"
    for endpoint, field in list_kept_fields():
        assert not is_secret_name(field), (endpoint, field)
        words = set(field.split("_"))
        assert words.isdisjoint(personal.split()) or field in HARMLESS_FIELDS, (endpoint, field)


def test_amounts_are_kept_as_requests_and_responses_write_them() -> None:
    for amount in ("5", "1234.50", "0.00 SLE", "-1,234,567.50 SLE", "5000.00 XOF"):
        body = msgspec.json.encode({"amount": amount})
        assert msgspec.json.decode(redact_body(body, PaymentReceipt) or "") == {"amount": amount}
    for text in ("5 sle", "SLE", "1,23 SLE", "5 SLE 4071", "4111 1111 1111", "1e5", "1.23456"):
        body = msgspec.json.encode({"amount": text})
        assert msgspec.json.decode(redact_body(body, PaymentReceipt) or "") == {"amount": "***"}


def test_field_is_kept_on_both_sides_or_masked_on_both() -> None:
    """Otherwise a log would hide on one side what the other side shows."""
    values = ("word", 5, "8.00", "8,000.00 SLE", ["word"])
    for endpoint in list_endpoints():
        sides = [(endpoint.body_struct, endpoint.response_type)]
        sides.append(sides[0][::-1])
        if not all(get_struct(kind) for kind in sides[0]):
            continue
        common = set.intersection(*(set(kind.__struct_encode_fields__) for kind in sides[0]))
        for name in common:
            kept = {
                any(is_kept({name: value}, kind, other) for value in values)
                for kind, other in sides
            }
            assert len(kept) == 1, (endpoint.name, name)


def is_kept(body: dict[str, Any], kind: Any, other: Any) -> bool:
    return bool(
        msgspec.json.decode(redact_body(msgspec.json.encode(body), kind, other) or "") == body
    )


def test_fields_that_integrators_debug_with_are_kept() -> None:
    kept = list_kept_fields()
    for name in ("request_id", "amount", "card_serial", "terminal_id", "merchant_id"):
        assert ("POST /api/v1/pos/payment", name) in kept
    for name in ("type", "status", "created_at", "fee_amount", "failure_code", "currency", "id"):
        assert ("GET /api/v1/transactions/{id}", name) in kept
    for name in ("from", "to", "limit", "cursor", "user_id", "status"):
        assert ("GET /api/v1/transactions", name) in kept


@each(
    "value",
    [
        "4071",
        "23276123456",
        "+23276123456",
        "076-123-456",
        "4111-1111-1111-1111",
        "40.71",
        4071,
        40.71,
        "a@example.com",
        "two words",
        "x" * 41,
        {"id": "x"},
        [4071],
        "\u0000",
    ],
)
def test_misplaced_value_in_a_kept_field_is_masked(value: Any) -> None:
    sent = {"request_id": value, "card_serial": "TAP-1"}
    masked = redact_body(msgspec.json.encode(sent), PosPaymentRequest) or ""
    stored = msgspec.json.decode(masked)
    assert stored in (
        {"request_id": "***", "card_serial": "TAP-1"},
        {"request_id": ["***"], "card_serial": "TAP-1"},
    )


@each(
    "body",
    [b"", b"{", b"[1]", b'"4071"', b"\xff", b"[" * 5000, b'{"amount": "' + b"1" * 9000 + b'"}'],
)
def test_body_that_is_no_small_json_object_is_not_stored(body: bytes) -> None:
    assert redact_body(body, PosPaymentRequest) is None
    assert redact_error(body) is None


def test_unknown_names_are_masked() -> None:
    body = {"4071": "4071", "PIN": "4071", "amount": "5", "card_proof": {"cmac": "4071", "a": 1}}
    masked = msgspec.json.decode(redact_body(msgspec.json.encode(body), PosPaymentRequest) or "")
    assert masked == {"***": "***", "amount": "5", "card_proof": {"cmac": "***", "***": "***"}}
    assert redact_query(b"hunter2=1&limit=5", PageQuery) == '{"***":"***","limit":"5"}'
    assert redact_query(b"limit=5", None) == '{"limit":"***"}'
    assert redact_body(b'{"amount":"5"}', None) == '{"amount":"***"}'


@each(
    "fields, shown",
    [
        ({"first_name": "is required"}, {"first_name": "is required"}),
        ({"data[0].amount": "is required"}, {"data[0].amount": "is required"}),
        ({"body": "must be valid JSON"}, {"body": "must be valid JSON"}),
        ({"hunter2": "is unknown"}, {}),
        ({"data[0].hunter2": "is unknown", "amount": "is required"}, {"amount": "is required"}),
    ],
)
def test_error_does_not_name_unknown_fields(fields: dict[str, str], shown: Any) -> None:
    message = " ".join(f"{name} {text}" for name, text in fields.items())
    error = {"code": "VALIDATION_FAILED", "message": message, "details": {"fields": fields}}
    masked = msgspec.json.decode(redact_error(msgspec.json.encode(error)) or "")
    assert masked["details"] == {"fields": shown}
    assert masked["message"] == (message if shown == fields else "***")


async def test_unknown_field_name_is_not_stored(harness: Harness, request_log: RequestLog) -> None:
    key = await harness.create_api_key("subscribers:write")
    body = {"first_name": "Ama", "mypin_is_4071_hunter2": True, "metadata": {"hunter2": 1}}
    await harness.post("/api/v1/subscribers?hunter2=4071", json=body, auth=key)
    await request_log.flush()
    rows = await harness.database.fetch("SELECT t::text FROM request_logs t")
    assert len(rows) == 1
    assert "hunter2" not in rows[0][0] and "first_name" in rows[0][0], rows[0][0]


def test_deep_and_long_bodies_are_cut() -> None:
    deep: Any = {
        "data": {"data": {"data": {"data": {"data": {"data": {"data": {"id": "leaf-1"}}}}}}}
    }
    assert "leaf" not in (redact_error(msgspec.json.encode({"details": deep})) or "")
    assert "leaf" not in (redact_body(msgspec.json.encode(deep), Page[CardRecord]) or "")
    nested = b'{"scopes":' + b"[" * 7 + b'"leaf"' + b"]" * 7 + b"}"
    assert "leaf" not in (redact_body(nested, NewApiKey) or "")
    many = redact_body(msgspec.json.encode({"scopes": ["x"] * 500}), NewApiKey) or ""
    assert msgspec.json.decode(many) == {"scopes": ["x"] * 100}


def test_paths_and_queries_are_masked() -> None:
    template = "/api/v1/cards/{serial}/block"
    assert redact_path("/api/v1/cards/TAP-000001/block", template).endswith("/TAP-000001/block")
    assert redact_path("/api/v1/cards/4071/block", template) == "/api/v1/cards/***/block"
    assert redact_path("/api/v1/cards/%2B232/block", template) == "/api/v1/cards/***/block"
    assert redact_query(b"", SubscriberFilters) is None
    query = b"phone_number=%2B232761&limit=5"
    assert redact_query(query, SubscriberFilters) == '{"phone_number":"***","limit":"5"}'
    assert redact_query(b"a=1&" * 50, SubscriberFilters) is None
    assert redact_query(b"\xff=1", SubscriberFilters) is None
