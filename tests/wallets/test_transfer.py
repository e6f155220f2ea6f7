"""Moving money from one account to another."""

from typing import Any

import httpx2

from world import PIN, WRONG_PIN, World

TRANSFER = "/api/v1/wallet/transfer"


async def _between(world: World, **fields: Any) -> dict[str, Any]:
    sender = await world.subscriber(balance="1000")
    receiver = await world.subscriber(first_name="Mohamed", last_name="Sesay")
    return {
        "from_account_id": sender["account_id"],
        "to_account_id": receiver["account_id"],
        "amount": "100.00",
        "pin": PIN,
        **fields,
    }


async def _refusal(client: httpx2.AsyncClient, order: dict[str, Any], auth: Any) -> tuple[int, str]:
    answer = await client.post(TRANSFER, json=order, auth=auth)
    return answer.status_code, answer.json()["code"]


async def test_there_is_no_fee(client: httpx2.AsyncClient, world: World) -> None:
    order = await _between(world, description="rent")
    answer = await client.post(TRANSFER, json=order, auth=await world.api_key("payments:write"))
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


async def test_a_key_needs_the_pin_and_an_admin_does_not(
    client: httpx2.AsyncClient, world: World
) -> None:
    key = await world.api_key("payments:write")
    order = await _between(world, pin=None)
    assert await _refusal(client, order, key) == (403, "PIN_REQUIRED")
    assert await _refusal(client, order | {"pin": WRONG_PIN}, key) == (400, "INVALID_PIN")
    answer = await client.post(TRANSFER, json=order, auth=await world.admin("F"))
    assert answer.status_code == 200, answer.text


async def test_a_key_moves_subscribers_money_only(client: httpx2.AsyncClient, world: World) -> None:
    order = await _between(world)
    shop = await world.account_of(await world.processor())
    order = order | {"from_account_id": shop}
    assert await _refusal(client, order, await world.api_key("payments:write")) == (
        403,
        "FORBIDDEN",
    )
    assert await _refusal(client, order | {"pin": None}, await world.admin("F")) == (
        402,
        "INSUFFICIENT_FUNDS",
    )


async def test_accounts_must_exist_and_differ(client: httpx2.AsyncClient, world: World) -> None:
    key, order = await world.api_key("payments:write"), await _between(world)
    to_nobody = order | {"to_account_id": "acc_0000000000001"}
    to_oneself = order | {"to_account_id": order["from_account_id"]}
    assert await _refusal(client, to_nobody, key) == (404, "ACCOUNT_NOT_FOUND")
    assert await _refusal(client, order | {"from_account_id": "x"}, key) == (
        404,
        "ACCOUNT_NOT_FOUND",
    )
    assert await _refusal(client, to_oneself, key) == (422, "SELF_TRANSFER")


async def test_restricted_wallets_are_closed_but_for_their_holders_own_payments(
    client: httpx2.AsyncClient, world: World
) -> None:
    restricted, other = await world.restricted_subscriber(), await world.subscriber(balance="50")
    await world.give(restricted["id"], "100")
    key, admin = await world.api_key("payments:write"), await world.admin()
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
    assert await _refusal(client, out, admin) == (403, "OTP_REQUIRED")
    assert await _refusal(client, back, admin) == (403, "OTP_REQUIRED")
    assert await _refusal(client, back | {"pin": PIN}, key) == (403, "OTP_REQUIRED")
    answer = await client.post(TRANSFER, json=out | {"pin": PIN}, auth=key)
    assert answer.status_code == 200, answer.text
