"""Conversation display: bubbles on a terminal, plain lines for scripts."""

import getpass
import re
import sys
from types import ModuleType
from typing import Final

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from tapgate.cli.chat.pin_detection import may_contain_pin

_HIDDEN_PROMPT: Final = "PIN (hidden): "
_PROMPT: Final = "you> "
_MAX_BUBBLE_WIDTH: Final = 80
_FRAME_WIDTH: Final = 4  # border and padding on both sides of a bubble's text
_BOLD_PATTERN: Final = re.compile(r"(?<![\w*])\*(\S|\S[^*\n]*\S)\*(?![\w*])")
_LINK_PATTERN: Final = re.compile(r"https?://\S+")


class TerminalScreen:
    """Screen for people; `show_note` and `show_error` show the chat command's messages."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False)
        self._readline = _load_readline()

    def read_line(self, *, hidden: bool) -> str:
        if hidden:
            return getpass.getpass(_HIDDEN_PROMPT)
        line = input(_PROMPT)
        if self._readline is not None and line.strip() and not may_contain_pin(line):
            self._readline.add_history(line)
        return line

    def show_reply(self, text: str) -> None:
        width = min(self._console.width, _MAX_BUBBLE_WIDTH)
        bubble = Panel.fit(
            render_bold(text), title="messenger", title_align="left", border_style="green"
        )
        self._console.print(bubble, width=width)
        # Terminals cannot open a link that the bubble wraps, so repeat it on a separate line.
        for link in _LINK_PATTERN.findall(text):
            if len(link) > width - _FRAME_WIDTH:
                self._console.print(link, soft_wrap=True)

    def show_note(self, text: str) -> None:
        self._console.print(text, style="dim")

    def show_error(self, text: str) -> None:
        self._console.print(text, style="yellow")


class PlainScreen:
    """Screen for scripts: only replies go to standard output."""

    def __init__(self) -> None:
        self._has_replied = False

    def read_line(self, *, hidden: bool) -> str:
        if hidden and sys.stdin.isatty():
            return getpass.getpass(_HIDDEN_PROMPT)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line

    def show_reply(self, text: str) -> None:
        if self._has_replied:
            print()
        self._has_replied = True
        print(text, flush=True)

    def show_note(self, text: str) -> None:
        print(text, file=sys.stderr)


Screen = TerminalScreen | PlainScreen


def render_bold(text: str) -> Text:
    """Render `*text*` in bold, as messaging apps do."""
    rendered, end = Text(), 0
    for match in _BOLD_PATTERN.finditer(text):
        rendered.append(text[end : match.start()])
        rendered.append(match[1], "bold")
        end = match.end()
    return rendered.append(text[end:])


def _load_readline() -> ModuleType | None:
    """Enable line editing and history if Python supports them.

    Automatic history is off, since each line is checked for a PIN before it is added.
    """
    try:
        import readline  # noqa: PLC0415
    except ImportError:
        return None
    readline.set_auto_history(False)
    return readline
