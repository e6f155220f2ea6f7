"""Operations of an internal service against the real gateway."""

import asyncio
from decimal import Decimal

import pytest

from client.builders import ClientFactory
from harness import PIN, WRONG_PIN
from tapgate.client import exceptions


async def test_subscriber_is_registered_found_and_verified_by_pin(stage: ClientFactory) -> None:
    gateway = stage.create_for_service()
    phone = stage.harness.new_phone_number()
    made = await gateway.subscribers.register(
        phone_number=phone, first_name="Aminata", last_name="Kamara", pin=PIN
    )
    found = [one async for one in gateway.subscribers.list(phone_number=phone)]
    assert found == [made.subscriber] == [await gateway.subscribers.get(made.subscriber_id)]
    assert (await gateway.subscribers.verify_pin(made.subscriber_id, pin=PIN)).verified
    with pytest.raises(exceptions.InvalidPinError) as refusal:
        await gateway.subscribers.verify_pin(made.subscriber_id, pin=WRONG_PIN)
    assert refusal.value.attempts_remaining == 2
    await gateway.subscribers.change_pin(made.subscriber_id, old_pin=PIN, new_pin="8352")
    assert (await gateway.account_rules.get(1)).kyc_level == 1


async def test_transfer_replay_card_block_and_statement(stage: ClientFactory) -> None:
    gateway, world = stage.create_for_service(), stage.harness
    sender = await world.create_subscriber(balance="1000")
    serial = await world.create_card((await world.create_subscriber())["id"])
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
    again = await gateway.wallet.transfer_p2p(
        sender_id=sender["id"],
        recipient_card_serial=serial,
        amount="100.50",
        pin=PIN,
        request_id="first",
    )
    assert (receipt.replayed, again.replayed) == (False, True)
    assert again.transaction_id == receipt.transaction_id
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


async def test_sync_and_async_clients_return_the_same_records(stage: ClientFactory) -> None:
    record = await stage.harness.create_subscriber()
    gateway = stage.create_sync(stage.secret)
    waited = await asyncio.to_thread(gateway.subscribers.get, record["id"])
    assert waited == await stage.create_for_service().subscribers.get(record["id"])
    walked = await asyncio.to_thread(list, gateway.subscribers.list())
    assert walked == [waited]


async def test_decline_raises_an_exception_with_the_amounts(stage: ClientFactory) -> None:
    sender = await stage.harness.create_subscriber(balance="10")
    serial = await stage.harness.create_card((await stage.harness.create_subscriber())["id"])
    with pytest.raises(exceptions.InsufficientFundsError) as declined:
        await stage.create_for_service().wallet.transfer_p2p(
            sender_id=sender["id"], recipient_card_serial=serial, amount="500", pin=PIN
        )
    error = declined.value
    assert isinstance(error, exceptions.TransactionDeclinedError)
    assert error.available == 10
    assert error.required is not None and error.required > 500
    assert (error.code, error.status) == ("INSUFFICIENT_FUNDS", 402)
