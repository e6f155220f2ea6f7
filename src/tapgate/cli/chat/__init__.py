"""`tapgate chat`: talk to the messenger in the terminal, as a person would on their phone."""

import contextlib
import io
import re
import shlex
import sys
from typing import Final

from tapgate.cli.chat.errors import ChatError
from tapgate.cli.chat.messenger import Messenger
from tapgate.cli.chat.pictures import read_file
from tapgate.cli.chat.pins import asks_for_pin
from tapgate.cli.chat.screen import Plain, Screen, Terminal
from tapgate.demo.examples import kept_phone
from tapgate.settings import Settings

_MADE_UP_PHONE: Final = "+23276000001"
_PHONE: Final = re.compile(r"\+[1-9][0-9]{6,14}")
_INTERRUPTED: Final = 130  # as shells have it
_HELP: Final = """\
Write as you would on your phone: `menu` shows what there is, and its number chooses.
  /image FILE [WORDS]  send a JPEG or PNG picture, with words such as id_front
  /phone NUMBER        speak as somebody else, for example +23276000002
  /quit                end; so do Ctrl-D and Ctrl-C"""


def talk(
    settings: Settings, *, url: str | None, phone: str | None, token: str | None, once: str | None
) -> None:
    _allow_any_text()
    if once is not None and not once.strip():
        sys.exit("tapgate: --once has nothing to say")
    alive = once is None and sys.stdin.isatty() and sys.stdout.isatty()
    try:
        speaker = _checked_phone(phone or kept_phone(settings.data_dir) or _MADE_UP_PHONE)
        messenger = Messenger(
            url or settings.messenger_url, token or settings.messenger_bridge_token
        )
        with contextlib.closing(messenger):
            if alive:
                _converse(messenger, speaker)
            else:
                _read_to_the_end(messenger, speaker, once)
    except ChatError as error:
        sys.exit(f"tapgate: {error}")


def _converse(messenger: Messenger, phone: str) -> None:
    """What goes wrong is told, and the conversation goes on."""
    screen = Terminal()
    screen.show_note(f"You are {phone}, talking to {messenger.url}. Try menu or /help.")
    chat = _Chat(messenger, screen, phone)
    try:
        while True:
            try:
                chat.take(chat.read())
            except ChatError as error:
                screen.show_problem(str(error))
    except (EOFError, KeyboardInterrupt):
        print()


def _read_to_the_end(messenger: Messenger, phone: str, once: str | None) -> None:
    """What goes wrong ends it: a script must not go on as if it had been said."""
    chat = _Chat(messenger, Plain(), phone)
    try:
        if once is not None:
            chat.take(once)
        while once is None:
            chat.take(chat.read())
    except EOFError:
        pass
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


class _Chat:
    def __init__(self, messenger: Messenger, screen: Screen, phone: str) -> None:
        self._messenger = messenger
        self._screen = screen
        self._phone = phone
        self._pin_awaited = False

    def read(self) -> str:
        return self._screen.read(hidden=self._pin_awaited)

    def take(self, typed: str) -> None:
        """One line: something to say, or something to do here."""
        text = typed.encode("utf-8", "replace").decode().strip()
        if text.startswith("/"):
            self._do(text)
        elif text:
            self._show(self._messenger.say(self._phone, text))

    def _do(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        match name:
            case "/quit":
                raise EOFError
            case "/help":
                self._screen.show_note(_HELP)
            case "/phone":
                self._phone = _checked_phone(rest)
                self._pin_awaited = False
                self._screen.show_note(f"You are {self._phone}.")
            case "/image":
                self._send_picture(rest)
            case _:
                raise ChatError(f"there is no {name}: /help says what there is")

    def _send_picture(self, rest: str) -> None:
        try:
            name, *words = shlex.split(rest)
        except ValueError:
            raise ChatError("write /image FILE, with quotes if there are blanks in it") from None
        picture = read_file(name)
        self._show(self._messenger.show(self._phone, picture, " ".join(words)))

    def _show(self, answer: str) -> None:
        self._pin_awaited = asks_for_pin(answer)
        self._screen.show_answer(answer)


def _checked_phone(text: str) -> str:
    phone = re.sub(r"[\s().-]", "", text)
    if not _PHONE.fullmatch(phone):
        raise ChatError("a phone number begins with + and its country, such as +23276000001")
    return phone


def _allow_any_text() -> None:
    """So that neither a name in an answer nor a broken byte in a script ends the conversation."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
