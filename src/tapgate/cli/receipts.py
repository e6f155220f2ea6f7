"""Commands for inclusion proofs of closed days, and for the keys that sign these days."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tapgate.cli import operator


def verify_receipt(
    file: Annotated[Path, typer.Argument(help="Proof from GET /api/v1/transactions/{id}/proof.")],
    keys: Annotated[
        Path | None, typer.Option(help="Public keys from GET /.well-known/tapgate-keys.")
    ] = None,
) -> None:
    """Verify a stored inclusion proof, without network or database.

    The exit status is 0 if the proof is valid, and otherwise 1.
    """
    from tapgate.business.finance.day_close.verify_receipt import (  # noqa: PLC0415
        InvalidProofError,
        verify_files,
    )

    try:
        print(f"valid: {verify_files(file, keys)}")
    except InvalidProofError as error:
        print(f"not valid: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def rotate_ledger_key() -> None:
    """Create a new key for signing closed days, and retire the current one.

    Retired keys stay published, so days that they signed can still be verified.
    """
    from tapgate.cli.keys import run_with_services  # noqa: PLC0415

    async def task(services: Any) -> None:
        from tapgate.business.finance.day_close.ledger_keys import rotate_key  # noqa: PLC0415

        async with services.transaction() as tx:
            key_id = await rotate_key(tx, services.vault, operator.build_actor())
        print(f"Closed days are now signed by {key_id}.")

    run_with_services(task)
