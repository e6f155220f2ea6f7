"""`tapgate keys`: manage API keys from the command line, audited like requests over HTTP."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

import msgspec
import typer

from tapgate.cli import operator
from tapgate.core.settings import load_settings
from tapgate.server import supervisor
from tapgate_client import ids
from tapgate_client.clock import format_rfc3339
from tapgate_client.errors import ApiError, Code, invalid_field

app = typer.Typer(help="Create, list and delete API keys.", no_args_is_help=True)

ServiceTask = Callable[[Any], Awaitable[None]]


@app.command()
def create(
    name: Annotated[str, typer.Option(help="Name that describes the purpose of the key.")],
    scope: Annotated[
        list[str], typer.Option(help="Scope to grant, such as payments:write. Can be repeated.")
    ],
    expires_at: Annotated[
        str | None, typer.Option(help="When the key expires, such as 2027-01-31T12:00Z.")
    ] = None,
) -> None:
    """Create an API key and print it. The key is shown only once."""

    async def task(services: Any) -> None:
        from tapgate.business.approvals.operations import require_unguarded_key  # noqa: PLC0415
        from tapgate.business.staff import queries  # noqa: PLC0415
        from tapgate.business.staff.api_keys import operations  # noqa: PLC0415
        from tapgate.http.decoding import BodyDecoder  # noqa: PLC0415
        from tapgate_client.schemas.admin import NewApiKey  # noqa: PLC0415

        body = {"name": name, "scopes": scope, "expires_at": expires_at}
        decoder = BodyDecoder(NewApiKey, services.settings.currency)
        new_key = decoder.decode(msgspec.json.encode(body))
        admin_id = await queries.get_first_system_admin(services.database)
        if admin_id is None:
            raise ApiError(
                Code.NOT_FOUND, "no administrator exists yet. Start Tapgate once and try again"
            )
        async with services.transaction() as tx:
            await require_unguarded_key(tx, new_key.scopes)
            _, key = await operations.create(
                tx,
                operator.build_actor(),
                new_key,
                created_by=admin_id,
                has_unknown_holder=True,
                api_keys=services.authenticator.api_keys,
            )
        print(key)

    run_with_services(task)


@app.command("list")
def list_keys() -> None:
    """List API keys by prefix, newest first."""

    from rich.console import Console  # noqa: PLC0415
    from rich.table import Column, Table  # noqa: PLC0415

    async def task(services: Any) -> None:
        unwrapped = partial(Column, no_wrap=True)  # a wrapped value cannot be copied
        table = Table(unwrapped("ID"), unwrapped("Prefix"), "Name", "Scopes", "Expires", box=None)
        before = None
        while page := await services.authenticator.api_keys.list_page(before=before, limit=100):
            for key in page:
                expires = "never" if key.expires_at is None else format_rfc3339(key.expires_at)
                key_id = ids.encode(ids.KEY, key.id)
                table.add_row(key_id, key.prefix, key.name, " ".join(key.scopes), expires)
            before = page[-1].id
        Console().print(table)

    run_with_services(task)


@app.command()
def delete(
    key_id: Annotated[
        str, typer.Argument(help="ID of the key (key_...), shown by `tapgate keys list`.")
    ],
) -> None:
    """Delete an API key. Requests that use it are rejected immediately."""

    async def task(services: Any) -> None:
        from tapgate.business.staff.api_keys import operations  # noqa: PLC0415

        internal_id = ids.decode(ids.KEY, key_id)
        if internal_id is None:
            raise invalid_field("KEY_ID", "must be an ID such as key_06vvxzyjr0m00")
        api_keys = services.authenticator.api_keys
        async with services.transaction() as tx:
            await operations.delete(tx, operator.build_actor(), internal_id, api_keys=api_keys)
        print("Deleted.")

    run_with_services(task)


def run_with_services(task: ServiceTask) -> None:
    from tapgate.runtime.nodes import require_common_keys  # noqa: PLC0415
    from tapgate.server.gateway_installation import require_same_installation  # noqa: PLC0415
    from tapgate.server.gateway_services import open_services  # noqa: PLC0415

    settings = load_settings(os.environ)

    async def run(url: str) -> None:
        async with open_services(settings, url) as services:
            await require_common_keys(services.database, services.vault)
            await require_same_installation(services)
            await task(services)

    with supervisor.provide_database_url(settings) as url:
        asyncio.run(run(url))
