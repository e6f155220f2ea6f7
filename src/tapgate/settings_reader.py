"""Reader of the settings whose defaults or validity depend on the environment."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import msgspec

from tapgate.dev_secrets import Secrets, load_dev_secrets
from tapgate.environment_reader import EnvironmentReader
from tapgate.password_strength import find_bad_secret, is_weak_password
from tapgate.phone_numbers import is_country
from tapgate.secret_keys import SecretKey, parse_secret_keys
from tapgate_client.money import is_currency

DEVELOPMENT = "development"
TESTING = "testing"
STAGING = "staging"
PRODUCTION = "production"
ENVIRONMENTS = (DEVELOPMENT, TESTING, STAGING, PRODUCTION)
NO_DEMO = "off"
DEMO_SIZES = (NO_DEMO, "small", "medium", "large")

VARIABLE_PREFIX = "TAPGATE_"
_MIN_SECRET_LENGTH = 32
_MIN_PASSWORD_LENGTH = 12
_MAX_PASSWORD_LENGTH = 255
#: Accepts only addresses that can be used to log in.
_EMAIL_PART = r"""[^@\s"(),:;<>[\]\\.]+"""
_EMAIL_PATTERN = re.compile(rf"""{_EMAIL_PART}(\.{_EMAIL_PART})*@{_EMAIL_PART}(\.{_EMAIL_PART})*""")
#: As a browser sends it: in lowercase, without a path, and without the default port.
_ORIGIN_PATTERN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?")
_PHONE_PATTERN = re.compile(r"\+[1-9][0-9]{5,14}")
_Text = Annotated[str, msgspec.Meta(min_length=1)]


class SettingsError(Exception):
    """A setting is invalid. The message is one line for the operator, without secrets."""


class SettingsReader(EnvironmentReader):
    """Reader of the settings whose defaults or validity depend on the environment."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(environ, VARIABLE_PREFIX, SettingsError)

    def get_public_url(self, environment: str) -> str | None:
        if requires_secrets(environment):
            self._require_text("PUBLIC_URL", environment)
        return self.get_url("PUBLIC_URL")

    def get_origins(self, name: str) -> tuple[str, ...]:
        origins = tuple(item.strip() for item in (self.get_text(name) or "").split(",") if item)
        for origin in origins:
            if not _ORIGIN_PATTERN.fullmatch(origin):
                raise self.build_error(name, "must list origins such as https://app.example.com")
        return origins

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
        if requires_secrets(environment):
            return self._require_text(name, environment)
        default = "dev-verify-token" if environment == DEVELOPMENT else ""
        # Unlike other variables, an empty token counts as set: it matches no request.
        return self._environ.get(VARIABLE_PREFIX + name, default)

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
        if requires_secrets(environment) and email is not None and password is not None:
            if len(password) < _MIN_PASSWORD_LENGTH:
                message = f"must have at least {_MIN_PASSWORD_LENGTH} characters"
                raise self.build_error("ADMIN_PASSWORD", message)
            if is_weak_password(password, (email,)):
                raise self.build_error("ADMIN_PASSWORD", "must not be easy to guess")
        return email, password

    def load_secrets(self, environment: str, data_dir: Path) -> Secrets:
        service_secrets = self._parse_service_secrets()
        jwt_secret = self.get_text("JWT_SECRET")
        if jwt_secret:
            self._require_long("JWT_SECRET", jwt_secret)
        if requires_secrets(environment):
            jwt_secret = self._require_text("JWT_SECRET", environment)
            secret_key = self._require_text("SECRET_KEY", environment)
            for key in self.parse_secret_keys(secret_key):
                self._require_long("SECRET_KEY", key.key)
            if not service_secrets:
                self._require_text("SERVICE_SECRETS", environment)
            return Secrets(
                jwt_secret=jwt_secret, secret_key=secret_key, service_secrets=service_secrets
            )
        generated = _load_dev_secrets(data_dir)
        secret_key = self.get_text("SECRET_KEY") or generated.secret_key
        self.parse_secret_keys(secret_key)
        return Secrets(
            jwt_secret=jwt_secret or generated.jwt_secret,
            secret_key=secret_key,
            service_secrets=generated.service_secrets | service_secrets,
        )

    def parse_secret_keys(self, text: str) -> list[SecretKey]:
        try:
            return parse_secret_keys(text)
        except ValueError as error:
            raise self.build_error("SECRET_KEY", str(error)) from None

    def _parse_service_secrets(self) -> dict[str, str]:
        name = "SERVICE_SECRETS"
        try:
            return msgspec.json.decode(self.get_text(name) or "{}", type=dict[_Text, _Text])
        except ValueError:
            message = 'must be a JSON object such as {"messenger": "...", "gateway": "..."}'
            raise self.build_error(name, message) from None

    def require_strong_secrets(self, secrets: Secrets, verify_token: str) -> None:
        """Reject secrets that are guessable, used twice, or examples in the documentation."""
        chosen = {"JWT_SECRET": secrets.jwt_secret}
        keys = parse_secret_keys(secrets.secret_key)
        for name, key in keys:
            chosen["SECRET_KEY" if len(keys) == 1 else f"SECRET_KEY ({name})"] = key
        for service, secret in secrets.service_secrets.items():
            chosen[f"SERVICE_SECRETS ({service})"] = secret
        for name in ("MESSENGER_BRIDGE_TOKEN", "METRICS_TOKEN"):
            if token := self.get_text(name):
                chosen[name] = token
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

    def _require_long(self, name: str, secret: str) -> None:
        if len(secret) < _MIN_SECRET_LENGTH:
            raise self.build_error(name, f"must have at least {_MIN_SECRET_LENGTH} characters")


def requires_secrets(environment: str) -> bool:
    return environment in (STAGING, PRODUCTION)


def _load_dev_secrets(data_dir: Path) -> Secrets:
    try:
        return load_dev_secrets(data_dir)
    except OSError as error:
        raise SettingsError(
            f"the data folder {data_dir} cannot be used: {error.strerror}"
        ) from error
    except ValueError as error:
        raise SettingsError(str(error)) from error
