"""Wrong PINs per credential: one key cannot lock out many customers, who pay elsewhere."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import msgspec
import pytest

from builders.cash_out_requests import create_cash_out_request
from builders.float_requests import create_float_request
from builders.participants import AGENT_PIN, create_agent, create_card, create_child_card
from builders.payments import (
    LOOKUP_URL,
    PAY_URL,
    VERIFY_URL,
    PosDriver,
    list_alerts,
    new_request_id,
    resolve_alert,
)
from builders.recalls import recall, send_p2p
from drivers.in_process import AppTransport
from harness import PIN, WRONG_PIN, Harness
from server.gateway.fixtures import create_terminal_key
from tapgate.ledger.pins.wrong_pin_limit import to_minute
from tapgate.server.gateway import create_app, list_endpoints, open_gateway_services
from tapgate_client.schemas.fields import Digits

LIMIT = 20


async def create_cards(harness: Harness, count: int) -> list[str]:
    customers = [await harness.create_subscriber(balance="1000") for _ in range(count)]
    return [await harness.create_card(customer["id"]) for customer in customers]


async def pay(client: Any, auth: Any, card: str, pin: str | None, **fields: Any) -> httpx2.Response:
    body = {"request_id": new_request_id(), "card_serial": card, "amount": "1.00", **fields}
    if pin is not None:
        body["pin"] = pin
    response: httpx2.Response = await client.post(PAY_URL, json=body, auth=auth)
    return response


async def verify(client: Any, auth: Any, card: str, pin: str) -> httpx2.Response:
    body = {"card_serial": card, "pin": pin}
    response: httpx2.Response = await client.post(VERIFY_URL, json=body, auth=auth)
    return response


async def count_locked(harness: Harness) -> int:
    count: int = await harness.database.fetchval(
        "SELECT count(*) FROM pins WHERE locked_until IS NOT NULL"
    )
    return count


async def test_one_key_cannot_lock_out_forty_customers(harness: Harness) -> None:
    merchant = await harness.create_processor()
    attacker = await create_terminal_key(harness, merchant)
    neighbor = await create_terminal_key(harness, merchant)
    cards = await create_cards(harness, 40)
    responses = [
        await pay(harness.client, attacker, card, WRONG_PIN) for card in cards for _ in range(3)
    ]
    codes = Counter(response.json()["code"] for response in responses)
    assert codes == {"INVALID_PIN": LIMIT, "RATE_LIMITED": 120 - LIMIT}
    assert await count_locked(harness) == LIMIT // 3
    rejected = responses[-1]
    assert rejected.status_code == 429
    retry_after = int(rejected.headers["Retry-After"])
    assert 0 < retry_after <= 600
    assert rejected.json()["details"] == {"limit": "wrong_pins", "retry_after": retry_after}
    # Requests without a PIN are accepted, and the customers pay with their PIN elsewhere.
    assert (await pay(harness.client, attacker, cards[-1], None)).status_code == 200
    lookup = await harness.post(LOOKUP_URL, json={"card_identifier": cards[-1]}, auth=attacker)
    assert lookup.status_code == 200
    assert (await pay(harness.client, attacker, cards[-1], PIN)).status_code == 429
    for card in cards[LIMIT // 3 + 1 :]:
        assert (await pay(harness.client, neighbor, card, PIN)).status_code == 200


@pytest.mark.parametrize("request_pin", [pay, verify])
async def test_parallel_burst_compares_no_more_pins_than_the_limit(
    harness: Harness, request_pin: Callable[..., Awaitable[httpx2.Response]]
) -> None:
    auth = await harness.create_processor()
    cards = await create_cards(harness, 40)
    responses = await asyncio.gather(
        *(request_pin(harness.client, auth, card, WRONG_PIN) for card in cards)
    )
    codes = Counter(response.json()["code"] for response in responses)
    assert codes == {"INVALID_PIN": LIMIT, "RATE_LIMITED": 40 - LIMIT}


@pytest.mark.parametrize("request_pin", [pay, verify])
async def test_processes_of_a_node_share_the_limit(
    harness: Harness,
    other_process_client: httpx2.AsyncClient,
    request_pin: Callable[..., Awaitable[httpx2.Response]],
) -> None:
    auth = await harness.create_processor()
    cards = await create_cards(harness, 60)
    clients = (harness.client, other_process_client)
    responses = await asyncio.gather(
        *(
            request_pin(clients[index % 2], auth, card, WRONG_PIN)
            for index, card in enumerate(cards)
        )
    )
    codes = Counter(response.json()["code"] for response in responses)
    assert codes == {"INVALID_PIN": LIMIT, "RATE_LIMITED": 60 - LIMIT}


async def test_another_node_learns_the_limit_from_its_first_wrong_pin(
    harness: Harness, tmp_path: Path
) -> None:
    auth = await harness.create_processor()
    cards = await create_cards(harness, LIMIT + 3)
    for card in cards[:LIMIT]:
        await pay(harness.client, auth, card, WRONG_PIN)
    settings = harness.services.settings.replace(data_dir=tmp_path / "other")
    url = settings.database_url
    assert url is not None
    async with open_gateway_services(settings, url) as other:
        transport = AppTransport(create_app(other))
        async with httpx2.AsyncClient(transport=transport, base_url="http://node") as client:
            codes = [
                (await pay(client, auth, card, WRONG_PIN)).json()["code"] for card in cards[LIMIT:]
            ]
    assert codes == ["INVALID_PIN", "RATE_LIMITED", "RATE_LIMITED"]


async def test_limit_ends_after_ten_minutes(harness: Harness) -> None:
    auth = await harness.create_processor()
    cards = await create_cards(harness, LIMIT + 1)
    for card in cards[:LIMIT]:
        await verify(harness.client, auth, card, WRONG_PIN)
    rejected = await verify(harness.client, auth, cards[-1], PIN)
    assert rejected.status_code == 429
    harness.advance_clock(seconds=int(rejected.headers["Retry-After"]) + 1)
    assert (await verify(harness.client, auth, cards[-1], PIN)).status_code == 200


async def test_busy_key_with_few_wrong_pins_is_not_limited(harness: Harness) -> None:
    auth = await harness.create_processor()
    cards = await create_cards(harness, 5 * LIMIT)
    for card in cards:
        assert (await verify(harness.client, auth, card, PIN)).status_code == 200
    for card in cards[:LIMIT]:
        response = await verify(harness.client, auth, card, WRONG_PIN)
        assert response.json()["code"] == "INVALID_PIN"
    assert await list_alerts(harness) == []


async def test_correct_pins_of_own_cards_do_not_hide_wrong_pins(harness: Harness) -> None:
    auth = await harness.create_processor()
    own_cards, cards = await create_cards(harness, 8), await create_cards(harness, 2 * LIMIT)
    codes = []
    for card in cards:
        for own_card in own_cards:  # more than four correct PINs for each wrong PIN
            await verify(harness.client, auth, own_card, PIN)
        codes.append((await verify(harness.client, auth, card, WRONG_PIN)).json()["code"])
    assert codes == ["INVALID_PIN"] * LIMIT + ["RATE_LIMITED"] * LIMIT


async def test_one_customer_cannot_use_up_a_quiet_terminal(harness: Harness) -> None:
    auth = await harness.create_processor()
    first, second = await create_cards(harness, 2)
    for _ in range(LIMIT):
        for pin in (WRONG_PIN, WRONG_PIN, PIN):
            await verify(harness.client, auth, first, pin)
    assert (await verify(harness.client, auth, second, PIN)).status_code == 200
    assert await list_alerts(harness) == []


async def test_locked_pins_do_not_count(harness: Harness) -> None:
    auth = await harness.create_processor()
    (card,) = await create_cards(harness, 1)
    codes = [
        (await pay(harness.client, auth, card, WRONG_PIN)).json()["code"] for _ in range(2 * LIMIT)
    ]
    assert codes == ["INVALID_PIN"] * 3 + ["ACCOUNT_LOCKED"] * (2 * LIMIT - 3)


async def test_replay_returns_the_original_response_while_limited(harness: Harness) -> None:
    auth = await harness.create_processor()
    cards = await create_cards(harness, LIMIT + 1)
    request_id = new_request_id()
    original = await pay(harness.client, auth, cards[-1], PIN, request_id=request_id)
    for card in cards[:LIMIT]:
        await pay(harness.client, auth, card, WRONG_PIN)
    replay = await pay(harness.client, auth, cards[-1], PIN, request_id=request_id)
    assert (replay.status_code, replay.json()) == (200, original.json())


async def test_service_counts_wrong_pins_per_phone(harness: Harness) -> None:
    service = harness.get_service_auth()
    customers = [await harness.create_subscriber() for _ in range(LIMIT)]
    codes = [
        (
            await harness.post(
                f"/api/v1/subscribers/{customer['id']}/verify-pin",
                json={"pin": WRONG_PIN},
                auth=service,
            )
        ).json()["code"]
        for customer in customers
        for _ in range(2)
    ]
    assert codes == ["INVALID_PIN"] * 2 * LIMIT


async def test_alert_names_the_key_and_the_terminal(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    terminal = await pos.create_terminal()
    processor_key = pos.merchant_auth
    cards = await create_cards(harness, LIMIT + 2)
    for card in cards[: LIMIT - 1]:
        await pay(harness.client, processor_key, card, WRONG_PIN, terminal_id=terminal)
    assert await list_alerts(harness) == []
    await pay(harness.client, processor_key, cards[LIMIT], WRONG_PIN, terminal_id=terminal)
    (alert,) = await list_alerts(harness)
    assert (alert["alert_type"], alert["severity"]) == ("PIN_GUESSING_SUSPECTED", "HIGH")
    assert alert["details"] == {
        "credential": processor_key.id,
        "processor_id": await harness.get_processor_id(processor_key),
        "terminal_id": terminal,
        "terminal_name": "Till",
        "wrong_pins": LIMIT,
        "attempts": LIMIT,
        "window_seconds": 600,
    }
    terminal_key = await create_terminal_key(harness, processor_key)
    for card in cards[: LIMIT + 1]:
        await verify(harness.client, terminal_key, card, WRONG_PIN)
    details = [alert["details"] for alert in await list_alerts(harness)]
    assert len({detail["credential"] for detail in details}) == len(details) == 2
    assert len({detail["terminal_id"] for detail in details}) == 2


async def test_credential_has_one_unresolved_alert(harness: Harness) -> None:
    auth = await harness.create_processor()
    cards = await create_cards(harness, 3 * LIMIT)

    async def exceed_limit(cards: list[str]) -> list[tuple[str, int]]:
        for card in cards:
            await verify(harness.client, auth, card, WRONG_PIN)
        harness.advance_clock(minutes=11)
        return [(alert["status"], alert["occurrences"]) for alert in await list_alerts(harness)]

    assert await exceed_limit(cards[:LIMIT]) == [("open", 1)]
    assert await exceed_limit(cards[LIMIT : 2 * LIMIT]) == [("open", 2)]
    (alert,) = await list_alerts(harness)
    await resolve_alert(harness, alert["id"])
    statuses = await exceed_limit(cards[2 * LIMIT :])
    assert statuses == [("open", 1), ("resolved", 2)]


async def test_correct_pins_write_nothing(harness: Harness) -> None:
    auth = await harness.create_processor()
    (card,) = await create_cards(harness, 1)
    assert (await pay(harness.client, auth, card, PIN)).status_code == 200
    assert await harness.database.fetchval("SELECT count(*) FROM pin_attempts") == 0
    await pay(harness.client, auth, card, WRONG_PIN)
    rows = await harness.database.fetch("SELECT attempts, wrong FROM pin_attempts")
    assert [tuple(row) for row in rows] == [(2, 1)]


class PinRequest(NamedTuple):
    """Request that compares a PIN, with a correct PIN.

    Only services send it with a `phone_owner`, whose wrong PINs are counted.
    """

    path: str
    body: dict[str, Any]
    phone_owner: str | None = None


async def build_pin_requests(harness: Harness) -> dict[str, PinRequest]:
    """Return the requests that compare a PIN, by operation ID."""
    customer = await harness.create_subscriber(balance="1000")
    payee = await harness.create_subscriber()
    agent = await create_agent(harness, balance="1000")
    sub_agent = await create_agent(harness, agent_type="sub_agent", parent_agent_id=agent["id"])
    card = await harness.create_card(customer["id"])
    child_card, _ = await create_child_card(harness)
    cash_out_request = await create_cash_out_request(harness, agent, payee)
    float_request = await create_float_request(harness, sub_agent, "1.00")
    cash = {"agent_id": agent["id"], "subscriber_id": customer["id"], "amount": "1.00"}
    transfer = {
        "from_account_id": customer["account_id"],
        "to_account_id": payee["account_id"],
        "amount": "1.00",
        "pin": PIN,
    }
    change = {"old_pin": PIN, "new_pin": "8352"}
    child = {
        "parent_subscriber_id": customer["id"],
        "child_name": "Isatu",
        "child_pin": "8350",
        "daily_limit": "10.00",
    }
    pay_body = {"request_id": new_request_id(), "card_serial": card, "amount": "1.00", "pin": PIN}
    verify_body = {"card_serial": card, "pin": PIN}
    subscriber, child_path = f"/api/v1/subscribers/{customer['id']}", f"/api/v1/cards/{child_card}"
    requests: dict[str, tuple[str, dict[str, Any]]] = {
        "pay_at_terminal": (PAY_URL, pay_body),
        "verify_terminal_card": (VERIFY_URL, verify_body),
        "transfer_p2p": (
            "/api/v1/wallet/transfer-p2p",
            {
                "sender_id": customer["id"],
                "recipient_phone_number": payee["phone_number"],
                "amount": "1.00",
                "pin": PIN,
            },
        ),
        "transfer_funds": ("/api/v1/wallet/transfer", transfer),
        "create_statement": (
            "/api/v1/wallet/account-statement",
            {
                "subscriber_id": customer["id"],
                "from_date": "2026-01-01",
                "to_date": "2026-01-02",
                "format": "json",
                "pin": PIN,
            },
        ),
        "cash_in": ("/api/v1/agents/cashin", cash | {"agent_pin": AGENT_PIN}),
        "cash_out": ("/api/v1/agents/cashout", cash | {"agent_pin": AGENT_PIN, "pin": PIN}),
        "transfer_float": (
            "/api/v1/agents/transfer",
            {
                "from_agent_id": agent["id"],
                "to_agent_id": sub_agent["id"],
                "amount": "1.00",
                "pin": AGENT_PIN,
            },
        ),
        "change_agent_pin": (
            f"/api/v1/agents/{agent['id']}/change-pin",
            {"old_pin": AGENT_PIN, "new_pin": "8352"},
        ),
        "verify_pin": (f"{subscriber}/verify-pin", {"pin": PIN}),
        "change_pin": (f"{subscriber}/change-pin", change),
        "change_card_pin": (
            f"{child_path}/change-pin",
            {"old_pin": "8350", "new_pin": "8352"},
        ),
        "link_card": (
            "/api/v1/cards/link",
            {
                "card_serial": await create_card(harness),
                "subscriber_id": customer["id"],
                "pin": PIN,
            },
        ),
        "create_child_card": (
            "/api/v1/cards/child",
            child | {"card_serial": await create_card(harness), "parent_pin": PIN},
        ),
    }
    return {
        **{operation: PinRequest(*request) for operation, request in requests.items()},
        **await _build_recall_requests(harness, customer, payee),
        "request_cash_out": PinRequest(
            "/api/v1/cash-out-requests",
            cash | {"agent_pin": AGENT_PIN, "request_id": new_request_id()},
            agent["id"],
        ),
        "confirm_cash_out": PinRequest(
            f"/api/v1/cash-out-requests/{cash_out_request['id']}/confirm",
            {"pin": PIN},
            payee["id"],
        ),
        "pay_out_commission": PinRequest(
            f"/api/v1/agents/{agent['id']}/payout-commission", {"pin": AGENT_PIN}
        ),
        "fund_float_request_by_transfer": PinRequest(
            f"/api/v1/float-requests/{float_request['id']}/transfer",
            {"pin": AGENT_PIN},
            agent["id"],
        ),
    }


async def _build_recall_requests(
    harness: Harness, sender: dict[str, Any], receiver: dict[str, Any]
) -> dict[str, PinRequest]:
    sent, recalled = [await send_p2p(harness, sender, receiver, "1.00") for _ in range(2)]
    recall_id = (await recall(harness, recalled)).json()["id"]
    return {
        "recall_transfer": PinRequest(
            f"/api/v1/transactions/{sent}/recall",
            {"request_id": new_request_id(), "pin": PIN},
            sender["id"],
        ),
        "return_recalled_transfer": PinRequest(
            f"/api/v1/recalls/{recall_id}/return", {"pin": PIN}, receiver["id"]
        ),
    }


def list_pin_operations() -> set[str]:
    """Return the operations that compare a PIN: those with a PIN that they do not set."""
    return {
        endpoint.operation_id
        for endpoint in list_endpoints()
        if isinstance(endpoint.body_type, type) and issubclass(endpoint.body_type, msgspec.Struct)
        for field in msgspec.structs.fields(endpoint.body_type)
        if "pin" in field.encode_name.split("_")
        and field.encode_name not in ("new_pin", "child_pin")
        and any(isinstance(rule, Digits) for rule in _list_rules(field.type))
        and endpoint.operation_id not in ("register_subscriber", "register_agent")
    }


def _list_rules(kind: Any) -> list[Any]:
    rules = list(getattr(kind, "__metadata__", ()))
    for part in getattr(kind, "__args__", ()):
        rules += _list_rules(part)
    return rules


def choose_caller(harness: Harness, request: PinRequest, admin: Any, merchant: Any) -> Any:
    if request.phone_owner is not None:
        return harness.get_service_auth()
    return merchant if "pos" in request.path else admin


async def test_every_operation_that_compares_a_pin_has_the_limit(harness: Harness) -> None:
    requests = await build_pin_requests(harness)
    assert set(requests) == list_pin_operations()
    limit = harness.services.pin_verifier.wrong_pin_limit
    assert limit is not None
    admin, merchant = await harness.create_admin(), await harness.create_processor()
    phone_owners = {request.phone_owner for request in requests.values()} - {None}
    for credential in (admin.id, merchant.id, *phone_owners):
        limit.block(credential, to_minute(harness.services.clock()) + 2)
    for operation, request in requests.items():
        auth = choose_caller(harness, request, admin, merchant)
        response = await harness.post(request.path, json=request.body, auth=auth)
        assert (response.status_code, operation) == (429, operation), response.text
        assert int(response.headers["Retry-After"]) > 0


async def test_every_operation_that_compares_a_pin_counts_it(harness: Harness) -> None:
    requests = await build_pin_requests(harness)
    admin, merchant = await harness.create_admin(), await harness.create_processor()
    for operation, request in requests.items():
        harness.advance_clock(minutes=11)  # a holder counts for at most three wrong PINs
        await harness.database.execute("DELETE FROM pin_attempts")
        await harness.database.execute("UPDATE pins SET failures = 0, locked_until = NULL")
        wrong = request.body | {
            name: WRONG_PIN
            for name in ("pin", "agent_pin", "old_pin", "parent_pin")
            if name in request.body
        }
        auth = choose_caller(harness, request, admin, merchant)
        response = await harness.post(request.path, json=wrong, auth=auth)
        assert response.json()["code"] == "INVALID_PIN", (operation, response.text)
        rows = await harness.database.fetch("SELECT credential, wrong FROM pin_attempts")
        assert [tuple(row) for row in rows] == [(request.phone_owner or auth.id, 1)], operation
