"""The examples in docs/signing.md match the code, and their shell commands print the signatures."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from cases import each
from tapgate import signing

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
