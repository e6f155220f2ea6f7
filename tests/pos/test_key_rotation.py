"""Idempotency keys belong to the owner of a signing key, so a retry survives a key rotation."""

import asyncio
from typing import Any

import httpx2
import pytest

from pos.stage import PAY, Shop, refusal
from tapgate import ids
from tapgate.credentials.principals import Principal
from world import RequestSignature, World

REPLAYED = "idempotent-replayed"


async def _new_key(world: World, key: RequestSignature, **body: Any) -> RequestSignature:
    """A further key of the same processor, or of one of its terminals."""
    url = f"/api/v1/processors/{await world.processor_of(key)}/keys"
    response = await world.client.post(url, json=body, auth=await world.admin())
    assert response.status_code == 201, response.text
    return RequestSignature(response.json()["api_key_id"], response.json()["hmac_secret"])


async def _delete_key(world: World, key: RequestSignature) -> None:
    url = f"/api/v1/processors/{await world.processor_of(key)}/keys/{key.id}"
    assert (await world.client.delete(url, auth=await world.admin())).status_code == 204


async def _upgrade_from_the_previous_release(
    world: World, paid: dict[RequestSignature, httpx2.Response], *, owner: RequestSignature | None
) -> None:
    """Store each payment as request `one` of its key, which used to be the scope.

    `owner` is the key whose id stays the scope of the owner.
    """
    async with world.services.database.transaction() as tx:
        await tx.execute("SET LOCAL session_replication_role = replica")
        for key, response in paid.items():
            await tx.execute(
                "UPDATE transactions SET scope = $2, request_id = 'one' WHERE id = $1",
                ids.decode(ids.TRANSACTION, response.json()["transaction_id"]),
                key.id,
            )
            await tx.execute(
                "UPDATE hmac_keys SET request_scope = $2 WHERE id = $1",
                ids.decode(ids.KEY, key.id),
                "owner" if key is owner else "former",
            )
        ticket = await world.services.authenticator.hmac_keys.publish_owner_change(tx)
    await world.services.signals.wait_for_acks(ticket)


async def _count(world: World) -> int:
    count: int = await world.services.database.fetchval(
        "SELECT count(*) FROM transactions WHERE type = 'pos_payment'"
    )
    return count


@pytest.mark.parametrize("of", ["processor", "terminal"])
async def test_retry_with_the_new_key_replays(world: World, of: str) -> None:
    shop = await Shop.open(world)
    body = {"terminal_id": await shop.terminal()} if of == "terminal" else {}
    old = await _new_key(world, shop.till, **body)
    paid = await shop.pay(auth=old, request_id="one")
    assert paid.status_code == 200, paid.text
    new = await _new_key(world, shop.till, **body)
    await _delete_key(world, old)
    retried = await shop.pay(auth=new, request_id="one")
    assert (retried.content, retried.headers[REPLAYED]) == (paid.content, "true")
    assert await _count(world) == 1
    other = await shop.pay("99.00", auth=new, request_id="one")
    assert refusal(other) == (409, "DUPLICATE_REQUEST")


async def test_owners_do_not_share_idempotency_keys(world: World) -> None:
    shop = await Shop.open(world)
    first, second = [
        await _new_key(world, shop.till, terminal_id=await shop.terminal()) for _ in range(2)
    ]
    for key in (shop.till, first, second):
        paid = await shop.pay(auth=key, request_id="one")
        assert (paid.status_code, REPLAYED in paid.headers) == (200, False)
    assert await _count(world) == 3


async def test_parallel_retries_under_two_keys_pay_once(
    client: httpx2.AsyncClient, other_client: httpx2.AsyncClient, world: World
) -> None:
    shop = await Shop.open(world)
    keys = [shop.till, await _new_key(world, shop.till)]
    body = {"request_id": "one", "card_serial": shop.card, "amount": "10.00"}
    responses = await asyncio.gather(
        *(
            process.post(PAY, json=body, auth=key)
            for _ in range(10)
            for process in (client, other_client)
            for key in keys
        )
    )
    assert {response.status_code for response in responses} == {200}
    assert len({response.content for response in responses}) == 1
    assert sum(REPLAYED not in response.headers for response in responses) == 1
    assert (await _count(world), await shop.balance()) == (1, 990_00)


@pytest.mark.parametrize("of", ["processor", "terminal"])
@pytest.mark.parametrize("scope", ["owner", "former"])
async def test_request_stored_under_its_key_replays_under_every_key_of_the_owner(
    world: World, of: str, scope: str
) -> None:
    shop = await Shop.open(world)
    body = {"terminal_id": await shop.terminal()} if of == "terminal" else {}
    old = await _new_key(world, shop.till, **body)
    paid = await shop.pay(auth=old)
    await _upgrade_from_the_previous_release(
        world, {old: paid}, owner=old if scope == "owner" else None
    )
    new = await _new_key(world, shop.till, **body)
    for key in (old, new):
        retried = await shop.pay(auth=key, request_id="one")
        assert (retried.content, retried.headers.get(REPLAYED)) == (paid.content, "true")
    await _delete_key(world, old)
    retried = await shop.pay(auth=new, request_id="one")
    assert retried.content == paid.content
    conflict = await shop.pay("5.00", auth=new, request_id="one")
    assert refusal(conflict) == (409, "DUPLICATE_REQUEST")
    assert await _count(world) == 1


async def _two_payments_under_one_id(
    world: World, shop: Shop, amounts: tuple[str, str], owner: int
) -> dict[RequestSignature, httpx2.Response]:
    """The previous release accepted one request id once per key."""
    keys = [shop.till, await world.another_key(shop.till)]
    paid = {
        key: await shop.pay(amount, auth=key) for key, amount in zip(keys, amounts, strict=True)
    }
    await _upgrade_from_the_previous_release(world, paid, owner=keys[owner])
    return paid


@pytest.mark.parametrize("owner", [0, 1])
async def test_one_id_used_for_two_payments_replays_the_payment_that_is_repeated(
    world: World, owner: int
) -> None:
    shop = await Shop.open(world)
    paid = await _two_payments_under_one_id(world, shop, ("10.00", "20.00"), owner)
    for key in (*paid, await world.another_key(shop.till)):
        for amount, first in zip(("10.00", "20.00"), paid.values(), strict=True):
            retried = await shop.pay(amount, auth=key, request_id="one")
            assert (retried.content, retried.headers[REPLAYED]) == (first.content, "true")
        conflict = await shop.pay("30.00", auth=key, request_id="one")
        assert refusal(conflict) == (409, "DUPLICATE_REQUEST")
    assert await _count(world) == 2


@pytest.mark.parametrize("owner", [0, 1])
async def test_one_id_used_for_the_same_payment_twice_replays_that_of_the_key(
    world: World, owner: int
) -> None:
    shop = await Shop.open(world)
    paid = await _two_payments_under_one_id(world, shop, ("10.00", "10.00"), owner)
    receipts = [response.json() for response in paid.values()]
    assert receipts[0]["transaction_id"] != receipts[1]["transaction_id"]
    for key, receipt in zip(paid, receipts, strict=True):
        assert (await shop.pay("10.00", auth=key, request_id="one")).json() == receipt
    third = await world.another_key(shop.till)
    assert (await shop.pay("10.00", auth=third, request_id="one")).json() == receipts[owner]
    assert await _count(world) == 2


async def test_process_of_the_previous_release_does_not_pay_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During a rolling upgrade a retry may reach a process that uses the key as scope."""
    shop = await Shop.open(world)
    first = await shop.pay()
    await _upgrade_from_the_previous_release(world, {shop.till: first}, owner=shop.till)
    paid = await shop.pay("7.00", request_id="two")
    assert paid.status_code == 200
    with monkeypatch.context() as previous:
        previous.setattr(Principal, "idempotency_scope", property(lambda caller: caller.id))
        retried = await shop.pay("7.00", request_id="two")
        assert (retried.content, retried.headers[REPLAYED]) == (paid.content, "true")
        fresh = await shop.pay("8.00", request_id="three")
    retried = await shop.pay("8.00", request_id="three")
    assert (retried.content, retried.headers[REPLAYED]) == (fresh.content, "true")
    assert await _count(world) == 3


async def test_rotation_while_paying_pays_every_request_once(
    client: httpx2.AsyncClient, other_client: httpx2.AsyncClient, world: World
) -> None:
    """A client switches to the new key on 401 and retries what it was not sure about."""
    await world.without_compliance_rules()
    shop = await Shop.open(world)
    keys = [shop.till]

    async def pay(number: int) -> httpx2.Response:
        body = {"request_id": f"rotated-{number}", "card_serial": shop.card, "amount": "1.00"}
        for attempt in range(50):
            process = (client, other_client)[(number + attempt) % 2]
            response = await process.post(PAY, json=body, auth=keys[-1])
            if response.status_code == 200 and attempt % 2:
                return response
        raise AssertionError(response.text)

    async def rotate() -> None:
        for _ in range(4):
            keys.append(await _new_key(world, shop.till))
            await _delete_key(world, keys[-2])

    responses, _ = await asyncio.gather(asyncio.gather(*(pay(n) for n in range(40))), rotate())
    assert len({response.json()["transaction_id"] for response in responses}) == 40
    assert (await _count(world), await shop.balance()) == (40, 960_00)
