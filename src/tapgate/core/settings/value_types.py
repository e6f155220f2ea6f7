"""Setting types: how a variable is parsed, shown and documented.

`parse` raises ValueError with a message that follows the variable's name and never contains the
value, which may be secret.
"""

import re
from collections.abc import Collection, Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import msgspec

from tapgate.core.phone_numbers import is_country
from tapgate.core.secret_keys import parse_secret_keys
from tapgate_client.money import is_currency

T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S", bound=str)

MIN_SECRET_LENGTH: Final = 32
_MIN_PASSWORD_LENGTH: Final = 12

_TRUE_VALUES: Final = frozenset({"1", "on", "true", "yes"})
_FALSE_VALUES: Final = frozenset({"0", "off", "false", "no"})
#: Accepts only addresses that can be used to log in.
_EMAIL_PART: Final = r"""[^@\s"(),:;<>[\]\\.]+"""
_EMAIL_PATTERN: Final = re.compile(
    rf"""{_EMAIL_PART}(\.{_EMAIL_PART})*@{_EMAIL_PART}(\.{_EMAIL_PART})*"""
)
#: As a browser sends it: in lowercase, without a path, and without the default port.
_ORIGIN_PATTERN: Final = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?")
_PHONE_PATTERN: Final = re.compile(r"\+[1-9][0-9]{5,14}")


class ValueType(Generic[T_co]):
    #: Whether an empty variable is a value. Otherwise, it counts as unset.
    accepts_empty = False
    #: Whether a value may contain credentials, which templates keep in a secret.
    may_contain_credentials = False
    #: Accepted values, for the documentation.
    accepted = "text"

    def parse(self, text: str) -> T_co:
        raise NotImplementedError

    def parse_strictly(self, text: str) -> T_co:
        """Parse a value in staging and production."""
        return self.parse(text)

    def format(self, value: Any) -> str:
        """Return a value as staff may see it."""
        return str(value)

    def list_secrets(self, value: Any) -> dict[str, str]:
        """Return the secrets in a value, by the suffix that names them."""
        return {"": value} if value else {}


class Text(ValueType[str]):
    def __init__(
        self, *, min_length: int = 1, max_length: int | None = None, accepts_empty: bool = False
    ) -> None:
        self._min_length = min_length
        self._max_length = max_length
        self.accepts_empty = accepts_empty

    def parse(self, text: str) -> str:
        if len(text) < self._min_length and not self.accepts_empty:
            raise ValueError(f"must have at least {self._min_length} characters")
        if self._max_length is not None and len(text) > self._max_length:
            raise ValueError(f"must have at most {self._max_length} characters")
        return text


class Password(Text):
    def parse_strictly(self, text: str) -> str:
        if len(text) < _MIN_PASSWORD_LENGTH:
            raise ValueError(f"must have at least {_MIN_PASSWORD_LENGTH} characters")
        return self.parse(text)


class SecretKeys(ValueType[str]):
    """One key, or several such as `2:key,1:key`, newest first."""

    accepted = "key, or `id:key,id:key`"

    def parse(self, text: str) -> str:
        parse_secret_keys(text)
        return text

    def parse_strictly(self, text: str) -> str:
        if any(len(key.key) < MIN_SECRET_LENGTH for key in parse_secret_keys(text)):
            raise ValueError(f"must have at least {MIN_SECRET_LENGTH} characters")
        return text

    def list_secrets(self, value: Any) -> dict[str, str]:
        keys = parse_secret_keys(value)
        return {"" if len(keys) == 1 else f" ({key.name})": key.key for key in keys}


class Email(ValueType[str]):
    accepted = "email address"

    def parse(self, text: str) -> str:
        if not _EMAIL_PATTERN.fullmatch(text):
            raise ValueError("must be an email address")
        return text


class PhoneNumber(ValueType[str]):
    accepted = "phone number"

    def parse(self, text: str) -> str:
        if not _PHONE_PATTERN.fullmatch(text):
            raise ValueError("must be a phone number such as +23225000000")
        return text


class Integer(ValueType[int]):
    def __init__(self, minimum: int, maximum: int) -> None:
        self._minimum = minimum
        self._maximum = maximum
        self.accepted = f"{minimum:,} to {maximum:,}"

    def parse(self, text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not (
            self._minimum <= int(text) <= self._maximum
        ):
            raise ValueError(f"must be a whole number from {self._minimum} to {self._maximum}")
        return int(text)


class Flag(ValueType[bool]):
    accepted = "`on`, `off`"

    def parse(self, text: str) -> bool:
        if text.lower() not in _TRUE_VALUES | _FALSE_VALUES:
            raise ValueError("must be on or off")
        return text.lower() in _TRUE_VALUES

    def format(self, value: Any) -> str:
        return "on" if value else "off"


class Choice(ValueType[S]):
    def __init__(self, choices: Iterable[S]) -> None:
        self._choices = {str(choice): choice for choice in choices}
        self.accepted = ", ".join(f"`{choice}`" for choice in self._choices)

    def parse(self, text: str) -> S:
        if text not in self._choices:
            raise ValueError(f"must be one of {', '.join(self._choices)}")
        return self._choices[text]


class Url(ValueType[str]):
    accepted = "URL"

    def __init__(self, *schemes: str, strict_schemes: Collection[str] = ()) -> None:
        self._schemes = schemes or ("http", "https")
        self._strict_schemes = strict_schemes or self._schemes
        self.may_contain_credentials = "https" not in self._schemes

    def parse(self, text: str) -> str:
        return _parse_url(text, self._schemes)

    def parse_strictly(self, text: str) -> str:
        return _parse_url(text, self._strict_schemes)

    def format(self, value: Any) -> str:
        """Return the scheme, host, port and path, without credentials and parameters."""
        try:
            parts = urlsplit(str(value))
            host = parts.netloc.rpartition("@")[2]
        except ValueError:
            return "set"
        return f"{parts.scheme}://{host}{parts.path}"


def _parse_url(text: str, schemes: Collection[str]) -> str:
    try:
        parts = urlsplit(text)
        for host in parts.netloc.rpartition("@")[2].split(","):  # PostgreSQL allows several
            _ = urlsplit(f"//{host}").port  # accessing the port validates it
    except ValueError:
        raise ValueError("must be a URL") from None
    if parts.scheme not in schemes or (parts.scheme.startswith("http") and not parts.hostname):
        prefixes = " or ".join(f"{scheme}://" for scheme in schemes)
        raise ValueError(f"must be a URL that starts with {prefixes}")
    return text.rstrip("/")


class FilePath(ValueType[Path]):
    accepted = "path"

    def parse(self, text: str) -> Path:
        return Path(text).expanduser()


class PrivateKey(ValueType[str]):
    accepted = "PEM key or path"

    def parse(self, text: str) -> str:
        if text.lstrip().startswith("-----BEGIN"):
            return text
        try:
            return Path(text).expanduser().read_text()
        except (OSError, ValueError):
            raise ValueError("must be a PEM key or the path to a PEM file") from None


class Networks(ValueType[tuple[IPv4Network | IPv6Network, ...]]):
    accepted = "addresses or networks, comma-separated"

    def parse(self, text: str) -> tuple[IPv4Network | IPv6Network, ...]:
        try:
            return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
        except ValueError:
            raise ValueError("must be a comma-separated list of IP addresses or networks") from None

    def format(self, value: Any) -> str:
        return ", ".join(map(str, value))


class Origins(ValueType[tuple[str, ...]]):
    accepted = "origins, comma-separated"

    def parse(self, text: str) -> tuple[str, ...]:
        origins = tuple(item.strip() for item in text.split(",") if item)
        if not all(map(_ORIGIN_PATTERN.fullmatch, origins)):
            raise ValueError("must list origins such as https://app.example.com")
        return origins

    def format(self, value: Any) -> str:
        return ", ".join(value)


class Currency(ValueType[str]):
    accepted = "ISO 4217 code"

    def parse(self, text: str) -> str:
        if not is_currency(text):
            raise ValueError("must be an ISO 4217 code such as SLE")
        return text


class Country(ValueType[str]):
    accepted = "ISO 3166 code"

    def parse(self, text: str) -> str:
        if not is_country(text):
            raise ValueError("must be an ISO 3166 code such as SL")
        return text


class TimeZone(ValueType[ZoneInfo]):
    accepted = "time zone"

    def parse(self, text: str) -> ZoneInfo:
        try:
            return ZoneInfo(text)
        except (KeyError, ValueError, OSError):
            raise ValueError("must be a time zone such as Africa/Freetown") from None


class JsonObject(ValueType[dict[str, str]]):
    accepted = "JSON object"

    def __init__(
        self,
        dict_type: Any,
        message: str,
        *,
        accepts_no_items: bool = True,
        values: Collection[str] | None = None,
    ) -> None:
        self._type = dict_type
        self._values = values
        self._message = message
        self._accepts_no_items = accepts_no_items

    def parse(self, text: str) -> dict[str, str]:
        try:
            items = msgspec.json.decode(text, type=self._type)
        except ValueError:
            raise ValueError(self._message) from None
        is_rejected = self._values is not None and not set(items.values()).issubset(self._values)
        if is_rejected or (not items and not self._accepts_no_items):
            raise ValueError(self._message)
        return {name: str(item) for name, item in items.items()}

    def list_secrets(self, value: Any) -> dict[str, str]:
        return {f" ({name})": secret for name, secret in value.items()}
