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
        "id": acknowledgment.transaction_id,
        "amount": amounts["amount"],
        "fee_amount": amounts.get("fee", 0),
        "failure_code": None,
        "status": acknowledgment.status,
        "refunded_amount": 0,
        "original_transaction_id": state.original_transaction_id or None,
    }
    if operation.kind in PAYMENTS and client_ledger.refunded[operation.idempotency_key]:
        refunded = client_ledger.refunded[operation.idempotency_key]
        whole = refunded == amounts["amount"]
        expected["refunded_amount"] = refunded
        expected["status"] = "refunded" if whole else "partially_refunded"
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
