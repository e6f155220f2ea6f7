"""The `tapgate` command.

Errors that the operator can fix are reported as one line on standard error.
"""

import asyncio
import gc
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tapgate import VERSION, quick_start, supervisor
from tapgate.cli import admin, card, keys, sign, start
from tapgate.cli.error_messages import OPERATOR_ERRORS, describe_error
from tapgate.settings import load_settings, read_setting_files
from tapgate.store import StoreError
from tapgate.vault import Vault

app = typer.Typer(
    help="A self-hosted NFC card and wallet payment platform.",
    epilog="Configure Tapgate with environment variables such as TAPGATE_PORT.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(admin.app, name="admin")
app.add_typer(card.app, name="card")
app.add_typer(keys.app, name="keys")
app.add_typer(sign.app, name="sign")

Host = Annotated[str | None, typer.Option(help="Address to listen on (overrides TAPGATE_HOST).")]
Port = Annotated[int | None, typer.Option(help="Port to listen on (overrides TAPGATE_PORT).")]
DemoSize = Literal["small", "medium", "large"]
Workers = Annotated[
    int | None, typer.Option(help="Number of worker processes (overrides TAPGATE_WORKERS).")
]
MessengerPort = Annotated[
    int | None, typer.Option(help="Port to listen on (overrides TAPGATE_MESSENGER_PORT).")
]
MessengerWorkers = Annotated[
    int | None,
    typer.Option(help="Number of worker processes (overrides TAPGATE_MESSENGER_WORKERS)."),
]


def main() -> None:
    quick_start.prepare_imports()
    try:
        read_setting_files(os.environ)
        app()
    except OPERATOR_ERRORS as error:
        _exit_with_error(describe_error(error))
    finally:
        gc.freeze()  # otherwise the interpreter searches all modules for garbage before it exits


def _print_version(requested: bool) -> None:
    if requested:
        print(f"tapgate {VERSION}")
        raise typer.Exit


@app.callback()
def parse_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Parse the options before the command; each has a callback."""


@app.command()
def up() -> None:
    """Run the gateway, the messenger and an embedded PostgreSQL server.

    Set TAPGATE_DATABASE_URL to use your own PostgreSQL server instead of the embedded one.
    """
    start.run_gateway(os.environ, with_messenger=True)


@app.command()
def serve(host: Host = None, port: Port = None, workers: Workers = None) -> None:
    """Run only the gateway."""
    environ = _override_environ(TAPGATE_HOST=host, TAPGATE_PORT=port, TAPGATE_WORKERS=workers)
    start.run_gateway(environ, with_messenger=False)


@app.command()
def messenger(
    host: Host = None, port: MessengerPort = None, workers: MessengerWorkers = None
) -> None:
    """Run only the messenger. Set TAPGATE_GATEWAY_URL if the gateway runs elsewhere."""
    environ = _override_environ(TAPGATE_MESSENGER_PORT=port, TAPGATE_MESSENGER_WORKERS=workers)
    start.run_messenger(environ, host)


@app.command()
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


@app.command()
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


@app.command()
def partition(
    pause: Annotated[
        float, typer.Option(min=0, max=60, help="Seconds to wait after every step.")
    ] = 0.1,
) -> None:
    """Divide the ledger of an older installation into months.

    Tapgate can keep running. If the command is interrupted, run it again: it continues.
    """
    from tapgate.cli.partition import divide_installation  # noqa: PLC0415

    with supervisor.provide_database_url(load_settings(os.environ)) as url:
        asyncio.run(divide_installation(url, pause_seconds=pause))


@app.command()
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
) -> None:
    """Move old months of the ledger to files.

    A month must be verified and have no transactions under review. Tapgate can keep running. If the
    command is interrupted, run it again: it continues.
    """
    from tapgate.cli.archive import (  # noqa: PLC0415
        archive_months,
        print_archive,
        restore_month,
    )

    settings = load_settings(os.environ)
    if show:
        print_archive(settings)
    elif restore is not None:
        restore_month(settings, restore)
    elif to is not None:
        archive_months(settings, to, keep=keep, drop=drop)
    else:
        raise StoreError("name a folder for the files with --to, or use --list")


@app.command()
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
    from tapgate.cli.rekey import run_rekey  # noqa: PLC0415

    run_rekey(pause_seconds=pause, check=check, discard=discard, confirmed=yes)


@app.command()
def backup(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Output file, or `-` for standard output. Defaults to a new file in the current"
            " directory, named after the current time."
        ),
    ] = None,
    force: Annotated[bool, typer.Option(help="Overwrite an existing file.")] = False,
) -> None:
    """Back up the whole database to one encrypted file. Tapgate can keep running.

    The encryption key is derived from TAPGATE_SECRET_KEY, which is not part of the backup. Store
    it separately.
    """
    from tapgate.cli.backup import save_backup  # noqa: PLC0415

    save_backup(load_settings(os.environ), file, replace=force)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="Backup file created by `tapgate backup`.")],
    unauthenticated: Annotated[
        bool,
        typer.Option(
            "--unauthenticated",
            help="Accept a backup in format 1 (Tapgate 1.0), which is not protected"
            " against tampering.",
        ),
    ] = False,
) -> None:
    """Restore a backup into an empty database, migrate it and verify it.

    A restore is all or nothing and never overwrites existing data. Restore into a new data folder
    or an empty database (TAPGATE_DATABASE_URL). TAPGATE_SECRET_KEY must be the secret key of the
    installation that made the backup.
    """
    from tapgate.cli.backup import restore_backup  # noqa: PLC0415

    if not restore_backup(load_settings(os.environ), file, unauthenticated=unauthenticated):
        raise typer.Exit(1)


@app.command()
def messages(
    to: Annotated[str, typer.Option(help="Phone number with country code, such as +23276123456.")],
) -> None:
    """Show messages sent to a phone number, newest first, including one-time codes.

    Not available in production.
    """
    from tapgate.cli.messages import print_messages  # noqa: PLC0415

    settings = load_settings(os.environ)
    with supervisor.provide_database_url(settings) as url:
        asyncio.run(print_messages(settings, url, to))


@app.command()
def demo(
    size: Annotated[DemoSize, typer.Option(help="How much data to create.")] = "small",
) -> None:
    """Load demo data: customers, cards, merchants, agents and months of payments.

    Small takes seconds, medium about a minute, large several minutes. Not available in production.
    """
    from tapgate.cli.demo import build  # noqa: PLC0415

    build(load_settings(os.environ), size)


@app.command()
def chat(
    url: Annotated[
        str | None, typer.Option(help="Messenger URL (overrides TAPGATE_MESSENGER_URL).")
    ] = None,
    phone: Annotated[
        str | None,
        typer.Option(help="Customer's phone number. Defaults to the demo's first customer."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="Bridge token (overrides TAPGATE_MESSENGER_BRIDGE_TOKEN).")
    ] = None,
    once: Annotated[
        str | None, typer.Option(help="Send one message, print the reply and exit.")
    ] = None,
) -> None:
    """Chat with a running messenger, as a customer would on a phone.

    If standard input is not a terminal, each line is sent as a message.
    """
    from tapgate.cli.chat import run_chat  # noqa: PLC0415

    run_chat(load_settings(os.environ), url=url, phone=phone, token=token, once=once)


@app.command()
def listen(
    forward_to: Annotated[
        str, typer.Option(help="URL that receives the events, such as http://localhost:3000/hook.")
    ],
    event: Annotated[
        list[str] | None,
        typer.Option(help="Event to forward, such as transaction.completed. Can be repeated."),
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Address of the gateway. Defaults to this installation.")
    ] = None,
) -> None:
    """Forward events to a local URL, signed like webhooks. Stop with Ctrl-C.

    Uses the credentials of TAPGATE_ADMIN_EMAIL and TAPGATE_ADMIN_PASSWORD, or of the generated
    first admin. Not available in production.
    """
    from tapgate.cli import event_listener  # noqa: PLC0415
    from tapgate.gateway_installation import get_first_admin_path  # noqa: PLC0415

    settings = load_settings(os.environ)
    login = event_listener.get_login(settings, get_first_admin_path(settings.data_dir))
    asyncio.run(event_listener.listen(url or settings.local_url, login, forward_to, event or ["*"]))


@app.command()
def trigger(
    event: Annotated[
        str | None, typer.Argument(help="Event, such as transaction.completed.")
    ] = None,
) -> None:
    """Send an event to the webhook endpoints that subscribe to it, or list all events.

    The event contains the newest record of its kind, or sample data. Not available in staging and
    production.
    """
    from tapgate.cli.trigger import list_events, require_event, trigger_event  # noqa: PLC0415

    if event is None:
        print(list_events())
        return
    require_event(load_settings(os.environ), event)

    async def task(services: Any) -> None:
        print(await trigger_event(services, event))

    keys.run_with_services(task)


def _override_environ(**options: str | int | None) -> dict[str, str]:
    """Return the environment, overridden by the given command-line options."""
    return os.environ | {name: str(value) for name, value in options.items() if value is not None}


def _exit_with_error(message: str) -> None:
    print(f"tapgate: {message}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
