"""`tapgate backup` and `tapgate restore`: progress, results and warnings for the operator."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from rich.console import Console

from tapgate.cli import operator
from tapgate.core.settings import Settings
from tapgate.core.vault import Vault
from tapgate.runtime.progress import LineProgress
from tapgate.runtime.store import StoreError, backup, restore
from tapgate.runtime.store.backup_file import BackupReader, Manifest, open_new_file
from tapgate.runtime.store.backup_source import choose_source
from tapgate.runtime.store.migrate import migrate
from tapgate.runtime.store.scratch_database import create_scratch_database
from tapgate.runtime.store.sealed_file import BACKUP, is_sealed
from tapgate.runtime.task_runs import Task, record_run
from tapgate.server import supervisor
from tapgate_client.clock import system_clock

T = TypeVar("T")

_STDOUT_PATH = Path("-")


def save_backup(
    settings: Settings, path: Path | None, *, replace: bool, keep_days: int | None = None
) -> None:
    """Save a backup, record the result for alerts, and delete expired backups beside it."""
    moment = system_clock()
    name = f"tapgate-{moment:%Y%m%d-%H%M%S}.backup"
    if path is None or path.is_dir():
        path = (path or Path()) / name
    # If the backup is written to standard output, print messages to standard error instead.
    console = Console(stderr=path == _STDOUT_PATH, highlight=False, soft_wrap=True)
    with (
        _exit_on_interrupt("no backup was saved"),
        _open_output(path, replace=replace) as file,
        supervisor.provide_database_url(settings) as url,
        _record_result(url, Task.BACKUP) as record_success,
        _show_progress("Saving") as report,
    ):
        vault = Vault(settings.secret_key)

        def report_table(size: int, table: str) -> None:
            report(f"{_format_size(size)}, {table}")

        async def save() -> tuple[Manifest, int]:
            source = await choose_source(settings, url)
            if source.warning is not None:
                print(source.warning, file=sys.stderr)
            return await backup.create_backup(source.url, file, vault, report_table)

        manifest, size = _run_until_signal(save())
        record_success()
    destination = "the backup" if path == _STDOUT_PATH else str(path)
    console.print(
        f"Saved {destination}: {_format_size(size)}, {_describe_contents(manifest)}.", markup=False
    )
    for line in _list_secret_key_warnings(settings, manifest):
        console.print(line, markup=False)
    if keep_days is not None and path != _STDOUT_PATH:
        for expired in _delete_expired(path, keep_days):
            console.print(f"Deleted {expired.name}.", markup=False)


def _delete_expired(path: Path, keep_days: int) -> Iterator[Path]:
    """Delete older backups in the folder of a new one, whose names are those of `tapgate backup`.

    The age is the file's. The new file is never deleted.
    """
    oldest = system_clock().timestamp() - keep_days * 86_400
    for other in sorted(path.absolute().parent.glob("tapgate-*.backup")):
        if other != path.absolute() and other.is_file() and other.stat().st_mtime < oldest:
            other.unlink()
            yield other


def check_backup(settings: Settings, path: Path) -> bool:
    """Restore a backup into a scratch database, and return whether the data passes verification."""
    console = Console(highlight=False, soft_wrap=True)
    vault = Vault(settings.secret_key)
    path = _find_newest(path) if path.is_dir() else path
    with (
        _exit_on_interrupt("the backup was not checked"),
        supervisor.provide_database_url(settings) as url,
        _record_result(url, Task.RESTORE_CHECK) as record_success,
        _open_input(path) as file,
    ):
        source = _open_checked(file, path, vault, settings)

        async def run() -> bool:
            async with create_scratch_database(url) as scratch:
                with _show_progress("Restoring") as report:
                    await restore.restore_backup(scratch, source, report)
                console.print(f"Restored {_describe_contents(source.manifest)}.", markup=False)
                console.print("Row counts and ledger totals match the backup.")
                return await _migrate_and_verify(settings, scratch, source.manifest, record=False)

        holds = _run_until_signal(run())
        if holds:
            record_success()
    console.print("The scratch database was removed.")
    return holds


def _find_newest(folder: Path) -> Path:
    backups = folder.glob("tapgate-*.backup")
    newest = max(backups, key=lambda path: path.stat().st_mtime, default=None)
    if newest is None:
        raise StoreError(f"{folder} has no backup")
    return newest


@contextlib.contextmanager
def _record_result(url: str, task: Task) -> Iterator[Callable[[], None]]:
    """Record the result of a run: a failure, unless the yielded function was called.

    A run that raises an error reports only the error, which is often why it cannot be recorded.
    """
    results: list[bool] = []
    try:
        yield lambda: results.append(True)
    except BaseException:
        asyncio.run(record_run(url, task, succeeded=bool(results)))
        raise
    if not asyncio.run(record_run(url, task, succeeded=bool(results))):
        print("Result not recorded: the database cannot store it.", file=sys.stderr)


def restore_backup(settings: Settings, path: Path) -> bool:
    """Restore a backup and return whether the restored data passes verification."""
    console = Console(highlight=False, soft_wrap=True)
    vault = Vault(settings.secret_key)
    with (
        _exit_on_interrupt("nothing was restored, unless reported above"),
        _open_input(path) as file,
    ):
        source = _open_checked(file, path, vault, settings)
        manifest = source.manifest
        with supervisor.provide_database_url(settings, exclusive=True) as url:
            with _show_progress("Restoring") as report:
                skipped_tables = _run_until_signal(restore.restore_backup(url, source, report))
            console.print(f"Restored {_describe_contents(manifest)}.", markup=False)
            console.print("Row counts and ledger totals match the backup.")
            for name in skipped_tables:
                print(f"Not restored: table {name!a}, which does not belong to Tapgate.")
            holds = _run_until_signal(_migrate_and_verify(settings, url, manifest))
        for line in _list_restore_warnings(manifest):
            console.print(line, markup=False)
        return holds


def _open_checked(file: BinaryIO, path: Path, vault: Vault, settings: Settings) -> BackupReader:
    """Open a backup that these settings can restore, and check that it is complete."""
    try:
        with _show_progress("Checking") as report:
            source = _open_backup(file, vault, report)
    except StoreError as error:
        raise StoreError(f"{path} cannot be restored: {error}") from None
    restore.require_restorable(source.manifest, key_ids=vault.key_names, currency=settings.currency)
    return source


def _open_backup(file: BinaryIO, vault: Vault, report: Callable[[str], None]) -> BackupReader:
    def report_percent(percent: int) -> None:
        report(f"{percent}%")

    if not is_sealed(file, BACKUP):
        raise StoreError("it is not a Tapgate backup. Backups of Tapgate 1.0.0 need Tapgate 1.x")
    return BackupReader(file, vault, report_percent)


async def _migrate_and_verify(
    settings: Settings, url: str, manifest: Manifest, *, record: bool = True
) -> bool:
    from tapgate.cli.verify import verify_installation  # noqa: PLC0415

    await migrate(url)
    await restore.analyze(url)
    if record and manifest.secret_fingerprint is not None:
        await _record_restore(settings, url, manifest)
    return await verify_installation(url, Vault(settings.secret_key), full=True)


async def _record_restore(settings: Settings, url: str, manifest: Manifest) -> None:
    """Record the restore, so the audit log shows that entries after the backup were lost."""
    from tapgate.events.audit.trail import AuditTrail  # noqa: PLC0415
    from tapgate.server.gateway_services import open_services  # noqa: PLC0415

    async with open_services(settings, url) as services, services.transaction() as tx:
        reason = f"from a backup as of {_format_time(manifest.moment)}"
        trail, actor = AuditTrail("installation"), operator.build_actor()
        await trail.record(tx, actor, None, "restored", reason=reason)


def _run_until_signal(work: Coroutine[Any, Any, T]) -> T:
    async def run() -> T:
        supervisor.cancel_on_signals()
        return await work

    return asyncio.run(run())


@contextlib.contextmanager
def _exit_on_interrupt(outcome: str) -> Iterator[None]:
    supervisor.interrupt_on_signals()
    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError):
        print(f"Interrupted: {outcome}.", file=sys.stderr)
        sys.exit(operator.INTERRUPTED_EXIT_CODE)


@contextlib.contextmanager
def _open_output(path: Path, *, replace: bool) -> Iterator[BinaryIO]:
    if path != _STDOUT_PATH:
        with open_new_file(path, replace=replace) as file:
            yield file
    elif sys.stdout.isatty():
        raise StoreError("cannot write a backup to a terminal: name a file, or redirect the output")
    else:
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            discard_stdout()
            raise StoreError("the program that reads the backup closed the pipe") from None
        except OSError as error:
            discard_stdout()
            raise StoreError(f"cannot write to standard output: {error.strerror}") from error


def discard_stdout() -> None:
    """Redirect standard output to the null device.

    Otherwise, Python's flush of buffered output at exit would fail again.
    """
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, sys.stdout.fileno())
    os.close(null_device)


@contextlib.contextmanager
def _open_input(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    with file:
        if not file.seekable():
            raise StoreError(f"{path} cannot be restored: it is not a regular file")
        yield file


@contextlib.contextmanager
def _show_progress(label: str) -> Iterator[Any]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield LineProgress(label, sys.stderr).report
        return
    with console.status(f"{label} ...") as status:
        yield lambda progress: status.update(f"{label}: {progress}")


def _describe_contents(manifest: Manifest) -> str:
    transactions, entries = (manifest.tables.get(table, 0) for table in ("transactions", "entries"))
    moment = _format_time(manifest.moment)
    return f"{transactions:,} transactions and {entries:,} entries as of {moment}"


def _list_secret_key_warnings(settings: Settings, manifest: Manifest) -> Iterator[str]:
    if manifest.secret_fingerprint is None:
        return
    if os.environ.get("TAPGATE_SECRET_KEY"):
        yield f"The backup does not include TAPGATE_SECRET_KEY ({manifest.secret_fingerprint})."
        yield "Store it separately."
    else:
        secrets_file = settings.data_dir / "secrets.json"
        yield f"The backup does not include the secret key ({manifest.secret_fingerprint})."
        yield f"Store a copy of {secrets_file} separately."
    yield "Without the secret key, the backup cannot be opened."


def _list_restore_warnings(manifest: Manifest) -> Iterator[str]:
    moment = _format_time(manifest.moment)
    yield f"Changes after {moment} are lost. As soon as Tapgate runs, repeat the"
    yield "security changes made since then: delete API keys and signing keys, disable"
    yield "administrators, block cards and accounts, and change PINs."
    yield "All administrator sessions have ended, and all one-time codes are invalid."
    yield "Messages and webhooks that were pending at the time of the backup will be sent again."


def _format_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _format_size(number: int) -> str:
    return f"{number / 1_000_000:,.1f} MB"
