"""docs/webhooks.md matches the code, and its examples work as printed."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tapgate.events.webhooks import model, retry_schedule, sender
from tapgate.events.webhooks.retry_schedule import MAX_RETRY_AFTER
from tapgate.server.retention import HISTORY_PERIOD
from tapgate_client import signing
from tapgate_client.schemas.webhooks import MAX_GRACE_SECONDS, WEBHOOK_EVENT_TYPES

DOCUMENT = (Path(__file__).parents[3] / "docs" / "webhooks.md").read_text()
SECRET = "whsec_dGFwZ2F0ZS1leGFtcGxlLWRvLW5vdC11c2UtdGhpcyE="


def list_code_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)\n```", DOCUMENT, re.DOTALL)


def parse_example() -> tuple[dict[str, str], bytes]:
    """Return the example request's headers and body."""
    request = list_code_blocks("http")[-1]
    head, _, body = request.partition("\n\n")
    return dict(line.split(": ", 1) for line in head.splitlines()[1:]), body.encode()


def load_documented_check() -> Any:
    names: dict[str, Any] = {}
    (source,) = list_code_blocks("python")
    exec(source, names)
    return names["is_genuine"]


def test_documented_example_has_a_valid_signature() -> None:
    headers, body = parse_example()
    signature = signing.standard_webhook_signature(
        SECRET, headers["webhook-id"], int(headers["webhook-timestamp"]), body
    )
    assert headers["webhook-signature"] == signature
    assert msgspec.json.decode(body).keys() == {"type", "timestamp", "data"}


def test_documented_python_function_detects_forged_requests() -> None:
    is_genuine = load_documented_check()
    headers, body = parse_example()
    now = float(headers["webhook-timestamp"])
    assert is_genuine(SECRET, headers, body, now)
    assert is_genuine(SECRET, headers, body, now + 300)
    rotated = headers | {"webhook-signature": f"v1,old {headers['webhook-signature']}"}
    assert is_genuine(SECRET, rotated, body, now)
    assert not is_genuine(SECRET, headers, body + b" ", now)
    assert not is_genuine(SECRET, headers | {"webhook-id": "dlv_0"}, body, now)
    assert not is_genuine(signing.new_standard_secret(), headers, body, now)
    assert not is_genuine(SECRET, headers, body, now + 301)
    assert not is_genuine(SECRET, headers, body)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_documented_shell_commands_print_the_example_signature() -> None:
    (shell,) = list_code_blocks("sh")
    result = subprocess.run(["sh", "-ec", shell], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == parse_example()[0]["webhook-signature"]


def test_every_event_is_described() -> None:
    events = DOCUMENT.partition("## Events")[2].partition("## Payload")[0]
    assert set(re.findall(r"`([a-z_]+\.[a-z_]+)`", events)) == set(WEBHOOK_EVENT_TYPES)


def test_documented_retry_schedule_matches_the_code() -> None:
    seconds = {"seconds": 1, "minutes": 60, "hours": 3600}
    message = DOCUMENT.partition("retried after about ")[2].partition(", with a")[0]
    delays = re.findall(r"(\d+) (\w+)", message)
    found = tuple(int(number) * seconds[unit] for number, unit in delays)
    assert found == retry_schedule.RETRY_DELAYS_SECONDS


def test_documented_limits_match_the_code() -> None:
    assert f"(0 to {MAX_GRACE_SECONDS:,} seconds, default 0)" in DOCUMENT
    assert f"fails continuously for {model.DISABLE_AFTER.days} days" in DOCUMENT
    assert f"has been due for {HISTORY_PERIOD.days} days" in DOCUMENT
    hours = MAX_RETRY_AFTER.total_seconds() / 3600
    assert f"at most {hours:.0f} hours are honored" in DOCUMENT
    assert f"the first {sender.MAX_RESPONSE_BYTES // 1024} KiB" in DOCUMENT
    assert f"within {sender.BODY_TIMEOUT_SECONDS:.0f} seconds after the status" in DOCUMENT
