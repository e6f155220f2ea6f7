"""Decoding bodies and queries: 400 for malformed JSON or a wrong type, 422 for a bad value."""

import json
from typing import Annotated, Any

import msgspec
import pytest

from builders.http_apps import (
    READER,
    VALID_THING,
    WRITER,
    EdgeApp,
    PinChange,
    Thing,
    build_bearer_headers,
)
from cases import each
from tapgate.http.decoding import BodyDecoder
from tapgate.http.field_checks import compile_check
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.fields import IntegerRange, Text

CANARY = "cAnArY-7351"


def build_body(**changes: Any) -> bytes:
    return msgspec.json.encode(VALID_THING | changes)


def get_validation_error(content: bytes, kind: type[msgspec.Struct] = Thing) -> tuple[int, Any]:
    with pytest.raises(ApiError) as caught:
        BodyDecoder(kind, "SLE").decode(content)
    error = caught.value
    assert CANARY not in str(error.body())
    assert error.__cause__ is None
    assert error.__suppress_context__
    return error.status, (error.details or {})["fields"]


@each(
    "content, fields",
    [
        (b"", {"body": "must be valid JSON"}),
        (b"   ", {"body": "must be valid JSON"}),
        (b"not json", {"body": "must be valid JSON"}),
        (b'{"name": "x"', {"body": "must be valid JSON"}),
        (b"[]", {"body": "must be an object"}),
        (b'"text"', {"body": "must be an object"}),
        (b"null", {"body": "must be an object"}),
        (b'{"name": NaN}', {"body": "must be valid JSON"}),
        (b'{"name": "\x00"}', {"body": "must be valid JSON"}),
        (b'\xef\xbb\xbf{"name": "x"}', {"body": "must be valid JSON"}),
        (b'{"name": "\xff"}', {"body": "must be valid UTF-8"}),
        (b'{"unknown": "\xff", ' + build_body()[1:], {"body": "must be valid UTF-8"}),
        (b'{"name": "\xed\xa0\x80"}', {"body": "must be valid UTF-8"}),
        (b'{"metadata": ' + b'{"a":' * 9000 + b"1" + b"}" * 9001, {"body": "is nested too deeply"}),
        (b'{"unknown": ' + b"[" * 9000 + b"]" * 9000 + b"}", {"body": "is nested too deeply"}),
        (b'{"pin": "1234", "amount": "1"}', {"name": "is required"}),
        (build_body(name=None), {"name": "is required"}),
        (build_body(name=5), {"name": "must be a string"}),
        (build_body(name=[CANARY]), {"name": "must be a string"}),
        (build_body(amount=500.25), {"amount": "must be a string"}),
        (build_body(pin=1234), {"pin": "must be a string"}),
        (build_body(email=7), {"email": "must be a string"}),
        (build_body(tags="x"), {"tags": "must be an array"}),
        (build_body(tags=["x", 1]), {"tags[1]": "must be a string"}),
        (build_body(parts=[{"label": "x"}, {}]), {"parts[1].label": "is required"}),
        (
            build_body(parts=[{"label": "x", "weight": "1"}]),
            {"parts[0].weight": "must be a whole number"},
        ),
        (build_body(metadata=[1]), {"metadata": "must be an object"}),
        (build_body(count=1.5), {"count": "must be a whole number"}),
        (build_body(count=True), {"count": "must be a whole number"}),
        (build_body()[:-1] + b', "count": 1e999}', {"count": "is out of range"}),
        (build_body()[:-1] + b', "count": ' + b"9" * 5000 + b"}", {"count": "is out of range"}),
        (
            build_body()[:-1] + b', "metadata": {"a": ' + b"9" * 5000 + b"}}",
            {"metadata[...]": "is out of range"},
        ),
    ],
)
def test_malformed_json_or_wrong_type_returns_400(content: bytes, fields: dict[str, str]) -> None:
    assert get_validation_error(content) == (400, fields)


@each(
    "changes, field",
    [
        ({"name": ""}, "name"),
        ({"name": " \t"}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"name": f"{CANARY}\0"}, "name"),
        ({"pin": CANARY}, "pin"),
        ({"pin": "12345"}, "pin"),
        ({"pin": "١٢٣٤"}, "pin"),
        ({"amount": "0"}, "amount"),
        ({"amount": "1e3"}, "amount"),
        ({"amount": "-1"}, "amount"),
        ({"amount": "1.001"}, "amount"),
        ({"amount": CANARY}, "amount"),
        ({"colour": CANARY}, "colour"),
        ({"phone_number": CANARY}, "phone_number"),
        ({"phone_number": "076123456"}, "phone_number"),
        ({"email": CANARY}, "email"),
        ({"note": "x" * 501}, "note"),
        ({"tags": ["a", "b", "c", "d"]}, "tags"),
        ({"tags": ["a", ""]}, "tags[1]"),
        ({"parts": [{"label": "x"}, {"label": ""}]}, "parts[1].label"),
        ({"parts": [{"label": "x", "weight": 2**63}]}, "parts[0].weight"),
        ({"metadata": {"a": "x" * 4096}}, "metadata"),
        ({"metadata": {"a": ["\0"]}}, "metadata"),
        ({"metadata": {"\0": 1}}, "metadata"),
        ({"count": 10**30}, "count"),
        ({"metadata": {"a": 2**53 + 1}}, "metadata"),
        ({"metadata": {"a": [-(2**53) - 1]}}, "metadata"),
        ({"metadata": {"a": 10**30}}, "metadata"),
        ({"metadata": {"a": {"b": 1.1e15}}}, "metadata"),
        ({"metadata": {"a": -1e300}}, "metadata"),
        ({"metadata": {"a": [1e-300] * 20}}, "metadata"),  # 302 digits each when stored
        ({"metadata": {"a": [[]] * 5000}}, "metadata"),
    ],
)
def test_invalid_value_returns_422(changes: dict[str, Any], field: str) -> None:
    status, fields = get_validation_error(build_body(**changes))
    assert (status, list(fields)) == (422, [field])


def test_unknown_enum_value_is_reported_with_all_other_invalid_values() -> None:
    body = build_body(colour=CANARY, pin="12345", parts=[{"label": ""}], note=None)
    assert get_validation_error(body) == (
        422,
        {
            "pin": "must be 4 digits",
            "colour": "must be one of red, green",
            "parts[0].label": "must have 1 to 255 characters",
        },
    )


def test_wrong_type_takes_precedence_over_an_unknown_enum_value() -> None:
    assert get_validation_error(build_body(colour=CANARY, pin=1234)) == (
        400,
        {"pin": "must be a string"},
    )
    assert get_validation_error(build_body(colour=7)) == (400, {"colour": "must be a string"})


@each("value", [2**53, -(2**53), 1e15, -1e15, 0.1, 1e-300, 12345.678, True, None, "9" * 4000])
def test_metadata_values_are_kept_unchanged(value: Any) -> None:
    thing = BodyDecoder(Thing, "SLE").decode(build_body(metadata={"a": value}))
    assert thing.metadata == {"a": value}


def test_only_the_first_20_invalid_items_are_reported() -> None:
    status, fields = get_validation_error(build_body(parts=[{"label": ""}] * 1000))
    assert (status, len(fields)) == (422, 20)


def test_items_of_a_list_that_is_too_long_are_not_checked() -> None:
    assert get_validation_error(build_body(tags=[""] * 1000)) == (
        422,
        {"tags": "must have 0 to 3 items"},
    )


def test_lone_surrogate_in_a_large_body_is_invalid_json() -> None:
    content = build_body()[:-1] + b', "unknown": "' + b"x" * 16_384 + rb'", "note": "\ud800"}'
    assert get_validation_error(content) == (400, {"body": "must be valid JSON"})


def test_null_in_a_large_body_is_treated_as_absent() -> None:
    content = build_body(colour=None)[:-1] + b', "unknown": "' + b"x" * 100_000 + b'"}'
    assert BodyDecoder(Thing, "SLE").decode(content).colour == "red"


@each("note", [rb"\\ud800", rb"\\\\ud800", rb"\ud83d\ude00\\ud83d", rb"\uD83D\uDe00"])
def test_escaped_text_resembling_a_lone_surrogate_is_kept(note: bytes) -> None:
    content = build_body(colour=None)[:-1] + b', "note": "' + note + b'"}'
    assert BodyDecoder(Thing, "SLE").decode(content).note == json.loads(b'"' + note + b'"')


def test_all_invalid_fields_are_reported() -> None:
    status, fields = get_validation_error(
        build_body(name="", pin="x", amount="0", tags=["", "ok", ""])
    )
    assert (status, list(fields)) == (422, ["name", "pin", "amount", "tags[0]", "tags[2]"])


@each("escape", [rb"\ud800", rb"\udc00x", rb"\ud800\u0041", rb"\ud83d"])
def test_lone_surrogates_are_invalid_values(escape: bytes) -> None:
    content = b'{"name": "' + escape + b'", "pin": "4071", "amount": "5"}'
    assert get_validation_error(content) == (
        422,
        {"name": "must not contain NUL or unpaired surrogates"},
    )
    in_pin = b'{"name": "x", "pin": "' + escape + b'", "amount": 5}'
    assert get_validation_error(in_pin) == (400, {"amount": "must be a string"})
    in_metadata = build_body()[:-1] + b', "metadata": {"a": "' + escape + b'"}}'
    assert get_validation_error(in_metadata)[0] == 422


def test_lone_surrogate_in_an_unknown_field_is_ignored() -> None:
    thing = BodyDecoder(Thing, "SLE").decode(build_body()[:-1] + rb', "unknown": "\ud800"}')
    assert thing.name == "Lamp"


def test_null_is_treated_as_absent_next_to_a_lone_surrogate() -> None:
    thing = BodyDecoder(Thing, "SLE").decode(
        build_body(colour=None)[:-1] + rb', "unknown": "\ud800"}'
    )
    assert thing.colour == "red"


def test_surrogate_pairs_are_decoded_as_characters() -> None:
    thing = BodyDecoder(Thing, "SLE").decode(build_body()[:-1] + rb', "note": "\ud83d\ude00"}')
    assert thing.note == "\N{GRINNING FACE}"


def test_null_is_treated_as_absent() -> None:
    decode = BodyDecoder(Thing, "SLE").decode
    content = build_body(colour=None, email=None, tags=None, parts=[{"label": "x", "weight": None}])
    thing = decode(content)
    assert (thing.colour, thing.email, thing.tags) == ("red", None, [])
    assert thing.parts[0].weight == 1


def test_null_inside_metadata_is_kept() -> None:
    thing = BodyDecoder(Thing, "SLE").decode(build_body(colour=None, metadata={"a": None}))
    assert thing.metadata == {"a": None}


def test_values_are_normalized() -> None:
    thing = BodyDecoder(Thing, "SLE").decode(
        build_body(amount="0005", phone_number="+232 (76) 12-34.56", email="Aminata@Example.COM")
    )
    assert thing.amount == "5.00"
    assert thing.phone_number == "+23276123456"
    assert thing.email == "aminata@example.com"


def test_amounts_use_the_platform_currency() -> None:
    assert BodyDecoder(Thing, "JPY").decode(build_body(amount="500")).amount == "500"
    with pytest.raises(ApiError):
        BodyDecoder(Thing, "JPY").decode(build_body(amount="500.00"))


def test_invalid_value_returns_400_where_the_endpoint_declares_it() -> None:
    decoder = BodyDecoder(PinChange, "SLE", invalid=Code.INVALID_REQUEST)
    with pytest.raises(ApiError) as caught:
        decoder.decode(b'{"old_pin": "x", "new_pin": "12"}')
    assert caught.value.status == 400
    expected = {"fields": {"old_pin": "must be 4 digits", "new_pin": "must be 4 digits"}}
    assert caught.value.details == expected


def test_unsupported_body_type_is_rejected_when_its_check_is_compiled() -> None:
    class Anything(msgspec.Struct):
        value: Any

    class Frozen(msgspec.Struct, frozen=True):
        value: Text

    class TwoTypes(msgspec.Struct):
        value: str | int

    class TwoDefaults(msgspec.Struct):
        value: Annotated[int, IntegerRange(1, 3)] | None = 2

    for kind in (Anything, Frozen, TwoTypes, TwoDefaults):
        with pytest.raises(TypeError):
            compile_check(kind, "SLE")


@each(
    "query, field",
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("limit=1.5", "limit"),
        ("limit=", "limit"),
        ("limit=" + "9" * 5000, "limit"),
        ("limit=5&limit=6", "limit"),
        ("cursor=x", "cursor"),
        ("cursor=cur_zzzzzzzzzzzzz", "cursor"),
        ("cursor=cur_" + 2 * "0000000000001", "cursor"),  # of a list with another order
        ("colour=blue", "colour"),
        ("colour=", "colour"),
        ("from=%00", "from"),
        ("from=" + "x" * 256, "from"),
        ("from=%ff", "query"),
        ("from=%f", "query"),
        ("from=%g0", "query"),
        ("%ff=1", "query"),
        ("&" * 100, "query"),
    ],
)
async def test_invalid_query_returns_422(gateway: EdgeApp, query: str, field: str) -> None:
    response = await gateway.client.get(
        f"/api/v1/things?{query}", headers=build_bearer_headers(READER)
    )
    assert response.status_code == 422
    assert list(response.json()["details"]["fields"]) == [field]


@pytest.mark.parametrize(
    "query",
    ["", "limit=100", "colour=red", "from=a+b%20c", "&&", "from=a=b"],
)
async def test_valid_query_is_accepted(gateway: EdgeApp, query: str) -> None:
    response = await gateway.client.get(
        f"/api/v1/things?{query}", headers=build_bearer_headers(READER)
    )
    assert response.status_code == 200


async def test_cursor_pages_through_all_items(gateway: EdgeApp) -> None:
    seen: list[int] = []
    cursor, pages = "", 0
    while True:
        response = await gateway.client.get(
            f"/api/v1/things?limit=100{cursor}", headers=build_bearer_headers(READER)
        )
        page = response.json()
        seen += page["data"]
        pages += 1
        assert page["has_more"] is (page["next_cursor"] is not None)
        if not page["has_more"]:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == list(range(250, 0, -1))
    assert pages == 3


async def test_error_message_names_the_field(gateway: EdgeApp) -> None:
    response = await gateway.client.post(
        "/api/v1/things", json={}, headers=build_bearer_headers(WRITER)
    )
    assert response.json() == {
        "error": "Invalid request",
        "code": "INVALID_REQUEST",
        "message": "name is required",
        "details": {"fields": {"name": "is required"}},
    }
