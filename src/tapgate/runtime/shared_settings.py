"""Settings that must be the same on all nodes, compared by keyed hashes.

The key is derived from the secret key, which is not in the database. The hashes therefore reveal
nothing, not even settings with few possible values.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from tapgate.settings import Settings
from tapgate.vault import Vault
from tapgate_client.schemas.nodes import NodeRole

#: Hashes by the name of the setting, separated by spaces.
Fingerprint = Mapping[str, str]

SECRET_KEY: Final = "TAPGATE_SECRET_KEY"  # noqa: S105 - the name of the setting

_HASH_BYTES: Final = 8
_JWT_SECRET: Final = "TAPGATE_JWT_SECRET"  # noqa: S105 - the name of the setting
_SERVICE_SECRETS: Final = "TAPGATE_SERVICE_SECRETS"
#: A node with another value of one of these would reject valid requests or count limits wrongly.
_CRITICAL_SETTINGS: Final = (
    _JWT_SECRET,
    _SERVICE_SECRETS,
    "TAPGATE_ENVIRONMENT",
    "TAPGATE_TIMEZONE",
)


def compute_fingerprint(settings: Settings, role: NodeRole) -> dict[str, str]:
    """Return the hashes of the settings that a role uses, and the fingerprints of its secret keys.

    A setting has one hash per secret key, so that nodes with one key in common can be compared. The
    currency is not included, because a database is bound to it.
    """
    vault = Vault(settings.secret_key)
    values = _list_common_values(settings) | (
        _list_gateway_values(settings)
        if role is NodeRole.GATEWAY
        else _list_messenger_values(settings)
    )
    hashes = {
        name: vault.list_keyed_hashes("node settings", f"{name}={value}".encode())
        for name, value in values.items()
    }
    return {SECRET_KEY: " ".join(vault.key_names)} | {
        name: " ".join(value[:_HASH_BYTES].hex() for value in values)
        for name, values in hashes.items()
    }


def _list_common_values(settings: Settings) -> dict[str, object]:
    secrets = {
        f"{_SERVICE_SECRETS} ({name})": secret for name, secret in settings.service_secrets.items()
    }
    return {
        **secrets,
        "TAPGATE_ENVIRONMENT": settings.environment,
        "TAPGATE_TIMEZONE": settings.timezone.key,
        "TAPGATE_CACHE_URL": settings.cache_url,
        "TAPGATE_RATE_LIMIT": settings.rate_limit,
        "TAPGATE_RATE_BURST": settings.rate_burst,
        "TAPGATE_REQUIRE_SYNC_REPLICATION": settings.require_sync_replication,
    }


def _list_gateway_values(settings: Settings) -> dict[str, object]:
    return {
        _JWT_SECRET: settings.jwt_secret,
        "TAPGATE_PUBLIC_URL": settings.public_url if settings.requires_secrets else None,
        "TAPGATE_REFUSE_WEAK_PINS": settings.refuse_weak_pins,
        "TAPGATE_WRONG_PIN_LIMIT": settings.wrong_pin_limit,
        "TAPGATE_WRONG_PIN_PERCENT": settings.wrong_pin_percent,
        "TAPGATE_SECOND_FACTOR": settings.second_factor,
        "TAPGATE_SESSION_IDLE_MINUTES": settings.session_idle_minutes,
        "TAPGATE_OIDC_ISSUER": settings.oidc and msgspec.json.encode(settings.oidc),
        "TAPGATE_FLOAT_LOW": settings.float_low,
        "TAPGATE_RECEIPTS": settings.receipts,
        "TAPGATE_REQUEST_LOG_DAYS": settings.request_log_days,
        "TAPGATE_REQUEST_LOG_BODIES": settings.request_log_bodies,
    }


def _list_messenger_values(settings: Settings) -> dict[str, object]:
    return {
        "TAPGATE_MESSENGER_VERIFY_TOKEN": settings.messenger_verify_token,
        "TAPGATE_MESSENGER_APP_SECRET": settings.messenger_app_secret,
        "TAPGATE_MESSENGER_BRIDGE_TOKEN": settings.messenger_bridge_token,
        "TAPGATE_MESSENGER_FLOW_PRIVATE_KEY": settings.messenger_flow_private_key,
        "TAPGATE_MESSENGER_TEXT_PIN": settings.messenger_text_pin,
        "TAPGATE_MESSENGER_RATE": settings.messenger_rate,
    }


def is_critical(name: str) -> bool:
    """Return whether a node with another value of this setting must not run."""
    return name.startswith(_CRITICAL_SETTINGS)


def list_differences(fingerprint: Fingerprint, other: Fingerprint) -> list[str]:
    """Return the settings that both nodes have, with different values."""
    return sorted(
        name
        for name in fingerprint.keys() & other.keys()
        if not {*fingerprint[name].split()} & {*other[name].split()}
    )


def find_common_values(fingerprints: Iterable[Fingerprint]) -> dict[str, str]:
    """Return the most frequent hash of each setting; of equally frequent ones, the first."""
    counts: dict[str, Counter[str]] = {}
    for fingerprint in fingerprints:
        for name, value in fingerprint.items():
            counts.setdefault(name, Counter()).update(value.split())
    return {name: counter.most_common(1)[0][0] for name, counter in counts.items()}


def list_secret_keys(fingerprint: Fingerprint) -> list[str]:
    """Return the fingerprints of a node's secret keys, newest first.

    The list is empty for a node of a release that knows only one key, the first of the database.
    """
    return fingerprint.get(SECRET_KEY, "").split()
