"""Operator settings: environment variables, their defaults, and their validation."""

import secrets
from collections.abc import Mapping, MutableMapping
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from tapgate.environment_reader import replace_files_by_content
from tapgate.oidc_settings import OidcSettings, read_oidc_settings
from tapgate.settings_reader import (
    DEVELOPMENT,
    ENVIRONMENTS,
    PRODUCTION,
    TESTING,
    VARIABLE_PREFIX,
    SettingsError,
    SettingsReader,
    requires_secrets,
)

NO_RECEIPTS = "off"
RECEIVED_RECEIPTS = "received"
ALL_RECEIPTS = "all"
RECEIPT_MODES = (NO_RECEIPTS, RECEIVED_RECEIPTS, ALL_RECEIPTS)
#: Also disables the messages that are otherwise always sent. Only for building demo data.
NO_NOTIFICATIONS = "none"

#: Format of the log. `auto` is text on a terminal, otherwise JSON.
AUTO_LOG_FORMAT = "auto"
LOG_FORMATS = (AUTO_LOG_FORMAT, "json", "text")

NO_SECOND_FACTOR = "off"
OPTIONAL_SECOND_FACTOR = "optional"
REQUIRED_SECOND_FACTOR = "required"
SECOND_FACTOR_MODES = (NO_SECOND_FACTOR, OPTIONAL_SECOND_FACTOR, REQUIRED_SECOND_FACTOR)

#: What a node does at its start if its settings differ from those of other nodes.
MISMATCH_REFUSE = "refuse"
MISMATCH_WARN = "warn"

#: Maximum connections to the database per process, and the smallest accepted value. A process must
#: have more connections for requests than expensive reads can use.
DEFAULT_DATABASE_CONNECTIONS = 20
MIN_DATABASE_CONNECTIONS = 12

DEFAULT_MESSENGER_URL = "http://127.0.0.1:8001"

_WILDCARD_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    port: int
    messenger_port: int
    public_url: str
    messenger_url: str
    gateway_url: str
    database_url: str | None
    data_dir: Path
    database_connections: int
    cache_url: str | None
    workers: int
    report_workers: int
    database_replica_url: str | None
    replica_max_lag: int
    node_id: str
    drain_seconds: int
    max_clock_offset: int
    settings_mismatch: str
    auto_migrate: bool
    require_sync_replication: bool
    #: 0 keeps them forever.
    idempotency_key_days: int
    #: 0 turns the request log off.
    request_log_days: int
    request_log_bodies: bool
    environment: str
    admin_email: str | None
    admin_password: str | None
    jwt_secret: str
    #: One key, or several such as `2:key,1:key`, newest first.
    secret_key: str
    service_secrets: dict[str, str]
    rate_limit: int
    rate_burst: int
    operator_name: str
    currency: str
    #: Country of phone numbers that staff type without a country code.
    country: str | None
    timezone: ZoneInfo
    refuse_weak_pins: bool
    #: Wrong PINs of one credential in ten minutes, and their percentage of its attempts.
    wrong_pin_limit: int
    wrong_pin_percent: int
    second_factor: str
    breached_passwords: Path | None
    session_idle_minutes: int | None
    #: None without single sign-on.
    oidc: OidcSettings | None
    float_low: int
    receipts: str
    demo: str
    log_format: str
    metrics_token: str | None
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...]
    cors_origins: tuple[str, ...]
    max_connections: int
    max_connections_per_address: int
    messenger_verify_token: str
    messenger_app_secret: str | None
    messenger_bridge_token: str | None
    messenger_rate: int
    messenger_text_pin: bool
    messenger_graph_url: str | None
    messenger_access_token: str | None
    messenger_phone_number_id: str | None
    messenger_phone_number: str | None
    messenger_flow_private_key: str | None
    messenger_model_url: str | None
    support_hours: str | None
    support_contact: str | None
    messenger_workers: int
    #: Names of the variables that are set.
    variables: frozenset[str]

    @property
    def is_production(self) -> bool:
        return self.environment == PRODUCTION

    @property
    def has_secure_cookies(self) -> bool:
        """Whether browsers use HTTPS, so that they must not send cookies over plain HTTP."""
        return self.is_production or (self.public_url or "").startswith("https://")

    @property
    def requires_secrets(self) -> bool:
        """Whether secrets must be set and strong. If False, missing secrets are generated."""
        return requires_secrets(self.environment)

    @property
    def has_simulators(self) -> bool:
        """Whether the POS and phone simulators are available: in development and testing only."""
        return self.environment in (DEVELOPMENT, TESTING)

    @property
    def local_url(self) -> str:
        """URL at which programs on this machine reach the gateway."""
        return _local_url(self.host, self.port)

    def __repr__(self) -> str:
        """Omit most settings, because many are secret."""
        return f"Settings(environment={self.environment!r}, port={self.port})"


def read_setting_files(environ: MutableMapping[str, str]) -> None:
    """Replace settings such as `TAPGATE_SECRET_KEY_FILE` by the content of the named files."""
    replace_files_by_content(environ, VARIABLE_PREFIX, SettingsError)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Return all settings; raise SettingsError if one is invalid.

    In development and testing, missing secrets are generated and stored in the data folder.
    """
    reader = SettingsReader(environ)
    host, port = reader.get_text("HOST") or "127.0.0.1", reader.get_integer("PORT", 8000, 1, 65535)
    messenger_port = reader.get_integer("MESSENGER_PORT", 8001, 1, 65535)
    if messenger_port == port:
        raise reader.build_error("MESSENGER_PORT", "must differ from TAPGATE_PORT")
    environment = reader.get_choice("ENVIRONMENT", DEVELOPMENT, ENVIRONMENTS)
    data_dir = Path(reader.get_text("DATA_DIR") or ".tapgate").expanduser()
    generated = reader.load_secrets(environment, data_dir)
    admin_email, admin_password = reader.get_first_admin(environment)
    verify_token = reader.get_verify_token(environment)
    public_url = reader.get_public_url(environment)
    if requires_secrets(environment):
        reader.require_strong_secrets(generated, verify_token)
    return Settings(
        host=host,
        port=port,
        messenger_port=messenger_port,
        public_url=public_url or _local_url(host, port),
        messenger_url=reader.get_url("MESSENGER_URL") or _local_url(host, messenger_port),
        gateway_url=reader.get_url("GATEWAY_URL") or _local_url(host, port),
        database_url=reader.get_url("DATABASE_URL", schemes=("postgresql", "postgres")),
        data_dir=data_dir,
        database_connections=reader.get_integer(
            "DATABASE_CONNECTIONS", DEFAULT_DATABASE_CONNECTIONS, MIN_DATABASE_CONNECTIONS, 1000
        ),
        cache_url=reader.get_url("CACHE_URL", schemes=("redis", "rediss", "unix")),
        workers=reader.get_integer("WORKERS", 1, 1, 64),
        environment=environment,
        admin_email=admin_email,
        admin_password=admin_password,
        jwt_secret=generated.jwt_secret,
        secret_key=generated.secret_key,
        service_secrets=generated.service_secrets,
        rate_limit=reader.get_integer("RATE_LIMIT", 100, 1, 1_000_000),
        rate_burst=reader.get_integer("RATE_BURST", 200, 1, 1_000_000),
        operator_name=reader.get_text("OPERATOR_NAME") or "Tapgate",
        currency=reader.get_currency(),
        country=reader.get_country(),
        timezone=reader.get_timezone(),
        refuse_weak_pins=reader.get_flag("REFUSE_WEAK_PINS", default=True),
        wrong_pin_limit=reader.get_integer("WRONG_PIN_LIMIT", 20, 1, 1_000_000),
        wrong_pin_percent=reader.get_integer("WRONG_PIN_PERCENT", 20, 0, 99),
        **_read_account_settings(reader, environment),
        float_low=reader.get_integer("FLOAT_LOW", 1000, 0, 999_999_999),
        receipts=reader.get_choice("RECEIPTS", RECEIVED_RECEIPTS, RECEIPT_MODES),
        demo=reader.get_demo(environment),
        log_format=reader.get_choice("LOG_FORMAT", AUTO_LOG_FORMAT, LOG_FORMATS),
        metrics_token=reader.get_text("METRICS_TOKEN"),
        **_read_connection_settings(reader),
        messenger_verify_token=verify_token,
        **_read_node_settings(reader),
        **_read_request_log_settings(reader, environment),
        **_read_report_settings(reader),
        **_read_messenger_settings(reader),
        variables=reader.list_variables(),
    )


def _read_connection_settings(reader: SettingsReader) -> dict[str, Any]:
    return {
        "trusted_proxies": reader.get_networks("TRUSTED_PROXIES"),
        "cors_origins": reader.get_origins("CORS_ORIGINS"),
        "max_connections": reader.get_integer("MAX_CONNECTIONS", 4096, 1, 1_000_000),
        "max_connections_per_address": reader.get_integer(
            "MAX_CONNECTIONS_PER_ADDRESS", 256, 1, 1_000_000
        ),
    }


def _read_node_settings(reader: SettingsReader) -> dict[str, Any]:
    """Return the settings of a node among others."""
    return {
        "node_id": reader.get_text("NODE_ID") or secrets.token_hex(8),
        "drain_seconds": reader.get_integer("DRAIN_SECONDS", 0, 0, 600),
        "max_clock_offset": reader.get_integer("MAX_CLOCK_OFFSET", 60, 1, 300),
        "settings_mismatch": reader.get_choice(
            "SETTINGS_MISMATCH", MISMATCH_REFUSE, (MISMATCH_REFUSE, MISMATCH_WARN)
        ),
        "auto_migrate": reader.get_flag("AUTO_MIGRATE", default=True),
        "require_sync_replication": reader.get_flag("REQUIRE_SYNC_REPLICATION"),
        "idempotency_key_days": reader.get_integer("IDEMPOTENCY_KEY_DAYS", 0, 0, 36_500),
    }


def _read_request_log_settings(reader: SettingsReader, environment: str) -> dict[str, Any]:
    return {
        "request_log_days": reader.get_integer("REQUEST_LOG_DAYS", 7, 0, 90),
        "request_log_bodies": reader.get_flag(
            "REQUEST_LOG_BODIES", default=not requires_secrets(environment)
        ),
    }


def _read_account_settings(reader: SettingsReader, environment: str) -> dict[str, Any]:
    """Return the settings of admins' accounts."""
    return {
        "oidc": read_oidc_settings(reader, allow_insecure=not requires_secrets(environment)),
        "second_factor": reader.get_choice(
            "SECOND_FACTOR", OPTIONAL_SECOND_FACTOR, SECOND_FACTOR_MODES
        ),
        "session_idle_minutes": reader.get_optional_integer("SESSION_IDLE_MINUTES", 1, 10_080),
        "breached_passwords": reader.get_path("BREACHED_PASSWORDS"),
    }


def _read_report_settings(reader: SettingsReader) -> dict[str, Any]:
    return {
        "report_workers": reader.get_integer("REPORT_WORKERS", 1, 0, 16),
        "database_replica_url": reader.get_url(
            "DATABASE_REPLICA_URL", schemes=("postgresql", "postgres")
        ),
        "replica_max_lag": reader.get_integer("REPLICA_MAX_LAG", 2, 1, 60),
    }


def _read_messenger_settings(reader: SettingsReader) -> dict[str, Any]:
    """Return the settings of the messenger that depend on no other setting."""
    return {
        "messenger_app_secret": reader.get_text("MESSENGER_APP_SECRET"),
        "messenger_bridge_token": reader.get_text("MESSENGER_BRIDGE_TOKEN"),
        "messenger_rate": reader.get_integer("MESSENGER_RATE", 30, 1, 1_000_000),
        "messenger_text_pin": reader.get_flag("MESSENGER_TEXT_PIN"),
        "messenger_graph_url": reader.get_url("MESSENGER_GRAPH_URL"),
        "messenger_access_token": reader.get_text("MESSENGER_ACCESS_TOKEN"),
        "messenger_phone_number_id": reader.get_text("MESSENGER_PHONE_NUMBER_ID"),
        "messenger_phone_number": reader.get_phone_number("MESSENGER_PHONE_NUMBER"),
        "messenger_flow_private_key": reader.get_private_key("MESSENGER_FLOW_PRIVATE_KEY"),
        "support_hours": reader.get_text("SUPPORT_HOURS"),
        "support_contact": reader.get_text("SUPPORT_CONTACT"),
        "messenger_model_url": reader.get_url("MESSENGER_MODEL_URL"),
        "messenger_workers": reader.get_integer("MESSENGER_WORKERS", 1, 1, 64),
    }


def _local_url(host: str, port: int) -> str:
    return format_url(_WILDCARD_HOSTS.get(host, host), port)


def format_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
