"""Mass assignment: an endpoint uses only the fields it declares and ignores all others."""

import json
from typing import Any

import msgspec
import pytest

from builders.hostile_input import ENDPOINTS_WITH_BODY, endpoint_name
from harness import Harness
from tapgate.http.api.examples import build_example
from tapgate.http.decoding import BodyDecoder
from tapgate.http.endpoint import Endpoint
from tapgate_client.errors import ApiError

#: Record and table fields that a caller must not be able to set by adding them to a body.
UNDECLARED_FIELDS: dict[str, Any] = {
    "id": "sub_0000000000001",
    "status": "CLOSED",
    "state": "active",
    "balance": "1000000.00",
    "held": -1,
    "float_balance": "1000000.00",
    "overdraft": "1000000.00",
    "role": "system_admin",
    "scopes": ["*"],
    "kyc_level": 3,
    "kyc_status": "VERIFIED",
    "restricted": False,
    "fee": "0",
    "fee_amount": "0",
    "rate": "0",
    "limit": "999999999",
    "account_id": "acc_0000000000001",
    "subscriber_id": "sub_0000000000001",
    "processor_id": "prc_0000000000001",
    "owner": "sub_0000000000001",
    "channel": "admin",
    "created_at": "2000-01-01T00:00:00Z",
    "created_by": "adm_0000000000001",
    "pin_failures": -100,
    "pin_locked_until": None,
    "password_hash": "x",
    "secret": "x",
    "is_admin": True,
    "__proto__": {"role": "system_admin"},
    "__class__": "Admin",
    "constructor": {"prototype": {}},
}
ENDPOINTS_WITH_STRUCT = [e for e in ENDPOINTS_WITH_BODY if e.body_struct is not None]


def list_wire_names(kind: Any) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


def test_request_bodies_ignore_undeclared_fields() -> None:
    """A body copied into a record would set any column that its sender can name.

    The handler receives only declared fields. Covers all declared request bodies.
    """
    assert len(ENDPOINTS_WITH_STRUCT) > 45
    for endpoint in ENDPOINTS_WITH_STRUCT:
        kind = endpoint.body_struct
        assert kind is not None
        decoder = BodyDecoder(kind, "SLE")
        example = build_example(kind)
        undeclared = {
            name: UNDECLARED_FIELDS[name]
            for name in UNDECLARED_FIELDS.keys() - list_wire_names(kind)
        }
        expected = decoder.decode(json.dumps(example).encode())
        for body in ({**undeclared, **example}, {**example, **undeclared}):
            decoded = decoder.decode(json.dumps(body).encode())
            assert decoded == expected, endpoint_name(endpoint)
            assert not hasattr(decoded, "__dict__"), endpoint_name(endpoint)


NON_STRING_VALUES: list[Any] = [[], {}, [[]], {"$ne": ""}, ["4071"], 1, 10**400, 1.5, True]


def test_string_fields_reject_values_of_other_types() -> None:
    """Guards against `{"email": {"$ne": ""}}` and `{"pin": [..]}`.

    Covers every declared body field whose example is a string, except `threshold`.
    """
    checked_count = 0
    for endpoint in ENDPOINTS_WITH_STRUCT:
        kind = endpoint.body_struct
        assert kind is not None
        decoder, example = BodyDecoder(kind, "SLE"), build_example(kind)
        texts = [name for name, value in example.items() if isinstance(value, str)]
        for name in texts:
            if name == "threshold":  # a number if it is a count, a string if it is an amount
                continue
            for value in NON_STRING_VALUES:
                with pytest.raises(ApiError) as caught:
                    decoder.decode(json.dumps({**example, name: value}).encode())
                assert caught.value.status == 400, (endpoint.path, name, value)
                checked_count += 1
    assert checked_count > 500


def list_new_records() -> list[tuple[str, dict[str, Any]]]:
    merchant = {"name": "Shop", "phone_number": "+23276999001", "email": "s@example.com"}
    return [
        (
            "/api/v1/subscribers",
            {
                "phone_number": "+23276999002",
                "first_name": "Aminata",
                "last_name": "Kamara",
                "pin": "4071",
            },
        ),
        (
            "/api/v1/agents",
            {
                "agent_type": "super_agent",
                "name": "Foday",
                "phone_number": "+23276999003",
                "pin": "5927",
            },
        ),
        ("/api/v1/processors", merchant),
        ("/api/v1/admin/partners", {"name": "Big Bank"}),
        (
            "/api/v1/admin/users",
            {
                "email": "new@example.com",
                "password": "correct horse battery",
                "name": "Eve",
                "role": "support_user",
            },
        ),
        ("/api/v1/admin/api-keys", {"name": "Shop", "scopes": ["cards:read"]}),
        ("/api/v1/admin/webhook-endpoints", {"url": "https://a.example/", "events": ["*"]}),
        ("/api/v1/compliance/alerts", {"alert_type": "TEST", "details": {}}),
    ]


@pytest.mark.parametrize(
    ("url", "body"), list_new_records(), ids=lambda it: it if type(it) is str else ""
)
async def test_new_record_ignores_undeclared_fields_sent_by_the_caller(
    harness: Harness, url: str, body: dict[str, Any]
) -> None:
    """The classic attack: register with `"balance": 1000000` or `"role": "admin"`."""
    (endpoint,) = [
        candidate for candidate in ENDPOINTS_WITH_STRUCT if candidate.name == f"POST {url}"
    ]
    extra = {
        name: UNDECLARED_FIELDS[name]
        for name in UNDECLARED_FIELDS.keys() - list_wire_names(endpoint.body_type)
    }
    response = await harness.post(url, json={**body, **extra}, auth=await harness.create_admin())
    assert response.status_code == 201, response.text
    response_body = response.json()
    record = next(
        (value for value in response_body.values() if isinstance(value, dict)), response_body
    )
    for name in record.keys() & extra.keys():
        assert record[name] != extra[name] or extra[name] in (None, False), name
    for name in ("balance", "float_balance"):
        assert record.get(name, "0.00") == "0.00"
    if "subscriber" in response_body:
        assert (record["kyc_level"], record["status"], record["kyc_status"]) == (
            1,
            "ACTIVE",
            "NONE",
        )


#: Values that JSON parsers may treat differently, for an extra field next to a protected one.
INVALID_EXTRA_VALUES = [
    b"1e999",
    b"[1e999]",
    b'"\\ud800"',
    b'{"\\udfff": 1}',
    b"9" * 5000,
    b"null",
    b'"\\u0000"',
    b"[" * 500 + b"]" * 500,
]
PROTECTED_FIELDS = [
    (b'"kyc_level"', b"3"),
    (b'"kyc\\u005fstatus"', b'"VERIFIED"'),
    (b'"restricted"', b"true"),
]


async def test_protected_fields_cannot_be_set_through_parser_differences(harness: Harness) -> None:
    """One JSON parser checks field access, and another decodes the values that are used.

    Without a second check, a body that only the second parser can read would bypass the first.
    """
    holder = await harness.create_subscriber()
    url = f"/api/v1/subscribers/{holder['id']}"
    before = await _get_record(harness, holder)
    for caller in (
        await harness.create_api_key("subscribers:write"),
        await harness.create_admin("S"),
    ):
        for name, value in PROTECTED_FIELDS:
            for invalid_value in INVALID_EXTRA_VALUES:
                for body in (
                    b"{%b: %b, %b: %b}" % (name, value, b'"x"', invalid_value),
                    b"{%b: %b, %b: %b}" % (b'"x"', invalid_value, name, value),
                    b"{%b: null, %b: %b, %b: %b}" % (name, b'"x"', invalid_value, name, value),
                ):
                    response = await harness.put(url, content=body, auth=caller)
                    assert response.status_code in (400, 403), body[:80]
    assert await _get_record(harness, holder) == before


async def _get_record(harness: Harness, holder: dict[str, Any]) -> dict[str, Any]:
    response = await harness.get(
        f"/api/v1/subscribers/{holder['id']}", auth=harness.get_service_auth()
    )
    record: dict[str, Any] = response.json()
    return record


async def test_immutable_fields_of_rules_are_ignored_on_update(harness: Harness) -> None:
    """Covers a compliance rule's ID and type, and an account rule's KYC level."""
    admin = await harness.create_admin()
    (rule, *_) = (await harness.get("/api/v1/compliance/rules", auth=admin)).json()["data"]
    changed = {**rule, "id": "rul_0000000000001", "type": "PIN_FAILURES", "name": "Other"}
    response = await harness.put(f"/api/v1/compliance/rules/{rule['id']}", json=changed, auth=admin)
    assert response.json() == {**rule, "name": "Other"}
    level = (await harness.get("/api/v1/account-rules/1", auth=admin)).json()
    changed = {**level, "kyc_level": 3, "no_pin_limit": "1.00"}
    response = await harness.put("/api/v1/account-rules/1", json=changed, auth=admin)
    assert response.json() == {**level, "no_pin_limit": "1.00"}


def test_protected_fields_default_to_none() -> None:
    """The access check treats only None as absent, so another default would require access."""
    guarded = [e for e in ENDPOINTS_WITH_BODY if e.field_access]
    assert guarded
    for endpoint in guarded:
        assert _get_protected_defaults(endpoint) == dict.fromkeys(endpoint.field_access)


def _get_protected_defaults(endpoint: Endpoint) -> dict[str, Any]:
    fields = msgspec.structs.fields(endpoint.body_type)
    return {field.name: field.default for field in fields if field.name in endpoint.field_access}
