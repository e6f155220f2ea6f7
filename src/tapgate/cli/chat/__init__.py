"""`tapgate chat`: chat with the messenger in the terminal, as a subscriber would on a phone."""

import contextlib
import io
import re
import shlex
import sys
from typing import Final

from tapgate.cli import operator
from tapgate.cli.chat.errors import ChatError
from tapgate.cli.chat.images import read_image
from tapgate.cli.chat.messenger_client import MessengerClient
from tapgate.cli.chat.pin_detection import asks_for_pin
from tapgate.cli.chat.screen import PlainScreen, Screen, TerminalScreen
from tapgate.core.settings import Settings
from tapgate_sandbox.demo.examples import load_example_phone

_DEFAULT_PHONE: Final = "+23276000001"
_PHONE_PATTERN: Final = re.compile(r"\+[1-9][0-9]{6,14}")
_HELP_TEXT: Final = """\
Write as you would on your phone. `menu` lists the options; enter a number to choose one.
  /image FILE [CAPTION]  send a JPEG or PNG image, with a caption such as id_front
  /phone NUMBER          chat as another customer, for example +23276000002
  /quit                  exit (also Ctrl-D or Ctrl-C)"""


def run_chat(
    settings: Settings, *, url: str | None, phone: str | None, token: str | None, once: str | None
) -> None:
    _replace_invalid_characters()
    if once is not None and not once.strip():
        sys.exit("tapgate: --once must not be empty")
    is_interactive = once is None and sys.stdin.isatty() and sys.stdout.isatty()
    try:
        phone_number = _parse_phone(
            phone or load_example_phone(settings.data_dir) or _DEFAULT_PHONE
        )
        messenger = MessengerClient(
            url or settings.messenger_url, token or settings.messenger_bridge_token
        )
        with contextlib.closing(messenger):
            if is_interactive:
                _run_interactive(messenger, phone_number)
            else:
                _run_script(messenger, phone_number, once)
    except ChatError as error:
        sys.exit(f"tapgate: {error}")


def _run_interactive(messenger: MessengerClient, phone: str) -> None:
    """Chat interactively. Errors are shown, and the conversation continues."""
    screen = TerminalScreen()
    screen.show_note(f"Chatting as {phone} with {messenger.url}. Type menu or /help.")
    chat = _ChatSession(messenger, screen, phone)
    try:
        while True:
            try:
                chat.handle_line(chat.read_line())
            except ChatError as error:
                screen.show_error(str(error))
    except (EOFError, KeyboardInterrupt):
        print()


def _run_script(messenger: MessengerClient, phone: str, once: str | None) -> None:
    """Send `once`, or each line of standard input.

    The first error ends the script, so that no line is sent out of context.
    """
    chat = _ChatSession(messenger, PlainScreen(), phone)
    try:
        if once is not None:
            chat.handle_line(once)
        while once is None:
            chat.handle_line(chat.read_line())
    except EOFError:
        pass
    except KeyboardInterrupt:
        sys.exit(operator.INTERRUPTED_EXIT_CODE)


class _ChatSession:
    def __init__(self, messenger: MessengerClient, screen: Screen, phone: str) -> None:
        self._messenger = messenger
        self._screen = screen
        self._phone = phone
        self._expects_pin = False

    def read_line(self) -> str:
        return self._screen.read_line(hidden=self._expects_pin)

    def handle_line(self, line: str) -> None:
        """Send a line as a message, or run it as a command if it starts with a slash."""
        text = line.encode("utf-8", "replace").decode().strip()
        if text.startswith("/"):
            self._run_command(text)
        elif text:
            self._show_reply(self._messenger.send_text(self._phone, text))

    def _run_command(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        match name:
            case "/quit":
                raise EOFError
            case "/help":
                self._screen.show_note(_HELP_TEXT)
            case "/phone":
                self._phone = _parse_phone(rest)
                self._expects_pin = False
                self._screen.show_note(f"Chatting as {self._phone}.")
            case "/image":
                self._send_image(rest)
            case _:
                raise ChatError(f"unknown command {name}: type /help for a list")

    def _send_image(self, rest: str) -> None:
        try:
            name, *caption = shlex.split(rest)
        except ValueError:
            raise ChatError("usage: /image FILE [CAPTION]. Quote a FILE with spaces") from None
        image = read_image(name)
        self._show_reply(self._messenger.send_image(self._phone, image, " ".join(caption)))

    def _show_reply(self, reply: str) -> None:
        self._expects_pin = asks_for_pin(reply)
        self._screen.show_reply(reply)


def _parse_phone(text: str) -> str:
    phone = re.sub(r"[\s().-]", "", text)
    if not _PHONE_PATTERN.fullmatch(phone):
        raise ChatError("a phone number must include the country code, such as +23276000001")
    return phone


def _replace_invalid_characters() -> None:
    """Replace characters that a stream cannot encode or decode, instead of failing."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
