"""Expected record for an operation, for the tables and for the API."""

from typing import Any, Final

from torture.client_ledger import ClientLedger, OperationState
from torture.plan import PAYMENTS, Kind

Expected = dict[str, Any]

_TYPES: Final[dict[Kind, str]] = {
    "pos": "pos_payment",
    "pos_pin": "pos_payment",
    "in_app": "online_payment",
    "p2p": "transfer_p2p",
    "cash_in": "agent_cashin",
    "cash_out": "agent_cashout",
    "top_up": "partner_fund",
    "refund": "refund",
    "fund": "agent_fund",
    "reversal": "reversal",
    "recall": "reversal",
    "payout": "payout",
    "payout_cancel": "payout_return",
    "payout_paid": "bank_posting",
    "payout_returned": "payout_return",
    "batch": "",
    "batch_line": "batch_credit",
    "day_close": "",
}
_BALANCES: Final = {"payer_balance": "from_balance", "payee_balance": "to_balance"}


def build_expected_record(client_ledger: ClientLedger, state: OperationState) -> Expected:
    operation, acknowledgment = state.operation, state.acknowledgment
    assert acknowledgment is not None
    expected: Expected = {"type": _TYPES[operation.kind]}
    if not acknowledgment.succeeded:
        return expected | {"status": "failed", "failure_code": acknowledgment.code}
    amounts = acknowledgment.amounts | client_ledger.predict_amounts(state)
    expected |= {
        "amount": amounts["amount"],
        "fee_amount": amounts.get("fee", 0),
        "failure_code": None,
        "status": acknowledgment.status,
        "given_back": 0,
        "original_transaction_id": state.original_transaction_id or None,
    }
    if acknowledgment.transaction_id:
        expected["id"] = acknowledgment.transaction_id
    if given_back := client_ledger.given_back[operation.idempotency_key]:
        status = "refunded" if operation.kind in PAYMENTS else "reversed"
        expected["given_back"] = given_back
        expected["status"] = status if given_back == amounts["amount"] else f"partially_{status}"
    return expected


def build_expected_accounts(state: OperationState) -> Expected:
    """Return the expected accounts, balances and hold, which only the tables contain."""
    operation, acknowledgment = state.operation, state.acknowledgment
    assert acknowledgment is not None
    expected: Expected = {"held": 0}
    if acknowledgment.succeeded:
        expected |= {"from_account": operation.payer, "to_account": operation.payee}
        expected |= {
            column: acknowledgment.amounts[name]
            for name, column in _BALANCES.items()
            if name in acknowledgment.amounts
        }
    return expected


def describe_differences(expected: Expected, actual: Expected) -> str:
    differences = [name for name in expected if expected[name] != actual[name]]
    return ", ".join(f"{name} is {actual[name]}, not {expected[name]}" for name in differences)
