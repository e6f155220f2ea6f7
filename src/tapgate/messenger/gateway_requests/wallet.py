"""Requests about the balance, the limits and past transactions."""

from datetime import datetime

import msgspec

from tapgate.messenger.gateway_requests.base import GatewayRequest
from tapgate_client import AsyncTapgateClient
from tapgate_client.names import get_counterparty_name, mask_person_name
from tapgate_client.schemas.subscribers import Limits
from tapgate_client.schemas.transactions import (
    Direction,
    FeePayer,
    PartyRecord,
    PartyType,
    TransactionRecord,
    TransactionStatus,
)
from tapgate_client.schemas.wallets import Balance


class TransactionSummary(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    status: str
    is_credit: bool
    amount: str
    #: Fee that the subscriber paid: in addition to the amount sent, or out of the amount received.
    fee: str
    currency: str
    counterparty_name: str | None  # masked for a subscriber
    at: datetime
    failure_code: str | None = None


class GetBalance(GatewayRequest, frozen=True, kw_only=True):
    subscriber_id: str

    async def perform(self, gateway: AsyncTapgateClient) -> Balance:
        return await gateway.balances.get(self.subscriber_id)


class GetLimits(GatewayRequest, frozen=True, kw_only=True):
    subscriber_id: str

    async def perform(self, gateway: AsyncTapgateClient) -> Limits:
        return await gateway.subscribers.get_limits(self.subscriber_id)


class ListTransactions(GatewayRequest, frozen=True, kw_only=True):
    """List a subscriber's transactions, newest first."""

    subscriber_id: str
    limit: int

    async def perform(self, gateway: AsyncTapgateClient) -> list[TransactionSummary]:
        listed = gateway.transactions.list(user_id=self.subscriber_id, limit=self.limit)
        return [_to_transaction_summary(record) for record in (await listed.get_page()).data]


class GetLastDecline(GatewayRequest, frozen=True, kw_only=True):
    """Find the subscriber's last failed transaction as the payer."""

    subscriber_id: str

    async def perform(self, gateway: AsyncTapgateClient) -> TransactionSummary | None:
        listed = gateway.transactions.list(
            user_id=self.subscriber_id, status=TransactionStatus.FAILED, limit=20
        )
        for record in (await listed.get_page()).data:
            if record.direction != Direction.CREDIT:
                return _to_transaction_summary(record)
        return None


class CreateStatement(GatewayRequest, frozen=True, kw_only=True):
    """Create a PDF statement and return its link. Dates are YYYY-MM-DD."""

    subscriber_id: str
    from_date: str
    to_date: str

    async def perform(self, gateway: AsyncTapgateClient) -> str:
        statement = await gateway.wallet.create_statement(
            subscriber_id=self.subscriber_id,
            from_date=self.from_date,
            to_date=self.to_date,
            format="pdf",
        )
        return statement.statement_url or ""


def _to_transaction_summary(record: TransactionRecord) -> TransactionSummary:
    is_credit = record.direction == Direction.CREDIT
    counterparty = record.from_ if is_credit else record.to
    fee_payer = FeePayer.RECEIVER if is_credit else FeePayer.SENDER
    return TransactionSummary(
        type=record.type,
        status=record.status,
        is_credit=is_credit,
        amount=record.amount,
        fee=record.fee_amount if record.fee_payer == fee_payer else "0.00",
        currency=record.currency,
        counterparty_name=_get_counterparty_name(record.merchant_name, counterparty),
        at=datetime.fromisoformat(record.created_at),
        failure_code=record.failure_code,
    )


def _get_counterparty_name(merchant_name: str | None, party: PartyRecord | None) -> str | None:
    """Return the counterparty's name, masked for a subscriber, or None if it is unknown."""
    name = "" if party is None else party.name or ""
    if not (merchant_name or name):
        return None
    is_person = party is not None and party.type == PartyType.SUBSCRIBER
    shown = get_counterparty_name(merchant_name, name, is_person=is_person)
    return mask_person_name(shown) if is_person and not merchant_name else shown
