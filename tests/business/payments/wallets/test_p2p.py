"""Transfers to a cardholder or a phone number, and between accounts."""

import asyncio
import hashlib
import uuid
from typing import Any
from unittest.mock import AsyncMock

import httpx2
import pytest

from harness import PIN, WRONG_PIN, Harness, parse_error
from tapgate.business.payments.transactions import money_requests
from tapgate.http.api.idempotency import calculate_fingerprint
from tapgate_client.errors import unavailable
from tapgate_client.schemas.wallets import P2pTransferRequest

P2P_URL = "/api/v1/wallet/transfer-p2p"


async def _build_p2p_transfer(harness: Harness, **fields: Any) -> dict[str, Any]:
    sender = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber(first_name="Mohamed", last_name="Sesay")
    serial = await harness.create_card(recipient["id"])
    return {
        "sender_id": sender["id"],
        "recipient_card_serial": serial,
        "amount": "100.00",
        "pin": PIN,
        **fields,
    }


async def test_p2p_fee_is_charged_on_top_of_the_amount(harness: Harness) -> None:
    body = await _build_p2p_transfer(harness)
    key = await harness.create_api_key("payments:write")
    response = await harness.post(P2P_URL, json=body, auth=key)
    assert response.status_code == 200, response.text
    receipt = response.json()
    assert receipt.pop("transaction_id").startswith("txn_")
    assert receipt == {
        "success": True,
        "message": "Transfer completed",
        "status": "completed",
        "amount": "100.00 SLE",
        "fee_amount": "1.50 SLE",
        "sender_new_balance": "898.50 SLE",
        "recipient": {"name": "Mohamed S.", "card_serial": body["recipient_card_serial"]},
    }


async def test_required_funds_include_the_fee(harness: Harness) -> None:
    body = await _build_p2p_transfer(harness, amount="999")
    response = await harness.post(
        P2P_URL, json=body, auth=await harness.create_api_key("payments:write")
    )
    assert (response.status_code, response.json()["code"]) == (402, "INSUFFICIENT_FUNDS")
    assert response.json()["details"] == {"available": 1000.0, "required": 1013.99}


async def test_idempotency_key_header_is_equivalent_to_request_id(harness: Harness) -> None:
    body, key = await _build_p2p_transfer(harness), await harness.create_api_key("payments:write")
    key_value = str(uuid.uuid4())
    first = await harness.post(P2P_URL, json=body, auth=key, headers={"Idempotency-Key": key_value})
    replay = await harness.post(
        P2P_URL, json=body | {"request_id": key_value, "amount": "100"}, auth=key
    )
    assert "Idempotent-Replayed" not in first.headers
    assert replay.headers["Idempotent-Replayed"] == "true"
    assert replay.json() == first.json()
    both = await harness.post(
        P2P_URL, json=body | {"request_id": "x"}, auth=key, headers={"Idempotency-Key": key_value}
    )
    assert (both.status_code, both.json()["code"]) == (400, "INVALID_REQUEST")
    too_long = await harness.post(
        P2P_URL, json=body, auth=key, headers={"Idempotency-Key": "x" * 65}
    )
    assert too_long.status_code == 422
    assert too_long.json()["details"]["fields"].keys() == {"Idempotency-Key"}


async def test_restricted_recipient_is_not_named_in_the_receipt(harness: Harness) -> None:
    recipient = await harness.create_restricted_subscriber()
    sender = await harness.create_subscriber(balance="1000")
    card = await harness.create_card(recipient["id"])
    body = {
        "sender_id": sender["id"],
        "recipient_card_serial": card,
        "amount": "1",
        "pin": PIN,
        "request_id": "hidden",
    }
    for caller in (await harness.create_api_key("payments:write"), await harness.create_admin("F")):
        for _ in ("first", "replay"):
            receipt = (await harness.post(P2P_URL, json=body, auth=caller)).json()
            assert receipt["recipient"] == {"name": None, "card_serial": card}
            assert receipt["sender_new_balance"].endswith(" SLE")
    receipt = (await harness.post(P2P_URL, json=body, auth=harness.get_service_auth())).json()
    assert receipt["recipient"]["name"] == "Aminata K."


async def test_each_transfer_of_a_batch_hides_only_its_own_restricted_recipient(
    harness: Harness,
) -> None:
    restricted = await harness.create_restricted_subscriber()
    other = await harness.create_subscriber(first_name="Mohamed", last_name="Sesay")
    recipients = [
        {"recipient_card_serial": await harness.create_card(restricted["id"])},
        {"recipient_phone_number": restricted["phone_number"]},
        {"recipient_card_serial": await harness.create_card(other["id"])},
        {"recipient_phone_number": other["phone_number"]},
    ]
    bodies = [
        {
            "sender_id": (await harness.create_subscriber(balance="1000"))["id"],
            "amount": "1",
            "pin": PIN,
            **recipient,
        }
        for recipient in recipients
    ]
    key = await harness.create_api_key("payments:write")
    responses = await asyncio.gather(
        *(harness.post(P2P_URL, json=body, auth=key) for body in bodies)
    )
    names = [response.json()["recipient"]["name"] for response in responses]
    assert names == [None, None, "Mohamed S.", "Mohamed S."]


async def test_transfer_is_not_executed_if_the_restricted_payee_check_fails(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_check = AsyncMock(side_effect=unavailable("The database cannot be reached"))
    body = await _build_p2p_transfer(harness, request_id="check fails")
    admin = await harness.create_admin("F")
    with monkeypatch.context() as patch:
        patch.setattr(money_requests, "find_hidden_subjects", failing_check)
        response = await harness.post(P2P_URL, json=body, auth=admin)
    assert (response.status_code, response.json()["code"]) == (503, "SERVICE_UNAVAILABLE")
    failing_check.assert_awaited_once()
    retry = await harness.post(P2P_URL, json=body, auth=admin)
    assert "Idempotent-Replayed" not in retry.headers
    assert retry.json()["sender_new_balance"] == "898.50 SLE"
    assert retry.json()["recipient"]["name"] == "Mohamed S."


async def test_decline_does_not_reveal_the_balance_of_a_restricted_recipient(
    harness: Harness,
) -> None:
    recipient = await harness.create_restricted_subscriber(balance="499950")
    sender = await harness.create_subscriber(balance="1000")
    body = {
        "sender_id": sender["id"],
        "recipient_card_serial": await harness.create_card(recipient["id"]),
        "amount": "100",
        "pin": PIN,
        "request_id": "too much",
    }
    redacted = {"limit": "500000.00", "attempted": "100.00", "party": "receiver"}
    for caller in (await harness.create_api_key("payments:write"), await harness.create_admin("F")):
        for _ in ("now", "again"):
            response = await harness.post(P2P_URL, json=body, auth=caller)
            assert (response.status_code, response.json()["code"]) == (403, "MAX_BALANCE_EXCEEDED")
            assert response.json()["details"] == redacted
    full_response = await harness.post(P2P_URL, json=body, auth=harness.get_service_auth())
    assert full_response.json()["details"] == redacted | {"used": "499950.00"}


async def _build_phone_transfer(
    harness: Harness, recipient: dict[str, Any], **fields: Any
) -> dict[str, Any]:
    sender = await harness.create_subscriber(balance="1000")
    return {
        "sender_id": sender["id"],
        "recipient_phone_number": recipient["phone_number"],
        "amount": "100",
        "pin": PIN,
        **fields,
    }


async def test_transfer_to_a_phone_number_needs_no_card(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    recipient = await harness.create_subscriber(first_name="Mohamed", last_name="Sesay")
    body = await _build_phone_transfer(harness, recipient, request_id="by phone")
    key = await harness.create_api_key("payments:write", "payments:read")
    response = await client.post(P2P_URL, json=body, auth=key)
    assert response.status_code == 200, response.text
    assert response.json()["recipient"] == {"name": "Mohamed S."}
    assert response.json()["sender_new_balance"] == "898.50 SLE"
    number = body["recipient_phone_number"]
    spaced = f"{number[:4]} {number[4:6]} {number[6:]}"
    # A replay returns the original receipt, also after the number changed hands.
    admin = await harness.create_admin()
    await client.put(
        f"/api/v1/subscribers/{recipient['id']}",
        json={"phone_number": harness.new_phone_number()},
        auth=admin,
    )
    await harness.create_subscriber(phone_number=number)
    replay = await client.post(P2P_URL, json=body | {"recipient_phone_number": spaced}, auth=key)
    assert (replay.json(), replay.headers["Idempotent-Replayed"]) == (response.json(), "true")
    other = body | {"recipient_phone_number": harness.new_phone_number()}
    assert parse_error(await client.post(P2P_URL, json=other, auth=key)) == (
        409,
        "DUPLICATE_REQUEST",
    )
    url = f"/api/v1/transactions/{response.json()['transaction_id']}"
    record = (await client.get(url, auth=key)).json()
    assert (record["to"]["id"], record["to"]["card_serial"]) == (recipient["id"], None)


async def test_exactly_one_recipient_field_is_required(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    body = await _build_p2p_transfer(harness)
    key = await harness.create_api_key("payments:write")
    for fields, error, named_fields in (
        (
            {"recipient_card_serial": None},
            (400, "INVALID_REQUEST"),
            ["recipient_card_serial", "recipient_phone_number"],
        ),
        (
            {"recipient_phone_number": harness.new_phone_number()},
            (422, "VALIDATION_FAILED"),
            ["recipient_phone_number"],
        ),
    ):
        response = await client.post(P2P_URL, json=body | fields, auth=key)
        assert parse_error(response) == error
        assert list(response.json()["details"]["fields"]) == named_fields


async def test_recipient_by_phone_is_checked_like_a_cardholder(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    key = await harness.create_api_key("payments:write")
    unknown = await _build_phone_transfer(harness, {"phone_number": harness.new_phone_number()})
    response = await client.post(P2P_URL, json=unknown, auth=key)
    assert parse_error(response) == (404, "SUBSCRIBER_NOT_FOUND")
    invalid = unknown | {"recipient_phone_number": "12"}
    response = await client.post(P2P_URL, json=invalid, auth=key)
    assert parse_error(response) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == ["recipient_phone_number"]

    sender = await harness.create_subscriber(balance="10")
    to_self = await _build_phone_transfer(harness, sender, sender_id=sender["id"])
    assert parse_error(await client.post(P2P_URL, json=to_self, auth=key)) == (422, "SELF_TRANSFER")

    blocked = await harness.create_subscriber()
    await client.post(
        f"/api/v1/subscribers/{blocked['id']}/block",
        json={"reason": "fraud"},
        auth=await harness.create_admin(),
    )
    to_blocked = await _build_phone_transfer(harness, blocked)
    response = await client.post(P2P_URL, json=to_blocked, auth=key)
    assert parse_error(response) == (403, "SUBSCRIBER_BLOCKED")
    assert response.json()["details"] == {"party": "receiver"}


async def test_restricted_recipient_by_phone_is_not_named(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    recipient = await harness.create_restricted_subscriber()
    for caller, expected in (
        (await harness.create_api_key("payments:write"), {"name": None}),
        (await harness.create_admin("F"), {"name": None}),
        (harness.get_service_auth(), {"name": "Aminata K."}),
    ):
        body = await _build_phone_transfer(harness, recipient)
        response = await client.post(P2P_URL, json=body, auth=caller)
        assert response.json()["recipient"] == expected


def test_request_stored_by_an_earlier_release_has_the_same_fingerprint() -> None:
    body = P2pTransferRequest(
        sender_id="sub_1", recipient_card_serial="TAP-1", amount="1.00", pin=PIN, request_id="one"
    )
    stored = (
        b'/wallet/transfer-p2p\n{"amount":"1.00","memo":null,'
        b'"recipient_card_serial":"TAP-1","sender_id":"sub_1"}'
    )
    expected = hashlib.blake2b(stored, digest_size=16).digest()
    assert calculate_fingerprint(P2P_URL, body) == expected


TRANSFER_URL = "/api/v1/wallet/transfer"


async def _build_transfer(harness: Harness, **fields: Any) -> dict[str, Any]:
    sender = await harness.create_subscriber(balance="1000")
    receiver = await harness.create_subscriber(first_name="Mohamed", last_name="Sesay")
    return {
        "from_account_id": sender["account_id"],
        "to_account_id": receiver["account_id"],
        "amount": "100.00",
        "pin": PIN,
        **fields,
    }


async def _get_error(
    client: httpx2.AsyncClient, body: dict[str, Any], auth: Any
) -> tuple[int, str]:
    response = await client.post(TRANSFER_URL, json=body, auth=auth)
    return response.status_code, response.json()["code"]


async def test_transfer_has_no_fee(harness: Harness) -> None:
    body = await _build_transfer(harness, description="rent")
    response = await harness.post(
        TRANSFER_URL, json=body, auth=await harness.create_api_key("payments:write")
    )
    assert response.status_code == 200, response.text
    receipt = response.json()
    assert receipt.pop("transaction_id").startswith("txn_")
    assert receipt == {
        "success": True,
        "message": "Transfer completed",
        "status": "completed",
        "amount": "100.00 SLE",
        "from_balance": "900.00 SLE",
        "to_balance": "100.00 SLE",
    }


async def test_api_key_needs_a_pin_but_an_admin_does_not(harness: Harness) -> None:
    key = await harness.create_api_key("payments:write")
    body = await _build_transfer(harness, pin=None)
    assert await _get_error(harness.client, body, key) == (403, "PIN_REQUIRED")
    assert await _get_error(harness.client, body | {"pin": WRONG_PIN}, key) == (400, "INVALID_PIN")
    response = await harness.post(TRANSFER_URL, json=body, auth=await harness.create_admin("F"))
    assert response.status_code == 200, response.text


async def test_accounts_must_exist_and_differ(harness: Harness) -> None:
    key, body = await harness.create_api_key("payments:write"), await _build_transfer(harness)
    to_unknown = body | {"to_account_id": "acc_0000000000001"}
    to_self = body | {"to_account_id": body["from_account_id"]}
    assert await _get_error(harness.client, to_unknown, key) == (404, "ACCOUNT_NOT_FOUND")
    assert await _get_error(harness.client, body | {"from_account_id": "x"}, key) == (
        404,
        "ACCOUNT_NOT_FOUND",
    )
    assert await _get_error(harness.client, to_self, key) == (422, "SELF_TRANSFER")


async def test_restricted_wallet_allows_only_transfers_that_the_holder_confirms_by_pin(
    harness: Harness,
) -> None:
    restricted = await harness.create_restricted_subscriber()
    other = await harness.create_subscriber(balance="50")
    await harness.deposit(restricted["id"], "100")
    key, admin = await harness.create_api_key("payments:write"), await harness.create_admin()
    outgoing = {
        "from_account_id": restricted["account_id"],
        "to_account_id": other["account_id"],
        "amount": "10",
    }
    incoming = {
        "from_account_id": other["account_id"],
        "to_account_id": restricted["account_id"],
        "amount": "10",
    }
    assert await _get_error(harness.client, outgoing, admin) == (403, "OTP_REQUIRED")
    assert await _get_error(harness.client, incoming, admin) == (403, "OTP_REQUIRED")
    assert await _get_error(harness.client, incoming | {"pin": PIN}, key) == (403, "OTP_REQUIRED")
    response = await harness.post(TRANSFER_URL, json=outgoing | {"pin": PIN}, auth=key)
    assert response.status_code == 200, response.text
