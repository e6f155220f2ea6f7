"""Fee rules and commission rules, as clients read and replace them."""

from enum import StrEnum
from typing import Annotated

import msgspec

from tapgate.schemas.agents import CommissionTier
from tapgate.schemas.fields import Amount, AmountOrZero, Choice, ListLength
from tapgate.schemas.percentages import Rate
from tapgate.schemas.transactions import TransactionType, TransactionTypeField


class FeePayer(StrEnum):
    SENDER = "sender"
    RECEIVER = "receiver"


class FeeRule(msgspec.Struct, kw_only=True):
    """Fee tier: the rate for amounts above the previous tier, up to `up_to` (null: no limit)."""

    type: TransactionTypeField
    up_to: Amount | None = None
    rate: Rate
    payer: Annotated[str, Choice(*FeePayer, name="FeePayer")]


class FeeRules(msgspec.Struct, kw_only=True):
    data: Annotated[list[FeeRule], ListLength(0, 500)]


class CommissionRule(msgspec.Struct, kw_only=True):
    """Commission for one transaction type and tier. Amounts below the minimum earn nothing."""

    type: Annotated[
        str,
        Choice(TransactionType.AGENT_CASHIN, TransactionType.AGENT_CASHOUT, name="CommissionType"),
    ]
    tier: CommissionTier
    rate: Rate
    minimum_amount: AmountOrZero


class CommissionRules(msgspec.Struct, kw_only=True):
    # Two types with three tiers each.
    data: Annotated[list[CommissionRule], ListLength(0, 6)]
