"""Card payments at terminals and in apps: requests, receipts and card checks."""

from typing import Annotated, Any, ClassVar

import msgspec

from tapgate_client.schemas.card_proofs import CardProof, require_card
from tapgate_client.schemas.cards import CardStatus, CardType
from tapgate_client.schemas.common import ErrorCode, SuccessResponse, build_missing_field_error
from tapgate_client.schemas.fields import (
    Amount,
    CardSerial,
    Choice,
    Metadata,
    Pin,
    ReasonText,
    Reference,
    Text,
)
from tapgate_client.schemas.transactions import MoneyRequest, Receipt, TransactionStatus
from tapgate_client.schemas.values import (
    AccountBalance,
    ApprovalCode,
    BalanceAmount,
    Example,
    Fee,
    HolderName,
    Id,
    Money,
    Serial,
)

PaymentOutcomeStatus = Annotated[
    TransactionStatus,
    Choice(
        TransactionStatus.COMPLETED,
        TransactionStatus.UNDER_REVIEW,
        TransactionStatus.FAILED,
        name="PaymentOutcomeStatus",
    ),
]


class InAppPaymentRequest(MoneyRequest, kw_only=True):
    """Payment by card. `card_serial` may be absent if there is a `card_proof`."""

    card_serial: CardSerial | None = None
    card_proof: CardProof | None = None
    amount: Amount
    merchant_id: Annotated[Reference, Example("M-204")] | None = None
    merchant_name: Annotated[Text, Example("Kamara Stores")] | None = None
    transaction_ref: Annotated[Reference, Example("ORDER-1188")] | None = None
    metadata: Metadata | None = None

    OMITTED_IN_EXAMPLES: ClassVar = ("card_proof",)

    def __post_init__(self) -> None:
        require_card(self.card_serial, self.card_proof)


class PosPaymentRequest(InAppPaymentRequest, kw_only=True):
    pin: Pin | None = None
    terminal_id: Reference | None = None


class PaymentReceipt(Receipt, kw_only=True):
    approval_code: ApprovalCode | None
    amount: Money
    remaining_balance: BalanceAmount
    fee_amount: Fee
    metadata: dict[str, Any] | None


class PaymentLookup(msgspec.Struct, kw_only=True):
    """Terminal that requested the payment, if the processor asks."""

    terminal_id: Reference | None = None


class PaymentOutcomeRecord(msgspec.Struct, kw_only=True):
    """Payment outcome: the receipt's fields, or only `status` and `code` if it failed."""

    success: bool | msgspec.UnsetType = msgspec.UNSET
    message: str | msgspec.UnsetType = msgspec.UNSET
    transaction_id: Id | msgspec.UnsetType = msgspec.UNSET
    status: PaymentOutcomeStatus
    code: ErrorCode | msgspec.UnsetType = msgspec.UNSET
    approval_code: ApprovalCode | msgspec.UnsetType | None = msgspec.UNSET
    amount: Money | msgspec.UnsetType = msgspec.UNSET
    remaining_balance: BalanceAmount | msgspec.UnsetType = msgspec.UNSET
    fee_amount: Fee | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET


class PaymentRefund(MoneyRequest, kw_only=True):
    """Refund of the payment in the path. Without an amount, the entire rest is refunded."""

    amount: Amount | None = None
    reason: ReasonText


class RefundRequest(PaymentRefund, kw_only=True):
    original_transaction_id: Reference


class RefundReceipt(Receipt, kw_only=True):
    """Refund receipt.

    `fee_refunded` is the payment's fee, which a payment's last refund returns to the merchant. It
    is null if a replayed refund was made before this field existed.
    """

    original_transaction_id: Id
    amount: Money
    refundable_amount: Money
    fee_refunded: Annotated[Money, Example("1.00")] | None


class VerifyInAppCardRequest(msgspec.Struct, kw_only=True):
    card_serial: CardSerial | None = None
    card_proof: CardProof | None = None

    OMITTED_IN_EXAMPLES: ClassVar = ("card_proof",)

    def __post_init__(self) -> None:
        require_card(self.card_serial, self.card_proof)


class VerifyCardRequest(VerifyInAppCardRequest, kw_only=True):
    pin: Pin


class VerifyCardResponse(SuccessResponse, kw_only=True):
    """Card verification result.

    `balance` is present only if `is_active` is true and the card was verified with its PIN.
    """

    is_active: bool
    holder_name: HolderName | None
    balance: AccountBalance | msgspec.UnsetType = msgspec.UNSET


class LookupCardRequest(msgspec.Struct, kw_only=True):
    card_identifier: Annotated[Text, Example("TAP-000001")] | None = None
    card_proof: CardProof | None = None

    OMITTED_IN_EXAMPLES: ClassVar = ("card_proof",)

    def __post_init__(self) -> None:
        if self.card_identifier is None and self.card_proof is None:
            raise build_missing_field_error("card_identifier")


class LookupCardResponse(SuccessResponse, kw_only=True):
    message: str = "Card found"
    card_serial: Serial
    card_type: CardType | None
    status: CardStatus
    holder_name: HolderName | None
