"""Processors, their terminals and their signing keys."""

from tapgate.client.groups.transactions import filters
from tapgate.client.operation import (
    Group,
    Line,
    Listing,
    M,
    Operation,
    act,
    delete,
    move,
    operation,
    read,
)
from tapgate.client.pages import listed, listing
from tapgate.client.records.processors import (
    Processor,
    ProcessorCreated,
    ProcessorMoved,
    ProcessorTransferReceipt,
    SigningKey,
    SigningKeyCreated,
    Terminal,
    TerminalAdded,
    TerminalMoved,
)
from tapgate.client.records.transactions import Transaction
from tapgate.client.values import Moment, Money, given, money

_ALL = "/api/v1/processors"
_ONE = f"{_ALL}/{{id}}"
_TERMINALS = f"{_ONE}/terminals"
_TERMINAL = f"{_TERMINALS}/{{terminal_id}}"
_KEYS = f"{_ONE}/keys"


class Processors(Group[M]):
    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self.terminals: Terminals[M] = Terminals(line)
        self.keys: SigningKeys[M] = SigningKeys(line)

    @operation
    def create(self, *, name: str, phone_number: str, email: str) -> Operation[ProcessorCreated]:
        """The answer has the first signing key, whose secret is shown this once."""
        body = given(name=name, phone_number=phone_number, email=email)
        return act(_ALL, ProcessorCreated, body)

    @listing
    def list(
        self, *, status: str | None = None, search: str | None = None, limit: int | None = None
    ) -> Listing[Processor]:
        return listed(_ALL, Processor, given(status=status, search=search, limit=limit))

    @operation
    def get(self, id: str) -> Operation[Processor]:
        return read(_ONE, Processor, id=id)

    @operation
    def suspend(self, id: str, *, reason: str) -> Operation[ProcessorMoved]:
        return act(f"{_ONE}/suspend", ProcessorMoved, given(reason=reason), id=id)

    @operation
    def activate(self, id: str, *, reason: str | None = None) -> Operation[ProcessorMoved]:
        return act(f"{_ONE}/activate", ProcessorMoved, given(reason=reason), id=id)

    @operation
    def transfer(
        self,
        id: str,
        *,
        subscriber_id: str,
        amount: Money,
        description: str | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> Operation[ProcessorTransferReceipt]:
        """What a merchant took, to a subscriber."""
        body = given(
            subscriber_id=subscriber_id,
            amount=money(amount),
            description=description,
            currency=currency,
        )
        return move(f"{_ONE}/transfer", ProcessorTransferReceipt, request_id, body, id=id)

    @listing
    def list_transactions(
        self,
        id: str,
        *,
        user_id: str | None = None,
        card_serial: str | None = None,
        type: str | None = None,
        status: str | None = None,
        failure_code: str | None = None,
        from_: Moment | None = None,
        to: Moment | None = None,
        limit: int | None = None,
    ) -> Listing[Transaction]:
        query = filters(user_id, card_serial, type, status, failure_code, from_, to, limit)
        return listed(f"{_ONE}/transactions", Transaction, query, id=id)


class Terminals(Group[M]):
    @operation
    def add(self, id: str, *, name: str) -> Operation[TerminalAdded]:
        """To a processor. The answer has the terminal's signing key, shown this once."""
        return act(_TERMINALS, TerminalAdded, given(name=name), id=id)

    @listing
    def list(self, id: str, *, limit: int | None = None) -> Listing[Terminal]:
        return listed(_TERMINALS, Terminal, given(limit=limit), id=id)

    @operation
    def block(
        self, id: str, terminal_id: str, *, reason: str | None = None
    ) -> Operation[TerminalMoved]:
        body = given(reason=reason)
        return act(f"{_TERMINAL}/block", TerminalMoved, body, id=id, terminal_id=terminal_id)

    @operation
    def unblock(
        self, id: str, terminal_id: str, *, reason: str | None = None
    ) -> Operation[TerminalMoved]:
        body = given(reason=reason)
        return act(f"{_TERMINAL}/unblock", TerminalMoved, body, id=id, terminal_id=terminal_id)


class SigningKeys(Group[M]):
    @operation
    def create(self, id: str, *, terminal_id: str | None = None) -> Operation[SigningKeyCreated]:
        """Of a processor, or of one of its terminals. The secret is shown this once."""
        return act(_KEYS, SigningKeyCreated, given(terminal_id=terminal_id), id=id)

    @listing
    def list(self, id: str, *, limit: int | None = None) -> Listing[SigningKey]:
        return listed(_KEYS, SigningKey, given(limit=limit), id=id)

    @operation
    def delete(self, id: str, api_key_id: str) -> Operation[None]:
        return delete(f"{_KEYS}/{{api_key_id}}", id=id, api_key_id=api_key_id)
