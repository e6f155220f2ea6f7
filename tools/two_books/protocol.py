"""State machine for transfers between two books. It does no I/O.

A transfer has at most three steps, each a request with its own idempotency key:

1. debit: in the payer's book, from the payer's wallet to the clearing account of the other book
2. credit: in the recipient's book, from the clearing account of the payer's book to the wallet
3. return, if the credit was declined: in the payer's book, from the clearing account to the payer

The state changes only when a step's outcome is final. Until then the step is repeated with the
same key, so it is executed at most once, even if the coordinator crashes.
"""

from enum import StrEnum
from typing import Final, NamedTuple


class State(StrEnum):
    PENDING = "pending"  # the debit is next
    DEBITED = "debited"  # the credit is next
    RETURNING = "returning"  # the return is next
    COMPLETED = "completed"
    FAILED = "failed"  # the debit was declined
    RETURNED = "returned"


FINAL_STATES: Final = frozenset({State.COMPLETED, State.FAILED, State.RETURNED})


class Transfer(NamedTuple):
    id: str
    source: str  # the payer's book
    target: str  # the recipient's book
    payer: str
    recipient: str
    amount: str
    state: State = State.PENDING
    #: Number of the next return. A declined return is repeated with another idempotency key, and
    #: its partner reference stays the same, so that only one can succeed.
    attempt: int = 1
    code: str | None = None  # why the debit or the credit was declined

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES


class Outcome(NamedTuple):
    """A step's final outcome. `code` is a decline's error code, or None if it succeeded."""

    code: str | None = None


def advance(transfer: Transfer, outcome: Outcome) -> Transfer:
    """Return the transfer after a step."""
    code = outcome.code
    match transfer.state:
        case State.PENDING if code is None:
            return transfer._replace(state=State.DEBITED)
        case State.PENDING:
            return transfer._replace(state=State.FAILED, code=code)
        case State.DEBITED if code is None:
            return transfer._replace(state=State.COMPLETED)
        case State.DEBITED:
            return transfer._replace(state=State.RETURNING, code=code)
        case State.RETURNING if code is None:
            return transfer._replace(state=State.RETURNED)
        case State.RETURNING:
            return transfer._replace(attempt=transfer.attempt + 1)
    raise ValueError(f"transfer {transfer.id} is already {transfer.state}")
