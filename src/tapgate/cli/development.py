"""Commands for developers and integrators. In production, most of them are not available."""

import asyncio
import os
from typing import Annotated, Any, Literal

import typer

from tapgate.cli import keys
from tapgate.core.settings import load_settings
from tapgate.server import supervisor

DemoSize = Literal["small", "medium", "large"]


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


def demo(
    size: Annotated[DemoSize, typer.Option(help="How much data to create.")] = "small",
) -> None:
    """Load demo data: customers, cards, merchants, agents and months of payments.

    Small takes seconds, medium about a minute, large several minutes. Not available in production.
    """
    from tapgate.cli.demo import build  # noqa: PLC0415

    build(load_settings(os.environ), size)


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
    from tapgate.server.gateway_installation import get_first_admin_path  # noqa: PLC0415

    settings = load_settings(os.environ)
    login = event_listener.get_login(settings, get_first_admin_path(settings.data_dir))
    asyncio.run(event_listener.listen(url or settings.local_url, login, forward_to, event or ["*"]))


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
