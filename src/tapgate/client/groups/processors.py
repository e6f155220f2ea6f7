"""Operations on processors, their terminals and signing keys."""

from tapgate.client.encoding import DateTimeLike, Money, encode_amount, omit_none
from tapgate.client.groups.transactions import build_filters
from tapgate.client.operation import (
    ListOperation,
    M,
    Operation,
    OperationGroup,
    Transport,
    build_delete,
    build_get,
    build_idempotent_post,
    build_post,
    operation,
)
from tapgate.client.pagination import build_list, list_operation
from tapgate.client.records.processors import (
    CreateProcessorResponse,
    CreateTerminalResponse,
    Processor,
    ProcessorResponse,
    ProcessorTransferReceipt,
    SigningKey,
    SigningKeyWithSecret,
    Terminal,
    TerminalResponse,
)
from tapgate.client.records.transactions import Transaction

_COLLECTION_PATH = "/api/v1/processors"
_RESOURCE_PATH = f"{_COLLECTION_PATH}/{{id}}"
_TERMINALS_PATH = f"{_RESOURCE_PATH}/terminals"
_TERMINAL_PATH = f"{_TERMINALS_PATH}/{{terminal_id}}"
_KEYS_PATH = f"{_RESOURCE_PATH}/keys"


class Processors(OperationGroup[M]):
    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.terminals: Terminals[M] = Terminals(transport)
        self.keys: SigningKeys[M] = SigningKeys(transport)

    @operation
    def create(
        self, *, name: str, phone_number: str, email: str
    ) -> Operation[CreateProcessorResponse]:
        """Create a processor with a first signing key. Only this response contains the secret."""
        body = omit_none(name=name, phone_number=phone_number, email=email)
        return build_post(_COLLECTION_PATH, CreateProcessorResponse, body)

    @list_operation
    def list(
        self, *, status: str | None = None, search: str | None = None, limit: int | None = None
    ) -> ListOperation[Processor]:
        return build_list(
            _COLLECTION_PATH, Processor, omit_none(status=status, search=search, limit=limit)
        )

    @operation
    def get(self, id: str) -> Operation[Processor]:
        return build_get(_RESOURCE_PATH, Processor, id=id)

    @operation
    def suspend(self, id: str, *, reason: str) -> Operation[ProcessorResponse]:
        return build_post(
            f"{_RESOURCE_PATH}/suspend", ProcessorResponse, omit_none(reason=reason), id=id
        )

    @operation
    def activate(self, id: str, *, reason: str | None = None) -> Operation[ProcessorResponse]:
        return build_post(
            f"{_RESOURCE_PATH}/activate", ProcessorResponse, omit_none(reason=reason), id=id
        )

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
        """Transfer money from a processor's settlement account to a subscriber."""
        body = omit_none(
            subscriber_id=subscriber_id,
            amount=encode_amount(amount),
            description=description,
            currency=currency,
        )
        return build_idempotent_post(
            f"{_RESOURCE_PATH}/transfer", ProcessorTransferReceipt, request_id, body, id=id
        )

    @list_operation
    def list_transactions(
        self,
        id: str,
        *,
        user_id: str | None = None,
        card_serial: str | None = None,
        type: str | None = None,
        status: str | None = None,
        failure_code: str | None = None,
        from_: DateTimeLike | None = None,
        to: DateTimeLike | None = None,
        limit: int | None = None,
    ) -> ListOperation[Transaction]:
        query = build_filters(user_id, card_serial, type, status, failure_code, from_, to, limit)
        return build_list(f"{_RESOURCE_PATH}/transactions", Transaction, query, id=id)


class Terminals(OperationGroup[M]):
    @operation
    def create(self, id: str, *, name: str) -> Operation[CreateTerminalResponse]:
        """Create a terminal with a signing key. Only this response contains the secret."""
        return build_post(_TERMINALS_PATH, CreateTerminalResponse, omit_none(name=name), id=id)

    @list_operation
    def list(self, id: str, *, limit: int | None = None) -> ListOperation[Terminal]:
        return build_list(_TERMINALS_PATH, Terminal, omit_none(limit=limit), id=id)

    @operation
    def block(
        self, id: str, terminal_id: str, *, reason: str | None = None
    ) -> Operation[TerminalResponse]:
        body = omit_none(reason=reason)
        return build_post(
            f"{_TERMINAL_PATH}/block", TerminalResponse, body, id=id, terminal_id=terminal_id
        )

    @operation
    def unblock(
        self, id: str, terminal_id: str, *, reason: str | None = None
    ) -> Operation[TerminalResponse]:
        body = omit_none(reason=reason)
        return build_post(
            f"{_TERMINAL_PATH}/unblock", TerminalResponse, body, id=id, terminal_id=terminal_id
        )


class SigningKeys(OperationGroup[M]):
    @operation
    def create(self, id: str, *, terminal_id: str | None = None) -> Operation[SigningKeyWithSecret]:
        """Create a signing key for a processor or one of its terminals.

        Only this response contains the secret.
        """
        return build_post(
            _KEYS_PATH, SigningKeyWithSecret, omit_none(terminal_id=terminal_id), id=id
        )

    @list_operation
    def list(self, id: str, *, limit: int | None = None) -> ListOperation[SigningKey]:
        return build_list(_KEYS_PATH, SigningKey, omit_none(limit=limit), id=id)

    @operation
    def delete(self, id: str, api_key_id: str) -> Operation[None]:
        return build_delete(f"{_KEYS_PATH}/{{api_key_id}}", id=id, api_key_id=api_key_id)
