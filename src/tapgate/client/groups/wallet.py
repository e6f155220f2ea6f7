"""Wallets: money between people, what it costs, what they have, what they did."""

from tapgate.client.operation import (
    Effect,
    Group,
    M,
    Operation,
    ask,
    described,
    move,
    operation,
    read,
)
from tapgate.client.records.base import File
from tapgate.client.records.wallet import (
    Balance,
    P2pReceipt,
    Quote,
    Statement,
    TopUpReceipt,
    TransferReceipt,
)
from tapgate.client.values import Day, Money, day, given, money

_WALLET = "/api/v1/wallet"


class Wallet(Group[M]):
    @operation
    def transfer_p2p(
        self,
        *,
        sender_id: str,
        recipient_card_serial: str,
        amount: Money,
        pin: str,
        memo: str | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> Operation[P2pReceipt]:
        """From a subscriber to whoever has a card."""
        body = given(
            sender_id=sender_id,
            recipient_card_serial=recipient_card_serial,
            amount=money(amount),
            pin=pin,
            memo=memo,
            currency=currency,
        )
        return move(f"{_WALLET}/transfer-p2p", P2pReceipt, request_id, body)

    @operation
    def transfer(
        self,
        *,
        from_account_id: str,
        to_account_id: str,
        amount: Money,
        pin: str | None = None,
        description: str | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> Operation[TransferReceipt]:
        """From one account to another."""
        body = given(
            from_account_id=from_account_id,
            to_account_id=to_account_id,
            amount=money(amount),
            pin=pin,
            description=description,
            currency=currency,
        )
        return move(f"{_WALLET}/transfer", TransferReceipt, request_id, body)

    @operation
    def fund_from_partner(
        self,
        *,
        partner_reference: str,
        amount: Money,
        subscriber_id: str | None = None,
        card_serial: str | None = None,
        partner_id: str | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> Operation[TopUpReceipt]:
        """`subscriber_id` or `card_serial`; `partner_id` unless the partner itself signs."""
        body = given(
            partner_reference=partner_reference,
            amount=money(amount),
            subscriber_id=subscriber_id,
            card_serial=card_serial,
            partner_id=partner_id,
            currency=currency,
        )
        return move(f"{_WALLET}/fund-from-partner", TopUpReceipt, request_id, body)

    @operation
    def quote(
        self,
        *,
        type: str,
        amount: Money,
        sender_id: str | None = None,
        currency: str | None = None,
    ) -> Operation[Quote]:
        """What a payment would cost; with a sender also whether it would go through."""
        body = given(type=type, amount=money(amount), sender_id=sender_id, currency=currency)
        return ask(f"{_WALLET}/quote", Quote, body)

    @operation
    def statement(
        self,
        *,
        subscriber_id: str,
        from_date: Day,
        to_date: Day,
        format: str | None = None,
        pin: str | None = None,
    ) -> Operation[Statement]:
        """`format` is `json`, `csv` or `pdf`; the last two are fetched by their link."""
        body = given(
            subscriber_id=subscriber_id,
            from_date=day(from_date),
            to_date=day(to_date),
            format=format,
            pin=pin,
        )
        # A PIN that is wrong is counted each time.
        effect: Effect = "reads" if pin is None else "acts"
        return described(effect, "POST", f"{_WALLET}/account-statement", Statement, body=body)

    @operation
    def fetch_statement(self, token: str) -> Operation[File]:
        """The file behind a statement's link, whose last part is the token."""
        return described(
            "reads",
            "GET",
            "/api/v1/statements/{token}",
            File,
            path={"token": token},
            public=True,
        )


class Balances(Group[M]):
    @operation
    def get(self, user_id: str) -> Operation[Balance]:
        """Of a subscriber, an agent (the float), a processor or a partner."""
        return read("/api/v1/balance/{user_id}", Balance, user_id=user_id)
