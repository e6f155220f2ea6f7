"""Operations on wallets: transfers, top-ups, quotes, statements and balances."""

from tapgate.client.encoding import DateLike, Money, encode_amount, encode_date, omit_none
from tapgate.client.operation import (
    Effect,
    M,
    Operation,
    OperationGroup,
    build_get,
    build_idempotent_post,
    build_operation,
    build_safe_post,
    operation,
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

_WALLET_PATH = "/api/v1/wallet"


class Wallet(OperationGroup[M]):
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
        """Transfer money from a subscriber to the holder of a card."""
        body = omit_none(
            sender_id=sender_id,
            recipient_card_serial=recipient_card_serial,
            amount=encode_amount(amount),
            pin=pin,
            memo=memo,
            currency=currency,
        )
        return build_idempotent_post(f"{_WALLET_PATH}/transfer-p2p", P2pReceipt, request_id, body)

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
        """Transfer money from one account to another."""
        body = omit_none(
            from_account_id=from_account_id,
            to_account_id=to_account_id,
            amount=encode_amount(amount),
            pin=pin,
            description=description,
            currency=currency,
        )
        return build_idempotent_post(f"{_WALLET_PATH}/transfer", TransferReceipt, request_id, body)

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
        """Top up a wallet from a funding partner.

        Identify the wallet by `subscriber_id` or `card_serial`. `partner_id` is required unless the
        partner signs the request.
        """
        body = omit_none(
            partner_reference=partner_reference,
            amount=encode_amount(amount),
            subscriber_id=subscriber_id,
            card_serial=card_serial,
            partner_id=partner_id,
            currency=currency,
        )
        return build_idempotent_post(
            f"{_WALLET_PATH}/fund-from-partner", TopUpReceipt, request_id, body
        )

    @operation
    def quote(
        self,
        *,
        type: str,
        amount: Money,
        sender_id: str | None = None,
        currency: str | None = None,
    ) -> Operation[Quote]:
        """Return the fee and total of a transaction without executing it.

        With `sender_id`, also check whether the transaction would currently be accepted.
        """
        body = omit_none(
            type=type, amount=encode_amount(amount), sender_id=sender_id, currency=currency
        )
        return build_safe_post(f"{_WALLET_PATH}/quote", Quote, body)

    @operation
    def create_statement(
        self,
        *,
        subscriber_id: str,
        from_date: DateLike,
        to_date: DateLike,
        format: str | None = None,
        pin: str | None = None,
    ) -> Operation[Statement]:
        """Create an account statement.

        `format` is `json`, `csv` or `pdf`. For `csv` and `pdf`, the response contains a link to
        the file.
        """
        body = omit_none(
            subscriber_id=subscriber_id,
            from_date=encode_date(from_date),
            to_date=encode_date(to_date),
            format=format,
            pin=pin,
        )
        # An incorrect PIN counts toward the PIN lock, so a request with a PIN is not safe to retry.
        effect: Effect = "reads" if pin is None else "acts"
        return build_operation(
            effect, "POST", f"{_WALLET_PATH}/account-statement", Statement, body=body
        )

    @operation
    def download_statement(self, token: str) -> Operation[File]:
        """Download a statement. The token is the last path segment of its link."""
        return build_operation(
            "reads",
            "GET",
            "/api/v1/statements/{token}",
            File,
            path={"token": token},
            public=True,
        )


class Balances(OperationGroup[M]):
    @operation
    def get(self, user_id: str) -> Operation[Balance]:
        """Return the balance of a subscriber, an agent (the float), a processor or a partner."""
        return build_get("/api/v1/balance/{user_id}", Balance, user_id=user_id)
