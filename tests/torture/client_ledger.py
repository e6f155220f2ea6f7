"""The clients' own ledger: operations, acknowledgments and expected balances.

Amounts are integers in minor units, derived only from the plan and the responses.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from torture.client_connection import Response
from torture.plan import PAYMENTS, Kind, Operation

#: Accounts that no participant of the plan holds.
FEES: Final = "fees"
COMMISSION_EXPENSE: Final = "commission_expense"
CASH: Final = "cash"

#: Rejections store nothing, so the idempotency key can be reused.
REJECTION_CODES: Final = frozenset(
    {"INVALID_PIN", "ACCOUNT_LOCKED", "REFUND_EXCEEDS_REMAINING", "ALREADY_REFUNDED"}
)
_WRONG_PIN_CODES: Final = frozenset({"INVALID_PIN", "ACCOUNT_LOCKED"})
_REFUND_EXCEEDED_CODES: Final = frozenset({"REFUND_EXCEEDS_REMAINING", "ALREADY_REFUNDED"})
_INSUFFICIENT_FUNDS_CODES: Final = frozenset({"INSUFFICIENT_FUNDS"})
_MIN_COMMISSIONED_AMOUNT: Final = 10_00

#: Receipt field -> name of the amount in the client ledger.
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
    """Final response to an operation: a transaction with its amounts, or an error code."""

    code: str  # empty on success
    transaction_id: str = ""
    status: str = ""
    amounts: dict[str, int] = {}

    @property
    def succeeded(self) -> bool:
        return not self.code

    @property
    def is_recorded(self) -> bool:
        """True if the operation succeeded or was declined under its idempotency key."""
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
    """Parse `1,234.50 SLE` or `1234.50` to minor units."""
    return int(shown.removesuffix(" SLE").replace(",", "").replace(".", ""))


def calculate_share(amount: int, hundredths_of_percent: int) -> int:
    """Return the share of an amount, rounded half up."""
    return (amount * hundredths_of_percent + 5_000) // 10_000


def calculate_fee(operation: Operation, amount: int) -> int:
    if operation.kind in PAYMENTS:
        return calculate_share(amount, 100)
    if operation.kind == "p2p":
        return calculate_share(amount, 150)
    return 0


def allowed_error_codes(operation: Operation) -> frozenset[str]:
    """Return the error codes that are valid responses to the operation."""
    if operation.wrong_pin:
        return _WRONG_PIN_CODES
    if operation.kind == "refund":
        return _REFUND_EXCEEDED_CODES | _INSUFFICIENT_FUNDS_CODES
    if operation.kind in ("cash_in", "top_up"):
        return frozenset()
    return _INSUFFICIENT_FUNDS_CODES


class OperationState(msgspec.Struct):
    """An operation and its current outcome."""

    operation: Operation
    acknowledgment: Acknowledgment | None = None
    attempts: int = 0
    unanswered_attempts: int = 0
    succeeded_unacknowledged: bool = False  # the first response received was a replay of a lost one
    original_transaction_id: str = ""  # transaction that a refund refers to


class ClientLedger:
    """All operations so far by idempotency key, and the balance of each account."""

    def __init__(self, funds: Mapping[str, int]) -> None:
        self.operations: dict[str, OperationState] = {}
        self.balances: Counter[str] = Counter(funds)
        self.balances[CASH] = -sum(funds.values())
        self.refunded: Counter[str] = Counter()  # payment -> refunded amount
        self._cashed_out: set[tuple[str, str]] = set()  # (customer, agent)
        self.transaction_count = 0  # expected number, including declined transactions

    def apply(self, standing: OperationState) -> None:
        """Apply an acknowledged operation; call once per operation."""
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
        """Return the balance changes by account name."""
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
        """Return the fee, which only the refund of the last remaining amount returns."""
        if told.amounts["refundable"]:
            return 0
        paid = self.operations[asked.refunded_key].operation
        assert paid.amount is not None
        return calculate_fee(paid, paid.amount)

    def expected_amounts(self, standing: OperationState) -> dict[str, int]:
        """Return the receipt amounts that the clients can predict."""
        asked, told = standing.operation, standing.acknowledgment
        assert told is not None
        expected: dict[str, int] = {}
        if asked.amount is not None:
            expected["amount"] = asked.amount
        amount = told.amounts["amount"]
        if "fee" in told.amounts:
            expected["fee"] = calculate_fee(asked, amount)
        if asked.kind == "cash_in":
            # Cash that was cashed out before earns no commission, and rounding remainders carry
            # over.
            earning = amount if amount >= _MIN_COMMISSIONED_AMOUNT else 0
            least = 0 if (asked.payee, asked.payer) in self._cashed_out else earning // 100
            most = -(-earning // 100)
            expected["commission"] = min(max(least, told.amounts["commission"]), most)
        return expected


def commission_account(agent: str) -> str:
    """Return the name of an agent's commission account."""
    return f"{agent} commission"
