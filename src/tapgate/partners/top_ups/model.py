"""Receipts for top-ups by partners."""

from tapgate.schemas.partners import TopUpReceipt
from tapgate.transactions.submit import ReceiptFields


def build_receipt(receipt_fields: ReceiptFields) -> TopUpReceipt:
    return TopUpReceipt(
        message=receipt_fields.build_message("Wallet funded"),
        transaction_id=receipt_fields.transaction_id,
        status=receipt_fields.status,
        amount=receipt_fields.amount,
        new_balance=receipt_fields.visible_payee_balance,
    )
