"""Operator settings, read from environment variables. Each setting is declared in one group."""

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Final

from tapgate.core.password_strength import find_bad_secret, is_weak_password
from tapgate.core.settings.books import BookSettings
from tapgate.core.settings.business import BusinessSettings
from tapgate.core.settings.declaration import (
    VARIABLE_PREFIX,
    Secrecy,
    SettingsError,
    read_values,
)
from tapgate.core.settings.dev_secrets import add_dev_secrets
from tapgate.core.settings.logs import LogSettings
from tapgate.core.settings.messenger import DEV_VERIFY_TOKEN, MessengerSettings
from tapgate.core.settings.network import NetworkSettings, format_local_url
from tapgate.core.settings.nodes import Demo, Environment, NodeSettings
from tapgate.core.settings.security import SecuritySettings
from tapgate.core.settings.storage import StorageSettings
from tapgate_client.schemas.nodes import NodeRole

_FILE_SUFFIX: Final = "_FILE"


class Settings(
    NetworkSettings,
    StorageSettings,
    NodeSettings,
    LogSettings,
    SecuritySettings,
    BusinessSettings,
    BookSettings,
    MessengerSettings,
):
    #: Variables that are set.
    variables: frozenset[str]

    @property
    def is_production(self) -> bool:
        return self.environment == Environment.PRODUCTION

    @property
    def has_secure_cookies(self) -> bool:
        """Whether browsers use HTTPS, so that they must not send cookies over plain HTTP."""
        return self.is_production or self.public_url.startswith("https://")

    @property
    def requires_secrets(self) -> bool:
        """Whether secrets must be set and strong. If False, missing secrets are generated."""
        return Environment(self.environment).requires_secrets

    @property
    def has_simulators(self) -> bool:
        """Whether the POS and phone simulators are available: in development and testing only."""
        return not self.requires_secrets

    @property
    def local_url(self) -> str:
        """URL at which programs on this machine reach the gateway."""
        return format_local_url(self.host, self.port)

    def __repr__(self) -> str:
        """Omit most settings, because many are secret."""
        return f"Settings(environment={str(self.environment)!r}, port={self.port})"


def read_setting_files(environ: MutableMapping[str, str]) -> None:
    """Set `NAME` to the content of the `NAME_FILE` file, without the last line break.

    Service managers and container platforms provide secrets as files.
    """
    for variable in [
        name for name in environ if name.startswith(VARIABLE_PREFIX) and name.endswith(_FILE_SUFFIX)
    ]:
        file, name = environ.pop(variable), variable.removesuffix(_FILE_SUFFIX)
        if not file:
            continue
        if environ.get(name):
            raise SettingsError(f"{variable} and {name} must not both be set")
        try:
            content = Path(file).read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not valid UTF-8 text"
            raise SettingsError(f"{variable}: {file} cannot be read: {reason}") from None
        if not content:
            raise SettingsError(f"{variable}: {file} is empty")
        if "\0" in content:
            raise SettingsError(f"{variable}: {file} must contain text")
        environ[name] = content


def load_settings(environ: Mapping[str, str], settings_type: type[Settings] = Settings) -> Settings:
    """Return all settings; raise SettingsError if one is invalid.

    In development and testing, missing secrets are generated and stored in the data folder.
    """
    environment = Settings.environment.read(environ, "", strict=False) or Environment.DEVELOPMENT
    strict = environment.requires_secrets
    values = read_values(settings_type, environ, environment, strict=strict)
    if not strict:
        add_dev_secrets(values)
    settings = settings_type(**values)
    _check_combinations(settings)
    if strict:
        _require_strong_secrets(settings)
    settings.__dict__["variables"] = frozenset(
        name for name, value in environ.items() if value and name.startswith(VARIABLE_PREFIX)
    )
    return settings


def _check_combinations(settings: Settings) -> None:
    if settings.messenger_port == settings.port:
        raise Settings.messenger_port.build_error(f"must differ from {Settings.port.variable}")
    if settings.is_production and settings.demo is not Demo.OFF:
        raise Settings.demo.build_error("must be off in production")
    _check_books(settings)
    email, password = settings.admin_email, settings.admin_password
    if (email is None) != (password is None):
        missing = Settings.admin_email if email is None else Settings.admin_password
        raise missing.build_error("must be set too. The first admin needs both")
    if settings.requires_secrets and email and password and is_weak_password(password, (email,)):
        raise Settings.admin_password.build_error("must not be easy to guess")


def _check_books(settings: Settings) -> None:
    peers = settings.book_peers
    if peers and settings.book is None:
        raise Settings.book.build_error(f"must be set if {Settings.book_peers.variable} is set")
    if settings.book in peers:
        raise Settings.book_peers.build_error(f"must not contain {settings.book}, this book")
    if missing := sorted(peers.keys() - settings.book_secrets.keys()):
        raise Settings.book_secrets.build_error(f"must have a secret for {', '.join(missing)}")


def _require_strong_secrets(settings: Settings) -> None:
    """Reject secrets that are guessable, used twice, or examples in the documentation."""
    strong, unique = (
        {
            item.variable + suffix: secret
            # Of two equal secrets, the optional one is rejected.
            for item in sorted(settings.declared.values(), key=lambda item: not item.required)
            if item.secrecy is secrecy
            for suffix, secret in item.value_type.list_secrets(getattr(settings, item.name)).items()
        }
        for secrecy in (Secrecy.STRONG, Secrecy.UNIQUE)
    )
    if bad := find_bad_secret(strong | unique, strong, list_documented_secrets()):
        raise SettingsError(bad)


def list_documented_secrets() -> set[str]:
    """Return the example secrets in the documentation, which is public."""
    examples = {
        secret
        for item in Settings.declared.values()
        if item.secrecy in (Secrecy.STRONG, Secrecy.UNIQUE)
        for secret in item.value_type.list_secrets(item.value_type.parse(item.example)).values()
    }
    return examples | {DEV_VERIFY_TOKEN}


def list_own_secrets(role: NodeRole) -> frozenset[str]:
    """Return the secret variables that only this service uses and that may be unset.

    The other service does not receive them: a process cannot leak a secret that it never had.
    """
    secrets = {item.variable for item in Settings.list_variables() if item.is_secret}
    return list_own_variables(role) & secrets


def list_own_variables(role: NodeRole) -> frozenset[str]:
    """Return the variables that only this service uses and that may be unset."""
    return frozenset(
        item.variable
        for item in Settings.list_variables()
        if item.used_by is role and not item.required
    )
