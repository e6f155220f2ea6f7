"""Operations on processors, their terminals and signing keys."""

from tapgate_client.declaration import M, OperationGroup, Transport, acts, lists, moves, reads, sets
from tapgate_client.encoding import DateTimeLike, Money
from tapgate_client.schemas.common import SigningKeyCreated
from tapgate_client.schemas.money_views import BalanceTotals, ProcessorSummary
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.processors import (
    ProcessorCreated,
    ProcessorRecord,
    ProcessorResponse,
    ProcessorTransferReceipt,
    SigningKeyRecord,
    TerminalAdded,
    TerminalRecord,
    TerminalResponse,
)
from tapgate_client.schemas.transactions import TransactionRecord


class Processors(OperationGroup[M]):
    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.terminals: Terminals[M] = Terminals(transport)
        self.keys: SigningKeys[M] = SigningKeys(transport)

    @acts("POST /api/v1/processors")
    def create(self, *, name: str, phone_number: str, email: str) -> ProcessorCreated:
        """Create a processor with a first signing key. Only this response contains the secret."""

    @lists("GET /api/v1/processors")
    def list(
        self,
        *,
        status: str | None = None,
        search: str | None = None,
        order: str | None = None,
        limit: int | None = None,
    ) -> Page[ProcessorRecord]:
        """List processors, newest first. `order` is `newest` or `name`."""

    @reads("GET /api/v1/processors/{id}")
    def get(self, id: str) -> ProcessorRecord: ...

    @reads("GET /api/v1/processors/totals")
    def get_totals(self, *, status: str | None = None, search: str | None = None) -> BalanceTotals:
        """Return the number and total balance of the processors in a list. Admins only."""

    @reads("GET /api/v1/processors/{id}/summary")
    def get_summary(
        self, id: str, *, from_: DateTimeLike | None = None, to: DateTimeLike | None = None
    ) -> ProcessorSummary:
        """Return sales, fees, refunds and payouts of a period, by default the last 30 days."""

    @acts("POST /api/v1/processors/{id}/suspend")
    def suspend(self, id: str, *, reason: str) -> ProcessorResponse: ...

    @acts("POST /api/v1/processors/{id}/activate")
    def activate(self, id: str, *, reason: str | None = None) -> ProcessorResponse: ...

    @moves("POST /api/v1/processors/{id}/transfer")
    def transfer(
        self,
        id: str,
        *,
        subscriber_id: str,
        amount: Money,
        description: str | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> ProcessorTransferReceipt:
        """Transfer money from a processor's settlement account to a subscriber."""

    @lists("GET /api/v1/processors/{id}/transactions")
    def list_transactions(
        self,
        id: str,
        *,
        user_id: str | None = None,
        card_serial: str | None = None,
        type: str | None = None,
        flow: str | None = None,
        status: str | None = None,
        failure_code: str | None = None,
        from_: DateTimeLike | None = None,
        to: DateTimeLike | None = None,
        order: str | None = None,
        limit: int | None = None,
    ) -> Page[TransactionRecord]: ...


class Terminals(OperationGroup[M]):
    @acts("POST /api/v1/processors/{id}/terminals")
    def create(self, id: str, *, name: str) -> TerminalAdded:
        """Create a terminal with a signing key. Only this response contains the secret."""

    @lists("GET /api/v1/processors/{id}/terminals")
    def list(self, id: str, *, limit: int | None = None) -> Page[TerminalRecord]: ...

    @acts("POST /api/v1/processors/{id}/terminals/{terminal_id}/block")
    def block(
        self, id: str, terminal_id: str, *, reason: str | None = None
    ) -> TerminalResponse: ...

    @acts("POST /api/v1/processors/{id}/terminals/{terminal_id}/unblock")
    def unblock(
        self, id: str, terminal_id: str, *, reason: str | None = None
    ) -> TerminalResponse: ...


class SigningKeys(OperationGroup[M]):
    @acts("POST /api/v1/processors/{id}/keys")
    def create(self, id: str, *, terminal_id: str | None = None) -> SigningKeyCreated:
        """Create a signing key for a processor or one of its terminals.

        Only this response contains the secret.
        """

    @lists("GET /api/v1/processors/{id}/keys")
    def list(self, id: str, *, limit: int | None = None) -> Page[SigningKeyRecord]: ...

    @sets("DELETE /api/v1/processors/{id}/keys/{api_key_id}")
    def delete(self, id: str, api_key_id: str) -> None: ...
