"""Where the conversation is seen: bubbles on a terminal, plain lines for scripts."""

import getpass
import re
import sys
from types import ModuleType
from typing import Final, Protocol

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from tapgate.cli.chat.pins import may_hold_pin

_HIDDEN_PROMPT: Final = "PIN (not shown): "
_PROMPT: Final = "you> "
_WIDEST_BUBBLE: Final = 80
_FRAME: Final = 4  # what a bubble has left and right of its text
_BOLD: Final = re.compile(r"(?<![\w*])\*(\S|\S[^*\n]*\S)\*(?![\w*])")
_LINK: Final = re.compile(r"https?://\S+")


class Screen(Protocol):
    def read(self, *, hidden: bool) -> str:
        """EOFError: there is nothing more to say."""

    def show_answer(self, text: str) -> None: ...

    def show_note(self, text: str) -> None:
        """What the chat itself has to say."""


class Terminal:
    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False)
        self._readline = _readline()

    def read(self, *, hidden: bool) -> str:
        if hidden:
            return getpass.getpass(_HIDDEN_PROMPT)
        typed = input(_PROMPT)
        if self._readline is not None and typed.strip() and not may_hold_pin(typed):
            self._readline.add_history(typed)
        return typed

    def show_answer(self, text: str) -> None:
        width = min(self._console.width, _WIDEST_BUBBLE)
        bubble = Panel.fit(
            with_bold(text), title="messenger", title_align="left", border_style="green"
        )
        self._console.print(bubble, width=width)
        # A link that a bubble breaks cannot be followed.
        for link in _LINK.findall(text):
            if len(link) > width - _FRAME:
                self._console.print(link, soft_wrap=True)

    def show_note(self, text: str) -> None:
        self._console.print(text, style="dim")

    def show_problem(self, text: str) -> None:
        self._console.print(text, style="yellow")


class Plain:
    """Answers and nothing else on standard output."""

    def __init__(self) -> None:
        self._answered = False

    def read(self, *, hidden: bool) -> str:
        if hidden and sys.stdin.isatty():
            return getpass.getpass(_HIDDEN_PROMPT)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line

    def show_answer(self, text: str) -> None:
        if self._answered:
            print()
        self._answered = True
        print(text, flush=True)

    def show_note(self, text: str) -> None:
        print(text, file=sys.stderr)


def with_bold(text: str) -> Text:
    """As phones show it: *so* is bold."""
    shown, end = Text(), 0
    for found in _BOLD.finditer(text):
        shown.append(text[end : found.start()])
        shown.append(found[1], "bold")
        end = found.end()
    return shown.append(text[end:])


def _readline() -> ModuleType | None:
    """Editing and history, where Python was built with them. What goes into the history is decided
    line by line."""
    try:
        import readline  # noqa: PLC0415
    except ImportError:
        return None
    readline.set_auto_history(False)
    return readline
