"""An installation's secret keys, as `TAPGATE_SECRET_KEY` lists them, newest first."""

import re
from typing import Final, NamedTuple

#: ID for a key that has none in the list.
DEFAULT_KEY_NAME: Final = "0"
MAX_SECRET_KEYS: Final = 8

_NAMED_KEY_PATTERN: Final = re.compile(r"([A-Za-z0-9_-]{1,16}):(.+)", re.DOTALL)


class SecretKey(NamedTuple):
    """Secret key and its ID, which the operator chooses. Only the ID may be shown."""

    name: str
    key: str

    def __repr__(self) -> str:
        return f"SecretKey(name={self.name!r})"


def parse_secret_keys(text: str) -> list[SecretKey]:
    """Return the keys in a list such as `2:key,1:key`, newest first.

    A text without IDs is one key, which may contain commas. Raise ValueError if the list is
    invalid; the message contains no key.
    """
    parts = text.split(",")
    if not any(map(_NAMED_KEY_PATTERN.fullmatch, parts)):
        return [SecretKey(DEFAULT_KEY_NAME, text)]
    keys = [_parse_key(part) for part in parts]
    if not all(key.key for key in keys):
        raise ValueError("must not contain an empty key")
    names = [key.name for key in keys]
    if len(set(names)) < len(names):
        raise ValueError("must not contain two keys with the same ID. A key without an ID has ID 0")
    if len({key.key for key in keys}) < len(keys):
        raise ValueError("must not contain a key twice")
    if len(keys) > MAX_SECRET_KEYS:
        raise ValueError(f"must contain at most {MAX_SECRET_KEYS} keys")
    return keys


def _parse_key(text: str) -> SecretKey:
    match = _NAMED_KEY_PATTERN.fullmatch(text)
    return SecretKey(DEFAULT_KEY_NAME, text) if match is None else SecretKey(*match.groups())
