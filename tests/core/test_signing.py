"""Signature verification, the timestamp window, and the examples in docs/signing.md."""

import base64
import hmac
import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tapgate_client import signing

NOW = datetime(2026, 1, 31, 10, 15, 30, tzinfo=UTC)
SECRET = b"a secret"


def test_signed_string_joins_method_path_timestamp_and_body_with_newlines() -> None:
    assert signing.signed_string("POST", "/p", "t", b"\x00\n{}") == b"POST\n/p\nt\n\x00\n{}"
    assert signing.signed_string("GET", "/p", "t", b"") == b"GET\n/p\nt\n"


def test_service_signed_string_has_an_empty_field_for_an_empty_query() -> None:
    assert signing.service_signed_string("GET", "/p", b"", "1") == b"GET|/p||1"
    assert signing.service_signed_string("GET", "/p", b"a=%20\xff", "1") == b"GET|/p|a=%20\xff|1"


@given(secret=st.binary(max_size=200), body=st.binary(max_size=200))
def test_webhook_signature_is_hmac_sha256_in_hex(secret: bytes, body: bytes) -> None:
    assert signing.webhook_signature(secret, body) == hmac.digest(secret, body, "sha256").hex()


@given(data=st.data(), body=st.binary(max_size=64))
def test_changed_byte_of_the_signed_string_is_rejected(data: st.DataObject, body: bytes) -> None:
    signed = bytearray(signing.signed_string("POST", "/api/v1/pos/payment", "t", body))
    signature = signing.sign(SECRET, "POST", "/api/v1/pos/payment", "t", body)
    assert signing.verify(SECRET, signature, bytes(signed))
    signed[data.draw(st.integers(0, len(signed) - 1))] ^= data.draw(st.integers(1, 255))
    assert not signing.verify(SECRET, signature, bytes(signed))


@given(position=st.integers(0, 63), letter=st.characters(exclude_categories=()))
def test_changed_character_of_the_signature_is_rejected(position: int, letter: str) -> None:
    signature = signing.webhook_signature(SECRET, b"body")
    changed = signature[:position] + letter + signature[position + 1 :]
    assert signing.verify(SECRET, changed, b"body") == (changed == signature)


@each("change", [str.upper, lambda s: s + " ", lambda s: s[:-1], lambda s: ""])
def test_request_signature_must_be_exact_lowercase_hex(change) -> None:  # type: ignore[no-untyped-def]
    signature = signing.sign(SECRET, "GET", "/p", "t", b"")
    signed = signing.signed_string("GET", "/p", "t", b"")
    assert signing.verify(SECRET, signature, signed)
    assert not signing.verify(SECRET, change(signature), signed)


def test_webhook_signature_may_have_a_sha256_prefix() -> None:
    signature = signing.webhook_signature(SECRET, b"body")
    assert signing.verify_webhook(SECRET, signature, b"body")
    assert signing.verify_webhook(SECRET, signature.upper(), b"body")
    assert signing.verify_webhook(SECRET, f"sha256={signature}", b"body")
    assert not signing.verify_webhook(SECRET, f"sha1={signature}", b"body")
    assert not signing.verify_webhook(SECRET, f"sha256={signature}", b"other")
    assert not signing.verify_webhook(b"other", signature, b"body")
    assert not signing.verify_webhook(SECRET, "é" * 64, b"body")


def test_one_valid_standard_webhook_signature_of_several_is_enough() -> None:
    secret = signing.STANDARD_SECRET_PREFIX + base64.b64encode(bytes(range(24))).decode()
    right = signing.standard_webhook_signature(secret, "dlv_1", 1769854530, b"{}")
    wrong = signing.standard_webhook_signature(secret, "dlv_1", 1769854530, b"[]")

    def verify(signatures: str, message_id: str = "dlv_1", timestamp: int = 1769854530) -> bool:
        return signing.verify_standard_webhook(secret, signatures, message_id, timestamp, b"{}")

    assert verify(right)
    assert verify(f"{wrong} {right}")
    assert not verify(wrong)
    assert not verify(right, message_id="dlv_2")
    assert not verify(right, timestamp=1769854531)
    assert not verify(right.replace("v1,", "v2,"))


@each(
    "text, moment",
    [
        ("2026-01-31T10:15:30Z", NOW),
        ("2026-01-31t10:15:30z", NOW),
        ("2026-01-31T10:15:30+00:00", NOW),
        ("2026-01-31T10:15:30.5Z", NOW + timedelta(milliseconds=500)),
        ("2026-01-31T10:15:30.123456789Z", NOW + timedelta(microseconds=123456)),
    ],
)
def test_rfc3339_timestamp_in_utc_is_parsed(text: str, moment: datetime) -> None:
    assert signing.parse_rfc3339_utc(text) == moment


@each(
    "text",
    [
        "",
        "2026-01-31",
        "2026-01-31T10:15:30",
        "2026-01-31 10:15:30Z",
        "2026-01-31T10:15Z",
        "2026-01-31T10:15:30.Z",
        "2026-01-31T10:15:30,5Z",
        "2026-01-31T10:15:30+01:00",
        "2026-01-31T10:15:30-00:00",
        "2026-01-31T10:15:30+0000",
        "2026-02-30T10:15:30Z",
        "2026-01-31T25:15:30Z",
        "0000-01-01T00:00:00Z",
        "20260131T101530Z",
        "2026-W05-6T10:15:30Z",
        " 2026-01-31T10:15:30Z",
        "2026-01-31T10:15:30Z\n",
        "٢026-01-31T10:15:30Z",
        "1769854530",
    ],
)
def test_timestamp_in_another_format_is_rejected(text: str) -> None:
    assert signing.parse_rfc3339_utc(text) is None


@given(st.text())
def test_parsing_a_timestamp_never_raises(text: str) -> None:
    signing.parse_rfc3339_utc(text)
    signing.parse_unix_seconds(text)


def test_unix_seconds_must_be_digits_only() -> None:
    assert signing.parse_unix_seconds("1769854530") == NOW
    assert signing.parse_unix_seconds("99999999999") is not None
    for text in ("", "-1", "+1", "1.0", "1e9", " 1", "1_0", "٣", "999999999999", "1\n"):
        assert signing.parse_unix_seconds(text) is None


@each("direction", [1, -1])
def test_timestamp_window_is_five_minutes_in_both_directions(direction: int) -> None:
    edge = NOW + direction * timedelta(minutes=5)
    assert signing.is_timely(edge, NOW)
    assert not signing.is_timely(edge + direction * timedelta(microseconds=1), NOW)


DOCUMENT = Path(__file__).parents[2] / "docs" / "signing.md"


class Example(msgspec.Struct):
    vector: dict[str, str]
    shell: str
    signature: str


def parse_examples() -> dict[str, Example]:
    examples = {}
    for section in DOCUMENT.read_text().split("\n## ")[1:]:
        blocks = dict(re.findall(r"```(\w+)\n(.*?)\n```", section, re.DOTALL))
        if "vector" not in blocks:  # not a section about a signature
            continue
        vector = dict(line.split(maxsplit=1) for line in blocks["vector"].splitlines())
        examples[section.splitlines()[0]] = Example(vector, blocks["sh"], blocks["signature"])
    return examples


def sign_request(vector: dict[str, str]) -> str:
    return signing.sign(
        vector["secret"].encode(),
        vector["method"],
        vector["path"],
        vector["timestamp"],
        vector["body"].encode(),
    )


def sign_service_request(vector: dict[str, str]) -> str:
    return signing.sign_service(
        vector["secret"].encode(),
        vector["method"],
        vector["path"],
        vector["query"].encode(),
        vector["timestamp"],
    )


def sign_webhook(vector: dict[str, str]) -> str:
    return signing.webhook_signature(vector["secret"].encode(), vector["body"].encode())


def sign_event(vector: dict[str, str]) -> str:
    return signing.standard_webhook_signature(
        vector["secret"], vector["id"], int(vector["timestamp"]), vector["body"].encode()
    )


SIGNERS: dict[str, Callable[[dict[str, str]], str]] = {
    "POS terminals and processors": sign_request,
    "Partners": sign_request,
    "Internal services": sign_service_request,
    "Incoming webhooks from funding partners": sign_webhook,
    "Outgoing events": sign_event,
}


def test_every_signature_scheme_has_an_example() -> None:
    assert parse_examples().keys() == SIGNERS.keys()


@each("title", SIGNERS)
def test_code_produces_the_documented_signature(title: str) -> None:
    example = parse_examples()[title]
    assert SIGNERS[title](example.vector) == example.signature


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize("title", SIGNERS)
def test_shell_command_produces_the_documented_signature(title: str) -> None:
    example = parse_examples()[title]
    result = subprocess.run(
        ["sh", "-ec", example.shell], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == example.signature
