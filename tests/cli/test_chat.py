"""`tapgate chat`: the messages it sends, the output it prints, and the PINs it hides."""

import base64
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from drivers.processes import TAPGATE_EXECUTABLE, free_port
from drivers.terminal import (
    DROP_CONNECTION,
    FakeResponse,
    TerminalSession,
    build_error,
    build_reply,
    run_fake_messenger,
    run_on_terminal,
)
from tapgate.cli import app
from tapgate_sandbox.demo.examples import save_examples

PHONE = "+23276000009"
MENU = "*Menu*\n1. Balance\n2. Send money\n3. Change PIN\nReply with a number."
PNG = b"\x89PNG\r\n\x1a\n and the rest"
JPEG = b"\xff\xd8\xff\xe0 and the rest"


@pytest.fixture
def environ(public_tmp_path: Path) -> dict[str, str]:
    excluded = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TAPGATE_") and name not in excluded
    }
    return inherited | {"TAPGATE_DATA_DIR": str(public_tmp_path / "data"), "TERM": "xterm-256color"}


def run_chat(environ: dict[str, str], *arguments: str, lines: str | None = None) -> Result:
    """Run the command in this process, which is faster than a subprocess."""
    return CliRunner().invoke(app, ["chat", *arguments], input=lines, env=environ)


def build_text_body(text: str, phone: str = PHONE) -> dict[str, Any]:
    return {
        "event": "message",
        "from": phone,
        "phoneE164": phone,
        "message": text,
        "messageType": "text",
    }


def test_once_option_sends_a_single_message(environ: dict[str, str]) -> None:
    with run_fake_messenger(build_reply("You have *5.00 SLE*.")) as messenger:
        options = ("--once", " balance ", "--phone", "+232 76 000-009")
        result = run_chat(environ, *options, "--url", f"{messenger.url}/")
    assert (result.exit_code, result.stdout) == (0, "You have *5.00 SLE*.\n")
    assert messenger.bodies == [build_text_body("balance")]
    assert messenger.tokens == [None]


def test_each_line_of_a_pipe_is_a_message(environ: dict[str, str]) -> None:
    with run_fake_messenger(build_reply(MENU), build_reply("Été à Bô: 5.00 SLE")) as messenger:
        result = subprocess.run(
            [TAPGATE_EXECUTABLE, "chat", "--phone", PHONE],
            input=b"menu\n\n  \nsolde \xc3\xa9t\xc3\xa9 \xff",
            env=environ | {"TAPGATE_MESSENGER_URL": messenger.url},
            capture_output=True,
            timeout=60,
            check=False,
        )
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.decode() == f"{MENU}\n\nÉté à Bô: 5.00 SLE\n"
    assert messenger.bodies == [
        build_text_body("menu"),
        build_text_body("solde été \N{REPLACEMENT CHARACTER}"),
    ]


def test_phone_command_changes_the_sender_and_commands_are_not_sent(
    environ: dict[str, str],
) -> None:
    lines = "menu\n/phone +23276000002\nmenu\n/help\n/quit\nbalance\n"
    with run_fake_messenger(build_reply("one"), build_reply("two")) as messenger:
        result = run_chat(environ, "--phone", PHONE, "--url", messenger.url, lines=lines)
    assert (result.exit_code, result.stdout) == (0, "one\n\ntwo\n")
    assert "/image FILE" in result.stderr
    assert [body["phoneE164"] for body in messenger.bodies] == [PHONE, "+23276000002"]


def test_sender_defaults_to_the_first_demo_subscriber(
    environ: dict[str, str], public_tmp_path: Path
) -> None:
    with run_fake_messenger(build_reply("one"), build_reply("two")) as messenger:
        run_chat(environ, "--once", "menu", "--url", messenger.url)
        save_examples(
            public_tmp_path / "data",
            ["# Aminata Kamara: phone +23225000001, card DEMO-000001, PIN 4826"],
        )
        run_chat(environ, "--once", "menu", "--url", messenger.url)
    senders = [body["from"] for body in messenger.bodies]
    assert senders == ["+23276000001", "+23225000001"]


@pytest.mark.parametrize("value", ["option", "setting"])
def test_bridge_token_is_sent(environ: dict[str, str], value: str) -> None:
    arguments = ["--token", "s3cret"] if value == "option" else []
    setting = {"TAPGATE_MESSENGER_BRIDGE_TOKEN": "s3cret" if value == "setting" else "other"}
    with run_fake_messenger(build_reply("one")) as messenger:
        run_chat(environ | setting, "--once", "menu", "--url", messenger.url, *arguments)
    assert messenger.tokens == ["Bearer s3cret"]


@pytest.mark.parametrize(
    ("response", "line"),
    [
        (build_error(401, "unauthorized"), "the messenger requires a token: use --token"),
        (build_error(403, "forbidden"), "the messenger rejects bridges: in production, start it"),
        (build_error(429, "slow", retryAfter=17), "too many messages: try again in 17 seconds"),
        ((429, b"slow"), "too many messages: try again in 60 seconds"),
        (build_error(500, "internal\nerror"), "the messenger failed (internal error): try again"),
        ((502, b"<html>"), "the messenger failed (502): try again"),
        (
            build_error(400, "media.data is \x1b[2Jbad"),
            "the messenger rejected the message: media.data is [2Jbad",
        ),
        ((404, b"nothing here"), "the server at http://127.0.0.1:"),
        ((302, b""), "the server at http://127.0.0.1:"),
        ((200, b"<html>"), "the server at http://127.0.0.1:"),
        ((200, b'{"answer": 5, "status": "success"}'), "the server at http://127.0.0.1:"),
        ((200, b'{"answer": "\xff", "status": "success"}'), "the server at http://127.0.0.1:"),
        (
            DROP_CONNECTION,
            "the connection to the messenger was lost: your request may have been processed",
        ),
    ],
)
def test_failure_is_reported_in_one_line_and_no_further_line_is_sent(
    environ: dict[str, str], response: FakeResponse, line: str
) -> None:
    with run_fake_messenger(response, build_reply("never sent")) as messenger:
        result = run_chat(environ, "--url", messenger.url, lines="send money\nyes\n")
    assert result.exit_code == 1
    assert result.output.startswith(f"tapgate: {line}")
    assert len(result.output.splitlines()) == 1
    assert len(messenger.bodies) == 1


def test_missing_messenger_is_reported_in_one_line(environ: dict[str, str]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    result = subprocess.run(
        [TAPGATE_EXECUTABLE, "chat", "--once", "menu", "--url", url],
        env=environ | {"HTTP_PROXY": "http://127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout) == (1, "")
    error = f"tapgate: cannot connect to the messenger at {url}: start it with `make run`\n"
    assert result.stderr == error


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--url", "localhost:8001"), "--url must start with http:// or https://"),
        (("--url", "http://[::1"), "--url is not a valid URL"),
        (("--url", "http://a:port"), "--url is not a valid URL"),
        (("--phone", "076 000 009"), "a phone number must include the country code"),
        (("--token", "s3 cret"), "--token must consist of ASCII characters"),
        (("--once", " "), "--once must not be empty"),
        (("--once", "/phone 12"), "a phone number must include the country code"),
        (("--once", "/dance"), "unknown command /dance: type /help for a list"),
        (("--once", "/image"), "usage: /image FILE"),
        (("--once", "/image 'a"), "usage: /image FILE"),
    ],
)
def test_invalid_option_or_command_is_not_sent(
    environ: dict[str, str], arguments: tuple[str, ...], line: str
) -> None:
    with run_fake_messenger() as messenger:
        result = run_chat(environ, "--url", messenger.url, "--once", "menu", *arguments)
    assert result.exit_code == 1
    assert result.output.startswith(f"tapgate: {line}")
    assert messenger.bodies == []


@pytest.mark.parametrize(("content", "media_type"), [(PNG, "image/png"), (JPEG, "image/jpeg")])
def test_image_is_sent_with_its_detected_type(
    environ: dict[str, str], tmp_path: Path, content: bytes, media_type: str
) -> None:
    path = tmp_path / "my card.dat"  # the type is not detected from the extension
    path.write_bytes(content)
    with run_fake_messenger(build_reply("Thank you."), build_reply("Thanks.")) as messenger:
        lines = f"/image '{path}'\n/image '{path}' id_front\n"
        result = run_chat(environ, "--phone", PHONE, "--url", messenger.url, lines=lines)
    assert (result.exit_code, result.stdout) == (0, "Thank you.\n\nThanks.\n")
    body = {
        "event": "message",
        "from": PHONE,
        "phoneE164": PHONE,
        "messageType": "image",
        "hasMedia": True,
        "media": {
            "data": f"data:{media_type};base64,{base64.b64encode(content).decode()}",
            "mimetype": media_type,
            "filename": "my card.dat",
            "size": len(content),
        },
    }
    assert messenger.bodies == [body, {**body, "message": "id_front"}]


def test_file_that_is_not_a_valid_image_is_not_sent(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "words.png").write_text("not a picture")
    (tmp_path / "large.png").write_bytes(PNG + bytes(5 * 1024 * 1024))
    (tmp_path / "empty.png").touch()
    expected = {
        "words.png": "is not a JPEG or PNG image",
        "empty.png": "is not a JPEG or PNG image",
        "large.png": "is larger than 5 MB: send a smaller image",
        "nowhere.png": "No such file or directory",
        ".": "is not a file",
    }
    with run_fake_messenger() as messenger:
        for name, error in expected.items():
            image = f"/image {tmp_path / name}"
            result = run_chat(environ, "--url", messenger.url, "--once", image)
            assert result.exit_code == 1
            assert error in result.output
    assert messenger.bodies == []


def test_image_of_the_maximum_size_is_sent(environ: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    path.write_bytes(PNG.ljust(5 * 1024 * 1024))
    with run_fake_messenger(build_reply("Thank you.")) as messenger:
        result = run_chat(environ, "--url", messenger.url, "--once", f"/image {path}")
    assert result.exit_code == 0
    assert messenger.bodies[0]["media"]["size"] == 5 * 1024 * 1024


@contextmanager
def open_chat(environ: dict[str, str], url: str) -> Iterator[TerminalSession]:
    with run_on_terminal([str(TAPGATE_EXECUTABLE), "chat", "--url", url], environ) as terminal:
        terminal.wait_for("/help.")
        terminal.wait_for("you> ")
        yield terminal


def send_text(terminal: TerminalSession, text: str, prompt: str = "you> ") -> str:
    """Send a text and return the output up to the next prompt."""
    terminal.type(text + "\r")
    return terminal.wait_for(prompt)


def test_pin_is_not_displayed_and_not_kept_in_the_history(environ: dict[str, str]) -> None:
    responses = (
        build_reply("Send 50.00 SLE to Mohamed S.\nEnter your 4-digit PIN to confirm."),
        build_error(429, "slow down", retryAfter=3),
        build_reply("Wrong PIN. 2 tries left, please type your PIN again."),
        build_reply("Done. Your PIN was right."),
        build_reply("What is that?"),
        build_reply("Again?"),
    )
    with run_fake_messenger(*responses) as messenger, open_chat(environ, messenger.url) as terminal:
        hidden = "PIN (hidden): "
        send_text(terminal, "send 50", hidden)
        assert "in 3 seconds" in send_text(terminal, "4826", hidden)
        send_text(terminal, "4826", hidden)
        assert "Done." in send_text(terminal, "4827")
        assert "482" not in terminal.output.replace(messenger.url, "")
        send_text(terminal, "oh 4828")  # typed without a PIN prompt, so it was displayed
        send_text(terminal, "\x1b[A")  # previous history line
        assert terminal.press_and_wait("\x04") == 0
    assert messenger.texts == ["send 50", "4826", "4826", "4827", "oh 4828", "send 50"]


def test_terminal_shows_formatted_replies_without_control_sequences(
    environ: dict[str, str],
) -> None:
    link = "http://127.0.0.1:8000/statements/" + "x" * 100
    responses = (
        build_reply(MENU),
        build_error(500, "no\x1b[2J"),
        build_reply(f"2 * 3 * 4\n{link}\x1b]0;x\x07"),
    )
    with run_fake_messenger(*responses) as messenger, open_chat(environ, messenger.url) as terminal:
        menu = send_text(terminal, "menu")
        assert "messenger" in menu
        assert "\x1b[1mMenu\x1b[0m" in menu
        assert "2. Send money" in menu
        assert "the messenger failed (no[2J): try again" in send_text(terminal, "balance")
        assert "unknown command /x" in send_text(terminal, "/x")
        statement = send_text(terminal, "statement")
        assert "2 * 3 * 4" in statement
        assert link in statement.replace("\r\n", "")
        assert "\x1b[2J" not in terminal.output
        assert "\x1b]0;" not in terminal.output
        terminal.type("half a sent")
        terminal.wait_for("half a sent")
        assert terminal.press_and_wait("\x03") == 0
    assert "Traceback" not in terminal.output


def test_ctrl_c_at_a_pin_prompt_ends_the_chat(environ: dict[str, str]) -> None:
    with (
        run_fake_messenger(build_reply("Your PIN?")) as messenger,
        open_chat(environ, messenger.url) as terminal,
    ):
        send_text(terminal, "send 50", "PIN (hidden): ")
        terminal.type("48")
        assert terminal.press_and_wait("\x03") == 0
    assert "48" not in terminal.output.replace(messenger.url, "")
