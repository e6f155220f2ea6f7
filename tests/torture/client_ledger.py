"""What the clients know: what they asked for, what they were told, and what everybody must have
then. Plain whole numbers, fed by nothing but the plan and the answers."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from torture.client_connection import Response
from torture.plan import PAYMENTS, Kind, Operation

#: Names of accounts that nobody of the plan holds.
FEES: Final = "fees"
COMMISSION_EXPENSE: Final = "commission_expense"
CASH: Final = "cash"

#: Refusals that leave nothing behind: the name may be used again.
REJECTION_CODES: Final = frozenset(
    {"INVALID_PIN", "ACCOUNT_LOCKED", "REFUND_EXCEEDS_REMAINING", "ALREADY_REFUNDED"}
)
_WRONG_PIN_CODES: Final = frozenset({"INVALID_PIN", "ACCOUNT_LOCKED"})
_REFUND_EXCEEDED_CODES: Final = frozenset({"REFUND_EXCEEDS_REMAINING", "ALREADY_REFUNDED"})
_INSUFFICIENT_FUNDS_CODES: Final = frozenset({"INSUFFICIENT_FUNDS"})
_MIN_COMMISSIONED_AMOUNT: Final = 10_00

#: What a field of a receipt is to the clients.
_PAYMENT_FIELDS: Final = {
    "amount": "amount",
    "fee_amount": "fee",
    "remaining_balance": "payer_balance",
}
RECEIPT_FIELDS: Final[dict[Kind, dict[str, str]]] = {
    "pos": _PAYMENT_FIELDS,
    "pos_pin": _PAYMENT_FIELDS,
    "in_app": _PAYMENT_FIELDS,
    "p2p": {"amount": "amount", "fee_amount": "fee", "sender_new_balance": "payer_balance"},
    "cash_in": {
        "amount": "amount",
        "commission_earned": "commission",
        "agent_balance": "payer_balance",
        "subscriber_balance": "payee_balance",
    },
    "cash_out": {
        "amount": "amount",
        "agent_balance": "payee_balance",
        "subscriber_balance": "payer_balance",
    },
    "top_up": {"amount": "amount", "new_balance": "payee_balance"},
    "refund": {"amount": "amount", "refundable_amount": "refundable"},
}


class Acknowledgment(msgspec.Struct, frozen=True):
    """A definitive answer: a transaction with its figures, or why there is none."""

    code: str  # empty: it was done
    transaction_id: str = ""
    status: str = ""
    amounts: dict[str, int] = {}

    @property
    def succeeded(self) -> bool:
        return not self.code

    @property
    def is_recorded(self) -> bool:
        """Done, or declined under its name."""
        return self.code not in REJECTION_CODES


def parse_acknowledgment(operation: Operation, answer: Response) -> Acknowledgment:
    if answer.status >= 300:
        return Acknowledgment(answer.code)
    body = answer.body
    figures = {
        name: parse_minor_units(body[field])
        for field, name in RECEIPT_FIELDS[operation.kind].items()
    }
    return Acknowledgment("", body["transaction_id"], body["status"], figures)


def parse_minor_units(shown: str) -> int:
    """`1,234.50 SLE` or `1234.50` in minor units."""
    return int(shown.removesuffix(" SLE").replace(",", "").replace(".", ""))


def calculate_share(amount: int, hundredths_of_percent: int) -> int:
    """Half up."""
    return (amount * hundredths_of_percent + 5_000) // 10_000


def calculate_fee(operation: Operation, amount: int) -> int:
    if operation.kind in PAYMENTS:
        return calculate_share(amount, 100)
    if operation.kind == "p2p":
        return calculate_share(amount, 150)
    return 0


def allowed_error_codes(operation: Operation) -> frozenset[str]:
    """What may be said to it instead of doing it."""
    if operation.wrong_pin:
        return _WRONG_PIN_CODES
    if operation.kind == "refund":
        return _REFUND_EXCEEDED_CODES | _INSUFFICIENT_FUNDS_CODES
    if operation.kind in ("cash_in", "top_up"):
        return frozenset()
    return _INSUFFICIENT_FUNDS_CODES


class OperationState(msgspec.Struct):
    """One operation, and how it stands with it."""

    operation: Operation
    acknowledgment: Acknowledgment | None = None
    attempts: int = 0
    unanswered_attempts: int = 0
    succeeded_unacknowledged: bool = False  # the first answer was a repetition of one that got lost
    original_transaction_id: str = ""  # the transaction that a refund is of


class ClientLedger:
    """All operations so far by name, and everybody's balance."""

    def __init__(self, funds: Mapping[str, int]) -> None:
        self.operations: dict[str, OperationState] = {}
        self.balances: Counter[str] = Counter(funds)
        self.balances[CASH] = -sum(funds.values())
        self.refunded: Counter[str] = Counter()  # payment -> what was given back of it
        self._cashed_out: set[tuple[str, str]] = set()  # (customer, agent)
        self.transaction_count = 0  # that there must be, declined ones included

    def apply(self, standing: OperationState) -> None:
        """Once for each operation, when it has been answered."""
        assert standing.acknowledgment is not None
        self.transaction_count += standing.acknowledgment.is_recorded
        for name, change in self.balance_changes(standing).items():
            self.balances[name] += change
        if standing.operation.kind == "refund" and standing.acknowledgment.succeeded:
            self.refunded[standing.operation.refunded_key] += standing.acknowledgment.amounts[
                "amount"
            ]
        if standing.operation.kind == "cash_out":
            self._cashed_out.add((standing.operation.payer, standing.operation.payee))

    def balance_changes(self, standing: OperationState) -> dict[str, int]:
        """By how much it changed whose balance."""
        asked, told = standing.operation, standing.acknowledgment
        if told is None or not told.succeeded:
            return {}
        amount = told.amounts["amount"]
        fee = calculate_fee(asked, amount)
        if asked.kind in PAYMENTS:
            moved = {asked.payer: -amount, asked.payee: amount - fee, FEES: fee}
        elif asked.kind == "refund":
            back = self._get_refunded_fee(asked, told)
            moved = {asked.payer: back - amount, asked.payee: amount, FEES: -back}
        elif asked.kind == "cash_in":
            earned = told.amounts["commission"]
            moved = {asked.payer: -amount, asked.payee: amount}
            moved |= {commission_account(asked.payer): earned, COMMISSION_EXPENSE: -earned}
        else:
            moved = {asked.payer: -amount - fee, asked.payee: amount, FEES: fee}
        return {name: change for name, change in moved.items() if change}

    def _get_refunded_fee(self, asked: Operation, told: Acknowledgment) -> int:
        """By the refund that leaves nothing."""
        if told.amounts["refundable"]:
            return 0
        paid = self.operations[asked.refunded_key].operation
        assert paid.amount is not None
        return calculate_fee(paid, paid.amount)

    def expected_amounts(self, standing: OperationState) -> dict[str, int]:
        """What a receipt must say, where the clients can know it."""
        asked, told = standing.operation, standing.acknowledgment
        assert told is not None
        expected: dict[str, int] = {}
        if asked.amount is not None:
            expected["amount"] = asked.amount
        amount = told.amounts["amount"]
        if "fee" in told.amounts:
            expected["fee"] = calculate_fee(asked, amount)
        if asked.kind == "cash_in":
            # What was cashed out before earns nothing, and a rounding error is carried over.
            earning = amount if amount >= _MIN_COMMISSIONED_AMOUNT else 0
            least = 0 if (asked.payee, asked.payer) in self._cashed_out else earning // 100
            most = -(-earning // 100)
            expected["commission"] = min(max(least, told.amounts["commission"]), most)
        return expected


def commission_account(agent: str) -> str:
    """The name of an agent's other account."""
    return f"{agent} commission"
