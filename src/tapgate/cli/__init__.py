"""The `tapgate` command.

Errors that the operator can fix are reported as one line on standard error.
"""

import contextlib
import gc
import os
import sys
from typing import Annotated

from tapgate import VERSION
from tapgate.runtime import quick_start

quick_start.prepare_imports()

import typer  # noqa: E402

from tapgate.cli import (  # noqa: E402
    admin,
    card,
    database,
    development,
    keys,
    receipts,
    sign,
    start,
)
from tapgate.cli.error_messages import OPERATOR_ERRORS, describe_error  # noqa: E402
from tapgate.core.settings import read_setting_files  # noqa: E402
from tapgate.runtime.store import StoreError  # noqa: E402
from tapgate.runtime.store.postgres_programs import read_embedded_version  # noqa: E402

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
        with contextlib.suppress(StoreError):  # no embedded PostgreSQL is installed
            print(f"PostgreSQL {read_embedded_version()} (embedded)")
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


for command in (
    database.migrate,
    database.verify,
    receipts.verify_receipt,
    receipts.rotate_ledger_key,
    database.archive,
    database.rekey,
    database.backup,
    database.restore,
    database.after_recovery,
    development.messages,
    development.demo,
    development.chat,
    development.listen,
    development.trigger,
):
    app.command()(command)


def _override_environ(**options: str | int | None) -> dict[str, str]:
    """Return the environment, overridden by the given command-line options."""
    return os.environ | {name: str(value) for name, value in options.items() if value is not None}


def _exit_with_error(message: str) -> None:
    print(f"tapgate: {message}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
