"""Commands that the handbooks of customers and agents quote are understood, in both languages."""

import re
from pathlib import Path

from cases import each
from tapgate.messenger.understanding.resolver import resolve

_HANDBOOKS = Path(__file__).parents[3] / "docs" / "handbooks"
#: An agent's phone takes a customer's commands for its own cash-ins and cash-outs.
_AGENT_COMMANDS = {"add_money": "cash_in", "withdraw": "cash_out"}


def list_commands(path: Path) -> list[str]:
    quoted = dict.fromkeys(re.findall(r"`([^`]+)`", path.read_text()))
    resolved = {text: resolve(text, None).command for text in quoted}
    assert [text for text, command in resolved.items() if command is None] == []
    return [str(command) for command in resolved.values()]


@each("name", ["customer", "agent"])
def test_quoted_commands_are_understood_and_the_same_in_french(name: str) -> None:
    english = list_commands(_HANDBOOKS / f"{name}.md")
    french = list_commands(_HANDBOOKS / "fr" / f"{name}.md")
    if name == "agent":
        english = [_AGENT_COMMANDS.get(command, command) for command in english]
    assert len(english) > 10 and sorted(english) == sorted(french)
