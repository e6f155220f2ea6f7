"""Settings of a process as staff may see them: without secrets."""

from typing import Any, Final
from urllib.parse import urlsplit

from tapgate.settings import Settings
from tapgate.settings_reader import VARIABLE_PREFIX
from tapgate_client.schemas.nodes import SettingRecord

#: Settings whose values are never shown.
SECRET_FIELDS: Final = frozenset(
    {
        "admin_email",
        "admin_password",
        "jwt_secret",
        "secret_key",
        "service_secrets",
        "oidc",
        "metrics_token",
        "messenger_verify_token",
        "messenger_app_secret",
        "messenger_bridge_token",
        "messenger_access_token",
        "messenger_flow_private_key",
    }
)
#: URLs that may contain credentials.
URL_FIELDS: Final = frozenset(
    {
        "public_url",
        "messenger_url",
        "gateway_url",
        "database_url",
        "database_replica_url",
        "cache_url",
        "messenger_graph_url",
        "messenger_model_url",
    }
)
#: All other settings. A setting that is in none of the three is not shown.
PLAIN_FIELDS: Final = frozenset(
    """host port messenger_port data_dir database_connections workers report_workers replica_max_lag
    node_id drain_seconds max_clock_offset settings_mismatch auto_migrate require_sync_replication
    idempotency_key_days environment rate_limit rate_burst operator_name currency country timezone
    refuse_weak_pins second_factor breached_passwords session_idle_minutes float_low receipts demo
    log_format trusted_proxies cors_origins max_connections max_connections_per_address
    messenger_rate messenger_text_pin messenger_phone_number_id messenger_phone_number support_hours
    support_contact messenger_workers request_log_days request_log_bodies wrong_pin_limit
    wrong_pin_percent""".split()
)


def describe_settings(settings: Settings) -> list[SettingRecord]:
    """Return the settings by name."""
    records = []
    for field in sorted(SECRET_FIELDS | URL_FIELDS | PLAIN_FIELDS):
        value, is_secret = getattr(settings, field), field in SECRET_FIELDS
        is_set = value is not None and value not in ("", (), {})
        name = f"{VARIABLE_PREFIX}{field.upper()}"
        records.append(
            SettingRecord(
                name=name,
                value=None if is_secret or not is_set else _format(field, value),
                hidden=is_secret,
                is_set=is_set,
                is_default=not any(
                    # Single sign-on has several variables.
                    variable == name or (variable.startswith(f"{name}_") and field == "oidc")
                    for variable in settings.variables
                ),
            )
        )
    return records


def _format(field: str, value: Any) -> str:
    if field in URL_FIELDS:
        return _remove_credentials(str(value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _remove_credentials(url: str) -> str:
    """Return the scheme, host, port and path of a URL."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "set"
    return f"{parts.scheme}://{host}{parts.path}"
