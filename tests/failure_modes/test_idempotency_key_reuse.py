"""Failure mode: a request that reuses an idempotency key with a different body is accepted."""

import json
from typing import Any

import pytest

from drivers.actors import new_request_id, require_error, require_error_details, require_success
from drivers.deployments import TwoGateways
from gateway.money_requests import CASES, ROUTES, count_entries, send_case
from harness import PIN, WRONG_PIN

parametrize_routes = pytest.mark.parametrize("route", ROUTES)

#: PINs are not compared, so a client may correct a mistyped PIN.
UNCOMPARED_FIELDS = ("pin", "agent_pin")
CHANGED_VALUES = {"amount": "7.77", "memo": "rent", "description": "rent", "reason": "another"}


def _change_value(name: str, value: str) -> str:
    return CHANGED_VALUES.get(name) or value[:-1] + ("1" if value[-1] != "1" else "2")


@parametrize_routes
async def test_idempotency_key_reused_with_any_changed_field_is_rejected(
    two_gateways: TwoGateways, route: str
) -> None:
    """Comparing only the amount would treat a different card, payee, or reference as a replay."""
    case = await CASES[route](two_gateways.harness)
    first = await send_case(two_gateways.harness, case, "one")
    entry_count = await count_entries(two_gateways.harness)
    changes: list[dict[str, Any]] = [
        {name: _change_value(name, value)}
        for name, value in case.body.items()
        if name not in UNCOMPARED_FIELDS
    ]
    if case.changed_fields:
        changes.append(case.changed_fields)
    for change in changes:
        for client in two_gateways.clients:
            response = await send_case(two_gateways.harness, case, "one", client=client, **change)
            assert require_error(response) == (409, "DUPLICATE_REQUEST"), change
    assert await count_entries(two_gateways.harness) == entry_count
    # The original response is still replayed.
    assert (await send_case(two_gateways.harness, case, "one")).content == first.content


def _build_equivalent_bodies(body: dict[str, Any], request_id: str) -> list[bytes]:
    """Return different encodings of the same request."""
    full_body = body | {"request_id": request_id}
    reordered = dict(reversed(full_body.items()))
    return [
        json.dumps(reordered).encode(),
        json.dumps(full_body, indent="\t").encode(),
        json.dumps(full_body | {"no_such_field": 1, "another": None}).encode(),
        json.dumps(full_body | {"currency": "SLE", "metadata": None}).encode(),
        "".join(["{", ",".join(_escape_member(*item) for item in full_body.items()), "}"]).encode(),
        *(
            json.dumps(full_body | {"amount": amount}).encode()
            for amount in _list_equivalent_amounts(body.get("amount"))
        ),
    ]


def _escape_member(name: str, value: str) -> str:
    return ":".join(
        '"' + "".join(f"\\u{ord(letter):04x}" for letter in word) + '"' for word in (name, value)
    )


def _list_equivalent_amounts(amount: str | None) -> list[str]:
    return [] if amount is None else [f"{amount}.00", f"{amount}.0", f"00{amount}"]


@parametrize_routes
async def test_equivalent_encodings_of_a_request_are_replays(
    two_gateways: TwoGateways, route: str
) -> None:
    """Comparing raw bytes would break retries by clients that reorder fields."""
    case = await CASES[route](two_gateways.harness)
    first = await send_case(two_gateways.harness, case, "one")
    entry_count = await count_entries(two_gateways.harness)
    for body in _build_equivalent_bodies(case.body, "one"):
        replayed = await two_gateways.clients[1].post(case.path, content=body, auth=case.auth)
        assert (replayed.status_code, replayed.content) == (200, first.content), body
        assert replayed.headers["Idempotent-Replayed"] == "true"
    assert await count_entries(two_gateways.harness) == entry_count


async def test_numeric_amount_is_rejected_without_consuming_the_idempotency_key(
    two_gateways: TwoGateways,
) -> None:
    """A client that sends the amount as a number can correct it and reuse the key."""
    aminata, terminal = (
        await two_gateways.create_customer("100"),
        (await two_gateways.create_merchant()).server,
    )
    request_id = new_request_id()
    for number in (10, 10.0):
        response = await terminal.post(
            "pos/payment", request_id=request_id, card_serial=aminata.card, amount=number
        )
        assert require_error(response) == (400, "INVALID_REQUEST")
    require_success(await terminal.pay("10", aminata.card, request_id=request_id))
    assert await aminata.get_balance() == "90.00"


async def test_metadata_is_compared_by_value_regardless_of_key_order(
    two_gateways: TwoGateways,
) -> None:
    """Free-form fields must be part of the comparison, but not compared byte by byte."""
    aminata, terminal = (
        await two_gateways.create_customer("100"),
        (await two_gateways.create_merchant()).server,
    )
    request_id = new_request_id()
    metadata = {"a": 1, "b": {"c": [1, 2], "d": None}}
    first = await terminal.pay("10", aminata.card, request_id=request_id, metadata=metadata)
    reordered = {"b": {"d": None, "c": [1, 2]}, "a": 1}
    replayed = await terminal.pay("10", aminata.card, request_id=request_id, metadata=reordered)
    assert replayed.json() == first.json()
    for other in ({"a": 2, "b": metadata["b"]}, {"a": 1, "b": {"c": [2, 1], "d": None}}, {}):
        response = await terminal.pay("10", aminata.card, request_id=request_id, metadata=other)
        assert require_error(response) == (409, "DUPLICATE_REQUEST")
    assert await aminata.get_balance() == "90.00"


async def test_wrong_pin_in_a_replayed_request_does_not_count_as_an_attempt(
    two_gateways: TwoGateways,
) -> None:
    """Otherwise retries with a mistyped PIN would lock a wallet that has already paid."""
    aminata, terminal = (
        await two_gateways.create_customer("100"),
        (await two_gateways.create_merchant()).server,
    )
    idempotency = {"request_id": new_request_id()}
    first = await terminal.pay("10", aminata.card, PIN, **idempotency)
    for _ in range(5):
        replayed = await terminal.pay("10", aminata.card, WRONG_PIN, **idempotency)
        assert replayed.content == first.content
    response = await terminal.pay("10", aminata.card, WRONG_PIN)
    assert require_error_details(response) == {"attempts_remaining": 2}
    assert await aminata.get_balance() == "90.00"
