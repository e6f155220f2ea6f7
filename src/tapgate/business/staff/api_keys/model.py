"""Records of API keys."""

from typing import Any

from tapgate.auth.api_keys import ApiKey
from tapgate.core.records import build_record
from tapgate_client import ids
from tapgate_client.schemas.admin import ApiKeyRecord, ApiKeyWithSecret


def to_record(key: ApiKey) -> ApiKeyRecord:
    return build_record(ApiKeyRecord, key, **_get_fields(key))


def to_record_with_secret(key: ApiKey, secret: str) -> ApiKeyWithSecret:
    return build_record(ApiKeyWithSecret, key, **_get_fields(key), key=secret)


def _get_fields(key: ApiKey) -> dict[str, Any]:
    networks = key.allowed_ips
    return {
        "id": ids.encode(ids.KEY, key.id),
        "owner_id": None if key.owner is None else key.owner.public_id,
        "allowed_ips": None if networks is None else [str(network) for network in networks],
    }
