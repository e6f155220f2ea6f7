"""docs/signing.md says what the code does, and its shell lines give what it says."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tapgate import signing

DOCUMENT = Path(__file__).parents[2] / "docs" / "signing.md"


class Example(msgspec.Struct):
    vector: dict[str, str]
    shell: str
    signature: str


def examples() -> dict[str, Example]:
    found = {}
    for section in DOCUMENT.read_text().split("\n## ")[1:]:
        blocks = dict(re.findall(r"```(\w+)\n(.*?)\n```", section, re.DOTALL))
        if "vector" not in blocks:  # a section about something else than a signature
            continue
        vector = dict(line.split(maxsplit=1) for line in blocks["vector"].splitlines())
        found[section.splitlines()[0]] = Example(vector, blocks["sh"], blocks["signature"])
    return found


def signed_request(vector: dict[str, str]) -> str:
    return signing.sign(
        vector["secret"].encode(),
        vector["method"],
        vector["path"],
        vector["timestamp"],
        vector["body"].encode(),
    )


def service_request(vector: dict[str, str]) -> str:
    return signing.sign_service(
        vector["secret"].encode(),
        vector["method"],
        vector["path"],
        vector["query"].encode(),
        vector["timestamp"],
    )


def webhook(vector: dict[str, str]) -> str:
    return signing.webhook_signature(vector["secret"].encode(), vector["body"].encode())


def event(vector: dict[str, str]) -> str:
    return signing.standard_webhook_signature(
        vector["secret"], vector["id"], int(vector["timestamp"]), vector["body"].encode()
    )


BY_CODE: dict[str, Callable[[dict[str, str]], str]] = {
    "POS terminals and processors": signed_request,
    "Partners": signed_request,
    "Internal services": service_request,
    "Webhooks in, from a funding partner": webhook,
    "Events out": event,
}


def test_every_signature_has_an_example() -> None:
    assert examples().keys() == BY_CODE.keys()


@pytest.mark.parametrize("title", BY_CODE)
def test_the_code_gives_the_documented_signature(title: str) -> None:
    example = examples()[title]
    assert BY_CODE[title](example.vector) == example.signature


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize("title", BY_CODE)
def test_the_shell_line_gives_the_documented_signature(title: str) -> None:
    example = examples()[title]
    done = subprocess.run(["sh", "-ec", example.shell], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == example.signature
