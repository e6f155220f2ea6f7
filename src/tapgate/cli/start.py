"""Start of the services: their processes, their preparation and the hints for the operator."""

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from tapgate.core import private_files
from tapgate.core.settings import Settings, list_own_secrets, list_own_variables, load_settings
from tapgate.core.settings.network import DEFAULT_MESSENGER_URL
from tapgate.core.settings.nodes import Demo, Environment
from tapgate.runtime.handover import REPORT_SOCKET_VARIABLE, REPORT_WORKER_VARIABLE
from tapgate.runtime.store import FolderInUseError
from tapgate.runtime.store.connection_budget import REPORT_CONNECTIONS, get_messenger_connections
from tapgate.runtime.store.database import Database
from tapgate.server import supervisor
from tapgate.server.child_process import StartError
from tapgate.server.supervisor import PrepareHook, Service
from tapgate_client.schemas.nodes import NodeRole


def run_gateway(environ: Mapping[str, str], *, with_messenger: bool) -> None:
    settings = load_settings(environ)
    services, prepare_hooks = build_gateway_services(settings), [_load_gateway_hook(settings)]
    if with_messenger:
        services.append(build_messenger_service(settings, settings.host))
        prepare_hooks.append(_load_messenger_hook())

    from tapgate.server.gateway_installation import get_first_admin_path  # noqa: PLC0415

    credentials = get_first_admin_path(settings.data_dir)
    is_first_start = not credentials.exists()
    links: list[str] = []

    async def prepare(settings: Settings, database_url: str) -> AsyncIterator[str]:
        for hook in prepare_hooks:
            async for line in hook(settings, database_url):
                yield line
        # The link is printed on a terminal only, never to a log file.
        if settings.environment == Environment.DEVELOPMENT and sys.stdout.isatty():
            links.append(await _create_sign_in_link(settings, database_url))

    def list_hints() -> Sequence[str]:
        chat_hints = [_render_chat_hint(settings)] if with_messenger else []
        demo_file = settings.data_dir / "demo.txt"
        demo_hints = [f"  Sample requests:   cat {demo_file}"] if demo_file.exists() else []
        sign_in_hints = [f"  Sign in once:      {link}" for link in links]
        sign_in_hints += list_credential_hints(credentials, is_new=is_first_start)
        return [
            *_list_gateway_hints(settings, sign_in_hints),
            *chat_hints,
            *demo_hints,
            "Press Ctrl-C to stop.",
        ]

    supervisor.run(settings, environ, services, prepare, list_hints)


def run_messenger(environ: Mapping[str, str], host: str | None) -> None:
    settings = load_settings(environ)
    # Not passed as TAPGATE_HOST, which also determines the gateway's default address.
    service = build_messenger_service(settings, host or settings.host)
    hints = [_render_chat_hint(settings), "Press Ctrl-C to stop."]
    try:
        supervisor.run(settings, environ, [service], _load_messenger_hook(), lambda: hints)
    except FolderInUseError as error:
        raise StartError(
            f"{error}: `tapgate up` includes the messenger. To run it separately, set"
            " TAPGATE_DATABASE_URL to the same database for both"
        ) from error


def build_gateway_services(settings: Settings) -> list[Service]:
    """Return the gateway and its report workers, if it has any."""
    gateway = Service(
        "gateway",
        "tapgate_sandbox.gateway" if settings.has_simulators else "tapgate.server.gateway",
        settings.host,
        settings.port,
        settings.workers,
        database_connections=settings.database_connections,
        # Only the secrets, because the gateway shows staff the other settings.
        withheld_variables=list_own_secrets(NodeRole.MESSENGER),
    )
    if not settings.report_workers:
        return [gateway]
    # Imports structlog, which `quick_start` makes faster once the command runs.
    from tapgate.runtime.node_files import get_socket_path  # noqa: PLC0415

    path = get_socket_path(settings.data_dir, "reports.sock")
    reports = gateway._replace(
        name="report worker",
        processes=settings.report_workers,
        socket_path=path,
        variables={REPORT_WORKER_VARIABLE: "1"},
        database_connections=REPORT_CONNECTIONS,
    )
    return [gateway._replace(variables={REPORT_SOCKET_VARIABLE: str(path)}), reports]


def build_messenger_service(settings: Settings, host: str) -> Service:
    return Service(
        "messenger",
        "tapgate.messenger",
        host,
        settings.messenger_port,
        settings.messenger_workers,
        database_connections=get_messenger_connections(settings.database_connections),
        # All of them, because settings that need a withheld secret are invalid without it.
        withheld_variables=list_own_variables(NodeRole.GATEWAY),
    )


# The hooks are imported when needed: the sandbox only where it is used, the services only after the
# settings are valid.


def _load_gateway_hook(settings: Settings) -> PrepareHook:
    if settings.demo != Demo.OFF:
        from tapgate_sandbox import installation  # noqa: PLC0415

        return installation.prepare_installation
    from tapgate.server.gateway_installation import prepare_installation  # noqa: PLC0415

    return prepare_installation


def _load_messenger_hook() -> PrepareHook:
    from tapgate.messenger.startup import prepare  # noqa: PLC0415

    return prepare


async def _create_sign_in_link(settings: Settings, database_url: str) -> str:
    from tapgate_sandbox.sign_in_link import create_link  # noqa: PLC0415

    database = await Database.connect(database_url, size=1)
    try:
        return await create_link(settings, database)
    finally:
        await database.close()


def _list_gateway_hints(settings: Settings, sign_in_hints: Sequence[str]) -> list[str]:
    url = settings.public_url
    simulators = [
        f"  POS simulator:     {url}/simulator/pos",
        f"  Phone simulator:   {url}/simulator/phone",
    ]
    return [
        f"  Console:           {url}/console",
        *sign_in_hints,
        *(simulators if settings.has_simulators else ()),
        f"  Guide:             {url}/guide",
        f"  API reference:     {url}/guide/api",
    ]


def list_credential_hints(file: Path, *, is_new: bool) -> list[str]:
    """Return the first admin's generated credentials, or the file that has them.

    The password is printed once: at the first start, and on a terminal, not in a log file.
    """
    if not file.exists():
        return []
    lines = private_files.read(file)
    if not (is_new and sys.stdout.isatty()) or len(lines) != 2:
        return [f"  Credentials:       {file}"]
    email, password = lines
    return [f"  Email:             {email}", f"  Password:          {password}"]


def _render_chat_hint(settings: Settings) -> str:
    """Return the hint for `tapgate chat`, with `--url` unless the messenger has its default URL."""
    is_default = settings.messenger_url == DEFAULT_MESSENGER_URL
    option = "" if is_default else f" --url {settings.messenger_url}"
    return f"  Chat:              {sys.argv[0]} chat{option}"
