"""`tapgate card`: simulate card taps, outside production."""

import asyncio
import os
from typing import Annotated

import msgspec
import typer

from tapgate.core.settings import Settings, load_settings
from tapgate.core.settings.declaration import SettingsError
from tapgate.server import supervisor

app = typer.Typer(help="Simulate taps of cards, outside production.", no_args_is_help=True)


@app.command()
def tap(
    serial: Annotated[str, typer.Argument(help="Serial of a card that signs its taps.")],
    pending: Annotated[
        bool, typer.Option("--pending", help="Use the keys that no tap has confirmed yet.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print picc_data and cmac instead of the URL.")
    ] = False,
) -> None:
    """Print the URL for a card's next tap, as the `url` of a `card_proof`.

    The counter follows the last tap that was consumed. Not available in staging and production.
    """
    settings = load_settings(os.environ)
    if settings.requires_secrets:
        raise SettingsError("taps cannot be simulated in staging and production")
    with supervisor.provide_database_url(settings) as url:
        print(asyncio.run(_build_proof(settings, url, serial, pending=pending, as_json=as_json)))


async def _build_proof(
    settings: Settings, url: str, serial: str, *, pending: bool, as_json: bool
) -> str:
    from tapgate.core.vault import Vault  # noqa: PLC0415
    from tapgate.runtime.store.database import Database  # noqa: PLC0415
    from tapgate_sandbox.software_card import load_card  # noqa: PLC0415

    database = await Database.connect(url)
    try:
        card = await load_card(database, Vault(settings.secret_key), serial, pending=pending)
    finally:
        await database.close()
    if card is None:
        keys = "no keys to confirm" if pending else "no keys: it does not sign its taps"
        raise SettingsError(f"card {serial} does not exist or has {keys}")
    proof = card.tap()
    if as_json:
        return msgspec.json.encode(proof).decode()
    return f"{settings.public_url}/t?picc_data={proof.picc_data}&cmac={proof.cmac}"
