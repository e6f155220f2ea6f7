"""The clients' own ledger: operations, acknowledgments and expected balances.

Amounts are integers in minor units, derived only from the plan and the responses.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from torture.client_connection import Response
from torture.plan import CASH, PAYMENTS, Kind, Operation

#: Accounts that no participant in the plan holds.
FEES: Final = "fees"
COMMISSION_EXPENSE: Final = "commission_expense"

#: Rejections store nothing, so the idempotency key can be reused.
REJECTION_CODES: Final = frozenset(
    {
        "INVALID_PIN",
        "ACCOUNT_LOCKED",
        "REFUND_EXCEEDS_REMAINING",
        "ALREADY_REFUNDED",
        "CARD_PROOF_USED",
        "NOT_REVERSIBLE",
        "REVERSAL_EXCEEDS_REMAINING",
        "NOT_RECALLABLE",
        "PAYOUT_NOT_PENDING",
    }
)
#: Operations that store no transaction themselves: those in `day_close` are of other operations.
_UNRECORDED_STATUSES: Final = frozenset({"released", "batch", "closed"})
GIVING_BACK: Final = frozenset({"refund", "reversal", "recall"})
_WRONG_PIN_CODES: Final = frozenset({"INVALID_PIN", "ACCOUNT_LOCKED"})
_REFUND_EXCEEDED_CODES: Final = frozenset({"REFUND_EXCEEDS_REMAINING", "ALREADY_REFUNDED"})
_INSUFFICIENT_FUNDS_CODES: Final = frozenset({"INSUFFICIENT_FUNDS"})
_COPIED_TAP_CODES: Final = frozenset({"CARD_PROOF_USED"})
_PAYOUT_CODES: Final = frozenset({"PAYOUT_NOT_PENDING"})
#: Errors that are valid responses to an operation; of others, insufficient funds.
_ERROR_CODES: Final[dict[Kind, frozenset[str]]] = {
    "cash_in": frozenset(),
    "top_up": frozenset(),
    "fund": frozenset(),
    "reversal": frozenset({"NOT_REVERSIBLE", "REVERSAL_EXCEEDS_REMAINING", "INSUFFICIENT_FUNDS"}),
    "recall": frozenset({"NOT_RECALLABLE"}),
    "payout_cancel": _PAYOUT_CODES,
    "payout_paid": _PAYOUT_CODES,
    "payout_returned": _PAYOUT_CODES,
    "batch": frozenset(),
    "batch_line": frozenset(),
    "day_close": frozenset(),
}
_MIN_COMMISSIONED_AMOUNT: Final = 10_00
#: In hundredths of a percent.
PAYOUT_FEE: Final = 100

#: Receipt field -> amount name in the client ledger.
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
    # A process that is killed after execution stores only the amount.
    "fund": {"amount": "amount"},
    "reversal": {
        "amount": "amount",
        "reversible_amount": "refundable",
        "fee_reversed": "fee_back",
        "commission_reversed": "commission_back",
    },
    "recall": {"amount": "amount"},
    "payout": {"amount": "amount", "fee_amount": "fee", "new_balance": "payer_balance"},
    "payout_cancel": {"amount": "amount", "fee_amount": "fee_back"},
    "payout_paid": {"amount": "amount"},
    "payout_returned": {"amount": "amount", "fee_amount": "fee_back"},
    "batch": {},
    "batch_line": {},
    "day_close": {},
}
#: Status in the response -> status of the transaction.
_STATUSES: Final = {"cancelled": "completed", "paid": "completed", "returned": "completed"}


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
        return self.code not in REJECTION_CODES and self.status not in _UNRECORDED_STATUSES


def parse_acknowledgment(operation: Operation, response: Response) -> Acknowledgment:
    if response.status >= 300:
        return Acknowledgment(response.code)
    body = response.body
    amounts = {
        name: parse_minor_units(body[field])
        for field, name in RECEIPT_FIELDS[operation.kind].items()
    }
    if operation.kind == "day_close":
        return Acknowledgment("", status="closed", amounts=amounts)
    # The record of a payout names the transaction that requested it, not its later ones.
    is_follow_up = operation.kind.startswith("payout_")
    transaction_id = "" if is_follow_up else body["transaction_id"]
    status = _STATUSES.get(body["status"], body["status"])
    return Acknowledgment("", transaction_id, status, amounts)


def parse_minor_units(text: str) -> int:
    """Parse `1,234.50 SLE` or `1234.50` to minor units."""
    return int(text.removesuffix(" SLE").replace(",", "").replace(".", ""))


def calculate_percentage(amount: int, hundredths_of_percent: int) -> int:
    """Return a percentage of an amount, rounded half up."""
    return (amount * hundredths_of_percent + 5_000) // 10_000


def calculate_fee(operation: Operation, amount: int) -> int:
    if operation.kind in PAYMENTS:
        return calculate_percentage(amount, 100)
    if operation.kind == "p2p":
        return calculate_percentage(amount, 150)
    if operation.kind == "payout":
        return calculate_percentage(amount, PAYOUT_FEE)
    return 0


def list_allowed_error_codes(operation: Operation) -> frozenset[str]:
    """Return the error codes that are valid responses to the operation."""
    if operation.wrong_pin:
        return _WRONG_PIN_CODES
    if operation.kind == "refund":
        return _REFUND_EXCEEDED_CODES | _INSUFFICIENT_FUNDS_CODES
    if operation.kind in _ERROR_CODES:
        return _ERROR_CODES[operation.kind]
    if operation.copied_key:
        return _COPIED_TAP_CODES | _INSUFFICIENT_FUNDS_CODES
    return _INSUFFICIENT_FUNDS_CODES


class OperationState(msgspec.Struct):
    """An operation and its current outcome."""

    operation: Operation
    acknowledgment: Acknowledgment | None = None
    attempts: int = 0
    unanswered_attempts: int = 0
    succeeded_unacknowledged: bool = False  # the first response received replays a lost one
    original_transaction_id: str = ""  # transaction that a refund or a reversal refers to
    target_id: str = ""  # transaction or payout that the request names
    proof: dict[str, str] | None = None  # of the last tap for this operation
    step: str = ""  # of a flow
    resource_id: str = ""  # created approval, recall, payout or batch
    stored_id: str = ""  # of a transaction whose ID no response has
    batch_lines: list[dict[str, Any]] = []
    originals: dict[str, dict[str, Any]] = {}  # original response of each step

    @property
    def transaction_id(self) -> str:
        assert self.acknowledgment is not None
        return self.acknowledgment.transaction_id or self.stored_id

    @property
    def recorded_key(self) -> str:
        """Return the transaction's idempotency key, or its ID if it has none."""
        if self.operation.kind == "recall" and self.acknowledgment is not None:
            return self.acknowledgment.transaction_id
        is_funding = self.operation.kind == "fund"
        return (self.resource_id if is_funding else "") or self.operation.idempotency_key


class ClientLedger:
    """All operations so far by idempotency key, and the balance of each account."""

    def __init__(self, funds: Mapping[str, int]) -> None:
        self.operations: dict[str, OperationState] = {}
        self.balances: Counter[str] = Counter(funds)
        self.balances[CASH] = -sum(funds.values())
        self.given_back: Counter[str] = Counter()  # refunded or reversed amount by operation
        #: Sums of amounts that recalls may have held, by round and account.
        self._holds: dict[tuple[str, str], set[int]] = {}
        self._cashed_out: set[tuple[str, str]] = set()  # (customer, agent)
        self.transaction_count = 0  # expected number, including declined transactions

    def apply(self, state: OperationState) -> None:
        """Apply an acknowledged operation; call once per operation."""
        assert state.acknowledgment is not None
        self.transaction_count += state.acknowledgment.is_recorded
        for name, change in self.calculate_balance_changes(state).items():
            self.balances[name] += change
        acknowledgment = state.acknowledgment
        is_done = acknowledgment.succeeded and acknowledgment.is_recorded
        if state.operation.kind in GIVING_BACK and is_done:
            self.given_back[state.operation.original_key] += acknowledgment.amounts["amount"]
        if state.operation.kind == "recall" and acknowledgment.succeeded:
            recall = state.operation
            sums = self._holds.setdefault((recall.round_name, recall.payer), {0})
            sums |= {amount + acknowledgment.amounts["amount"] for amount in sums}
        if state.operation.kind == "cash_out":
            self._cashed_out.add((state.operation.payer, state.operation.payee))

    def list_possible_holds(self, state: OperationState, account: str) -> set[int]:
        """Return the sums that recalls may have held on an account during an operation.

        Recalls end in the round in which they are opened. Receipts have available balances.
        """
        return self._holds.get((state.operation.round_name, account), {0})

    def calculate_balance_changes(self, state: OperationState) -> dict[str, int]:
        """Return the balance changes by account name."""
        operation, acknowledgment = state.operation, state.acknowledgment
        if acknowledgment is None or not (acknowledgment.succeeded and acknowledgment.is_recorded):
            return {}
        amount = acknowledgment.amounts["amount"]
        fee = calculate_fee(operation, amount)
        if operation.kind in PAYMENTS:
            changes = {operation.payer: -amount, operation.payee: amount - fee, FEES: fee}
        elif operation.kind == "refund":
            refunded_fee = self._get_refunded_fee(operation, acknowledgment)
            changes = {
                operation.payer: refunded_fee - amount,
                operation.payee: amount,
                FEES: -refunded_fee,
            }
        elif operation.kind == "cash_in":
            commission = acknowledgment.amounts["commission"]
            changes = {operation.payer: -amount, operation.payee: amount}
            changes |= {
                get_commission_account(operation.payer): commission,
                COMMISSION_EXPENSE: -commission,
            }
        elif operation.kind in ("reversal", "recall"):
            changes = self._calculate_reversal(operation, acknowledgment.amounts)
        elif operation.kind in ("payout_cancel", "payout_returned"):
            back = acknowledgment.amounts["fee_back"]
            changes = {operation.payer: -amount, operation.payee: amount + back, FEES: -back}
        else:
            changes = {operation.payer: -amount - fee, operation.payee: amount, FEES: fee}
        return {name: change for name, change in changes.items() if change}

    def _calculate_reversal(
        self, operation: Operation, amounts: Mapping[str, int]
    ) -> dict[str, int]:
        amount, fee = amounts["amount"], amounts.get("fee_back", 0)
        changes = {operation.payer: -amount, operation.payee: amount + fee, FEES: -fee}
        if self.operations[operation.original_key].operation.kind == "cash_in":
            commission = amounts["commission_back"]
            changes[get_commission_account(operation.payee)] = -commission
            changes[COMMISSION_EXPENSE] = commission
        return changes

    def _get_refunded_fee(self, operation: Operation, acknowledgment: Acknowledgment) -> int:
        """Return the refunded fee: the full fee with the last remaining amount, otherwise 0."""
        if acknowledgment.amounts["refundable"]:
            return 0
        paid = self.operations[operation.original_key].operation
        assert paid.amount is not None
        return calculate_fee(paid, paid.amount)

    def predict_amounts(self, state: OperationState) -> dict[str, int]:
        """Return the receipt amounts that the clients can predict."""
        operation, acknowledgment = state.operation, state.acknowledgment
        assert acknowledgment is not None
        expected: dict[str, int] = {}
        if operation.amount is not None:
            expected["amount"] = operation.amount
        amount = acknowledgment.amounts["amount"]
        if "fee" in acknowledgment.amounts:
            expected["fee"] = calculate_fee(operation, amount)
        if operation.kind == "reversal":
            expected |= self._predict_reversal(operation, acknowledgment.amounts)
        if operation.kind == "cash_in":
            # Cash that was cashed out before earns no commission, and rounding remainders carry
            # over.
            earning = amount if amount >= _MIN_COMMISSIONED_AMOUNT else 0
            least = 0 if (operation.payee, operation.payer) in self._cashed_out else earning // 100
            most = -(-earning // 100)
            expected["commission"] = min(max(least, acknowledgment.amounts["commission"]), most)
        return expected

    def _predict_reversal(self, operation: Operation, amounts: Mapping[str, int]) -> dict[str, int]:
        """Return the shares of the fee and the commission, rounded down on the cumulated amount."""
        original = self.operations[operation.original_key]
        assert original.acknowledgment is not None
        paid = original.acknowledgment.amounts
        after = paid["amount"] - amounts["refundable"]
        before = after - amounts["amount"]

        def share(total: int) -> int:
            return total * after // paid["amount"] - total * before // paid["amount"]

        return {
            "fee_back": share(paid.get("fee", 0)),
            "commission_back": share(paid.get("commission", 0)),
        }


def get_commission_account(agent: str) -> str:
    """Return an agent's commission account name."""
    return f"{agent} commission"


def binds_key(state: OperationState) -> bool:
    """Return whether the key is bound to its content.

    A declined top-up does not consume the partner reference.
    """
    assert state.acknowledgment is not None
    return state.acknowledgment.is_recorded and (
        state.acknowledgment.succeeded or state.operation.kind != "top_up"
    )
