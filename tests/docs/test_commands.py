"""Documented commands and make targets exist, and every command and target is documented."""

import re
from pathlib import Path

from typer.main import get_command

from cases import each
from tapgate.cli import app

ROOT = Path(__file__).parents[2]
#: The changelog also names commands that were removed.
DOCUMENTS = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")} - {ROOT / "CHANGELOG.md"})
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]
TARGETS = re.findall(
    r"^([a-z-]+):", (ROOT / "Makefile").read_text().partition("# The stamps below")[0], re.MULTILINE
)


def test_command_reference_lists_exactly_the_visible_commands() -> None:
    table = (ROOT / "docs" / "running.md").read_text().partition("## Command reference")[2]
    listed = set(re.findall(r"`tapgate (\w[\w-]*)", table.partition("\n## ")[0]))
    assert listed == {name for name, command in COMMANDS.items() if not command.hidden}


def test_make_help_explains_every_other_target() -> None:
    explained = re.findall(r"@echo 'make ([a-z-]+) ", (ROOT / "Makefile").read_text())
    assert set(explained) == set(TARGETS) - {"help"}


@each("document", DOCUMENTS)
def test_documented_commands_and_targets_exist(document: Path) -> None:
    text = document.read_text()
    mentioned = set(re.findall(r"(?:`|\$ |/bin/)tapgate ([a-z][a-z-]*)", text))
    # `tapgate partition` of the last 1.x release prepares an upgrade.
    assert mentioned <= {*COMMANDS, *(["partition"] if document.name == "upgrading.md" else [])}
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)) <= set(TARGETS)
