"""Idempotency keys are scoped to a signing key's owner, so retries survive a rotation."""

import asyncio
from typing import Any

import httpx2
import pytest

from builders.payments import PAY_URL, PosDriver
from harness import Harness, HmacAuth, parse_error
from tapgate.auth.principals import Principal
from tapgate_client import ids

REPLAYED_HEADER = "idempotent-replayed"


async def _create_key(harness: Harness, key: HmacAuth, **body: Any) -> HmacAuth:
    """Create another key for the same processor or for one of its terminals."""
    url = f"/api/v1/processors/{await harness.get_processor_id(key)}/keys"
    response = await harness.post(url, json=body, auth=await harness.create_admin())
    assert response.status_code == 201, response.text
    return HmacAuth(response.json()["api_key_id"], response.json()["hmac_secret"])


async def _delete_key(harness: Harness, key: HmacAuth) -> None:
    url = f"/api/v1/processors/{await harness.get_processor_id(key)}/keys/{key.id}"
    assert (await harness.delete(url, auth=await harness.create_admin())).status_code == 204


async def _downgrade_and_migrate(
    harness: Harness, paid: dict[HmacAuth, httpx2.Response], *, owner: HmacAuth | None
) -> None:
    """Scope each payment to its key, with request ID `one`, as earlier releases did.

    `owner` is the key whose ID remains the owner's scope after the migration.
    """
    async with harness.services.transaction() as tx:
        await tx.execute("SET LOCAL session_replication_role = replica")
        for key, response in paid.items():
            transaction_id = ids.decode(ids.TRANSACTION, response.json()["transaction_id"])
            for table, column in (("transactions", "id"), ("idempotency_keys", "transaction_id")):
                await tx.execute(
                    f"UPDATE {table} SET scope = $2, request_id = 'one' WHERE {column} = $1",
                    transaction_id,
                    key.id,
                )
            await tx.execute(
                "UPDATE hmac_keys SET request_scope = $2 WHERE id = $1",
                ids.decode(ids.KEY, key.id),
                "owner" if key is owner else "former",
            )
        await harness.services.authenticator.hmac_keys.publish_owner_change(tx)


async def _count_transactions(harness: Harness) -> int:
    count: int = await harness.database.fetchval(
        "SELECT count(*) FROM transactions WHERE type = 'pos_payment'"
    )
    return count


@pytest.mark.parametrize("key_owner", ["processor", "terminal"])
async def test_retry_with_the_new_key_replays(harness: Harness, key_owner: str) -> None:
    pos = await PosDriver.create(harness)
    body = {"terminal_id": await pos.create_terminal()} if key_owner == "terminal" else {}
    old = await _create_key(harness, pos.merchant_auth, **body)
    paid = await pos.pay(auth=old, request_id="one")
    assert paid.status_code == 200, paid.text
    new = await _create_key(harness, pos.merchant_auth, **body)
    await _delete_key(harness, old)
    retried = await pos.pay(auth=new, request_id="one")
    assert (retried.content, retried.headers[REPLAYED_HEADER]) == (paid.content, "true")
    assert await _count_transactions(harness) == 1
    other = await pos.pay("99.00", auth=new, request_id="one")
    assert parse_error(other) == (409, "DUPLICATE_REQUEST")


async def test_owners_do_not_share_idempotency_keys(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    first, second = [
        await _create_key(harness, pos.merchant_auth, terminal_id=await pos.create_terminal())
        for _ in range(2)
    ]
    for key in (pos.merchant_auth, first, second):
        paid = await pos.pay(auth=key, request_id="one")
        assert (paid.status_code, REPLAYED_HEADER in paid.headers) == (200, False)
    assert await _count_transactions(harness) == 3


async def test_concurrent_retries_under_two_keys_pay_once(
    other_process_client: httpx2.AsyncClient, harness: Harness
) -> None:
    pos = await PosDriver.create(harness)
    keys = [pos.merchant_auth, await _create_key(harness, pos.merchant_auth)]
    body = {"request_id": "one", "card_serial": pos.card, "amount": "10.00"}
    responses = await asyncio.gather(
        *(
            process.post(PAY_URL, json=body, auth=key)
            for _ in range(10)
            for process in (harness.client, other_process_client)
            for key in keys
        )
    )
    assert {response.status_code for response in responses} == {200}
    assert len({response.content for response in responses}) == 1
    assert sum(REPLAYED_HEADER not in response.headers for response in responses) == 1
    assert (await _count_transactions(harness), await pos.get_balance()) == (1, 990_00)


@pytest.mark.parametrize("key_owner", ["processor", "terminal"])
@pytest.mark.parametrize("scope", ["owner", "former"])
async def test_request_scoped_to_a_key_replays_under_every_key_of_the_owner(
    harness: Harness, key_owner: str, scope: str
) -> None:
    pos = await PosDriver.create(harness)
    body = {"terminal_id": await pos.create_terminal()} if key_owner == "terminal" else {}
    old = await _create_key(harness, pos.merchant_auth, **body)
    paid = await pos.pay(auth=old)
    await _downgrade_and_migrate(harness, {old: paid}, owner=old if scope == "owner" else None)
    new = await _create_key(harness, pos.merchant_auth, **body)
    for key in (old, new):
        retried = await pos.pay(auth=key, request_id="one")
        assert (retried.content, retried.headers.get(REPLAYED_HEADER)) == (paid.content, "true")
    await _delete_key(harness, old)
    retried = await pos.pay(auth=new, request_id="one")
    assert retried.content == paid.content
    conflict = await pos.pay("5.00", auth=new, request_id="one")
    assert parse_error(conflict) == (409, "DUPLICATE_REQUEST")
    assert await _count_transactions(harness) == 1


async def _create_payments_with_same_id(
    harness: Harness, pos: PosDriver, amounts: tuple[str, str], owner: int
) -> dict[HmacAuth, httpx2.Response]:
    """Create two payments with one request ID, which an earlier release allowed per key."""
    keys = [pos.merchant_auth, await harness.create_second_key(pos.merchant_auth)]
    paid = {key: await pos.pay(amount, auth=key) for key, amount in zip(keys, amounts, strict=True)}
    await _downgrade_and_migrate(harness, paid, owner=keys[owner])
    return paid


@pytest.mark.parametrize("owner", [0, 1])
async def test_request_id_shared_by_two_payments_replays_the_payment_with_the_same_content(
    harness: Harness, owner: int
) -> None:
    pos = await PosDriver.create(harness)
    paid = await _create_payments_with_same_id(harness, pos, ("10.00", "20.00"), owner)
    for key in (*paid, await harness.create_second_key(pos.merchant_auth)):
        for amount, first in zip(("10.00", "20.00"), paid.values(), strict=True):
            retried = await pos.pay(amount, auth=key, request_id="one")
            assert (retried.content, retried.headers[REPLAYED_HEADER]) == (first.content, "true")
        conflict = await pos.pay("30.00", auth=key, request_id="one")
        assert parse_error(conflict) == (409, "DUPLICATE_REQUEST")
    assert await _count_transactions(harness) == 2


@pytest.mark.parametrize("owner", [0, 1])
async def test_request_id_shared_by_identical_payments_replays_the_keys_own_payment(
    harness: Harness, owner: int
) -> None:
    pos = await PosDriver.create(harness)
    paid = await _create_payments_with_same_id(harness, pos, ("10.00", "10.00"), owner)
    receipts = [response.json() for response in paid.values()]
    assert receipts[0]["transaction_id"] != receipts[1]["transaction_id"]
    for key, receipt in zip(paid, receipts, strict=True):
        assert (await pos.pay("10.00", auth=key, request_id="one")).json() == receipt
    third = await harness.create_second_key(pos.merchant_auth)
    assert (await pos.pay("10.00", auth=third, request_id="one")).json() == receipts[owner]
    assert await _count_transactions(harness) == 2


async def test_process_of_the_previous_release_does_not_pay_again(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During a rolling upgrade, a retry may reach a process that still scopes by key."""
    pos = await PosDriver.create(harness)
    first = await pos.pay()
    await _downgrade_and_migrate(harness, {pos.merchant_auth: first}, owner=pos.merchant_auth)
    paid = await pos.pay("7.00", request_id="two")
    assert paid.status_code == 200
    with monkeypatch.context() as previous:
        previous.setattr(Principal, "idempotency_scope", property(lambda caller: caller.id))
        retried = await pos.pay("7.00", request_id="two")
        assert (retried.content, retried.headers[REPLAYED_HEADER]) == (paid.content, "true")
        fresh = await pos.pay("8.00", request_id="three")
    retried = await pos.pay("8.00", request_id="three")
    assert (retried.content, retried.headers[REPLAYED_HEADER]) == (fresh.content, "true")
    assert await _count_transactions(harness) == 3


async def test_rotation_while_paying_pays_every_request_once(
    other_process_client: httpx2.AsyncClient, harness: Harness
) -> None:
    """The client uses the newest key and repeats each request, as after an unknown outcome."""
    await harness.disable_compliance_rules()
    pos = await PosDriver.create(harness)
    keys = [pos.merchant_auth]

    async def pay(number: int) -> httpx2.Response:
        body = {"request_id": f"rotated-{number}", "card_serial": pos.card, "amount": "1.00"}
        for attempt in range(50):
            process = (harness.client, other_process_client)[(number + attempt) % 2]
            response = await process.post(PAY_URL, json=body, auth=keys[-1])
            if response.status_code == 200 and attempt % 2:
                return response
        raise AssertionError(response.text)

    async def rotate() -> None:
        for _ in range(4):
            keys.append(await _create_key(harness, pos.merchant_auth))
            await _delete_key(harness, keys[-2])

    responses, _ = await asyncio.gather(asyncio.gather(*(pay(n) for n in range(40))), rotate())
    assert len({response.json()["transaction_id"] for response in responses}) == 40
    assert (await _count_transactions(harness), await pos.get_balance()) == (40, 960_00)
