"""Syntax of webhook URLs."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from tapgate_client.schemas.fields import TEXT_RULE, InvalidValueError, Rule

IpAddress = IPv4Address | IPv6Address

_SCHEMES: Final = ("https", "http")
#: Characters allowed in a URL. All others must be percent-encoded.
_URL_CHARACTERS: Final = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
_HOST_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
#: Last host label that some resolvers parse as an IPv4 address: 127.1, 0x7f.1, 017700.
_NUMERIC_LABEL: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)
_MAX_HOST_NAME_LENGTH: Final = 253


class TargetRejectedError(Exception):
    """The target URL is not allowed. The message completes a sentence that starts with `url`."""


class TargetUrlRule(Rule):
    """Webhook URL syntax. In production, its host's addresses are checked too."""

    example = "https://shop.example.com/tapgate"
    max_json_bytes = TEXT_RULE.max_json_bytes

    def check(self, value: str) -> str:
        TEXT_RULE.check(value)
        try:
            parse_url(value)
        except TargetRejectedError as error:
            raise InvalidValueError(str(error)) from None
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"format": "uri", "maxLength": TEXT_RULE.maximum}


def parse_url(url: str) -> SplitResult:
    """Split a webhook URL; reject invalid URLs, user info and nonstandard IP notation."""
    if _URL_CHARACTERS.fullmatch(url) is None:
        raise TargetRejectedError("must be a URL in ASCII")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise TargetRejectedError("must be a URL") from None
    if parts.scheme not in _SCHEMES:
        raise TargetRejectedError("must start with https://")
    if "@" in parts.netloc:
        raise TargetRejectedError("must not contain a user name or password")
    if not host or port == 0 or not (parse_ip_literal(host) or _is_host_name(host)):
        raise TargetRejectedError("must have a valid host name or IP address")
    return parts


def parse_ip_literal(host: str) -> IpAddress | None:
    if "%" in host:  # a zone id, which is meaningful only on this machine
        return None
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_host_name(host: str) -> bool:
    name = host.removesuffix(".")
    labels = name.split(".")
    return (
        len(name) <= _MAX_HOST_NAME_LENGTH
        and all(_HOST_LABEL.fullmatch(label) for label in labels)
        and _NUMERIC_LABEL.fullmatch(labels[-1]) is None
    )
