"""Operator settings: environment variables, their defaults, and their validation."""

import re
import secrets
from collections.abc import Mapping, MutableMapping
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import msgspec

from tapgate.dev_secrets import Secrets, load_dev_secrets
from tapgate.environment_reader import EnvironmentReader, replace_files_by_content
from tapgate.money import is_currency
from tapgate.password_strength import find_bad_secret, is_weak_password
from tapgate.phone_numbers import is_country

DEVELOPMENT = "development"
TESTING = "testing"
STAGING = "staging"
PRODUCTION = "production"
ENVIRONMENTS = (DEVELOPMENT, TESTING, STAGING, PRODUCTION)
NO_DEMO = "off"
DEMO_SIZES = (NO_DEMO, "small", "medium", "large")
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

_VARIABLE_PREFIX = "TAPGATE_"
_MIN_SECRET_LENGTH = 32
_MIN_PASSWORD_LENGTH = 12
_MAX_PASSWORD_LENGTH = 255
#: Accepts only addresses that can be used to log in.
_EMAIL_PART = r"""[^@\s"(),:;<>[\]\\.]+"""
_EMAIL_PATTERN = re.compile(rf"""{_EMAIL_PART}(\.{_EMAIL_PART})*@{_EMAIL_PART}(\.{_EMAIL_PART})*""")
_PHONE_PATTERN = re.compile(r"\+[1-9][0-9]{5,14}")
_WILDCARD_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
_Text = Annotated[str, msgspec.Meta(min_length=1)]


class SettingsError(Exception):
    """A setting is invalid. The message is one line for the operator, without secrets."""


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
    environment: str
    admin_email: str | None
    admin_password: str | None
    jwt_secret: str
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
    second_factor: str
    breached_passwords: Path | None
    session_idle_minutes: int | None
    float_low: int
    receipts: str
    demo: str
    log_format: str
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...]
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

    @property
    def is_production(self) -> bool:
        return self.environment == PRODUCTION

    @property
    def requires_secrets(self) -> bool:
        """Whether secrets must be set and strong. If False, missing secrets are generated."""
        return _requires_secrets(self.environment)

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
    replace_files_by_content(environ, _VARIABLE_PREFIX, SettingsError)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Return all settings; raise SettingsError if one is invalid.

    In development and testing, missing secrets are generated and stored in the data folder.
    """
    reader = _SettingsReader(environ)
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
    if _requires_secrets(environment):
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
        **_read_account_settings(reader),
        float_low=reader.get_integer("FLOAT_LOW", 1000, 0, 999_999_999),
        receipts=reader.get_choice("RECEIPTS", RECEIVED_RECEIPTS, RECEIPT_MODES),
        demo=reader.get_demo(environment),
        log_format=reader.get_choice("LOG_FORMAT", AUTO_LOG_FORMAT, LOG_FORMATS),
        trusted_proxies=reader.get_networks("TRUSTED_PROXIES"),
        max_connections=reader.get_integer("MAX_CONNECTIONS", 4096, 1, 1_000_000),
        max_connections_per_address=reader.get_integer(
            "MAX_CONNECTIONS_PER_ADDRESS", 256, 1, 1_000_000
        ),
        messenger_verify_token=verify_token,
        **_read_node_settings(reader),
        **_read_report_settings(reader),
        **_read_messenger_settings(reader),
    )


def _read_node_settings(reader: "_SettingsReader") -> dict[str, Any]:
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


def _read_account_settings(reader: "_SettingsReader") -> dict[str, Any]:
    """Return the settings of admins' accounts."""
    return {
        "second_factor": reader.get_choice(
            "SECOND_FACTOR", OPTIONAL_SECOND_FACTOR, SECOND_FACTOR_MODES
        ),
        "session_idle_minutes": reader.get_optional_integer("SESSION_IDLE_MINUTES", 1, 10_080),
        "breached_passwords": reader.get_path("BREACHED_PASSWORDS"),
    }


def _read_report_settings(reader: "_SettingsReader") -> dict[str, Any]:
    return {
        "report_workers": reader.get_integer("REPORT_WORKERS", 1, 0, 16),
        "database_replica_url": reader.get_url(
            "DATABASE_REPLICA_URL", schemes=("postgresql", "postgres")
        ),
        "replica_max_lag": reader.get_integer("REPLICA_MAX_LAG", 2, 1, 60),
    }


def _read_messenger_settings(reader: "_SettingsReader") -> dict[str, Any]:
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


class _SettingsReader(EnvironmentReader):
    """Reader of the settings whose defaults or validity depend on the environment."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(environ, _VARIABLE_PREFIX, SettingsError)

    def get_public_url(self, environment: str) -> str | None:
        if _requires_secrets(environment):
            self._require_text("PUBLIC_URL", environment)
        return self.get_url("PUBLIC_URL")

    def get_phone_number(self, name: str) -> str | None:
        text = self.get_text(name)
        if text is not None and not _PHONE_PATTERN.fullmatch(text):
            raise self.build_error(name, "must be a phone number such as +23225000000")
        return text

    def get_currency(self) -> str:
        text = self.get_text("CURRENCY") or "SLE"
        if not is_currency(text):
            raise self.build_error("CURRENCY", "must be an ISO 4217 code such as SLE")
        return text

    def get_country(self) -> str | None:
        default = "SL" if self.get_currency() == "SLE" else None
        code = self.get_text("COUNTRY") or default
        if code is not None and not is_country(code):
            raise self.build_error("COUNTRY", "must be an ISO 3166 code such as SL")
        return code

    def get_timezone(self) -> ZoneInfo:
        try:
            return ZoneInfo(self.get_text("TIMEZONE") or "UTC")
        except (KeyError, ValueError, OSError):
            message = "must be a time zone such as Africa/Freetown"
            raise self.build_error("TIMEZONE", message) from None

    def get_demo(self, environment: str) -> str:
        default = "small" if environment == DEVELOPMENT else NO_DEMO
        text = self.get_choice("DEMO", default, DEMO_SIZES)
        if environment == PRODUCTION and text != NO_DEMO:
            raise self.build_error("DEMO", "must be off in production")
        return text

    def get_verify_token(self, environment: str) -> str:
        name = "MESSENGER_VERIFY_TOKEN"
        if _requires_secrets(environment):
            return self._require_text(name, environment)
        default = "dev-verify-token" if environment == DEVELOPMENT else ""
        # Unlike other variables, an empty token counts as set: it matches no request.
        return self._environ.get(_VARIABLE_PREFIX + name, default)

    def get_first_admin(self, environment: str) -> tuple[str | None, str | None]:
        email, password = self.get_text("ADMIN_EMAIL"), self.get_text("ADMIN_PASSWORD")
        if (email is None) != (password is None):
            missing = "ADMIN_EMAIL" if email is None else "ADMIN_PASSWORD"
            raise self.build_error(missing, "must be set too. The first admin needs both")
        if email is not None and not _EMAIL_PATTERN.fullmatch(email):
            raise self.build_error("ADMIN_EMAIL", "must be an email address")
        if password is not None and len(password) > _MAX_PASSWORD_LENGTH:
            raise self.build_error(
                "ADMIN_PASSWORD", f"must have at most {_MAX_PASSWORD_LENGTH} characters"
            )
        if _requires_secrets(environment) and email is not None and password is not None:
            if len(password) < _MIN_PASSWORD_LENGTH:
                message = f"must have at least {_MIN_PASSWORD_LENGTH} characters"
                raise self.build_error("ADMIN_PASSWORD", message)
            if is_weak_password(password, (email,)):
                raise self.build_error("ADMIN_PASSWORD", "must not be easy to guess")
        return email, password

    def load_secrets(self, environment: str, data_dir: Path) -> Secrets:
        service_secrets = self._parse_service_secrets()
        if _requires_secrets(environment):
            jwt_secret = self._require_long_secret("JWT_SECRET", environment)
            secret_key = self._require_long_secret("SECRET_KEY", environment)
            if not service_secrets:
                self._require_text("SERVICE_SECRETS", environment)
            return Secrets(
                jwt_secret=jwt_secret, secret_key=secret_key, service_secrets=service_secrets
            )
        generated = _load_dev_secrets(data_dir)
        return Secrets(
            jwt_secret=self.get_text("JWT_SECRET") or generated.jwt_secret,
            secret_key=self.get_text("SECRET_KEY") or generated.secret_key,
            service_secrets=generated.service_secrets | service_secrets,
        )

    def _parse_service_secrets(self) -> dict[str, str]:
        name = "SERVICE_SECRETS"
        try:
            return msgspec.json.decode(self.get_text(name) or "{}", type=dict[_Text, _Text])
        except ValueError:
            message = 'must be a JSON object such as {"messenger": "...", "gateway": "..."}'
            raise self.build_error(name, message) from None

    def require_strong_secrets(self, secrets: Secrets, verify_token: str) -> None:
        """Reject secrets that are guessable, used twice, or examples in the documentation."""
        chosen = {"JWT_SECRET": secrets.jwt_secret, "SECRET_KEY": secrets.secret_key}
        for service, secret in secrets.service_secrets.items():
            chosen[f"SERVICE_SECRETS ({service})"] = secret
        if bridge_token := self.get_text("MESSENGER_BRIDGE_TOKEN"):
            chosen["MESSENGER_BRIDGE_TOKEN"] = bridge_token
        others = {"MESSENGER_VERIFY_TOKEN": verify_token}
        for name in ("MESSENGER_APP_SECRET", "ADMIN_PASSWORD"):
            if text := self.get_text(name):
                others[name] = text
        if bad := find_bad_secret(chosen | others, chosen):
            raise self.build_error(*bad)

    def _require_text(self, name: str, environment: str) -> str:
        text = self.get_text(name)
        if not text:
            raise self.build_error(name, f"must be set in {environment}")
        return text

    def _require_long_secret(self, name: str, environment: str) -> str:
        text = self._require_text(name, environment)
        if len(text) < _MIN_SECRET_LENGTH:
            raise self.build_error(name, f"must have at least {_MIN_SECRET_LENGTH} characters")
        return text


def _requires_secrets(environment: str) -> bool:
    return environment in (STAGING, PRODUCTION)


def _local_url(host: str, port: int) -> str:
    return format_url(_WILDCARD_HOSTS.get(host, host), port)


def format_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _load_dev_secrets(data_dir: Path) -> Secrets:
    try:
        return load_dev_secrets(data_dir)
    except OSError as error:
        raise SettingsError(
            f"the data folder {data_dir} cannot be used: {error.strerror}"
        ) from error
    except ValueError as error:
        raise SettingsError(str(error)) from error
