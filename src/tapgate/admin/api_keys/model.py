"""Records of API keys."""

from typing import Any

from tapgate import clock, ids
from tapgate.auth.api_keys import ApiKey
from tapgate.schemas.admin import ApiKeyRecord, ApiKeyWithSecret


def decode_id(public_id: str) -> int:
    """Decode the ID of a key; return 0, which no key has, for an invalid ID."""
    return ids.decode(ids.KEY, public_id) or 0


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
