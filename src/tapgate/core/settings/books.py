"""Settings for several books: installations that exchange transfers between their customers."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tapgate.core.settings.declaration import (
    Match,
    OptionalSetting,
    Secrecy,
    Setting,
    SettingGroup,
)
from tapgate.core.settings.value_types import JsonObject, Text, Url, ValueType
from tapgate_client import ids
from tapgate_client.schemas.nodes import NodeRole

_CODE_PATTERN: Final = re.compile(r"[a-z][a-z0-9-]{0,19}")
_CODE_PROBLEM: Final = "1 to 20 lowercase letters, digits and hyphens"


class BookPeer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another book, and the partners with which the two books know each other."""

    url: str
    #: Partner of this installation that represents the other book. Its clearing account shows what
    #: this book owes.
    partner: str
    #: Partner of the other installation that represents this book, and its signing key.
    own_partner: str
    key: str


class _BookCode(Text):
    accepted = _CODE_PROBLEM

    def parse(self, text: str) -> str:
        if not _CODE_PATTERN.fullmatch(text):
            raise ValueError(f"must have {_CODE_PROBLEM}, and start with a letter")
        return text


class _BookPeers(ValueType[dict[str, BookPeer]]):
    accepted = "JSON object"

    def parse(self, text: str) -> dict[str, BookPeer]:
        return self._parse(text, Url())

    def parse_strictly(self, text: str) -> dict[str, BookPeer]:
        return self._parse(text, Url("https"))

    def _parse(self, text: str, url_type: Url) -> dict[str, BookPeer]:
        try:
            peers = msgspec.json.decode(text, type=dict[str, BookPeer])
        except ValueError:
            raise ValueError(
                "must be a JSON object that gives each book a url, partner, own_partner and key"
            ) from None
        for code, peer in peers.items():
            if not _CODE_PATTERN.fullmatch(code):
                raise ValueError(f"must name each book with {_CODE_PROBLEM}")
            for name in ("partner", "own_partner"):
                if ids.decode(ids.PARTNER, getattr(peer, name)) is None:
                    raise ValueError(f"must have a partner ID in {code}.{name}")
            if ids.decode(ids.KEY, peer.key) is None:
                raise ValueError(f"must have a signing key ID in {code}.key")
            try:
                url_type.parse(peer.url)
            except ValueError as error:
                raise ValueError(f"is invalid: {code}.url {error}") from None
        if len({peer.partner for peer in peers.values()}) < len(peers):
            raise ValueError("must have a partner of its own for each book")
        return {
            code: msgspec.structs.replace(peer, url=peer.url.rstrip("/"))
            for code, peer in peers.items()
        }

    def format(self, value: Any) -> str:
        peers: Mapping[str, BookPeer] = value
        if not peers:
            return "{}"
        return ", ".join(f"{code}: {Url().format(peer.url)}" for code, peer in peers.items())


class BookSettings(SettingGroup):
    title = "Several books"

    book = OptionalSetting(
        _BookCode(),
        "Book code",
        "Code of this installation among several books, as customers and staff of the other books"
        " see it. See [Several books](books.md).",
        french="Code du registre",
        example="north",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    book_peers = Setting(
        _BookPeers(),
        {},
        "Other books",
        "Other books by code. Each has its `url`, the `partner` that represents it here, the"
        " `own_partner` that represents this book there, and the ID of its signing `key`.",
        french="Autres registres",
        production="Each URL must be `https://`.",
        example='{"south": {"url": "https://south.example.com", "partner": "ptn_0800000000000",'
        ' "own_partner": "ptn_0800000000001", "key": "key_0800000000002"}}',
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    book_secrets = Setting(
        JsonObject(dict[str, str], 'must be a JSON object such as {"south": "..."}'),
        {},
        "Book signing secrets",
        "Secrets of the signing keys in `TAPGATE_BOOK_PEERS`, by book code.",
        french="Secrets de signature des registres",
        example='{"south": "the secret of the signing key"}',
        secrecy=Secrecy.UNIQUE,
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
