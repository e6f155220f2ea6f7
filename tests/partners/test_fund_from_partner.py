"""Wallet funding from a partner, by the partner itself or on its behalf."""

import asyncio
from typing import Any

import httpx2
import pytest

from harness import Harness
from partners.builders import (
    FUND_URL,
    UNKNOWN_IDS,
    create_partner,
    get_auth,
    get_balance,
    get_wallet_balance,
    parse_error,
    post_webhook,
    suspend_partner,
)
from tapgate import ids


async def _build_request(world: Harness, new: dict[str, Any], **fields: Any) -> dict[str, Any]:
    customer = await world.create_subscriber()
    return {
        "subscriber_id": customer["id"],
        "partner_id": new["partner"]["id"],
        "partner_reference": "INV-1",
        "amount": "40",
        **fields,
    }


async def test_api_key_admin_and_partner_can_fund_a_subscriber(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new = await create_partner(world, balance="1000")
    order = await _build_request(world, new, amount="400")
    callers = (
        ("api", await world.create_api_key("payments:write")),
        ("admin", await world.create_admin("F")),
        ("partner", get_auth(new)),
    )
    for number, (channel, caller) in enumerate(callers, start=1):
        asked = order | {"partner_reference": channel, "amount": "300"}
        answer = await client.post(FUND_URL, json=asked, auth=caller)
        assert answer.status_code == 200, answer.text
        receipt = answer.json()
        assert receipt == {
            "success": True,
            "message": "Wallet funded",
            "transaction_id": receipt["transaction_id"],
            "status": "completed",
            "amount": "300.00 SLE",
            "new_balance": f"{300 * number}.00 SLE",
        }
        row = await world.services.database.fetchrow(
            "SELECT type, channel, partner_reference FROM transactions WHERE id = $1",
            ids.decode(ids.TRANSACTION, receipt["transaction_id"]),
        )
        assert row is not None
        assert tuple(row) == ("partner_fund", channel, channel)
    assert await get_balance(world, new) == "100.00"


async def test_subscriber_can_be_identified_by_card(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new, customer = await create_partner(world, balance="100"), await world.create_subscriber()
    order = {
        "card_serial": await world.create_card(customer["id"]),
        "partner_reference": "INV-1",
        "amount": "40",
    }
    answer = await client.post(FUND_URL, json=order, auth=get_auth(new))
    assert answer.json()["new_balance"] == "40.00 SLE"
    assert await get_wallet_balance(world, customer) == "40.00"


@pytest.mark.parametrize(
    ("change", "status", "named"),
    [
        ({"subscriber_id": None}, 400, "subscriber_id"),
        ({"subscriber_id": None, "amount": "no"}, 400, "subscriber_id"),
        ({"partner_id": None}, 400, "partner_id"),
        ({"partner_reference": None}, 400, "partner_reference"),
        ({"amount": 40}, 400, "amount"),
        ({"card_serial": "TAP-000001"}, 422, "card_serial"),
        ({"partner_reference": ""}, 422, "partner_reference"),
        ({"amount": "0"}, 422, "amount"),
    ],
)
async def test_invalid_funding_field_is_rejected(
    client: httpx2.AsyncClient, world: Harness, change: dict[str, Any], status: int, named: str
) -> None:
    order = await _build_request(world, await create_partner(world), **change)
    answer = await client.post(FUND_URL, json=order, auth=await world.create_admin())
    assert answer.status_code == status, answer.text
    assert list(answer.json()["details"]["fields"]) == [named]


async def test_partner_can_fund_only_from_its_own_account(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new, another = (
        await create_partner(world, balance="100"),
        await create_partner(world, balance="100"),
    )
    order = await _build_request(world, new)
    answer = await client.post(FUND_URL, json=order, auth=get_auth(another))
    assert parse_error(answer) == (422, "VALIDATION_FAILED")
    assert list(answer.json()["details"]["fields"]) == ["partner_id"]
    del order["partner_id"]
    assert (await client.post(FUND_URL, json=order, auth=get_auth(another))).status_code == 200
    assert (await get_balance(world, new), await get_balance(world, another)) == ("100.00", "60.00")


async def test_partner_balance_can_go_negative_down_to_its_overdraft(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new = await create_partner(world, balance="10", overdraft_limit="50")
    order = await _build_request(world, new, amount="22")
    assert (await client.post(FUND_URL, json=order, auth=get_auth(new))).status_code == 200
    assert await get_balance(world, new) == "-12.00"
    more = order | {"amount": "38.01", "partner_reference": "INV-2"}
    answer = await client.post(FUND_URL, json=more, auth=get_auth(new))
    assert parse_error(answer) == (402, "INSUFFICIENT_FUNDS")
    assert answer.json()["details"] == {"available": 38.0, "required": 38.01}
    # The decline did not consume the reference.
    answer = await client.post(FUND_URL, json=more | {"amount": "38"}, auth=get_auth(new))
    assert answer.status_code == 200
    assert await get_balance(world, new) == "-50.00"


async def test_partner_reference_funds_once_across_all_endpoints(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new = await create_partner(world, balance="100")
    customer, another = await world.create_subscriber(), await world.create_subscriber()
    serial = await world.create_card(customer["id"])
    order = await _build_request(world, new, subscriber_id=customer["id"], request_id="first")
    first = await client.post(FUND_URL, json=order, auth=get_auth(new))
    assert "Idempotent-Replayed" not in first.headers

    by_card = {key: order[key] for key in ("partner_id", "partner_reference", "amount")}
    webhook = {"reference": "INV-1", "amount": "40.00"}
    for again in (
        await client.post(FUND_URL, json=order | {"request_id": "second"}, auth=get_auth(new)),
        await client.post(
            FUND_URL, json=by_card | {"card_serial": serial}, auth=await world.create_admin()
        ),
        await post_webhook(client, new, webhook | {"card_serial": serial}),
        await post_webhook(client, new, webhook | {"phone_number": customer["phone_number"]}),
    ):
        assert (again.status_code, again.json()) == (200, first.json())
        assert again.headers["Idempotent-Replayed"] == "true"

    for changed in (
        await client.post(
            FUND_URL, json=order | {"amount": "41", "request_id": "x"}, auth=get_auth(new)
        ),
        await client.post(
            FUND_URL,
            json=by_card | {"subscriber_id": another["id"]},
            auth=await world.create_admin(),
        ),
        await client.post(FUND_URL, json=by_card | {"subscriber_id": "sub_1"}, auth=get_auth(new)),
        await post_webhook(client, new, webhook | {"phone_number": another["phone_number"]}),
        await post_webhook(client, new, webhook | {"card_serial": serial, "amount": "39"}),
    ):
        assert parse_error(changed) == (409, "DUPLICATE_REFERENCE")
    assert await get_balance(world, new) == "60.00"

    # References of different partners are independent.
    other = await create_partner(world, balance="100")
    answer = await post_webhook(client, other, webhook | {"card_serial": serial})
    assert answer.json()["new_balance"] == "80.00 SLE"


async def test_request_id_replays_or_conflicts(client: httpx2.AsyncClient, world: Harness) -> None:
    new = await create_partner(world, balance="100")
    order = await _build_request(world, new, request_id="one")
    first = await client.post(FUND_URL, json=order, auth=get_auth(new))
    again = await client.post(FUND_URL, json=order | {"amount": "40.00"}, auth=get_auth(new))
    assert again.json() == first.json()
    other = await client.post(FUND_URL, json=order | {"partner_reference": "B"}, auth=get_auth(new))
    assert parse_error(other) == (409, "DUPLICATE_REQUEST")


async def test_status_and_limit_violations_decline_the_funding(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new, admin = await create_partner(world, balance="600000"), await world.create_admin()
    customer = await world.create_subscriber()
    active = await world.create_card(customer["id"])
    blocked = await world.create_card(customer["id"], status="BLOCKED")
    order = {"partner_id": new["partner"]["id"], "partner_reference": "INV-1", "amount": "1"}

    async def refused(**names: str) -> tuple[int, str, Any]:
        answer = await client.post(FUND_URL, json=order | names, auth=admin)
        return *parse_error(answer), answer.json().get("details")

    status, code, details = await refused(card_serial=active, amount="500000.01")
    assert (status, code, details["party"]) == (403, "MAX_BALANCE_EXCEEDED", "receiver")
    assert await refused(card_serial=blocked) == (403, "CARD_NOT_ACTIVE", {"party": "receiver"})
    await client.post(
        f"/api/v1/subscribers/{customer['id']}/block", json={"reason": "lost phone"}, auth=admin
    )
    expected = (403, "SUBSCRIBER_BLOCKED", {"party": "receiver"})
    assert await refused(subscriber_id=customer["id"]) == expected
    await suspend_partner(world, new)
    expected = (403, "PARTNER_SUSPENDED", {"party": "sender"})
    assert await refused(subscriber_id=customer["id"]) == expected
    recorded = await world.services.database.fetch(
        "SELECT failure_code FROM transactions WHERE type = 'partner_fund' ORDER BY id"
    )
    assert [row["failure_code"] for row in recorded] == [
        "MAX_BALANCE_EXCEEDED",
        "CARD_NOT_ACTIVE",
        "SUBSCRIBER_BLOCKED",
        "PARTNER_SUSPENDED",
    ]


async def test_unknown_partner_subscriber_or_card_is_not_found(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new, admin = await create_partner(world, balance="100"), await world.create_admin()
    order = await _build_request(world, new)
    for id in UNKNOWN_IDS:
        answer = await client.post(FUND_URL, json=order | {"partner_id": id}, auth=admin)
        assert parse_error(answer) == (404, "PARTNER_NOT_FOUND")
    for id in (ids.encode(ids.SUBSCRIBER, 1), "sub_1", "é"):
        answer = await client.post(FUND_URL, json=order | {"subscriber_id": id}, auth=admin)
        assert parse_error(answer) == (404, "SUBSCRIBER_NOT_FOUND")
    del order["subscriber_id"]
    answer = await client.post(FUND_URL, json=order | {"card_serial": "NONE"}, auth=admin)
    assert parse_error(answer) == (404, "CARD_NOT_FOUND")


async def test_balance_of_a_restricted_subscriber_is_not_revealed(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    new, customer = (
        await create_partner(world, balance="100"),
        await world.create_restricted_subscriber(),
    )
    serial = await world.create_card(customer["id"])
    order = {"partner_id": new["partner"]["id"], "partner_reference": "INV-1", "amount": "1"}
    for caller in (await world.create_api_key("payments:write"), await world.create_admin()):
        for name in ({"subscriber_id": customer["id"]}, {"card_serial": serial}):
            answer = await client.post(FUND_URL, json=order | name, auth=caller)
            assert parse_error(answer) == (403, "OTP_REQUIRED")
    # A partner may fund the wallet. Its receipt, original or replayed, omits the balance.
    for _ in range(2):
        answer = await client.post(
            FUND_URL, json=order | {"card_serial": serial}, auth=get_auth(new)
        )
        assert (answer.status_code, answer.json()["new_balance"]) == (200, None)


async def test_concurrent_requests_fund_once_per_reference_within_the_overdraft(
    client: httpx2.AsyncClient, other_client: httpx2.AsyncClient, world: Harness
) -> None:
    new = await create_partner(world, balance="100", overdraft_limit="30")
    order = await _build_request(world, new)
    answers = await asyncio.gather(
        *(
            process.post(
                FUND_URL, json=order | {"partner_reference": f"INV-{number}"}, auth=get_auth(new)
            )
            for number in range(5)
            for process in (client, other_client)
        )
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 6 + [402] * 4
    assert await get_balance(world, new) == "-20.00"
