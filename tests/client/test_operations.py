"""Operations of an internal service against the real gateway."""

import asyncio
from decimal import Decimal

import pytest

from drivers.in_process import ClientFactory
from harness import PIN, WRONG_PIN
from tapgate.client import DeclinedError, ValidationError


async def test_subscriber_is_registered_found_and_verified_by_pin(
    client_factory: ClientFactory,
) -> None:
    gateway = client_factory.create_for_service()
    phone = client_factory.harness.new_phone_number()
    created = await gateway.subscribers.register(
        phone_number=phone, first_name="Aminata", last_name="Kamara", pin=PIN
    )
    found = [item async for item in gateway.subscribers.list(phone_number=phone)]
    assert found == [created.subscriber] == [await gateway.subscribers.get(created.subscriber_id)]
    assert (await gateway.subscribers.verify_pin(created.subscriber_id, pin=PIN)).verified
    with pytest.raises(ValidationError) as raised:
        await gateway.subscribers.verify_pin(created.subscriber_id, pin=WRONG_PIN)
    assert raised.value.code == "INVALID_PIN"
    assert raised.value.details["attempts_remaining"] == 2
    await gateway.subscribers.change_pin(created.subscriber_id, old_pin=PIN, new_pin="8352")
    assert (await gateway.account_rules.get(1)).kyc_level == 1


async def test_service_can_transfer_replay_block_a_card_and_create_a_statement(
    client_factory: ClientFactory,
) -> None:
    gateway, harness = client_factory.create_for_service(), client_factory.harness
    sender = await harness.create_subscriber(balance="1000")
    serial = await harness.create_card((await harness.create_subscriber())["id"])
    quote = await gateway.wallet.quote(
        type="transfer_p2p", amount=Decimal("100.50"), sender_id=sender["id"]
    )
    assert quote.allowed
    receipt = await gateway.wallet.transfer_p2p(
        sender_id=sender["id"],
        recipient_card_serial=serial,
        amount=Decimal("100.50"),
        pin=PIN,
        request_id="first",
    )
    replayed_receipt = await gateway.wallet.transfer_p2p(
        sender_id=sender["id"],
        recipient_card_serial=serial,
        amount="100.50",
        pin=PIN,
        request_id="first",
    )
    assert (receipt.replayed, replayed_receipt.replayed) == (False, True)
    assert receipt.request_id == replayed_receipt.request_id == "first"
    assert replayed_receipt.transaction_id == receipt.transaction_id
    assert receipt.recipient.card_serial == serial
    balance = await gateway.balances.get(sender["id"])
    assert Decimal(balance.available) == 1000 - Decimal(quote.total)
    (newest,) = (await gateway.transactions.list(user_id=sender["id"], limit=1).get_page()).data
    assert newest.id == receipt.transaction_id
    assert (await gateway.cards.get(serial)).status == "ACTIVE"
    assert (await gateway.cards.block(serial, reason="customer_request")).card.status == "BLOCKED"
    assert (await gateway.cards.unblock(serial)).card.status == "ACTIVE"
    statement = await gateway.wallet.create_statement(
        subscriber_id=sender["id"], from_date="2026-01-01", to_date="2026-01-31"
    )
    assert statement.subscriber.id == sender["id"]


async def test_sync_and_async_clients_return_the_same_records(
    client_factory: ClientFactory,
) -> None:
    record = await client_factory.harness.create_subscriber()
    gateway = client_factory.create_sync(client_factory.secret)
    from_sync = await asyncio.to_thread(gateway.subscribers.get, record["id"])
    assert from_sync == await client_factory.create_for_service().subscribers.get(record["id"])
    listed = await asyncio.to_thread(list, gateway.subscribers.list())
    assert listed == [from_sync]


async def test_decline_raises_an_exception_with_the_amounts(client_factory: ClientFactory) -> None:
    sender = await client_factory.harness.create_subscriber(balance="10")
    serial = await client_factory.harness.create_card(
        (await client_factory.harness.create_subscriber())["id"]
    )
    with pytest.raises(DeclinedError) as declined:
        await client_factory.create_for_service().wallet.transfer_p2p(
            sender_id=sender["id"], recipient_card_serial=serial, amount="500", pin=PIN
        )
    error = declined.value
    assert error.details["available"] == 10
    assert error.details["required"] > 500
    assert (error.code, error.status) == ("INSUFFICIENT_FUNDS", 402)
