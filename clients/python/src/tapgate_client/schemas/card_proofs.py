"""Keysets, card personalization, and card proofs."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from tapgate_client.errors import invalid_field
from tapgate_client.schemas.common import Redacted, build_missing_field_error
from tapgate_client.schemas.fields import (
    IntegerRange,
    InvalidValueError,
    NameRule,
    Reference,
    Rule,
)
from tapgate_client.schemas.values import Example, Id, Time, Word

_PICC_DATA_DIGITS: Final = 32
_CMAC_DIGITS: Final = 16
_KEY_DIGITS: Final = 32
_MAX_URL_LENGTH: Final = 500


class CardAuthenticity(StrEnum):
    """How a card proves that it is genuine."""

    NONE = "none"
    SUN = "sun"  # Secure Unique NFC: the chip signs every tap


class KeysetStatus(StrEnum):
    ACTIVE = "active"
    RETIRED = "retired"


class CardTapResult(StrEnum):
    ACCEPTED = "accepted"
    USED = "used"
    NOT_GENUINE = "not_genuine"


class HexRule(Rule):
    """Exact number of hex digits, normalized to upper case."""

    def __init__(self, digits: int, *, example: str) -> None:
        self._digits = digits
        self.example = example

    def check(self, value: str) -> str:
        try:
            data = bytes.fromhex(value)  # ignores spaces
        except ValueError:
            data = b""
        if len(value) != self._digits or 2 * len(data) != self._digits:
            raise InvalidValueError(f"must be {self._digits} hex digits")
        return value.upper()

    def to_json_schema(self) -> dict[str, Any]:
        return {
            "pattern": f"^[0-9A-Fa-f]{{{self._digits}}}$",
            "description": f"{self._digits} hex digits",
        }


class TapUrlRule(Rule):
    """URL that a card returned at a tap."""

    example = (
        "https://pay.example/t?picc_data=EF963FF7828658A599F3041510671E88&cmac=94EED9EE65337086"
    )
    max_json_bytes = 12 * _MAX_URL_LENGTH

    def check(self, value: str) -> str:
        if parse_tap_url(value) is None:
            raise InvalidValueError("must be the URL of a tap, with picc_data and cmac")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"format": "uri", "maxLength": _MAX_URL_LENGTH}


_PICC_DATA_RULE = HexRule(_PICC_DATA_DIGITS, example="EF963FF7828658A599F3041510671E88")
_CMAC_RULE = HexRule(_CMAC_DIGITS, example="94EED9EE65337086")


def parse_tap_url(url: str) -> tuple[str, str] | None:
    """Return `picc_data` and `cmac` of a URL, or None unless it has exactly one valid of each."""
    if len(url) > _MAX_URL_LENGTH or not (url.isascii() and url.isprintable()):
        return None  # a parser would remove control characters
    try:
        fields = parse_qsl(urlsplit(url).query, keep_blank_values=True)
        (picc_data,) = (value for name, value in fields if name == "picc_data")
        (cmac,) = (value for name, value in fields if name == "cmac")
        return _PICC_DATA_RULE.check(picc_data), _CMAC_RULE.check(cmac)
    except (ValueError, InvalidValueError):
        return None


class CardProof(Redacted, msgspec.Struct, kw_only=True, omit_defaults=True):
    """A tap's proof: `picc_data` and `cmac`, or the `url` that contains them."""

    picc_data: Annotated[str, _PICC_DATA_RULE] | None = None
    cmac: Annotated[str, _CMAC_RULE] | None = None
    url: Annotated[str, TapUrlRule()] | None = None

    OMITTED_IN_EXAMPLES: ClassVar = ("url",)

    def __post_init__(self) -> None:
        if self.url is None:
            if self.picc_data is None:
                raise build_missing_field_error("picc_data")
            if self.cmac is None:
                raise build_missing_field_error("cmac")
        elif self.picc_data is not None or self.cmac is not None:
            # The fields could contain different proofs.
            raise invalid_field("card_proof.url", "must not be combined with picc_data or cmac")

    def decode(self) -> tuple[bytes, bytes]:
        """Return `picc_data` and `cmac` of a valid proof."""
        picc_data, cmac = self.picc_data, self.cmac
        if self.url is not None:
            picc_data, cmac = parse_tap_url(self.url) or (None, None)
        assert picc_data is not None
        assert cmac is not None
        return bytes.fromhex(picc_data), bytes.fromhex(cmac)


def require_card(serial: str | None, proof: CardProof | None) -> None:
    """Require that a request names a card by its serial, by a proof, or by both."""
    if serial is None and proof is None:
        raise build_missing_field_error("card_serial")


IssuerKey = Annotated[str, HexRule(_KEY_DIGITS, example="00112233445566778899AABBCCDDEEFF")]


class NewKeyset(Redacted, msgspec.Struct, kw_only=True):
    """Keyset to create. A key that is absent is generated."""

    name: Annotated[str, NameRule(64)]
    meta_read_key: IssuerKey | None = None
    file_read_key: IssuerKey | None = None

    OMITTED_IN_EXAMPLES: ClassVar = ("meta_read_key", "file_read_key")


class KeysetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Keyset as returned by the API, without its keys.

    `kcv` consists of the key check values for the meta read key and the file read key: the first 3
    bytes of an encrypted zero block each, in hex. `cards` is the number of cards with its keys.
    """

    id: Id
    name: Annotated[str, Example("Card bureau")]
    version: Annotated[int, Example(1)]
    kcv: Annotated[str, Example("66E94BFDE4FB")]
    status: KeysetStatus
    cards: int
    created_at: Time


class KeysetRetirement(msgspec.Struct, kw_only=True):
    """Keyset retirement. `cards` confirms how many cards stop working."""

    cards: Annotated[int, IntegerRange(0)] | None = None


class NewPersonalization(msgspec.Struct, kw_only=True):
    keyset_id: Reference


class CardKeys(Redacted, msgspec.Struct, frozen=True, kw_only=True):
    """A card chip's keys, as hex digits: `k1` is the file read key, `k2` the meta read key."""

    k0: Annotated[str, Example("returned only once")]
    k1: Annotated[str, Example("returned only once")]
    k2: Annotated[str, Example("returned only once")]
    k3: Annotated[str, Example("returned only once")]
    k4: Annotated[str, Example("returned only once")]


class SdmOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """Positions in bytes from the start of the NDEF file, for the chip's file settings."""

    picc_data_offset: Annotated[int, Example(31)]
    mac_offset: Annotated[int, Example(69)]
    mac_input_offset: Annotated[int, Example(69)]


class Personalization(msgspec.Struct, frozen=True, kw_only=True):
    """What an encoder writes to a card's chip. No other response contains the keys."""

    uid: Annotated[str, Example("04A2245B6C8090")]
    key_version: int
    keys: CardKeys
    ndef_url_template: Annotated[
        str,
        Example(
            "https://pay.example/t?picc_data=00000000000000000000000000000000&cmac=0000000000000000"
        ),
    ]
    sdm: SdmOffsets


class PersonalizationConfirmation(msgspec.Struct, kw_only=True):
    card_proof: CardProof


class CardTapRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that was accepted or rejected. `counter` is null if it could not be decrypted."""

    at: Annotated[Word, Example("2026-01-31T09:15:00.000Z")]
    counter: Annotated[int, Example(61)] | None
    terminal_id: Id | None
    terminal_name: str | None
    result: CardTapResult
