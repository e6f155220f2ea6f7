"""Transfers between accounts."""

from typing import Any

import httpx2

from harness import PIN, WRONG_PIN, Harness

TRANSFER_URL = "/api/v1/wallet/transfer"


async def _build_request(harness: Harness, **fields: Any) -> dict[str, Any]:
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


async def test_transfer_has_no_fee(client: httpx2.AsyncClient, harness: Harness) -> None:
    body = await _build_request(harness, description="rent")
    response = await client.post(
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


async def test_api_key_needs_a_pin_but_an_admin_does_not(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    key = await harness.create_api_key("payments:write")
    body = await _build_request(harness, pin=None)
    assert await _get_error(client, body, key) == (403, "PIN_REQUIRED")
    assert await _get_error(client, body | {"pin": WRONG_PIN}, key) == (400, "INVALID_PIN")
    response = await client.post(TRANSFER_URL, json=body, auth=await harness.create_admin("F"))
    assert response.status_code == 200, response.text


async def test_accounts_must_exist_and_differ(client: httpx2.AsyncClient, harness: Harness) -> None:
    key, body = await harness.create_api_key("payments:write"), await _build_request(harness)
    to_unknown = body | {"to_account_id": "acc_0000000000001"}
    to_self = body | {"to_account_id": body["from_account_id"]}
    assert await _get_error(client, to_unknown, key) == (404, "ACCOUNT_NOT_FOUND")
    assert await _get_error(client, body | {"from_account_id": "x"}, key) == (
        404,
        "ACCOUNT_NOT_FOUND",
    )
    assert await _get_error(client, to_self, key) == (422, "SELF_TRANSFER")


async def test_restricted_wallet_allows_only_transfers_that_the_holder_confirms_by_pin(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    restricted, other = (
        await harness.create_restricted_subscriber(),
        await harness.create_subscriber(balance="50"),
    )
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
    assert await _get_error(client, outgoing, admin) == (403, "OTP_REQUIRED")
    assert await _get_error(client, incoming, admin) == (403, "OTP_REQUIRED")
    assert await _get_error(client, incoming | {"pin": PIN}, key) == (403, "OTP_REQUIRED")
    response = await client.post(TRANSFER_URL, json=outgoing | {"pin": PIN}, auth=key)
    assert response.status_code == 200, response.text
