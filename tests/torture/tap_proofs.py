"""Taps by cards that sign them: the proofs that clients send, and what became of each tap."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from drivers.actors import Record
from tapgate.runtime.store.database import Database
from tapgate_sandbox.software_card import SoftwareCard
from torture.client_ledger import ClientLedger, OperationState
from torture.findings import Findings
from torture.participants import Participants
from torture.plan import PAYMENTS

PROOF_USED = "CARD_PROOF_USED"


def get_proof(
    participants: Participants, client_ledger: ClientLedger, state: OperationState
) -> Record | None:
    """Return an operation's proof, which stays the same until the card is tapped again.

    A copying operation sends the proof of another one, as a terminal would that recorded it.
    """
    operation = state.operation
    chip = participants.chips.get(operation.payer)
    if chip is None or operation.kind not in PAYMENTS:
        return None
    if state.proof is None:
        if operation.copied_key:
            original = client_ledger.operations[operation.copied_key]
            state.proof = get_proof(participants, client_ledger, original)
        else:
            state.proof = msgspec.to_builtins(chip.tap())
    return state.proof


def is_overtaken(state: OperationState, code: str) -> bool:
    """Return whether a later card tap was used first, so that it must be tapped again."""
    return code == PROOF_USED and not state.operation.copied_key and state.acknowledgment is None


async def reconcile_taps(
    database: Database, participants: Participants, findings: Findings
) -> None:
    """Report taps that several transactions used, payments without one, and lost counters."""
    serials = {participants.cards[name]: chip for name, chip in participants.chips.items()}
    used = await _count_uses(database, serials)
    for (serial, counter), times in used.items():
        if counter is None:
            findings.add("unexpected", serial, f"{times} payments without a proof")
        elif times > 1:
            findings.add("duplicated", f"{serial} tap {counter}", f"used {times} times")
    for row in await database.fetch(
        "SELECT serial, last_counter FROM cards WHERE serial = ANY ($1::text[])", list(serials)
    ):
        last = max((tap[1] or 0 for tap in used if tap[0] == row["serial"]), default=None)
        if row["last_counter"] != last:
            detail = f"counter is {row['last_counter']}, last used tap is {last}"
            findings.add("wrong values", row["serial"], detail)


async def _count_uses(
    database: Database, serials: Mapping[str, SoftwareCard]
) -> Counter[tuple[str, int | None]]:
    rows = await database.fetch(
        """SELECT card_serial, (context ->> 'card_counter')::integer FROM transactions
           WHERE card_serial = ANY ($1::text[])""",
        list(serials),
    )
    return Counter(tuple(row) for row in rows)
