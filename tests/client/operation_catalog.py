"""All client methods, with sample arguments to build their operations."""

import inspect
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from tapgate_client.client import BaseClient
from tapgate_client.clock import system_clock
from tapgate_client.declaration import OperationGroup, list_operation, operation
from tapgate_client.operation import Operation
from tapgate_client.pagination import Paginator
from tapgate_client.schemas.approvals import ApprovalRule
from tapgate_client.schemas.card_proofs import CardProof
from tapgate_client.schemas.chat import ChatTurn
from tapgate_client.schemas.fees import CommissionRule, FeeRule
from tapgate_client.schemas.general_ledger import GlCodeUpdate
from tapgate_client.schemas.messages import StatusReport
from tapgate_client.schemas.passkeys import (
    AssertedCredential,
    AssertionResponse,
    AttestationResponse,
    AttestedCredential,
)
from tapgate_client.schemas.provider_warnings import ProviderReport
from tapgate_client.schemas.saved_replies import SavedReplyTexts

_SAMPLE_VALUES: dict[Any, Any] = {
    str: "text",
    int: 1,
    bool: True,
    bytes: b"bytes",
    Decimal: Decimal("12.50"),
    date: date(2026, 1, 31),
    datetime: system_clock(),
    CardProof: CardProof(picc_data="EF963FF7828658A599F3041510671E88", cmac="94EED9EE65337086"),
    AttestedCredential: AttestedCredential(
        id="AAAA",
        raw_id="AAAA",
        type="public-key",
        response=AttestationResponse(client_data_json="AAAA", attestation_object="AAAA"),
    ),
    AssertedCredential: AssertedCredential(
        id="AAAA",
        raw_id="AAAA",
        type="public-key",
        response=AssertionResponse(
            client_data_json="AAAA", authenticator_data="AAAA", signature="AAAA"
        ),
    ),
    StatusReport: StatusReport(message_id="msg_1", status="failed", error_code="131026"),
    ProviderReport: ProviderReport(
        kind="account",
        subject="account",
        state="DISABLE",
        resolved=False,
        occurred_at="2026-01-31T12:00:00Z",
    ),
    SavedReplyTexts: SavedReplyTexts(en="text"),
    ChatTurn: ChatTurn(
        turn_id="cht_1",
        phone_number="+23276000001",
        channel="messaging",
        input="text",
        outcome="answered",
        replies=1,
    ),
    FeeRule: FeeRule(type="transfer_p2p", up_to="1", rate="1", payer="sender"),
    ApprovalRule: ApprovalRule(operation="agent_fund", above="1", roles=["finance_user"]),
    GlCodeUpdate: GlCodeUpdate(kind="wallet", gl_code="2100", name="Customer wallets"),
    CommissionRule: CommissionRule(type="agent_cashin", tier=1, rate="1", minimum_amount="10"),
}


class RecordingTransport:
    """Transport that returns each operation unsent. A list returns the operation of one page."""

    def send(self, operation: Operation[Any], /) -> Operation[Any]:
        return operation

    def paginate(self, operation: Operation[Any], /) -> Operation[Any]:
        page: Any = Paginator(self.send, operation).get_page("cur_0000000000000")  # type: ignore[arg-type]
        return page  # type: ignore[no-any-return]


class ClientMethod(msgspec.Struct, frozen=True):
    """An operation group's method."""

    name: str
    group: OperationGroup[Any]
    describe: Any

    def __str__(self) -> str:
        return self.name

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        _self, *others = inspect.signature(self.describe).parameters.items()
        return dict(others)

    def build_operation(self, **arguments: Any) -> Operation[Any]:
        method = getattr(self.group, self.name.rpartition(".")[2])
        built: Operation[Any] = method(**arguments)
        return built

    def sample_arguments(self, *, include_optional: bool = True) -> Iterator[dict[str, Any]]:
        """Yield argument sets that together cover every type that each parameter accepts."""
        types = get_type_hints(self.describe)
        values_by_name = {
            name: _sample_values(types[name])
            for name, parameter in self.parameters.items()
            if include_optional or parameter.default is parameter.empty
        }
        for index in range(max(map(len, values_by_name.values()), default=1)):
            yield {name: values[index % len(values)] for name, values in values_by_name.items()}

    @property
    def sample_operation(self) -> Operation[Any]:
        return self.build_operation(**next(self.sample_arguments()))


def _sample_values(kind: Any) -> list[Any]:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return [
            value
            for item in get_args(kind)
            if item is not type(None)
            for value in _sample_values(item)
        ]
    if origin is not None and issubclass(origin, Mapping):
        return [{"key": 1}]
    if origin is not None:
        return [[value] for value in _sample_values(get_args(kind)[0])]
    return [_SAMPLE_VALUES[kind]]


def list_methods() -> list[ClientMethod]:
    return list(_list_group_methods("", BaseClient(RecordingTransport())))


def _list_group_methods(prefix: str, group: OperationGroup[Any]) -> Iterator[ClientMethod]:
    for name, member in inspect.getmembers_static(type(group)):
        if isinstance(member, operation | list_operation):
            yield ClientMethod(prefix + name, group, member.describe)
    for name, value in vars(group).items():
        if isinstance(value, OperationGroup):
            yield from _list_group_methods(f"{prefix}{name}.", value)


def list_structs(kind: Any) -> Iterator[type[msgspec.Struct]]:
    """Yield all structs in a type, including nested structs."""
    origin = get_origin(kind) or kind
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        yield origin
        for field in msgspec.structs.fields(kind):
            yield from list_structs(field.type)
    for argument in get_args(kind):
        yield from list_structs(argument)
