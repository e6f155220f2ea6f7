"""Runbooks can be followed literally: their statements run, and everything they name exists."""

import re
from pathlib import Path

import asyncpg
from typer.main import get_command

from cases import each
from tapgate.cli import app
from tapgate.runtime.store.database import Database
from tapgate_client.schemas.health import NotReadyReason

ROOT = Path(__file__).parents[2]
RUNBOOKS = [ROOT / "docs" / "alerts.md", *sorted((ROOT / "docs" / "runbooks").glob("*.md"))]
TEXTS = {runbook: runbook.read_text() for runbook in RUNBOOKS}
STATEMENTS = sorted(
    {
        statement
        for text in TEXTS.values()
        for found in re.findall(r"`(SELECT [^`]+)`|-c '(SELECT [^']+)'", text)
        for statement in found
        if statement
    }
)
#: Statements that end a session or change the server: they get a process that does not exist.
NO_PROCESS = "2147483647"
LIFECYCLE_REASONS = {NotReadyReason.STARTING, NotReadyReason.DRAINING}
UNITS = {file.name for file in (ROOT / "deploy" / "systemd").iterdir()}
LOG_EVENTS = set(re.findall(r"^\| `([a-z_.]+)`", (ROOT / "docs/logs.md").read_text(), re.MULTILINE))


@each("statement", STATEMENTS)
async def test_statement_of_a_runbook_runs(database: Database, statement: str) -> None:
    sql = re.sub(r"(?<=[( ])(?:pid|PID)(?=\)$|$)", NO_PROCESS, statement)
    if "pg_reload_conf" not in sql:
        rows: list[asyncpg.Record] = await database.fetch(sql)
        assert isinstance(rows, list)


def test_runbooks_have_statements_to_run() -> None:
    assert len(STATEMENTS) > 8


def test_runbook_covers_every_reason_for_not_being_ready() -> None:
    section = TEXTS[RUNBOOKS[0]].partition("\n## TapgateNotReady")[2].partition("\n## ")[0]
    listed = re.findall(r"^- `([a-z_]+)`:", section, re.MULTILINE)
    assert set(listed) == set(NotReadyReason) - LIFECYCLE_REASONS


@each("runbook", RUNBOOKS)
def test_commands_units_and_log_events_of_a_runbook_exist(runbook: Path) -> None:
    text = TEXTS[runbook]
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for name, subcommand in re.findall(
        r"(?:`|^)tapgate ([a-z-]+)(?: ([a-z]+))?", text, re.MULTILINE
    ):
        command = commands[name]
        assert not subcommand or not hasattr(command, "commands") or subcommand in command.commands
    for unit in re.findall(r"\b(tapgate-[a-z-]+(?:\.timer|\.service))", text):
        assert unit in UNITS, unit
    for unit in re.findall(r"(?:--unit=|restart |start )(tapgate-[a-z-]+)\b(?!\.)", text):
        assert f"{unit}.service" in UNITS, unit
    for event in re.findall(r"(?:log events?|and|or) `([a-z]+\.[a-z_]+)`", text):
        assert event in LOG_EVENTS, event
