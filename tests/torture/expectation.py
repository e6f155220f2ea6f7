"""What must be recorded of an operation, as far as the clients know it; the same in the tables and
over the interface."""

from typing import Any, Final

from torture.book import Book, Standing
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
}
_BALANCES: Final = {"payer_balance": "from_balance", "payee_balance": "to_balance"}


def expected_record(book: Book, standing: Standing) -> Expected:
    operation, told = standing.operation, standing.told
    assert told is not None
    expected: Expected = {"type": _TYPES[operation.kind]}
    if not told.done:
        return expected | {"status": "failed", "failure_code": told.code}
    figures = told.figures | book.figures(standing)
    expected |= {
        "id": told.transaction,
        "amount": figures["amount"],
        "fee_amount": figures.get("fee", 0),
        "failure_code": None,
        "status": told.status,
        "refunded_amount": 0,
        "original_transaction_id": standing.original or None,
    }
    if operation.kind in PAYMENTS and book.refunded[operation.name]:
        refunded = book.refunded[operation.name]
        whole = refunded == figures["amount"]
        expected["refunded_amount"] = refunded
        expected["status"] = "refunded" if whole else "partially_refunded"
    return expected


def expected_sides(standing: Standing) -> Expected:
    """Only in the tables: from whom to whom, and what they had then."""
    operation, told = standing.operation, standing.told
    assert told is not None
    expected: Expected = {"held": 0}
    if told.done:
        expected |= {"from_account": operation.payer, "to_account": operation.payee}
        expected |= {
            column: told.figures[figure]
            for figure, column in _BALANCES.items()
            if figure in told.figures
        }
    return expected


def differences(expected: Expected, there: Expected) -> str:
    wrong = [name for name in expected if expected[name] != there[name]]
    return ", ".join(f"{name} is {there[name]}, not {expected[name]}" for name in wrong)
