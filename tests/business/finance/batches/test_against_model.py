"""Random batches, some canceled: validity, payments and balances agree with a model."""

import asyncio
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from builders.batches import (
    change_batch,
    create_draft,
    create_funded_partner,
    get_batch,
    list_lines,
    pay_batches,
)
from builders.ledger import require_balanced_books
from builders.participants import get_wallet_balance
from builders.payouts import fund_owner, get_balance
from examples import limit_examples
from harness import Harness
from tapgate.business.finance.batches import worker
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command
from tapgate_client import ids

#: Of a KYC level 1 wallet.
MAX_BALANCE = 500_000
BLOCKED, UNKNOWN = 3, 4
AMOUNTS = ("1", "250000", "250001", "0", "x")


class Line(NamedTuple):
    receiver: int
    amount: str
    reference: str


class Plan(NamedTuple):
    lines: list[Line]
    balance: int
    refill: int  # of the source, if it cannot pay
    drain: int  # from the source after the validation
    chunk: int
    cancel_after: int | None  # event loop turns


lines = st.builds(
    Line, st.integers(0, UNKNOWN), st.sampled_from(AMOUNTS), st.sampled_from(("A", "B", ""))
)
plans = st.builds(
    Plan,
    st.lists(lines, min_size=1, max_size=12),
    st.integers(1, 1_000_000),
    st.just(10_000_000),
    st.integers(0, 600_000),
    st.integers(1, 5),
    st.none() | st.integers(0, 60),
)


def find_codes(lines: list[Line]) -> list[str | None]:
    """Return the validation's code of each line."""
    codes: list[str | None] = []
    seen: set[Line] = set()
    totals = [0] * UNKNOWN
    for line in lines:
        code = None
        if line.amount in ("0", "x") or not line.reference:
            code = "VALIDATION_FAILED"
        elif line.receiver == UNKNOWN:
            code = "SUBSCRIBER_NOT_FOUND"
        elif line.receiver == BLOCKED:
            code = "SUBSCRIBER_BLOCKED"
        elif line in seen:
            code = "DUPLICATE_REFERENCE"
        else:
            seen.add(line)
            totals[line.receiver] += int(line.amount)
        codes.append(code)
    return [
        "MAX_BALANCE_EXCEEDED" if code is None and totals[line.receiver] > MAX_BALANCE else code
        for line, code in zip(lines, codes, strict=True)
    ]


def pay(lines: list[Line], codes: list[str | None], balance: int) -> list[tuple[str, str | None]]:
    """Return what becomes of each line without a cancellation."""
    results: list[tuple[str, str | None]] = []
    for line, code in zip(lines, codes, strict=True):
        if code is not None:
            results.append(("invalid", code))
        elif int(line.amount) > balance:
            results.append(("failed", "INSUFFICIENT_FUNDS"))
        else:
            balance -= int(line.amount)
            results.append(("paid", None))
    return results


@settings(max_examples=limit_examples(25))
@given(plans)
async def test_random_batches_agree_with_the_model(harness: Harness, plan: Plan) -> None:
    await harness.disable_compliance_rules()
    people = [await harness.create_subscriber() for _ in range(UNKNOWN)]
    await block(harness, people[BLOCKED])
    phones = [*(person["phone_number"] for person in people), "+23299000000"]
    source = await create_funded_partner(harness, str(plan.balance))
    rows = [(phones[line.receiver], line.amount, line.reference) for line in plan.lines]
    batch_id = await create_draft(harness, rows, source, name=source)
    codes = find_codes(plan.lines)
    valid = [line for line, code in zip(plan.lines, codes, strict=True) if code is None]
    total, balance = sum(int(line.amount) for line in valid), plan.balance
    response = await change_batch(harness, batch_id, "validate")
    if total > balance:
        assert response.json()["code"] == "INSUFFICIENT_FUNDS"
        await fund_owner(harness, source, str(plan.refill))
        balance += plan.refill
        response = await change_batch(harness, batch_id, "validate")
    record = response.json()
    assert (record["valid"], record["total_amount"]) == (len(valid), f"{total}.00")
    drained = min(plan.drain, balance)
    await drain(harness, source, drained)
    before = [await get_wallet_balance(harness, person) for person in people]
    batch = await run(harness, batch_id, plan)
    stored = [(line["status"], line["code"]) for line in await list_lines(harness, batch_id)]
    expected = pay(plan.lines, codes, balance - drained)
    if batch["status"] == "cancelled":
        decided = sum(status in ("paid", "failed") for status, _ in stored)
        expected = skip_after(expected, decided)
    assert stored == expected
    await require_sums(harness, batch, people, before, plan.lines, expected)
    remaining = balance - drained - int(float(batch["paid_amount"]))
    assert await get_balance(harness, source) == f"{remaining}.00"
    await require_balanced_books(harness.database)


async def run(harness: Harness, batch_id: str, plan: Plan) -> dict[str, Any]:
    """Run the batch, and cancel it at the planned point if it is still running then."""
    size, worker.CHUNK_SIZE = worker.CHUNK_SIZE, plan.chunk  # type: ignore[misc]
    try:
        assert (await change_batch(harness, batch_id, "run")).status_code == 202
        paying = asyncio.create_task(pay_batches(harness))
        if plan.cancel_after is not None:
            for _ in range(plan.cancel_after):
                await asyncio.sleep(0.001)
            response = await change_batch(harness, batch_id, "cancel")
            assert response.status_code in (200, 409)
        await paying
    finally:
        worker.CHUNK_SIZE = size  # type: ignore[misc]
    return await get_batch(harness, batch_id)


def skip_after(
    expected: list[tuple[str, str | None]], decided: int
) -> list[tuple[str, str | None]]:
    results = []
    for result in expected:
        if result[0] != "invalid":
            decided -= 1
        results.append(("skipped", None) if result[0] != "invalid" and decided < 0 else result)
    return results


async def require_sums(
    harness: Harness,
    batch: dict[str, Any],
    people: list[dict[str, Any]],
    before: list[str],
    lines: list[Line],
    results: list[tuple[str, str | None]],
) -> None:
    """Require that the counters and the wallets agree with the lines."""
    paid = [line for line, result in zip(lines, results, strict=True) if result[0] == "paid"]
    statuses = [status for status, _ in results]
    assert (batch["paid"], batch["failed"]) == (len(paid), statuses.count("failed"))
    assert batch["paid_amount"] == f"{sum(int(line.amount) for line in paid)}.00"
    has_errors = bool({"failed", "invalid"} & {*statuses})
    ended = "completed_with_errors" if has_errors else "completed"
    assert batch["status"] in (ended, "cancelled")
    for number, person in enumerate(people):
        received = sum(int(line.amount) for line in paid if line.receiver == number)
        balance = await get_wallet_balance(harness, person)
        assert float(balance) == float(before[number]) + received


async def block(harness: Harness, person: dict[str, Any]) -> None:
    response = await harness.post(
        f"/api/v1/subscribers/{person['id']}/block",
        json={"reason": "fraud"},
        auth=await harness.create_admin(),
    )
    assert response.status_code == 200, response.text


async def drain(harness: Harness, source: str, amount: int) -> None:
    """Take money from the source."""
    if amount:
        command = Command(
            type=chart.TRANSFER,
            channel="admin",
            payer=commands.partner_party(ids.decode(ids.PARTNER, source) or 0),
            payee=commands.CASH_PARTY,
            amount=amount * 100,
        )
        (await harness.services.ledger.submit(command)).require_accepted()
