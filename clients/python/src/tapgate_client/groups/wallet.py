"""Operations on wallets: transfers, top-ups, quotes, statements and balances."""

from tapgate_client.declaration import M, OperationGroup, moves, reads
from tapgate_client.encoding import DateLike, Money
from tapgate_client.responses import File
from tapgate_client.schemas.partners import TopUpReceipt
from tapgate_client.schemas.wallets import (
    Balance,
    P2pReceipt,
    Quote,
    StatementRecord,
    TransferReceipt,
)


class Wallet(OperationGroup[M]):
    @moves("POST /api/v1/wallet/transfer-p2p")
    def transfer_p2p(
        self,
        *,
        sender_id: str,
        recipient_card_serial: str | None = None,
        recipient_phone_number: str | None = None,
        amount: Money,
        pin: str,
        memo: str | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> P2pReceipt:
        """Transfer money from a subscriber to the holder of a card or phone number.

        Identify the recipient by either `recipient_card_serial` or `recipient_phone_number`.
        """

    @moves("POST /api/v1/wallet/transfer")
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
    ) -> TransferReceipt:
        """Transfer money from one account to another."""

    @moves("POST /api/v1/wallet/fund-from-partner")
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
    ) -> TopUpReceipt:
        """Top up a wallet from a funding partner.

        Identify the wallet by `subscriber_id` or `card_serial`. `partner_id` is required unless the
        partner signs the request.
        """

    @reads("POST /api/v1/wallet/quote")
    def quote(
        self,
        *,
        type: str,
        amount: Money,
        sender_id: str | None = None,
        card_serial: str | None = None,
        recipient_card_serial: str | None = None,
        currency: str | None = None,
    ) -> Quote:
        """Return the fee and total of a transaction without executing it.

        With `sender_id` or `card_serial`, also check whether the transaction would currently be
        accepted, whether it needs the PIN, and how much the sender may still spend.
        """

    @reads("POST /api/v1/wallet/account-statement")
    def create_statement(
        self,
        *,
        subscriber_id: str,
        from_date: DateLike,
        to_date: DateLike,
        format: str | None = None,
        pin: str | None = None,
    ) -> StatementRecord:
        """Create an account statement.

        `format` is `json`, `csv` or `pdf`. For `csv` and `pdf`, the response contains a link to
        the file.
        """

    @reads("GET /api/v1/statements/{token}", public=True)
    def download_statement(self, token: str) -> File:
        """Download a statement. The token is the last path segment of its link."""


class Balances(OperationGroup[M]):
    @reads("GET /api/v1/balance/{user_id}")
    def get(self, user_id: str) -> Balance:
        """Return the balance of a subscriber, an agent (the float), a processor or a partner."""
