"""Partner requests and responses: accounts, signing keys and top-ups."""

from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec

from tapgate_client.errors import invalid_field
from tapgate_client.schemas.common import Redacted, SuccessResponse, build_missing_field_error
from tapgate_client.schemas.fields import (
    Amount,
    AmountOrZero,
    BusinessName,
    CardSerial,
    Currency,
    Phone,
    Reference,
    SearchText,
    Text,
)
from tapgate_client.schemas.pagination import NamedPageQuery
from tapgate_client.schemas.transactions import (
    CustomerMoneyRequest,
    DepositReference,
    MoneyRequest,
    Receipt,
)
from tapgate_client.schemas.values import (
    AccountBalance,
    BalanceAmount,
    CurrencyCode,
    Example,
    Id,
    Money,
    Name,
    ShownSecret,
    Time,
)


class PartnerStatus(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"


class PartnerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Partner as returned by the API. The balance is negative while the overdraft is in use."""

    id: Id
    name: Name
    status: PartnerStatus
    account_id: Id
    balance: AccountBalance
    overdraft_limit: BalanceAmount
    currency: CurrencyCode
    created_at: Time


class PartnerFilters(NamedPageQuery, kw_only=True):
    status: PartnerStatus | None = None
    search: SearchText | None = None


class NewPartner(msgspec.Struct, kw_only=True):
    name: BusinessName
    overdraft_limit: AmountOrZero | None = None


class PartnerUpdate(msgspec.Struct, kw_only=True):
    """Fields to change. Omitted fields keep their values."""

    name: BusinessName | None = None
    overdraft_limit: AmountOrZero | None = None


class PartnerCreated(Redacted, msgspec.Struct, kw_only=True):
    """Response to creating a partner. The secrets are returned only here."""

    partner: PartnerRecord
    api_key_id: Id
    hmac_secret: ShownSecret
    webhook_secret: Annotated[str, Example("returned only once")]


class PartnerWebhookSecret(Redacted, msgspec.Struct, kw_only=True):
    """Response to rotating a webhook secret. The new secret is returned only here."""

    webhook_secret: Annotated[str, Example("returned only once")]


class PartnerResponse(SuccessResponse, kw_only=True):
    partner: PartnerRecord


class PartnerDeposit(MoneyRequest, kw_only=True):
    """Deposit by a partner. `reference` is its reference on the bank statement."""

    amount: Amount
    reference: DepositReference | None = None


class PartnerDepositReceipt(Receipt, kw_only=True):
    amount: Money
    new_balance: BalanceAmount


class PartnerKeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    api_key_id: Id
    created_at: Time
    #: Null for keys that were created before this was recorded.
    created_by: str | None
    created_by_name: str | None
    last_used_at: Time | None


class WebhookTopUp(msgspec.Struct, kw_only=True):
    """Top-up sent by webhook. Either the card or the phone number identifies the subscriber."""

    OMITTED_IN_EXAMPLES: ClassVar = ("card_serial",)

    reference: Annotated[Text, Example("A-17")]
    amount: Amount
    card_serial: CardSerial | None = None
    phone_number: Phone | None = None
    currency: Currency | None = None

    def __post_init__(self) -> None:
        if self.card_serial is None and self.phone_number is None:
            raise build_missing_field_error("card_serial")
        if self.card_serial is not None and self.phone_number is not None:
            # The two fields could identify different subscribers.
            raise invalid_field("card_serial", "must not be combined with phone_number")


class FundFromPartner(CustomerMoneyRequest, kw_only=True):
    partner_reference: Annotated[Reference, Example("A-17")]
    amount: Amount
    partner_id: Reference | None = None


class TopUpReceipt(Receipt, kw_only=True):
    """Receipt for a top-up.

    `new_balance` is null if the subscriber is restricted and hidden from the caller. Restricted
    subscribers are always hidden from partners.
    """

    amount: Money
    new_balance: BalanceAmount | None
