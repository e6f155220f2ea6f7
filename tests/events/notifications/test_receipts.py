"""Receipts, reviewed payments and low floats become messages, exactly once."""

import asyncio
import contextlib
import dataclasses
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from builders.payments import (
    create_agent,
    create_partner,
    create_processor,
    decide_review,
    submit_and_get_id,
    submit_refund,
    update_rule,
)
from drivers.webhooks import FakeMessenger
from harness import PIN, Harness
from tapgate.core.settings import Settings
from tapgate.events.notifications import receipts
from tapgate.events.notifications.notification_messages import MessageSender
from tapgate.events.notifications.receipts import ReceiptWorker
from tapgate.http.api.services import Services
from tapgate.ledger import chart
from tapgate.ledger.rules import loaded_rules as ledger_rules
from tapgate.server import gateway
from tapgate.server.gateway_services import open_services
from tapgate_client import ids

MONEY_RECEIVED, PAYMENT_MADE = "money_received", "payment_made"
PAYMENT_RELEASED, PAYMENT_REJECTED = "payment_released", "payment_rejected"
FLOAT_LOW = "float_low"


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    """Return settings with all receipts enabled, or with the test's parameter."""
    return settings.replace(receipts=getattr(request, "param", "all"))


async def count_rows(services: Services, table: str) -> int:
    count: int = await services.database.fetchval(f"SELECT count(*) FROM {table}")
    return count


async def list_pending_messages(
    harness: Harness, subscriber: dict[str, Any]
) -> list[tuple[str, list[str]]]:
    """Enqueue due receipts; return the subscriber's pending receipts, oldest first."""
    await ReceiptWorker(harness.services).enqueue_due()
    kinds = (MONEY_RECEIVED, PAYMENT_MADE, PAYMENT_RELEASED, PAYMENT_REJECTED, FLOAT_LOW)
    pending = [
        (kind, await harness.list_pending_messages(subscriber["phone_number"], kind))
        for kind in kinds
    ]
    messages = [
        (kind, parameters) for kind, messages_of_kind in pending for parameters in messages_of_kind
    ]
    return sorted(messages, key=lambda message: message[1][-1])


async def create_subscriber(
    harness: Harness, first_name: str = "Aminata", balance: str = "0"
) -> dict[str, Any]:
    return await harness.create_subscriber(first_name=first_name, balance=balance)


async def test_both_parties_get_amount_counterparty_and_transaction_id(harness: Harness) -> None:
    sender = await create_subscriber(harness, "Ibrahim", "5000")
    receiver = await create_subscriber(harness)
    transaction_id = await submit_and_get_id(
        harness, chart.TRANSFER_P2P, sender, receiver, "1234.50"
    )
    pending_messages = await list_pending_messages(harness, receiver)
    assert pending_messages == [(MONEY_RECEIVED, ["1,234.50 SLE", "Ibrahim K.", transaction_id])]
    pending_messages = await list_pending_messages(harness, sender)
    assert pending_messages == [(PAYMENT_MADE, ["1,234.50 SLE", "Aminata K.", transaction_id])]
    assert await count_rows(harness.services, "notices") == 0


async def test_counterparties_are_shown_by_their_public_name(harness: Harness) -> None:
    subscriber = await create_subscriber(harness, balance="500")
    agent = await create_agent(harness)
    merchant = await create_processor(harness)
    partner = await create_partner(harness)
    await submit_and_get_id(harness, chart.PARTNER_DEPOSIT, "cash", partner, "100.00")
    await submit_and_get_id(harness, chart.AGENT_FUND, "cash", agent, "100.00")
    await submit_and_get_id(harness, chart.TRANSFER, "cash", merchant, "100.00")
    expected = []
    for kind, payer, payee, template, name in (
        (chart.AGENT_CASHIN, agent, subscriber["id"], MONEY_RECEIVED, "Kadiatu Public"),
        (chart.PARTNER_FUND, partner, subscriber["id"], MONEY_RECEIVED, "Sierra Public"),
        (chart.POS_PAYMENT, subscriber["id"], merchant, PAYMENT_MADE, "Kamara Public"),
        (chart.PROCESSOR_TRANSFER, merchant, subscriber["id"], MONEY_RECEIVED, "Kamara Public"),
        (chart.AGENT_CASHOUT, subscriber["id"], agent, PAYMENT_MADE, "Kadiatu Public"),
    ):
        pins = {"payer_pin": PIN} if payer == agent else {}
        transaction_id = await submit_and_get_id(harness, kind, payer, payee, "10.00", **pins)
        expected.append((template, ["10.00 SLE", name, transaction_id]))
    assert await list_pending_messages(harness, subscriber) == expected


@pytest.mark.parametrize("settings", ["off", "all"], indirect=True)
async def test_both_parties_of_a_held_payment_learn_its_outcome_in_their_language(
    harness: Harness,
) -> None:
    await update_rule(harness, "Large amount", threshold="1000")
    sender = await create_subscriber(harness, "Ibrahim", "5000")
    receiver = await harness.create_subscriber(language="fr")
    agents_phone = "+23288000111"
    agent = await create_agent(harness)
    await harness.services.database.execute("UPDATE agents SET phone_number = $1", agents_phone)
    await update_rule(harness, "Large amount", transaction_types=["transfer_p2p", "agent_cashout"])
    parties = (harness, chart.TRANSFER_P2P, sender["id"], receiver["id"])
    released = await submit_and_get_id(*parties, "1234.50")
    rejected = await submit_and_get_id(*parties, "1100.00")
    cash_out = await submit_and_get_id(
        harness, chart.AGENT_CASHOUT, sender["id"], agent, "1200.00", payee_pin=PIN
    )
    assert await list_pending_messages(harness, receiver) == []
    await decide_review(harness, released, release=True)
    await decide_review(harness, rejected, release=False)
    await decide_review(harness, cash_out, release=True)
    assert await list_pending_messages(harness, sender) == [
        (PAYMENT_RELEASED, ["1,234.50 SLE", "to Aminata K.", released]),
        (PAYMENT_REJECTED, ["1,100.00 SLE", "to Aminata K.", rejected]),
        (PAYMENT_RELEASED, ["1,200.00 SLE", "to Kadiatu Public", cash_out]),
    ]
    assert await list_pending_messages(harness, receiver) == [
        (PAYMENT_RELEASED, ["1\u00a0234,50\u00a0SLE", "(expéditeur\u00a0: Ibrahim K.)", released]),
        (PAYMENT_REJECTED, ["1\u00a0100,00\u00a0SLE", "(expéditeur\u00a0: Ibrahim K.)", rejected]),
    ]
    pending_messages = await list_pending_messages(harness, {"phone_number": agents_phone})
    assert pending_messages == [(PAYMENT_RELEASED, ["1,200.00 SLE", "from Ibrahim K.", cash_out])]
    rows = await harness.services.database.fetch(
        """SELECT language, round(extract(epoch FROM expires_at - created_at) / 86400) AS days
           FROM messages ORDER BY language"""
    )
    assert [row["language"] for row in rows] == ["en"] * 4 + ["fr"] * 2
    assert {row["days"] for row in rows} == {7}


async def test_restricted_party_of_a_held_payment_is_named_by_id(harness: Harness) -> None:
    await update_rule(harness, "Large amount", threshold="1")
    sender = await create_subscriber(harness, balance="500")
    receiver = await harness.create_restricted_subscriber()
    transaction_id = await submit_and_get_id(
        harness, chart.TRANSFER_P2P, sender["id"], receiver["id"], "100.00"
    )
    await decide_review(harness, transaction_id, release=False)
    expected = (PAYMENT_REJECTED, ["100.00 SLE", f"to {receiver['id']}", transaction_id])
    assert await list_pending_messages(harness, sender) == [expected]


@pytest.mark.parametrize("settings", ["off"], indirect=True)
@pytest.mark.parametrize("is_terminated", [False, True])
async def test_agent_and_super_agent_learn_that_the_float_is_low(
    harness: Harness, is_terminated: bool
) -> None:
    super_agent, agent = await create_agent(harness, "Foday"), await create_agent(harness)
    customer = await create_subscriber(harness)
    database = harness.services.database
    await database.execute(
        "UPDATE agents SET parent_agent_id = $2 WHERE id = $1",
        ids.decode(ids.AGENT, agent),
        ids.decode(ids.AGENT, super_agent),
    )
    if is_terminated:
        await database.execute(
            "UPDATE accounts SET status = 'closed' WHERE owner_id = $1",
            ids.decode(ids.AGENT, super_agent),
        )
    await submit_and_get_id(harness, chart.AGENT_FUND, "cash", agent, "1500.00")
    for amount in ("400.00", "200.00", "100.00"):
        await submit_and_get_id(
            harness, chart.AGENT_CASHIN, agent, customer["id"], amount, payer_pin=PIN
        )
    await submit_and_get_id(harness, chart.AGENT_FUND, "cash", agent, "5000.00")
    phones = [
        row["phone_number"]
        for row in await database.fetch("SELECT phone_number FROM agents ORDER BY id")
    ]
    expected = [(FLOAT_LOW, ["Kadiatu Public", "900.00 SLE"])]
    received = [await list_pending_messages(harness, {"phone_number": phone}) for phone in phones]
    assert received == [[] if is_terminated else expected, expected]


async def test_merchant_name_from_the_terminal_is_shown_on_one_line(harness: Harness) -> None:
    subscriber = await create_subscriber(harness, balance="50")
    merchant = await create_processor(harness)
    context = {"merchant_name": "Kamara\n  Stores,\tAberdeen "}
    paid = await submit_and_get_id(
        harness, chart.POS_PAYMENT, subscriber, merchant, "10.00", context=context, channel="pos"
    )
    refunded = await submit_refund(harness, paid, merchant, "4.00")
    assert await list_pending_messages(harness, subscriber) == [
        (PAYMENT_MADE, ["10.00 SLE", "Kamara Stores, Aberdeen", paid]),
        (MONEY_RECEIVED, ["4.00 SLE", "Kamara Public", refunded]),
    ]


async def test_received_amount_excludes_a_fee_paid_by_the_receiver(harness: Harness) -> None:
    services = harness.services
    async with services.transaction() as tx:
        await tx.execute("UPDATE fee_rules SET payer = 'receiver', rate = 2000")
        ticket = await services.signals.publish(tx, ledger_rules.RULES_CHANGED, "")
    await services.signals.wait_for_acks(ticket)
    sender = await create_subscriber(harness, balance="100")
    receiver = await create_subscriber(harness)
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, receiver, "50.00")
    ((_, parameters),) = await list_pending_messages(harness, receiver)
    assert parameters[0] == "49.00 SLE"
    ((_, parameters),) = await list_pending_messages(harness, sender)
    assert parameters[0] == "50.00 SLE"


@pytest.mark.parametrize("state", ["blocked", "closed"])
async def test_receipt_goes_to_the_current_phone_number_of_a_blocked_or_closed_account(
    harness: Harness, state: str
) -> None:
    sender = await create_subscriber(harness, balance="100")
    receiver = await create_subscriber(harness)
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, receiver, "10.00")
    await harness.database.execute(
        "UPDATE subscribers SET phone_number = '+23276999999' WHERE id = $1",
        ids.decode(ids.SUBSCRIBER, receiver["id"]),
    )
    await harness.database.execute(
        "UPDATE accounts SET status = $2 WHERE owner_id = $1",
        ids.decode(ids.SUBSCRIBER, receiver["id"]),
        state,
    )
    assert await list_pending_messages(harness, receiver) == []
    assert len(await list_pending_messages(harness, {"phone_number": "+23276999999"})) == 1


async def test_failed_batch_is_rolled_back_and_each_receipt_is_enqueued_once(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = await create_subscriber(harness, balance="100")
    receiver = await create_subscriber(harness)
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, receiver, "10.00")
    enqueue_messages = receipts.enqueue_messages

    async def enqueue_and_fail(*arguments: Any, **options: Any) -> None:
        await enqueue_messages(*arguments, **options)
        raise ZeroDivisionError

    with monkeypatch.context() as patched, contextlib.suppress(ZeroDivisionError):
        patched.setattr(receipts, "enqueue_messages", enqueue_and_fail)
        await ReceiptWorker(harness.services).enqueue_due()
    assert await count_rows(harness.services, "messages") == 0
    assert await count_rows(harness.services, "notices") == 2
    assert len(await list_pending_messages(harness, receiver)) == 1
    assert await count_rows(harness.services, "messages") == 2


async def test_notices_of_a_killed_worker_are_processed_by_another(
    harness: Harness, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = await create_subscriber(harness, balance="100")
    receiver = await create_subscriber(harness)
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, receiver, "10.00")
    enqueued, enqueue_messages = asyncio.Event(), receipts.enqueue_messages

    async def enqueue_and_hang(*arguments: Any, **options: Any) -> None:
        await enqueue_messages(*arguments, **options)
        enqueued.set()
        await asyncio.Event().wait()

    async with open_services(harness.services.settings, database_url) as other:
        with monkeypatch.context() as patched:
            patched.setattr(receipts, "enqueue_messages", enqueue_and_hang)
            killed = asyncio.create_task(ReceiptWorker(other).enqueue_due())
            await enqueued.wait()
        # While the killed worker's database transaction is open, other workers skip its notices.
        await ReceiptWorker(harness.services).enqueue_due()
        assert await count_rows(harness.services, "messages") == 0
        killed.cancel()
        await asyncio.wait([killed])
    async with asyncio.timeout(30):
        while not (messages := await list_pending_messages(harness, receiver)):
            await asyncio.sleep(0.02)  # until PostgreSQL detects the lost connection
    assert len(messages) == 1
    assert await count_rows(harness.services, "messages") == 2


async def test_concurrent_workers_enqueue_each_receipt_once(
    harness: Harness, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipts, "BATCH_SIZE", 7)
    await harness.disable_compliance_rules()
    sender = await create_subscriber(harness, balance="200")
    receiver = await create_subscriber(harness)
    transaction_ids = await asyncio.gather(
        *(
            submit_and_get_id(harness, chart.TRANSFER_P2P, sender, receiver, "1.00")
            for _ in range(60)
        )
    )
    async with open_services(harness.services.settings, database_url) as other:
        workers = (ReceiptWorker(services) for services in (harness.services, other) * 2)
        await asyncio.gather(*(worker.enqueue_due() for worker in workers))
    for subscriber in (sender, receiver):
        found = sorted(
            parameters[-1] for _, parameters in await list_pending_messages(harness, subscriber)
        )
        assert found == sorted(transaction_ids)
    assert await count_rows(harness.services, "messages") == 120


async def test_receipt_expires_a_day_after_the_transaction(harness: Harness) -> None:
    sender = await create_subscriber(harness, balance="100")
    receiver = await create_subscriber(harness)
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, receiver, "10.00")
    harness.advance_clock(hours=20)
    await ReceiptWorker(harness.services).enqueue_due()
    (completed_at,) = await harness.database.fetchrow(
        "SELECT completed_at FROM transactions WHERE type = 'transfer_p2p'"
    )
    rows = await harness.database.fetch("SELECT expires_at FROM messages")
    assert [row["expires_at"] for row in rows] == [completed_at + timedelta(hours=24)] * 2
    harness.advance_clock(hours=5)
    async with httpx2.AsyncClient(trust_env=False) as http:
        await MessageSender(harness.services, http).send_due()
    assert await list_pending_messages(harness, receiver) == []


async def test_stored_notices_and_messages_contain_no_plaintext(harness: Harness) -> None:
    sender = await create_subscriber(harness, "Ibrahim", "100")
    receiver = await create_subscriber(harness)
    amount = "77.31"  # cannot be part of a timestamp: no minute has 77 seconds
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, receiver, amount)
    notices = await harness.database.fetch("SELECT notices::text FROM notices")
    await ReceiptWorker(harness.services).enqueue_due()
    messages = await harness.database.fetch("SELECT messages::text, parameters FROM messages")
    assert (len(notices), len(messages)) == (2, 2)
    for plaintext in ("Ibrahim", amount):
        assert plaintext not in str([*notices, *messages])


async def test_running_gateway_sends_receipts_to_the_messenger(harness: Harness) -> None:
    services = harness.services
    messenger = FakeMessenger(services.settings.service_secrets["gateway"])
    async with messenger.listen():
        settings = services.settings.replace(messenger_url=messenger.url)
        async with gateway.start_background_tasks(dataclasses.replace(services, settings=settings)):
            sender = await create_subscriber(harness, "Ibrahim", "100")
            receiver = await create_subscriber(harness)
            transaction_id = await submit_and_get_id(
                harness, chart.TRANSFER_P2P, sender, receiver, "10.00"
            )
            async with asyncio.timeout(30):
                while len(messenger.received) < 2:
                    await asyncio.sleep(0.02)
    received = sorted(messenger.received, key=lambda message: message["template"])
    expected = [
        {
            "id": "",
            "to": subscriber["phone_number"],
            "template": kind,
            "language": "en",
            "parameters": ["10.00 SLE", counterparty, transaction_id],
        }
        for subscriber, kind, counterparty in (
            (receiver, MONEY_RECEIVED, "Ibrahim K."),
            (sender, PAYMENT_MADE, "Aminata K."),
        )
    ]
    assert [{**message, "id": ""} for message in received] == expected


async def test_receipts_are_sent_without_a_lease_while_the_messenger_accepts_messages(
    harness: Harness,
) -> None:
    services = harness.services
    messenger = FakeMessenger(services.settings.service_secrets["gateway"])
    payer = await create_subscriber(harness, "Ibrahim", "100")
    receiver = await create_subscriber(harness)

    async def transfer() -> list[tuple[str, int]]:
        """Transfer money; return the two newest messages' status and attempts."""
        await submit_and_get_id(harness, chart.TRANSFER_P2P, payer, receiver, "10.00")
        await worker.enqueue_due()
        rows = await harness.database.fetch(
            "SELECT status, attempts FROM messages ORDER BY id DESC LIMIT 2"
        )
        return [(row["status"], row["attempts"]) for row in rows]

    async with messenger.listen():
        settings = services.settings.replace(messenger_url=messenger.url)
        services = dataclasses.replace(services, settings=settings)
        sender = MessageSender(services)
        worker = ReceiptWorker(services, sender)
        assert await transfer() == [("pending", 0)] * 2  # it is not known yet if it accepts them
        await sender.send_due()
        assert await transfer() == [("delivered", 1)] * 2
        messenger.statuses = [503, 503]
        assert await transfer() == [("pending", 1)] * 2
        assert await transfer() == [("pending", 0)] * 2
        assert len({message["id"] for message in messenger.received}) == 6


async def test_receipt_of_a_killed_process_is_sent_when_its_lease_expires(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = harness.services
    messenger = FakeMessenger(services.settings.service_secrets["gateway"])
    payer = await create_subscriber(harness, "Ibrahim", "100")
    receiver = await create_subscriber(harness)
    async with messenger.listen():
        settings = services.settings.replace(messenger_url=messenger.url)
        services = dataclasses.replace(services, settings=settings)
        killed = MessageSender(services)
        killed.is_accepting = True

        async def cancel(_: object) -> None:
            raise asyncio.CancelledError

        monkeypatch.setattr(killed, "post", cancel)
        await submit_and_get_id(harness, chart.TRANSFER_P2P, payer, receiver, "10.00")
        with pytest.raises(asyncio.CancelledError):
            await ReceiptWorker(services, killed).enqueue_due()
        await MessageSender(services).send_due()
        assert messenger.received == []
        harness.advance_clock(seconds=30)
        later = dataclasses.replace(services, clock=harness.services.clock)
        await MessageSender(later).send_due()
        assert len(messenger.received) == 2
