"""Starting the messenger: standalone, with the gateway, and with invalid settings."""

import contextlib
import json
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders.messenger import BRIDGE_PATH, FLOWS_PATH
from drivers.processes import TAPGATE_EXECUTABLE, build_environ, free_port, run_command
from harness import PRODUCTION_ENVIRON
from tapgate import VERSION
from tapgate.core.settings import load_settings
from tapgate.core.settings.declaration import SettingsError
from tapgate.core.vault import Vault
from tapgate.messenger.startup import add_development_form_key, list_warnings, require_complete_sms


@contextlib.contextmanager
def run_messenger(folder: Path, *command: str, **variables: str) -> Iterator[list[str]]:
    """Start a command, yield its output when it is ready, and require a clean stop on SIGTERM."""
    with subprocess.Popen(
        [TAPGATE_EXECUTABLE, *command],
        env=build_environ(folder / "data", **{"TAPGATE_DEMO": "off", **variables}),
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines: list[str] = []
        try:
            while not lines or lines[-1] != "Press Ctrl-C to stop.":
                line = process.stdout.readline()
                assert line, lines
                lines.append(line.rstrip("\n"))
            yield lines
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def get_health(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=30) as response:
        body: dict[str, Any] = json.loads(response.read())
        return body


def post_and_get_error(
    port: int, body: bytes, path: str = BRIDGE_PATH
) -> tuple[int, dict[str, str]]:
    """Post over a real connection and return the error status and body."""
    url = f"http://127.0.0.1:{port}{path}"
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(url, body, timeout=30)
    with raised.value as response:
        return response.code, json.loads(response.read())


def test_messenger_starts_standalone_with_a_database_url(
    public_tmp_path: Path, database_url: str
) -> None:
    port = free_port()
    command = ("messenger", "--port", str(port), "--workers", "2")
    with run_messenger(public_tmp_path, *command, TAPGATE_DATABASE_URL=database_url) as lines:
        assert get_health(port) == {
            "status": "ok",
            "service": "tapgate-messenger",
            "version": VERSION,
            "activeConversations": 0,
        }
        assert post_and_get_error(port, b"{}") == (
            400,
            {"error": "event is required", "status": "error"},
        )
        too_large = (413, {"error": "Request body too large", "status": "error"})
        assert post_and_get_error(port, b"x" * (9 << 20)) == too_large
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(b"not HTTP\r\n\r\n")
            head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert json.loads(body) == {
            "error": "The request is not valid HTTP/1.1.",
            "status": "error",
        }
    assert lines == [
        "No messaging provider is configured: replies stay in the local outbox.",
        f"The messenger listens on http://127.0.0.1:{port}.",
        f"  Chat:              {TAPGATE_EXECUTABLE} chat --url http://127.0.0.1:{port}",
        "Press Ctrl-C to stop.",
    ]


@pytest.mark.parametrize(
    ("options", "variables", "line"),
    [
        (["--port", "0"], {}, "TAPGATE_MESSENGER_PORT must be a whole number from 1 to 65535"),
        (
            [],
            {"TAPGATE_DATABASE_URL": "postgresql:///tapgate?host=/nowhere"},
            "the database cannot be reached: [Errno 2] No such file or directory",
        ),
    ],
)
def test_startup_error_is_one_line(
    public_tmp_path: Path, options: list[str], variables: dict[str, str], line: str
) -> None:
    port = [] if "--port" in options else ["--port", str(free_port())]
    result = run_command(public_tmp_path / "data", "messenger", *options, *port, **variables)
    assert (result.returncode, result.stdout, result.stderr) == (1, "", f"tapgate: {line}\n")


def test_unsigned_flow_gets_432_and_mismatched_secret_key_is_rejected_at_startup(
    public_tmp_path: Path, database_url: str
) -> None:
    """A messenger with a different secret key could not decrypt stored values."""
    port = free_port()
    variables = {
        "TAPGATE_DATABASE_URL": database_url,
        "TAPGATE_MESSENGER_APP_SECRET": "a",
        "TAPGATE_SECRET_KEY": "a" * 32,
    }
    command = ("messenger", "--port", str(port), "--workers", "1")
    with run_messenger(public_tmp_path, *command, **variables):
        message = "X-Hub-Signature-256 is missing"
        assert post_and_get_error(port, b"{}", FLOWS_PATH) == (
            432,
            {"error": message, "status": "error"},
        )
    variables["TAPGATE_SECRET_KEY"] = "b" * 32
    result = run_command(public_tmp_path / "data", *command, **variables)
    assert result.returncode == 1
    expected = (
        f"tapgate: TAPGATE_SECRET_KEY does not match this database's key"
        f" ({Vault('a' * 32).key_id})\n"
    )
    assert result.stderr == expected


def test_missing_settings_are_listed_as_warnings(tmp_path: Path) -> None:
    def list_warnings_for(**variables: str) -> list[str]:
        return list_warnings(load_settings({"TAPGATE_DATA_DIR": str(tmp_path), **variables}))

    (unverified, _) = list_warnings_for(TAPGATE_MESSENGER_GRAPH_URL="https://graph.example.com")
    assert "TAPGATE_MESSENGER_APP_SECRET is not set" in unverified
    assert list_warnings_for(**PRODUCTION_ENVIRON) == [
        "Warning: TAPGATE_MESSENGER_APP_SECRET is not set: incoming webhooks are rejected.",
        "Warning: TAPGATE_MESSENGER_BRIDGE_TOKEN is not set: bridges are rejected.",
        "Warning: replies stay in the local outbox. Missing settings: TAPGATE_MESSENGER_GRAPH_URL,"
        " TAPGATE_MESSENGER_ACCESS_TOKEN, TAPGATE_MESSENGER_PHONE_NUMBER_ID.",
    ]
    all_but_token = {
        "TAPGATE_MESSENGER_APP_SECRET": "a",
        "TAPGATE_MESSENGER_GRAPH_URL": "https://graph.example",
        "TAPGATE_MESSENGER_PHONE_NUMBER_ID": "1",
    }
    expected = [
        "Warning: replies stay in the local outbox. Missing settings:"
        " TAPGATE_MESSENGER_ACCESS_TOKEN."
    ]
    assert list_warnings_for(**all_but_token) == expected
    assert list_warnings_for(**all_but_token, TAPGATE_MESSENGER_ACCESS_TOKEN="t") == []


def test_development_form_key_is_created_only_for_simulated_phones(tmp_path: Path) -> None:
    def load_key(**variables: str) -> str | None:
        settings = load_settings({"TAPGATE_DATA_DIR": str(tmp_path), **variables})
        return add_development_form_key(settings).messenger_flow_private_key

    created = load_key()
    assert created is not None
    assert created.startswith("-----BEGIN PRIVATE KEY-----")
    assert (tmp_path / "forms.pem").stat().st_mode & 0o077 == 0
    assert load_key() == created, "all processes share one key"
    assert load_key(TAPGATE_MESSENGER_TEXT_PIN="on") is None
    key = load_key(TAPGATE_MESSENGER_GRAPH_URL="http://graph")
    assert key is None, "a provider does not have this key"
    assert load_key(**PRODUCTION_ENVIRON) is None


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        ({"TAPGATE_SMS_URL": "https://sms.example.com"}, "TAPGATE_SMS_TOKEN"),
        ({"TAPGATE_SMS_TOKEN": "a token"}, "TAPGATE_SMS_URL"),
    ],
)
def test_sms_needs_both_settings(variables: dict[str, str], missing: str) -> None:
    with pytest.raises(SettingsError, match=f"^{missing} must be set too"):
        require_complete_sms(load_settings(variables))
