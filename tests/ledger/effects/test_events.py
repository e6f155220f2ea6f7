"""Ledger events: enqueued in the batch's database transaction, and only if subscribed to."""

from typing import Any

import pytest

from builders.ledger import (
    WRONG_PIN,
    LedgerDriver,
    build_cash_in,
    build_fund,
    build_p2p,
    build_payment,
    build_refund,
    build_request_key,
    remove_limits,
)
from tapgate.ledger.commands import ReviewDecision
from tapgate_client.errors import Code

LOW_FLOAT_AMOUNT = 1_000_00


async def subscribe_to_events(ledger: LedgerDriver, *events: str) -> int:
    endpoint_id = ledger.new_id()
    await ledger.database.execute(
        "INSERT INTO webhook_endpoints VALUES ($1, 'https://shop.example.com', $2, '', now())",
        endpoint_id,
        list(events),
    )
    ledger.ledger.low_float_threshold = LOW_FLOAT_AMOUNT
    ledger.ledger.invalidate_rules()
    return endpoint_id


async def list_events(ledger: LedgerDriver) -> list[tuple[str, int]]:
    rows = await ledger.database.fetch(
        """SELECT type, subject_id, data, occurred_at FROM events
           JOIN deliveries ON event_id = events.id ORDER BY deliveries.id"""
    )
    for row in rows:
        assert row["data"] is None
        assert row["occurred_at"] == ledger.clock()
    return [(row["type"], row["subject_id"]) for row in rows]


async def test_events_without_a_subscribed_endpoint_add_no_statement(
    ledger: LedgerDriver, statements: list[str]
) -> None:
    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    (await ledger.submit(build_p2p(sender, receiver, 10_00))).require_accepted()
    baseline = len(statements)
    assert await ledger.database.fetchval("SELECT count(*) FROM events") == 0

    await subscribe_to_events(ledger, "card.linked", "transaction.failed")
    statements.clear()
    (await ledger.submit(build_p2p(sender, receiver, 10_00))).require_accepted()
    assert len(statements) == baseline
    assert await ledger.database.fetchval("SELECT count(*) FROM events") == 0


async def test_batch_raises_all_its_alerts_in_two_statements(
    ledger: LedgerDriver, statements: list[str]
) -> None:
    await remove_limits(ledger)
    senders = [await ledger.create_subscriber(2_000_000_00) for _ in range(3)]
    receiver = await ledger.create_subscriber()
    await ledger.submit_batch([build_p2p(senders[0], receiver, 1_00)])
    baseline = len(statements)
    statements.clear()
    outcomes = await ledger.submit_batch(
        [
            build_p2p(sender, receiver, amount)
            for sender in senders
            for amount in (*[1_00] * 12, 600_000_00, 700_000_00)
        ]
    )
    assert len(statements) == baseline + 2
    raised = await ledger.database.fetch(
        """SELECT subscriber_id, review, occurrences, transaction_id FROM alerts
           ORDER BY review, subscriber_id, id"""
    )
    results = [outcome.require_accepted() for outcome in outcomes]
    last = [results[index].transaction_id for index in (13, 27, 41)]
    held = [result.transaction_id for result in results if result.status == "under_review"]
    # The first sender already sent one transfer; the rule allows ten per hour.
    assert [tuple(row) for row in raised] == [
        (senders[0], False, 5, last[0]),
        (senders[1], False, 4, last[1]),
        (senders[2], False, 4, last[2]),
        *((senders[index // 2], True, 1, held[index]) for index in range(6)),
    ]


async def test_batch_enqueues_all_events_in_one_statement(
    ledger: LedgerDriver, statements: list[str]
) -> None:
    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    statements.clear()
    await ledger.submit_batch([build_p2p(sender, receiver, 1_00)])
    baseline = len(statements)
    await subscribe_to_events(ledger, "transaction.completed", "transaction.failed")
    statements.clear()
    outcomes = await ledger.submit_batch(
        [build_p2p(sender, receiver, amount) for amount in (10_00, 20_00, 90_00, 30_00)]
    )
    assert len(statements) == baseline + 1
    transaction_ids = [outcome.result.transaction_id for outcome in outcomes if outcome.result]
    statuses = ["completed", "completed", "failed", "completed"]
    events = await list_events(ledger)
    expected = [
        (f"transaction.{status}", transaction_id)
        for status, transaction_id in zip(statuses, transaction_ids, strict=True)
    ]
    assert events == expected


async def test_each_endpoint_gets_deliveries_of_its_subscribed_events(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    failures = await subscribe_to_events(ledger, "transaction.failed")
    everything = await subscribe_to_events(ledger, "*")
    deleted = await subscribe_to_events(ledger, "*")
    await ledger.database.execute(
        "UPDATE webhook_endpoints SET deleted_at = now() WHERE id = $1", deleted
    )
    await ledger.submit_batch(
        [build_p2p(sender, receiver, 10_00), build_p2p(sender, receiver, 500_00)]
    )
    rows = await ledger.database.fetch(
        """SELECT endpoint_id, type, status, next_attempt_at FROM deliveries
           JOIN events ON events.id = event_id ORDER BY endpoint_id, deliveries.id"""
    )
    assert [tuple(row) for row in rows] == [
        (failures, "transaction.failed", "pending", ledger.clock()),
        (everything, "transaction.completed", "pending", ledger.clock()),
        (everything, "transaction.failed", "pending", ledger.clock()),
    ]
    assert await ledger.database.fetchval("SELECT count(*) FROM events") == 2


async def test_rejections_and_replays_enqueue_no_events(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    await subscribe_to_events(ledger, "*")
    rejected = await ledger.submit(build_p2p(sender, receiver, 10_00, payer_pin=WRONG_PIN))
    assert rejected.code == Code.INVALID_PIN
    command = build_p2p(sender, receiver, 10_00, idempotency_key=build_request_key("one"))
    transaction_id = (await ledger.submit(command)).require_accepted().transaction_id
    assert (await ledger.submit(command)).replayed
    assert await list_events(ledger) == [("transaction.completed", transaction_id)]


async def test_rolled_back_batch_enqueues_no_events(
    ledger: LedgerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tapgate.ledger.engine import group_commit

    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    await subscribe_to_events(ledger, "*")
    write = group_commit.write

    async def write_and_fail(*arguments: Any, commits: bool) -> None:
        await write(*arguments, commits=False)
        raise ZeroDivisionError

    monkeypatch.setattr(group_commit, "write", write_and_fail)
    with pytest.raises(ZeroDivisionError):
        await ledger.submit_batch([build_p2p(sender, receiver, 10_00)])
    assert await list_events(ledger) == []


@pytest.mark.parametrize(("release", "status"), [(True, "completed"), (False, "failed")])
async def test_review_enqueues_events_for_the_hold_the_alert_and_the_decision(
    ledger: LedgerDriver, release: bool, status: str
) -> None:
    await remove_limits(ledger)
    sender = await ledger.create_subscriber(1_000_000_00)
    receiver = await ledger.create_subscriber()
    await subscribe_to_events(ledger, "*")
    transaction_id = (
        (await ledger.submit(build_p2p(sender, receiver, 600_000_00)))
        .require_accepted()
        .transaction_id
    )
    alert = await ledger.database.fetchval("SELECT id FROM alerts")
    decision = ReviewDecision(transaction_id=transaction_id, release=release)
    await ledger.submit(decision)
    assert (await ledger.submit(decision)).code == Code.ALREADY_RESOLVED
    assert await list_events(ledger) == [
        ("transaction.under_review", transaction_id),
        ("alert.created", alert),
        (f"transaction.{status}", transaction_id),
    ]


async def test_alert_event_is_enqueued_on_creation_but_not_on_recurrence(
    ledger: LedgerDriver,
) -> None:
    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    await subscribe_to_events(ledger, "alert.created")
    commands = [build_p2p(sender, receiver, 1_00) for _ in range(13)]
    await ledger.submit_batch(commands[:12])
    await ledger.submit(commands[12])
    (alert,) = await ledger.database.fetch("SELECT id, occurrences FROM alerts")
    assert alert["occurrences"] == 3
    assert await list_events(ledger) == [("alert.created", alert["id"])]


async def test_refund_enqueues_its_own_event_and_one_for_the_payment(ledger: LedgerDriver) -> None:
    payer, processor = await ledger.create_subscriber(100_00), await ledger.create_processor(50_00)
    payment = (
        (await ledger.submit(build_payment(payer, processor, 30_00)))
        .require_accepted()
        .transaction_id
    )
    await subscribe_to_events(
        ledger, "transaction.completed", "transaction.refunded", "transaction.failed"
    )
    partial_refund = (
        (await ledger.submit(build_refund(processor, payment, 10_00)))
        .require_accepted()
        .transaction_id
    )
    final_refund = (
        (await ledger.submit(build_refund(processor, payment, None)))
        .require_accepted()
        .transaction_id
    )
    again = await ledger.submit(build_refund(processor, payment, 1_00))
    assert again.code == Code.ALREADY_REFUNDED
    assert await list_events(ledger) == [
        ("transaction.completed", partial_refund),
        ("transaction.refunded", payment),
        ("transaction.completed", final_refund),
        ("transaction.refunded", payment),
    ]


async def test_float_low_event_is_enqueued_once_per_threshold_crossing(
    ledger: LedgerDriver,
) -> None:
    agent = await ledger.create_agent(LOW_FLOAT_AMOUNT + 100_00)
    subscriber = await ledger.create_subscriber()
    await subscribe_to_events(ledger, "agent.float_low")
    (await ledger.submit(build_cash_in(agent, subscriber, 100_00))).require_accepted()
    assert await list_events(ledger) == []  # a float equal to the threshold is not low
    (await ledger.submit(build_cash_in(agent, subscriber, 1))).require_accepted()
    (await ledger.submit(build_cash_in(agent, subscriber, 1_00))).require_accepted()
    assert await list_events(ledger) == [("agent.float_low", agent)]
    (await ledger.submit(build_fund(agent, 100_00))).require_accepted()
    (await ledger.submit(build_cash_in(agent, subscriber, 100_00))).require_accepted()
    assert await list_events(ledger) == [("agent.float_low", agent)] * 2


async def test_each_threshold_crossing_within_a_batch_enqueues_a_float_low_event(
    ledger: LedgerDriver,
) -> None:
    first_agent = await ledger.create_agent(LOW_FLOAT_AMOUNT)
    second_agent = await ledger.create_agent(LOW_FLOAT_AMOUNT)
    subscriber = await ledger.create_subscriber()
    await subscribe_to_events(ledger, "agent.float_low")
    commands = [
        build_cash_in(first_agent, subscriber, 10_00),
        build_fund(first_agent, 50_00),
        build_cash_in(second_agent, subscriber, 10_00),
        build_cash_in(first_agent, subscriber, 50_00),
        build_fund(first_agent, 500_00),
    ]
    outcomes = await ledger.submit_batch(commands)
    assert [outcome.code for outcome in outcomes] == [None] * 5
    assert await list_events(ledger) == [
        ("agent.float_low", first_agent),
        ("agent.float_low", second_agent),
        ("agent.float_low", first_agent),
    ]
