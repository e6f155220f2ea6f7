"""Proofs in the ledger: any sequence of taps agrees with a model, and a tap pays once."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.ledger import (
    AUDIT,
    PIN,
    WRONG_PIN,
    LedgerDriver,
    build_command,
    build_request_key,
    is_correct_pin,
    require_balanced_books,
)
from builders.ledger_model import ACCOUNTS, OWNERS, InMemoryLedger
from drivers.deployments import TwoLedgers
from examples import limit_examples
from tapgate.ledger import chart, commands
from tapgate.ledger.card_proofs import rejected_taps
from tapgate.ledger.card_proofs.proof_verifier import ProofResult
from tapgate.ledger.commands import Command, Outcome
from tapgate.ledger.decisions.apply import apply_decision
from tapgate.ledger.decisions.decide import decide
from tapgate.ledger.rules.kyc_limits import AccountRule
from tapgate.ledger.rules.loaded_rules import Rules
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.errors import Code

pytestmark = [pytest.mark.cards, pytest.mark.payment]

SERIAL = "c0"
KEYSET = 7
BALANCE = 1_000
MAX_WRONG_PINS = 3


async def crash_before_commit(*_: object) -> None:
    raise RuntimeError("crash before the commit")


class Tap(NamedTuple):
    version: int
    counter: int


class Step(NamedTuple):
    """One step: a tap, a payment with an earlier tap, or a chip encoding."""

    kind: str
    number: int = 0  # the gap before a tap, or an earlier tap's place, counted from the last
    amount: int = 1
    pin: str = PIN
    request: str | None = None


payments = st.builds(
    Step,
    kind=st.sampled_from(["pay", "pay", "pay", "pay", "forge", "pay without proof"]),
    number=st.sampled_from([0, 0, 0, 0, 1, 1, 2, 5]),
    amount=st.sampled_from([1, 1, 50, 2_000]),
    pin=st.sampled_from([PIN, PIN, PIN, WRONG_PIN]),
    request=st.sampled_from([None, None, None, "a", "b"]),
)
taps = st.sampled_from([Step("tap"), Step("tap"), Step("tap", number=3)])
encodings = st.sampled_from([Step("personalize"), Step("confirm")])
sequences = st.lists(st.one_of(payments, payments, payments, taps, taps, encodings), max_size=40)


class Chip:
    """Card as its holder uses it, with all proofs that anyone may have copied."""

    def __init__(self) -> None:
        self.version, self.counter = 1, 0
        self.taps: list[Tap] = []

    def tap(self, gap: int) -> None:
        self.counter += 1 + gap
        self.taps.append(Tap(self.version, self.counter))

    def get_tap(self, number: int) -> Tap | None:
        return self.taps[-1 - number] if number < len(self.taps) else None


class Model:
    """What a payment must lead to, in a few lines."""

    def __init__(self) -> None:
        self.balance, self.wrong_pins = BALANCE, 0
        self.version, self.last_counter = 1, 0
        self.outcomes: dict[str, str] = {}
        self.paid: list[Tap] = []

    def pay(self, tap: Tap | None, step: Step) -> str:
        if step.request in self.outcomes:
            return self.outcomes[step.request]
        if tap is None or tap.version != self.version or step.kind == "forge":
            return Code.CARD_PROOF_REQUIRED if tap is None else Code.CARD_NOT_GENUINE
        if tap.counter <= self.last_counter:
            return Code.CARD_PROOF_USED
        if self.wrong_pins == MAX_WRONG_PINS:
            return Code.ACCOUNT_LOCKED
        if step.pin == WRONG_PIN:
            self.wrong_pins += 1
            return Code.INVALID_PIN
        self.wrong_pins = 0
        self.last_counter = tap.counter
        result = Code.INSUFFICIENT_FUNDS if step.amount > self.balance else "completed"
        if result == "completed":
            self.balance -= step.amount
            self.paid.append(tap)
        if step.request is not None:
            self.outcomes[step.request] = result
        return result


class CardLedger(InMemoryLedger):
    """Decisions about payments with one card that signs its taps."""

    def __init__(self) -> None:
        super().__init__()
        self.state.rules = Rules(
            currency="SLE",
            limits=dict.fromkeys((1, 2, 3), build_limits()),
            fees={},
            commissions={},
            compliance_rules=(),
            platform_accounts=self.state.rules.platform_accounts,
        )
        self.account = self.state.accounts[ACCOUNTS["w0"]]
        self.account.balance = BALANCE
        self.card = self.state.cards[SERIAL]
        self.card.keyset_id, self.card.key_version, self.card.last_counter = KEYSET, 1, 0
        self.add_pin(OWNERS["w0"], PIN)

    def pay(self, tap: Tap | None, step: Step) -> Outcome:
        command = build_card_payment(SERIAL, OWNERS["merchant"], tap, step)
        decision = decide(self.state, command, is_correct_pin, self.new_id)
        apply_decision(self.state, decision)
        return decision.outcome


def build_limits() -> AccountRule:
    return AccountRule(
        kyc_level=1,
        max_balance=10**9,
        max_transaction=10**9,
        daily_limit=10**9,
        monthly_limit=10**9,
        no_pin_limit=0,
        requirements=[],
    )


def build_card_payment(serial: str, merchant: int, tap: Tap | None, step: Step) -> Command:
    proof = None
    if step.kind == "forge":
        proof = ProofResult(serial, tap.counter if tap else 1)
    elif tap is not None and step.kind == "pay":
        proof = ProofResult(serial, tap.counter, KEYSET, tap.version)
    return build_command(
        chart.POS_PAYMENT,
        serial,
        commands.processor_party(merchant),
        step.amount,
        payer_pin=step.pin,
        card_proof=proof,
        idempotency_key=step.request and build_request_key(step.request),
    )


@settings(max_examples=400)
@given(sequences)
def test_any_sequence_of_taps_agrees_with_the_model(sequence: list[Step]) -> None:
    ledger, model, chip = CardLedger(), Model(), Chip()
    for step in sequence:
        tap = None if step.kind == "pay without proof" else chip.get_tap(step.number)
        if step.kind == "tap":
            chip.tap(step.number)
        elif step.kind == "personalize":
            # Encoding an unconfirmed chip again writes the same keys.
            chip.version, chip.counter = model.version + 1, 0
        elif step.kind == "confirm":
            confirm(ledger, model, chip)
        elif step.kind == "forge" or tap is not None or step.kind == "pay without proof":
            expected = model.pay(tap or (Tap(0, 1) if step.kind == "forge" else None), step)
            outcome = ledger.pay(tap, step)
            assert (outcome.code or outcome.result.status) == expected, step  # type: ignore[union-attr]
        assert ledger.account.balance == model.balance
        assert ledger.card.last_counter == model.last_counter
    assert len(model.paid) == len(set(model.paid))
    for earlier, later in zip(model.paid, model.paid[1:], strict=False):
        assert later > earlier, "versions never go back, and the counter rises"


def confirm(ledger: CardLedger, model: Model, chip: Chip) -> None:
    """Confirm the keys on the chip by its next tap, as the operation does under the card's lock."""
    chip.tap(0)
    if chip.version == model.version + 1:
        model.version, model.last_counter = chip.taps[-1]
        ledger.card.key_version, ledger.card.last_counter = chip.taps[-1]


def test_command_with_a_proof_can_be_sent_to_another_process() -> None:
    command = build_card_payment(SERIAL, 1, Tap(2, 61), Step("pay", request="a"))
    encoded = msgspec.msgpack.encode(command)
    assert msgspec.msgpack.decode(encoded, type=Command) == command


async def create_signing_card(ledger: LedgerDriver, subscriber: int) -> str:
    serial = await ledger.create_card(subscriber)
    await ledger.database.execute(
        "INSERT INTO card_keysets VALUES ($1, 'Bureau', 1, '', '', 'active', now(), now())"
        " ON CONFLICT DO NOTHING",
        KEYSET,
    )
    await ledger.database.execute(
        """UPDATE cards SET authenticity = 'sun', keyset_id = $2, key_version = 1
           WHERE serial = $1""",
        serial,
        KEYSET,
    )
    return serial


@pytest.fixture
async def two_ledgers(database_url: str, database: Database) -> AsyncIterator[TwoLedgers]:
    async with TwoLedgers.open(database_url, database) as two_ledgers:
        yield two_ledgers
        await require_balanced_books(database)


async def test_parallel_uses_of_a_tap_pay_once(two_ledgers: TwoLedgers) -> None:
    """Two processes get every tap several times, in any order."""
    first, second = two_ledgers.ledgers
    payer, merchant = await first.create_subscriber(1_000), await first.create_processor()
    serial = await create_signing_card(first, payer)
    order = random.Random(5)
    uses = [Tap(1, counter) for counter in range(1, 31) for _ in range(4)]
    order.shuffle(uses)
    outcomes = await asyncio.gather(
        *(
            order.choice((first, second)).submit(
                build_card_payment(serial, merchant, tap, Step("pay"))
            )
            for tap in uses
        )
    )
    codes = {outcome.code for outcome in outcomes}
    paid = [tap for tap, outcome in zip(uses, outcomes, strict=True) if outcome.code is None]
    assert codes == {None, Code.CARD_PROOF_USED}
    assert len(paid) == len(set(paid))
    assert max(paid) == Tap(1, 30)
    assert await first.get_balance(payer) == 1_000 - len(paid)
    counters = await first.database.fetchrow(
        """SELECT last_counter, (SELECT count(*) FROM card_taps WHERE result = 'used')
           FROM cards WHERE serial = $1""",
        serial,
    )
    assert tuple(counters) == (30, min(100, len(uses) - len(paid)))


class Use(NamedTuple):
    """A tap used by one of two processes, in parallel with the others in the same round."""

    counter: int
    process: int
    request: str | None = None
    crashes: bool = False
    kind: str = "pay"


uses = st.builds(
    Use,
    counter=st.integers(1, 8),
    process=st.integers(0, 1),
    request=st.sampled_from([None, None, None, "a", "b"]),
    crashes=st.sampled_from([False, False, False, True]),
    kind=st.sampled_from(["pay", "pay", "pay", "pay", "forge"]),
)


@settings(max_examples=limit_examples(25))
@given(st.lists(st.lists(uses, min_size=1, max_size=6), min_size=1, max_size=5))
async def test_no_parallel_uses_and_crashes_pay_twice_or_for_a_lower_counter(
    two_ledgers: TwoLedgers, rounds: list[list[Use]]
) -> None:
    for ledger in two_ledgers.ledgers:
        ledger.before_commit = crash_before_commit
    first = two_ledgers.first
    payer, merchant = await first.create_subscriber(1_000), await first.create_processor()
    serial = await create_signing_card(first, payer)
    paid: list[int] = []
    transactions: dict[str, set[int]] = defaultdict(set)
    for parallel in rounds:
        last_counter = max(paid, default=0)
        outcomes = await asyncio.gather(
            *(
                two_ledgers.ledgers[use.process].submit(
                    msgspec.structs.replace(
                        build_card_payment(
                            serial,
                            merchant,
                            Tap(1, use.counter),
                            Step(use.kind, request=use.request and f"{serial} {use.request}"),
                        ),
                        audit=AUDIT if use.crashes else None,
                    )
                )
                for use in parallel
            ),
            return_exceptions=True,
        )
        for use, outcome in zip(parallel, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                assert use.crashes, outcome
            elif outcome.code is None:
                assert outcome.result is not None
                transactions[use.request or ""].add(outcome.result.transaction_id)
                if not outcome.replayed:
                    assert (use.kind, use.crashes) == ("pay", False)
                    assert use.counter > last_counter
                    paid.append(use.counter)
        stored = await first.database.fetchval(
            "SELECT last_counter FROM cards WHERE serial = $1", serial
        )
        assert stored == max(paid, default=None)
    assert len(paid) == len(set(paid))
    assert await first.get_balance(payer) == 1_000 - len(paid)
    assert all(len(found) == 1 for request, found in transactions.items() if request)


async def test_flood_does_not_displace_the_taps_of_a_clone(ledger: LedgerDriver) -> None:
    """Another processor and the same one send many useless and copied proofs."""
    payer = await ledger.create_subscriber(1_000)
    merchant, other = await ledger.create_processor(), await ledger.create_processor()
    serial = await create_signing_card(ledger, payer)

    def build(processor: int, tap: Tap, kind: str = "pay") -> Command:
        return build_card_payment(serial, processor, tap, Step(kind))

    await ledger.submit_batch([build(merchant, Tap(1, 5)), build(merchant, Tap(1, 4))])
    useless = msgspec.structs.replace(build(merchant, Tap(1, 1)), card_proof=ProofResult())
    for _ in range(3):
        await ledger.submit_batch(
            [useless] * 40
            + [build(other, Tap(1, counter)) for counter in (1, 2, 3)] * 20
            + [build(other, Tap(1, counter), "forge") for counter in range(6, 46)]
        )
    taps = await ledger.database.fetch("SELECT counter, processor_id FROM card_taps")
    assert len(taps) == rejected_taps.MAX_TAPS
    assert (4, merchant) in [tuple(tap) for tap in taps]
    alert = await ledger.database.fetchrow("SELECT occurrences, details FROM alerts")
    assert (alert["occurrences"], alert["details"]["counter"]) == (1 + 3 * 140, 4)


async def test_processor_can_accuse_few_cards_without_their_proofs(
    ledger: LedgerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejected_taps, "MAX_UNNAMED_CARDS", 2)
    payer = await ledger.create_subscriber(1_000)
    merchant, other = await ledger.create_processor(), await ledger.create_processor()
    serials = [await create_signing_card(ledger, payer) for _ in range(4)]
    for processor in (merchant, merchant, other):
        for serial in serials[2:] if processor == other else serials:
            command = build_card_payment(serial, processor, Tap(1, 1), Step("pay"))
            useless = msgspec.structs.replace(command, card_proof=ProofResult())
            assert (await ledger.submit(useless)).code == Code.CARD_NOT_GENUINE
    rows = await ledger.database.fetch("SELECT open_key, occurrences FROM alerts ORDER BY id")
    assert [tuple(row) for row in rows] == [
        (serials[0], 2),
        (serials[1], 2),
        (f"processor {merchant}", 4),
        (serials[2], 1),
        (serials[3], 1),
    ]


async def test_failed_batch_does_not_consume_the_tap(ledger: LedgerDriver) -> None:
    ledger.before_commit = crash_before_commit
    payer, merchant = await ledger.create_subscriber(1_000), await ledger.create_processor()
    serial = await create_signing_card(ledger, payer)
    command = build_card_payment(serial, merchant, Tap(1, 5), Step("pay"))
    with pytest.raises(RuntimeError):
        await ledger.submit_batch([msgspec.structs.replace(command, audit=AUDIT)])
    assert (await ledger.submit(command)).code is None
    assert (await ledger.submit(command)).code == Code.CARD_PROOF_USED


async def test_taps_of_replaced_keys_are_rejected_under_the_lock(ledger: LedgerDriver) -> None:
    """The keys may be replaced after the proof was verified and before the batch starts."""
    payer, merchant = await ledger.create_subscriber(1_000), await ledger.create_processor()
    serial = await create_signing_card(ledger, payer)
    verified = build_card_payment(serial, merchant, Tap(1, 5), Step("pay"))
    await ledger.database.execute(
        "UPDATE cards SET key_version = 2, last_counter = 1 WHERE serial = $1", serial
    )
    assert (await ledger.submit(verified)).code == Code.CARD_NOT_GENUINE
    new_tap = build_card_payment(serial, merchant, Tap(2, 2), Step("pay"))
    assert (await ledger.submit(new_tap)).code is None


async def test_taps_of_one_batch_are_consumed_in_order(ledger: LedgerDriver) -> None:
    payer, merchant = await ledger.create_subscriber(1_000), await ledger.create_processor()
    serial = await create_signing_card(ledger, payer)
    outcomes = await ledger.submit_batch(
        [
            build_card_payment(serial, merchant, Tap(1, counter), Step("pay"))
            for counter in (2, 2, 1, 4, 3, 5)
        ]
    )
    used = Code.CARD_PROOF_USED
    assert [outcome.code for outcome in outcomes] == [None, used, used, None, used, None]
    alert = await ledger.database.fetchrow("SELECT occurrences, severity, details FROM alerts")
    assert (alert["occurrences"], alert["severity"]) == (3, "HIGH")
    assert alert["details"] == {
        "card_serial": serial,
        "processor_id": ids.encode(ids.PROCESSOR, merchant),
        "reason": "CARD_PROOF_USED",
        "counter": 2,
    }
