"""Labels of the settings, in the groups in which the console lists them."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tapgate.console.labels import humanize
from tapgate.settings_reader import VARIABLE_PREFIX

SETTING_GROUPS: Final = {
    "Network": {
        "PUBLIC_URL": "Public URL",
        "HOST": "Address to listen on",
        "PORT": "Port of the gateway",
        "GATEWAY_URL": "URL of the gateway for the messenger",
        "MESSENGER_URL": "URL of the messenger for the gateway",
        "MESSENGER_PORT": "Port of the messenger",
        "TRUSTED_PROXIES": "Trusted proxies",
        "CORS_ORIGINS": "Origins of browser apps",
        "MAX_CONNECTIONS": "Connections per process",
        "MAX_CONNECTIONS_PER_ADDRESS": "Connections per client address",
    },
    "Database and storage": {
        "DATABASE_URL": "Database",
        "DATABASE_CONNECTIONS": "Database connections per process",
        "DATABASE_REPLICA_URL": "Standby database for reports",
        "REPLICA_MAX_LAG": "Longest wait for the standby, in seconds",
        "REQUIRE_SYNC_REPLICATION": "Transactions require a synchronous standby",
        "AUTO_MIGRATE": "Migrations at startup",
        "CACHE_URL": "Cache for shared rate limits",
        "DATA_DIR": "Data folder",
        "IDEMPOTENCY_KEY_DAYS": "Days that idempotency keys are kept (0: forever)",
    },
    "Processes and nodes": {
        "ENVIRONMENT": "Environment",
        "WORKERS": "Gateway processes",
        "REPORT_WORKERS": "Report processes",
        "MESSENGER_WORKERS": "Messenger processes",
        "NODE_ID": "Name of the node",
        "DRAIN_SECONDS": "Seconds that a stopping node accepts connections",
        "MAX_CLOCK_OFFSET": "Largest clock error, in seconds",
        "SETTINGS_MISMATCH": "If settings of nodes differ",
        "DEMO": "Demo data",
    },
    "Logs": {
        "LOG_FORMAT": "Log format",
        "METRICS_TOKEN": "Metrics token",
        "REQUEST_LOG_DAYS": "Days that API requests are kept",
        "REQUEST_LOG_BODIES": "API requests with bodies",
    },
    "Security and sign-in": {
        "SECOND_FACTOR": "Second factors of administrators",
        "SESSION_IDLE_MINUTES": "Minutes until an idle session ends",
        "OIDC": "Single sign-on",
        "BREACHED_PASSWORDS": "List of breached passwords",
        "ADMIN_EMAIL": "Email of the first administrator",
        "ADMIN_PASSWORD": "Password of the first administrator",
        "SECRET_KEY": "Key that encrypts secrets and hashes PINs",
        "JWT_SECRET": "Key that signs access tokens",
        "SERVICE_SECRETS": "Secrets of internal services",
    },
    "Limits and business rules": {
        "OPERATOR_NAME": "Operator name, unless the branding has one",
        "CURRENCY": "Currency",
        "COUNTRY": "Country of local phone numbers",
        "TIMEZONE": "Time zone of limits and statements",
        "RATE_LIMIT": "Requests per second",
        "RATE_BURST": "Burst of requests",
        "REFUSE_WEAK_PINS": "Weak PINs are rejected",
        "WRONG_PIN_LIMIT": "Wrong PINs per key in ten minutes",
        "WRONG_PIN_PERCENT": "Wrong PINs per key, in percent",
        "FLOAT_LOW": "Low float of an agent",
        "RECEIPTS": "Receipts to phones",
    },
    "Messenger and support": {
        "MESSENGER_PHONE_NUMBER": "Phone number of the chat",
        "MESSENGER_PHONE_NUMBER_ID": "ID of the phone number at the provider",
        "MESSENGER_GRAPH_URL": "API of the provider",
        "MESSENGER_ACCESS_TOKEN": "Access token of the provider",
        "MESSENGER_APP_SECRET": "App secret of the provider",
        "MESSENGER_VERIFY_TOKEN": "Verify token of the provider",
        "MESSENGER_BRIDGE_TOKEN": "Token of the compatibility endpoint",
        "MESSENGER_FLOW_PRIVATE_KEY": "Private key of encrypted forms",
        "MESSENGER_TEXT_PIN": "PINs as plain text messages",
        "MESSENGER_RATE": "Messages per minute and phone number",
        "MESSENGER_MODEL_URL": "Language model",
        "SUPPORT_CONTACT": "Support contact, unless the branding has one",
        "SUPPORT_HOURS": "Opening hours of support",
    },
}
_OTHER: Final = "Other settings"


class SettingGroup(NamedTuple):
    title: str
    #: Labels, and the settings as the API returns them.
    settings: list[tuple[str, Any]]


def group_settings(settings: Sequence[Any]) -> list[SettingGroup]:
    """Return the settings in groups. Settings without a label, of a newer gateway, come last."""
    remaining = {setting["name"].removeprefix(VARIABLE_PREFIX): setting for setting in settings}
    groups = [
        SettingGroup(
            title,
            [(label, remaining.pop(name)) for name, label in labels.items() if name in remaining],
        )
        for title, labels in SETTING_GROUPS.items()
    ]
    others = [(humanize(name), setting) for name, setting in remaining.items()]
    return [group for group in (*groups, SettingGroup(_OTHER, others)) if group.settings]
