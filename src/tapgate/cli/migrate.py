"""`tapgate migrate`: list and apply pending migrations."""

from rich.console import Console

from tapgate.runtime.store.migrate import migrate, read_plan

_UP_TO_DATE = "The database is up to date."


async def print_plan(url: str) -> None:
    """List the pending migrations with their kinds, and the nodes that prevent them."""
    console = Console(highlight=False, soft_wrap=True)
    plan, blockers = await read_plan(url)
    for migration in plan.select(contract=True):
        console.print(f"{migration.name}: {migration.kind}", markup=False)
        if nodes := blockers.get(migration.name):
            console.print(f"  Upgrade first: {', '.join(nodes)}", markup=False)
    for line in plan.list_notes():
        console.print(line, markup=False)
    if not plan.pending:
        console.print(_UP_TO_DATE)


async def apply_pending(url: str, *, contract: bool, force: bool) -> None:
    console = Console(highlight=False, soft_wrap=True)
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        console.print(line, markup=False)

    applied = await migrate(url, report=report, contract=contract, force=force)
    for name in applied:
        console.print(f"[green]applied[/green] {name}")
    if not applied and not lines:
        console.print(_UP_TO_DATE)
