"""Wallet funding from a partner, by the partner itself or on its behalf."""

from typing import Any

from builders.participants import (
    FUND_URL,
    UNKNOWN_PARTNER_IDS,
    create_partner,
    get_partner_auth,
    get_partner_balance,
    get_wallet_balance,
    post_webhook,
    suspend_partner,
)
from cases import each
from harness import Harness, parse_error
from tapgate_client import ids


async def _build_request(harness: Harness, new: dict[str, Any], **fields: Any) -> dict[str, Any]:
    customer = await harness.create_subscriber()
    return {
        "subscriber_id": customer["id"],
        "partner_id": new["partner"]["id"],
        "partner_reference": "INV-1",
        "amount": "40",
        **fields,
    }


async def test_api_key_admin_and_partner_can_fund_a_subscriber(harness: Harness) -> None:
    new = await create_partner(harness, balance="1000")
    body = await _build_request(harness, new, amount="400")
    callers = (
        ("api", await harness.create_api_key("payments:write")),
        ("admin", await harness.create_admin("F")),
        ("partner", get_partner_auth(new)),
    )
    for number, (channel, caller) in enumerate(callers, start=1):
        request_body = body | {"partner_reference": channel, "amount": "300"}
        response = await harness.post(FUND_URL, json=request_body, auth=caller)
        assert response.status_code == 200, response.text
        receipt = response.json()
        assert receipt == {
            "success": True,
            "message": "Wallet funded",
            "transaction_id": receipt["transaction_id"],
            "status": "completed",
            "amount": "300.00 SLE",
            "new_balance": f"{300 * number}.00 SLE",
        }
        row = await harness.database.fetchrow(
            "SELECT type, channel, partner_reference FROM transactions WHERE id = $1",
            ids.decode(ids.TRANSACTION, receipt["transaction_id"]),
        )
        assert row is not None
        assert tuple(row) == ("partner_fund", channel, channel)
    assert await get_partner_balance(harness, new) == "100.00"


async def test_subscriber_can_be_identified_by_card(harness: Harness) -> None:
    new, customer = await create_partner(harness, balance="100"), await harness.create_subscriber()
    body = {
        "card_serial": await harness.create_card(customer["id"]),
        "partner_reference": "INV-1",
        "amount": "40",
    }
    response = await harness.post(FUND_URL, json=body, auth=get_partner_auth(new))
    assert response.json()["new_balance"] == "40.00 SLE"
    assert await get_wallet_balance(harness, customer) == "40.00"


@each(
    "change, status, reported_field",
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
    harness: Harness, change: dict[str, Any], status: int, reported_field: str
) -> None:
    body = await _build_request(harness, await create_partner(harness), **change)
    response = await harness.post(FUND_URL, json=body, auth=await harness.create_admin())
    assert response.status_code == status, response.text
    assert list(response.json()["details"]["fields"]) == [reported_field]


async def test_partner_reference_funds_once_across_all_endpoints(harness: Harness) -> None:
    new = await create_partner(harness, balance="100")
    customer, another = await harness.create_subscriber(), await harness.create_subscriber()
    serial = await harness.create_card(customer["id"])
    body = await _build_request(harness, new, subscriber_id=customer["id"], request_id="first")
    first = await harness.post(FUND_URL, json=body, auth=get_partner_auth(new))
    assert "Idempotent-Replayed" not in first.headers

    by_card = {key: body[key] for key in ("partner_id", "partner_reference", "amount")}
    webhook = {"reference": "INV-1", "amount": "40.00"}
    for replayed in (
        await harness.post(
            FUND_URL, json=body | {"request_id": "second"}, auth=get_partner_auth(new)
        ),
        await harness.post(
            FUND_URL, json=by_card | {"card_serial": serial}, auth=await harness.create_admin()
        ),
        await post_webhook(harness.client, new, webhook | {"card_serial": serial}),
        await post_webhook(
            harness.client, new, webhook | {"phone_number": customer["phone_number"]}
        ),
    ):
        assert (replayed.status_code, replayed.json()) == (200, first.json())
        assert replayed.headers["Idempotent-Replayed"] == "true"

    for changed in (
        await harness.post(
            FUND_URL, json=body | {"amount": "41", "request_id": "x"}, auth=get_partner_auth(new)
        ),
        await harness.post(
            FUND_URL,
            json=by_card | {"subscriber_id": another["id"]},
            auth=await harness.create_admin(),
        ),
        await harness.post(
            FUND_URL, json=by_card | {"subscriber_id": "sub_1"}, auth=get_partner_auth(new)
        ),
        await post_webhook(
            harness.client, new, webhook | {"phone_number": another["phone_number"]}
        ),
        await post_webhook(harness.client, new, webhook | {"card_serial": serial, "amount": "39"}),
    ):
        assert parse_error(changed) == (409, "DUPLICATE_REFERENCE")
    assert await get_partner_balance(harness, new) == "60.00"

    # References of different partners are independent.
    other = await create_partner(harness, balance="100")
    response = await post_webhook(harness.client, other, webhook | {"card_serial": serial})
    assert response.json()["new_balance"] == "80.00 SLE"


async def test_status_and_limit_violations_decline_the_funding(harness: Harness) -> None:
    new, admin = await create_partner(harness, balance="600000"), await harness.create_admin()
    customer = await harness.create_subscriber()
    active = await harness.create_card(customer["id"])
    blocked = await harness.create_card(customer["id"], status="BLOCKED")
    body = {"partner_id": new["partner"]["id"], "partner_reference": "INV-1", "amount": "1"}

    async def get_error(**fields: str) -> tuple[int, str, Any]:
        response = await harness.post(FUND_URL, json=body | fields, auth=admin)
        return *parse_error(response), response.json().get("details")

    status, code, details = await get_error(card_serial=active, amount="500000.01")
    assert (status, code, details["party"]) == (403, "MAX_BALANCE_EXCEEDED", "receiver")
    assert await get_error(card_serial=blocked) == (403, "CARD_NOT_ACTIVE", {"party": "receiver"})
    await harness.post(
        f"/api/v1/subscribers/{customer['id']}/block", json={"reason": "lost phone"}, auth=admin
    )
    expected = (403, "SUBSCRIBER_BLOCKED", {"party": "receiver"})
    assert await get_error(subscriber_id=customer["id"]) == expected
    await suspend_partner(harness, new)
    expected = (403, "PARTNER_SUSPENDED", {"party": "sender"})
    assert await get_error(subscriber_id=customer["id"]) == expected
    rows = await harness.database.fetch(
        "SELECT failure_code FROM transactions WHERE type = 'partner_fund' ORDER BY id"
    )
    assert [row["failure_code"] for row in rows] == [
        "MAX_BALANCE_EXCEEDED",
        "CARD_NOT_ACTIVE",
        "SUBSCRIBER_BLOCKED",
        "PARTNER_SUSPENDED",
    ]


async def test_unknown_partner_subscriber_or_card_is_not_found(harness: Harness) -> None:
    new, admin = await create_partner(harness, balance="100"), await harness.create_admin()
    body = await _build_request(harness, new)
    for id in UNKNOWN_PARTNER_IDS:
        response = await harness.post(FUND_URL, json=body | {"partner_id": id}, auth=admin)
        assert parse_error(response) == (404, "PARTNER_NOT_FOUND")
    for id in (ids.encode(ids.SUBSCRIBER, 1), "sub_1", "é"):
        response = await harness.post(FUND_URL, json=body | {"subscriber_id": id}, auth=admin)
        assert parse_error(response) == (404, "SUBSCRIBER_NOT_FOUND")
    del body["subscriber_id"]
    response = await harness.post(FUND_URL, json=body | {"card_serial": "NONE"}, auth=admin)
    assert parse_error(response) == (404, "CARD_NOT_FOUND")


async def test_balance_of_a_restricted_subscriber_is_not_revealed(harness: Harness) -> None:
    new = await create_partner(harness, balance="100")
    customer = await harness.create_restricted_subscriber()
    serial = await harness.create_card(customer["id"])
    body = {"partner_id": new["partner"]["id"], "partner_reference": "INV-1", "amount": "1"}
    for caller in (await harness.create_api_key("payments:write"), await harness.create_admin()):
        for identifier in ({"subscriber_id": customer["id"]}, {"card_serial": serial}):
            response = await harness.post(FUND_URL, json=body | identifier, auth=caller)
            assert parse_error(response) == (403, "OTP_REQUIRED")
    # A partner may fund the wallet. Its receipt, original or replayed, omits the balance.
    for _ in range(2):
        response = await harness.post(
            FUND_URL, json=body | {"card_serial": serial}, auth=get_partner_auth(new)
        )
        assert (response.status_code, response.json()["new_balance"]) == (200, None)
