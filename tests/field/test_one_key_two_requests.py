"""Failure: the same key with another body. It passes for the first request, or for a new one."""

import json
from typing import Any

import pytest

from field.market import Market
from gateway.money_cases import CASES, ROUTES, entries, send
from journeys.caller import details, done, refused
from journeys.people import new_request_id
from world import PIN, WRONG_PIN, RequestSignature

every_route = pytest.mark.parametrize("route", ROUTES)

#: PINs do not count, since who mistyped one may correct it.
NOT_COMPARED = ("pin", "agent_pin")
OTHERS = {"amount": "7.77", "memo": "rent", "description": "rent", "reason": "another"}


def _other(name: str, value: str) -> str:
    return OTHERS.get(name) or value[:-1] + ("1" if value[-1] != "1" else "2")


@every_route
async def test_the_same_key_with_any_field_changed_is_refused(market: Market, route: str) -> None:
    """Only the amount is compared, and another card, payee or reference passes for the same."""
    case = await CASES[route](market.world)
    first = await send(market.world, case, "one")
    moved = await entries(market.world)
    changes: list[dict[str, Any]] = [
        {name: _other(name, value)} for name, value in case.body.items() if name not in NOT_COMPARED
    ]
    if case.other:
        changes.append(case.other)
    for change in changes:
        for line in market.lines:
            answer = await send(market.world, case, "one", client=line, **change)
            assert refused(answer) == (409, "DUPLICATE_REQUEST"), change
    assert await entries(market.world) == moved
    # And the first is still known.
    assert (await send(market.world, case, "one")).content == first.content


def _spellings(body: dict[str, Any], name: str) -> list[bytes]:
    """The same request in other words."""
    whole = body | {"request_id": name}
    turned = dict(reversed(whole.items()))
    return [
        json.dumps(turned).encode(),
        json.dumps(whole, indent="\t").encode(),
        json.dumps(whole | {"no_such_field": 1, "another": None}).encode(),
        json.dumps(whole | {"currency": "SLE", "metadata": None}).encode(),
        "".join(["{", ",".join(_escaped(*item) for item in whole.items()), "}"]).encode(),
        *(
            json.dumps(whole | {"amount": amount}).encode()
            for amount in _amounts(body.get("amount"))
        ),
    ]


def _escaped(name: str, value: str) -> str:
    return ":".join(
        '"' + "".join(f"\\u{ord(letter):04x}" for letter in word) + '"' for word in (name, value)
    )


def _amounts(amount: str | None) -> list[str]:
    return [] if amount is None else [f"{amount}.00", f"{amount}.0", f"00{amount}"]


@every_route
async def test_the_same_request_in_other_words_is_a_repetition(market: Market, route: str) -> None:
    """The bytes are compared: a client that writes its fields in another order cannot retry."""
    case = await CASES[route](market.world)
    first = await send(market.world, case, "one")
    moved = await entries(market.world)
    for body in _spellings(case.body, "one"):
        again = await market.lines[1].post(case.path, content=body, auth=case.auth)
        assert (again.status_code, again.content) == (200, first.content), body
        assert again.headers["Idempotent-Replayed"] == "true"
    assert await entries(market.world) == moved


async def test_ten_as_a_number_is_no_amount_and_neither_pays_nor_uses_the_key_up(
    market: Market,
) -> None:
    """A number is read as a float, then compared with the string of the first try."""
    aminata, till = await market.customer("100"), (await market.merchant()).server
    name = new_request_id()
    for number in (10, 10.0):
        answer = await till.post(
            "pos/payment", request_id=name, card_serial=aminata.card, amount=number
        )
        assert refused(answer) == (400, "INVALID_REQUEST")
    done(await till.pay("10", aminata.card, request_id=name))
    assert await aminata.balance() == "90.00"


async def test_metadata_in_another_order_is_the_same_and_with_other_values_is_not(
    market: Market,
) -> None:
    """Free fields are left out of the comparison, or compared letter by letter."""
    aminata, till = await market.customer("100"), (await market.merchant()).server
    name = new_request_id()
    metadata = {"a": 1, "b": {"c": [1, 2], "d": None}}
    first = await till.pay("10", aminata.card, request_id=name, metadata=metadata)
    turned = {"b": {"d": None, "c": [1, 2]}, "a": 1}
    again = await till.pay("10", aminata.card, request_id=name, metadata=turned)
    assert again.json() == first.json()
    for other in ({"a": 2, "b": metadata["b"]}, {"a": 1, "b": {"c": [2, 1], "d": None}}, {}):
        answer = await till.pay("10", aminata.card, request_id=name, metadata=other)
        assert refused(answer) == (409, "DUPLICATE_REQUEST")
    assert await aminata.balance() == "90.00"


async def test_a_wrong_pin_in_a_retry_is_not_a_try(market: Market) -> None:
    """Retries with a mistyped PIN lock the wallet of somebody who has long paid."""
    aminata, till = await market.customer("100"), (await market.merchant()).server
    name = {"request_id": new_request_id()}
    first = await till.pay("10", aminata.card, PIN, **name)
    for _ in range(5):
        again = await till.pay("10", aminata.card, WRONG_PIN, **name)
        assert again.content == first.content
    answer = await till.pay("10", aminata.card, WRONG_PIN)
    assert details(answer) == {"attempts_remaining": 2}
    assert await aminata.balance() == "90.00"


async def test_another_callers_same_key_is_another_request(market: Market) -> None:
    """Merchants who count their requests from 1 are answered with each other's payments."""
    aminata = await market.customer("100")
    tills = [(await market.merchant()).server for _ in range(3)]
    answers = [await till.pay("10", aminata.card, request_id="1") for till in tills]
    assert len({done(answer)["transaction_id"] for answer in answers}) == 3
    assert await aminata.balance() == "70.00"


async def test_body_and_header_with_different_keys_are_refused(market: Market) -> None:
    """A proxy adds a key of its own; each try then has another."""
    aminata, till = await market.customer("100"), (await market.merchant()).server
    assert isinstance(till.auth, RequestSignature)
    answer = await market.lines[0].post(
        "/api/v1/pos/payment",
        json={"request_id": "one", "card_serial": aminata.card, "amount": "10"},
        auth=till.auth,
        headers={"Idempotency-Key": "two"},
    )
    assert refused(answer) == (400, "INVALID_REQUEST")
    assert await aminata.balance() == "100.00"
