"""Transfers between accounts."""

from typing import Any

import httpx2

from harness import PIN, WRONG_PIN, Harness

TRANSFER_URL = "/api/v1/wallet/transfer"


async def _build_request(world: Harness, **fields: Any) -> dict[str, Any]:
    sender = await world.create_subscriber(balance="1000")
    receiver = await world.create_subscriber(first_name="Mohamed", last_name="Sesay")
    return {
        "from_account_id": sender["account_id"],
        "to_account_id": receiver["account_id"],
        "amount": "100.00",
        "pin": PIN,
        **fields,
    }


async def _get_error(
    client: httpx2.AsyncClient, order: dict[str, Any], auth: Any
) -> tuple[int, str]:
    answer = await client.post(TRANSFER_URL, json=order, auth=auth)
    return answer.status_code, answer.json()["code"]


async def test_transfer_has_no_fee(client: httpx2.AsyncClient, world: Harness) -> None:
    order = await _build_request(world, description="rent")
    answer = await client.post(
        TRANSFER_URL, json=order, auth=await world.create_api_key("payments:write")
    )
    assert answer.status_code == 200, answer.text
    receipt = answer.json()
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
    client: httpx2.AsyncClient, world: Harness
) -> None:
    key = await world.create_api_key("payments:write")
    order = await _build_request(world, pin=None)
    assert await _get_error(client, order, key) == (403, "PIN_REQUIRED")
    assert await _get_error(client, order | {"pin": WRONG_PIN}, key) == (400, "INVALID_PIN")
    answer = await client.post(TRANSFER_URL, json=order, auth=await world.create_admin("F"))
    assert answer.status_code == 200, answer.text


async def test_api_key_can_debit_only_subscriber_wallets(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    order = await _build_request(world)
    shop = await world.get_account_id(await world.create_processor())
    order = order | {"from_account_id": shop}
    assert await _get_error(client, order, await world.create_api_key("payments:write")) == (
        403,
        "FORBIDDEN",
    )
    assert await _get_error(client, order | {"pin": None}, await world.create_admin("F")) == (
        402,
        "INSUFFICIENT_FUNDS",
    )


async def test_accounts_must_exist_and_differ(client: httpx2.AsyncClient, world: Harness) -> None:
    key, order = await world.create_api_key("payments:write"), await _build_request(world)
    to_nobody = order | {"to_account_id": "acc_0000000000001"}
    to_oneself = order | {"to_account_id": order["from_account_id"]}
    assert await _get_error(client, to_nobody, key) == (404, "ACCOUNT_NOT_FOUND")
    assert await _get_error(client, order | {"from_account_id": "x"}, key) == (
        404,
        "ACCOUNT_NOT_FOUND",
    )
    assert await _get_error(client, to_oneself, key) == (422, "SELF_TRANSFER")


async def test_restricted_wallet_allows_only_the_holders_own_payments(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    restricted, other = (
        await world.create_restricted_subscriber(),
        await world.create_subscriber(balance="50"),
    )
    await world.deposit(restricted["id"], "100")
    key, admin = await world.create_api_key("payments:write"), await world.create_admin()
    out = {
        "from_account_id": restricted["account_id"],
        "to_account_id": other["account_id"],
        "amount": "10",
    }
    back = {
        "from_account_id": other["account_id"],
        "to_account_id": restricted["account_id"],
        "amount": "10",
    }
    assert await _get_error(client, out, admin) == (403, "OTP_REQUIRED")
    assert await _get_error(client, back, admin) == (403, "OTP_REQUIRED")
    assert await _get_error(client, back | {"pin": PIN}, key) == (403, "OTP_REQUIRED")
    answer = await client.post(TRANSFER_URL, json=out | {"pin": PIN}, auth=key)
    assert answer.status_code == 200, answer.text
