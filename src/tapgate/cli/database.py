"""Commands that migrate, verify, archive, re-encrypt and back up the database."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from tapgate.core.settings import load_settings
from tapgate.core.vault import Vault
from tapgate.runtime.store import StoreError
from tapgate.server import supervisor


def migrate(
    plan: Annotated[
        bool, typer.Option("--plan", help="List the pending migrations without applying them.")
    ] = False,
    contract: Annotated[
        bool,
        typer.Option(
            "--contract",
            help="Also apply contract migrations, after which older releases cannot start.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Ignore registered nodes of older releases.")
    ] = False,
) -> None:
    """Apply pending database migrations. Tapgate also does this at every start.

    Contract migrations are applied only with --contract. Apply them when all nodes run the new
    release and you no longer need to roll back.
    """
    from tapgate.cli.migrate import apply_pending, print_plan  # noqa: PLC0415

    with supervisor.provide_database_url(load_settings(os.environ)) as url:
        if plan:
            asyncio.run(print_plan(url))
        else:
            asyncio.run(apply_pending(url, contract=contract, force=force))


def verify(
    everything: Annotated[
        bool, typer.Option("--all", help="Also read what was verified before.")
    ] = False,
    jobs: Annotated[
        int, typer.Option(min=1, max=16, help="Number of database connections that read.")
    ] = 1,
) -> None:
    """Verify the ledger and the audit log.

    Transactions and entries that an earlier run verified are not read again.
    """
    from tapgate.cli.verify import verify_installation  # noqa: PLC0415

    settings = load_settings(os.environ)
    with supervisor.provide_database_url(settings) as url:
        vault = Vault(settings.secret_key)
        holds = asyncio.run(verify_installation(url, vault, full=everything, jobs=jobs))
    if not holds:
        raise typer.Exit(1)


def archive(
    to: Annotated[
        Path | None, typer.Option(help="Folder for the files, outside the data folder.")
    ] = None,
    keep: Annotated[
        int, typer.Option(min=3, max=1200, help="Whole months that stay in the ledger.")
    ] = 24,
    drop: Annotated[
        bool, typer.Option("--drop", help="Drop the tables of months that are in files.")
    ] = False,
    show: Annotated[bool, typer.Option("--list", help="List the archived months.")] = False,
    restore: Annotated[
        Path | None,
        typer.Option(help="Move the last archived month back, from the files in this folder."),
    ] = None,
    read: Annotated[
        Path | None,
        typer.Option(help="Decrypt this file and write its CSV to standard output."),
    ] = None,
) -> None:
    """Move old months of the ledger to files.

    A month must be verified and have no transactions under review. Tapgate can keep running. If the
    command is interrupted, run it again: it continues.
    """
    from tapgate.cli.archive import (  # noqa: PLC0415
        archive_months,
        print_archive,
        print_rows,
        restore_month,
    )

    settings = load_settings(os.environ)
    if show:
        print_archive(settings)
    elif restore is not None:
        restore_month(settings, restore)
    elif read is not None:
        print_rows(settings, read)
    elif to is not None:
        archive_months(settings, to, keep=keep, drop=drop)
    else:
        raise StoreError("name a folder for the files with --to, or use --list")


def rekey(
    check: Annotated[
        bool, typer.Option("--check", help="Only show what still needs an older key.")
    ] = False,
    discard: Annotated[
        bool,
        typer.Option(
            "--discard",
            help="Also invalidate what only an older key can verify, such as PINs that were not"
            " used since. Their holders have to set new ones.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Discard without asking.")] = False,
    pause: Annotated[
        float, typer.Option(min=0, max=60, help="Seconds to wait after every batch.")
    ] = 0.02,
) -> None:
    """Move all data to the newest key of TAPGATE_SECRET_KEY, which lists it first.

    Tapgate can keep running. If the command is interrupted, run it again: it continues. It exits
    with status 1 while an older key is needed.
    """
    from tapgate.cli.rekey.command import run_rekey  # noqa: PLC0415

    run_rekey(pause_seconds=pause, check=check, discard=discard, confirmed=yes)


def backup(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Output file, or `-` for standard output. Defaults to a new file in the current"
            " directory, named after the current time. A folder: a new file in it."
        ),
    ] = None,
    force: Annotated[bool, typer.Option(help="Overwrite an existing file.")] = False,
    keep_days: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=3650,
            help="Then delete older backups (tapgate-*.backup) in the file's folder.",
        ),
    ] = None,
) -> None:
    """Back up the whole database to one encrypted file. Tapgate can keep running.

    The encryption key is derived from TAPGATE_SECRET_KEY, which is not part of the backup. Store
    it separately.
    """
    from tapgate.cli.backup import save_backup  # noqa: PLC0415

    save_backup(load_settings(os.environ), file, replace=force, keep_days=keep_days)


def restore(
    file: Annotated[
        Path,
        typer.Argument(
            help="Backup file created by `tapgate backup`. With --check, also a folder: its newest."
        ),
    ],
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Restore into a scratch database on the same server, verify it, and remove it.",
        ),
    ] = False,
) -> None:
    """Restore a backup into an empty database, migrate it and verify it.

    A restore is all or nothing and never overwrites existing data. With --check, nothing is kept:
    it is a drill, which needs a database user with CREATEDB. Otherwise, restore into a new data
    folder or an empty database (TAPGATE_DATABASE_URL). TAPGATE_SECRET_KEY must be the secret key of
    the installation that made the backup.
    """
    from tapgate.cli.backup import check_backup, restore_backup  # noqa: PLC0415

    run = check_backup if check else restore_backup
    if not run(load_settings(os.environ), file):
        raise typer.Exit(1)


def after_recovery() -> None:
    """Make a database that was recovered to an earlier time safe, before the nodes start.

    Ends sessions, one-time codes and open approval requests, and prints what to reconcile. Can be
    repeated.
    """
    from tapgate.cli.after_recovery import prepare  # noqa: PLC0415
    from tapgate.cli.keys import run_with_services  # noqa: PLC0415

    run_with_services(prepare)
