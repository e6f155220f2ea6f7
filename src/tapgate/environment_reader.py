"""Environment variables with their validation."""

import re
from collections.abc import Mapping, MutableMapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

_TRUE_VALUES: Final = frozenset({"1", "on", "true", "yes"})
_FALSE_VALUES: Final = frozenset({"0", "off", "false", "no"})
_FILE_SUFFIX: Final = "_FILE"


def replace_files_by_content(
    environ: MutableMapping[str, str], prefix: str, error_type: type[Exception]
) -> None:
    """Set `NAME` to the content of the file that `NAME_FILE` names, without the last line break.

    Service managers and container platforms provide secrets as files.
    """
    for variable in [
        name for name in environ if name.startswith(prefix) and name.endswith(_FILE_SUFFIX)
    ]:
        file, name = environ.pop(variable), variable.removesuffix(_FILE_SUFFIX)
        if not file:
            continue
        if environ.get(name):
            raise error_type(f"{variable} and {name} must not both be set")
        try:
            content = Path(file).read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not valid UTF-8 text"
            raise error_type(f"{variable}: {file} cannot be read: {reason}") from None
        if not content:
            raise error_type(f"{variable}: {file} is empty")
        if "\0" in content:
            raise error_type(f"{variable}: {file} must contain text")
        environ[name] = content


class EnvironmentReader:
    """Reader that validates the variables with a prefix. An empty variable counts as unset.

    An invalid variable raises `error_type` with a message of one line that names the variable.
    """

    def __init__(
        self, environ: Mapping[str, str], prefix: str, error_type: type[Exception]
    ) -> None:
        self._environ = environ
        self._prefix = prefix
        self._error_type = error_type

    def build_error(self, name: str, message: str) -> Exception:
        return self._error_type(f"{self._prefix}{name} {message}")

    def list_variables(self) -> frozenset[str]:
        """Return the names of the variables that are set."""
        return frozenset(
            name for name, value in self._environ.items() if value and name.startswith(self._prefix)
        )

    def get_text(self, name: str) -> str | None:
        return self._environ.get(self._prefix + name) or None

    def get_integer(self, name: str, default: int, minimum: int, maximum: int) -> int:
        text = self.get_text(name)
        if text is None:
            return default
        if not re.fullmatch(r"[0-9]{1,9}", text) or not minimum <= int(text) <= maximum:
            raise self.build_error(name, f"must be a whole number from {minimum} to {maximum}")
        return int(text)

    def get_optional_integer(self, name: str, minimum: int, maximum: int) -> int | None:
        is_set = self.get_text(name) is not None
        return self.get_integer(name, minimum, minimum, maximum) if is_set else None

    def get_path(self, name: str) -> Path | None:
        text = self.get_text(name)
        return None if text is None else Path(text).expanduser()

    def get_flag(self, name: str, *, default: bool = False) -> bool:
        text = (self.get_text(name) or ("on" if default else "off")).lower()
        if text not in _TRUE_VALUES | _FALSE_VALUES:
            raise self.build_error(name, "must be on or off")
        return text in _TRUE_VALUES

    def get_choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        text = self.get_text(name) or default
        if text not in choices:
            raise self.build_error(name, f"must be one of {', '.join(choices)}")
        return text

    def get_url(self, name: str, schemes: tuple[str, ...] = ("http", "https")) -> str | None:
        text = self.get_text(name)
        if text is None:
            return None
        try:
            parts = urlsplit(text)
            for host in parts.netloc.rpartition("@")[2].split(","):  # PostgreSQL allows several
                _ = urlsplit(f"//{host}").port  # accessing the port validates it
        except ValueError:
            raise self.build_error(name, "must be a URL") from None
        if parts.scheme not in schemes or (parts.scheme.startswith("http") and not parts.hostname):
            prefixes = " or ".join(f"{scheme}://" for scheme in schemes)
            raise self.build_error(name, f"must be a URL that starts with {prefixes}")
        return text.rstrip("/")

    def get_networks(self, name: str) -> tuple[IPv4Network | IPv6Network, ...]:
        try:
            parts = (self.get_text(name) or "").split(",")
            return tuple(ip_network(part.strip()) for part in parts if part.strip())
        except ValueError:
            raise self.build_error(
                name, "must be a comma-separated list of IP addresses or networks"
            ) from None

    def get_private_key(self, name: str) -> str | None:
        text = self.get_text(name)
        if text is None or text.lstrip().startswith("-----BEGIN"):
            return text
        try:
            return Path(text).expanduser().read_text()
        except (OSError, ValueError):
            raise self.build_error(name, "must be a PEM key or the path to a PEM file") from None
