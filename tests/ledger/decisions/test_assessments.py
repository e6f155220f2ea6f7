"""Assessments, from which quotes are built, agree with the decisions that follow."""

from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import given, settings

from builders.ledger import is_correct_pin
from builders.ledger_model import (
    InMemoryLedger,
    build_command,
    build_model,
    build_party,
    is_possible,
    sequences,
)
from examples import limit_examples
from ledger import reference_model
from ledger.reference_model import Step
from tapgate.ledger.commands import PIN_POLICIES, Command
from tapgate.ledger.decisions.assess import Assessment, assess
from tapgate.ledger.decisions.assess import build_command as build_assessed_command
from tapgate.ledger.decisions.decide import decide
from tapgate_client.errors import Code


def assess_step(ledger: InMemoryLedger, step: Step) -> Assessment:
    assert step.amount is not None
    recipient = None if step.payee == "merchant" else build_party(step.payee)
    command = build_assessed_command(
        step.kind,
        step.amount,
        build_party(step.payer),
        recipient=recipient,
        pin_policy=PIN_POLICIES[step.kind],
    )
    return assess(ledger.state, command)


def decide_step(ledger: InMemoryLedger, step: Step, pin: str | None) -> Any:
    """Return the outcome for a step that is not a replay, without applying it."""
    command = build_command(step, ledger.transaction_ids)
    assert isinstance(command, Command)
    command = msgspec.structs.replace(
        command, payer_pin=pin, pin_policy=PIN_POLICIES[step.kind], idempotency_key=None
    )
    return decide(ledger.state, command, is_correct_pin, ledger.new_id).outcome


def check_assessment(ledger: InMemoryLedger, step: Step) -> None:
    assessment = assess_step(ledger, step)
    codes = [rejection.code for rejection in assessment.rejections]
    pin = reference_model.CHILD_PIN if step.payer == "k0" else reference_model.PIN
    outcome = decide_step(ledger, step, pin)
    if outcome.code == Code.ACCOUNT_LOCKED:  # assessments do not verify PINs
        return
    assert outcome.code == (codes[0] if codes else None), step
    if Code.SELF_TRANSFER not in codes:  # checked before the PIN
        without_pin = decide_step(ledger, step, None)
        assert (without_pin.code == Code.PIN_REQUIRED) == assessment.pin_required, step
    assert step.amount is not None
    limits = assessment.limits
    assert limits is not None
    assert (step.amount > limits.transaction) == (Code.TRANSACTION_LIMIT_EXCEEDED in codes)
    day_codes = {Code.DAILY_LIMIT_EXCEEDED, Code.CARD_LIMIT_EXCEEDED}
    assert (step.amount > limits.day) == bool(day_codes & set(codes)), step
    assert (step.amount > limits.month) == (Code.MONTHLY_LIMIT_EXCEEDED in codes), step
    if outcome.code is None:
        payer, _ = ledger.state.find_party(build_party(step.payer))
        assert payer is not None
        sender_fee = assessment.fee if assessment.fee_payer == "sender" else 0
        assert outcome.result.fee == assessment.fee
        assert payer.available - outcome.result.payer_available == step.amount + sender_fee


@settings(max_examples=limit_examples(200))
@given(sequences)
def test_assessments_agree_with_decisions(sequence: list[Step]) -> None:
    ledger, model = InMemoryLedger(), build_model()
    for step in sequence:
        if step.kind == "wait":
            model.now += timedelta(hours=step.hours)
            ledger.advance_counts(model)
        elif is_possible(step, len(model.transactions)):
            if step.kind in reference_model.MONITORED_TYPES:
                check_assessment(ledger, step)
            ledger.run(step)
            model.run(step)
