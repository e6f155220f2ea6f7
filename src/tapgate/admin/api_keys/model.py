"""API keys: request bodies, records and errors."""

from ipaddress import IPv6Network, ip_network
from typing import Annotated, Any, Final

import msgspec

from tapgate import clock, ids
from tapgate.admin.model import SCOPES
from tapgate.auth.api_keys import ApiKey
from tapgate.errors import ApiError, Code
from tapgate.schemas.fields import (
    Choice,
    IntegerRange,
    InvalidValueError,
    ListLength,
    Rule,
    Text,
    Timestamp,
    TimestampRule,
)

_MAX_RATE_LIMIT: Final = 1_000_000
_MAX_NETWORKS: Final = 100


class NotEmptyRule(Rule):
    """List of at least one scope. Duplicates are removed."""

    example = ("payments:read", "balance:read")

    def check(self, value: list[str]) -> list[str]:
        if not value:
            raise InvalidValueError("must have at least one scope")
        return list(dict.fromkeys(value))

    def to_json_schema(self) -> dict[str, Any]:
        return {"minItems": 1}


class CidrRule(Rule):
    """Network in CIDR notation, or a single address."""

    example = "203.0.113.0/24"

    def check(self, value: str) -> str:
        try:
            network = ip_network(value)
        except ValueError:
            raise InvalidValueError(
                "must be a network in CIDR notation such as 203.0.113.0/24, without host bits"
            ) from None
        address = network.network_address
        if isinstance(network, IPv6Network) and (
            address.ipv4_mapped or address.scope_id is not None  # type: ignore[union-attr]
        ):
            raise InvalidValueError("must not be an IPv4-mapped network or have a zone ID")
        return str(network)

    def to_json_schema(self) -> dict[str, Any]:
        return {"description": "Network in CIDR notation, IPv4 or IPv6"}


class OrEmptyRule(Rule):
    """Wraps a rule to also accept an empty string, which resets the field to its default."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.example = rule.example

    def check(self, value: Any) -> Any:
        if value == "":
            return value
        if isinstance(self._rule, IntegerRange) and not isinstance(value, int):
            raise InvalidValueError("must be a whole number or empty")
        return self._rule.check(value)

    def to_json_schema(self) -> dict[str, Any]:
        description = {"description": "An empty string resets the field to its default."}
        if isinstance(self._rule, IntegerRange):
            return self._rule.to_json_schema() | {"pattern": "^$"} | description
        return description


Scope = Annotated[str, Choice(*SCOPES, name="Scope")]
Scopes = Annotated[list[Scope], NotEmptyRule()]
RATE_RULE: Final = IntegerRange(1, _MAX_RATE_LIMIT)
RATE_RULE.example = 50
AllowedIps = Annotated[list[Annotated[str, CidrRule()]], ListLength(0, _MAX_NETWORKS)]


class NewApiKey(msgspec.Struct, kw_only=True):
    name: Text
    scopes: Scopes
    rate_limit: Annotated[int, RATE_RULE] | None = None
    burst: Annotated[int, RATE_RULE] | None = None
    allowed_ips: AllowedIps | None = None
    expires_at: Timestamp | None = None


class ApiKeyChanges(msgspec.Struct, kw_only=True):
    """Fields to change. Omitted fields keep their values."""

    name: Text | None = None
    scopes: Scopes | None = None
    rate_limit: Annotated[int | str, OrEmptyRule(RATE_RULE)] | None = None
    burst: Annotated[int | str, OrEmptyRule(RATE_RULE)] | None = None
    allowed_ips: AllowedIps | None = None
    expires_at: Annotated[str, OrEmptyRule(TimestampRule())] | None = None


class ApiKeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    scopes: list[Scope]
    prefix: str
    rate_limit: int | None
    burst: int | None
    allowed_ips: list[str] | None
    expires_at: str | None
    last_used_at: str | None
    created_at: str


class ApiKeyWithSecret(ApiKeyRecord, frozen=True, kw_only=True):
    """API key record that includes the key itself, returned only on creation and rotation."""

    key: str


def not_found() -> ApiError:
    return ApiError(Code.NOT_FOUND, "No such API key.")


def decode_id(public_id: str) -> int:
    key_id = ids.decode(ids.KEY, public_id)
    if key_id is None:
        raise not_found()
    return key_id


def to_record(key: ApiKey) -> ApiKeyRecord:
    return ApiKeyRecord(**_to_fields(key))


def to_record_with_secret(key: ApiKey, secret: str) -> ApiKeyWithSecret:
    return ApiKeyWithSecret(**_to_fields(key), key=secret)


def _to_fields(key: ApiKey) -> dict[str, Any]:
    networks = key.allowed_ips
    return {
        "id": ids.encode(ids.KEY, key.id),
        "name": key.name,
        "scopes": key.scopes,
        "prefix": key.prefix,
        "rate_limit": key.rate_limit,
        "burst": key.burst,
        "allowed_ips": None if networks is None else [str(network) for network in networks],
        "expires_at": None if key.expires_at is None else clock.format_rfc3339(key.expires_at),
        "last_used_at": None
        if key.last_used_at is None
        else clock.format_rfc3339(key.last_used_at),
        "created_at": clock.format_rfc3339(key.created_at),
    }
