"""Prepares a sandbox: like the gateway's preparation, with demo data in a new installation."""

from collections.abc import AsyncIterator

from tapgate.core.settings import Settings
from tapgate.core.settings.nodes import Demo
from tapgate.http.api.services import Services
from tapgate.server import gateway_installation


def prepare_installation(settings: Settings, database_url: str) -> AsyncIterator[str]:
    """Prepare the installation like the gateway, and build the demo in a new one."""
    return gateway_installation.prepare_installation(settings, database_url, _build_demo)


async def _build_demo(services: Services, database_url: str) -> AsyncIterator[str]:
    size = services.settings.demo
    if size == Demo.OFF:
        return
    from tapgate_sandbox.demo.build import build_demo  # noqa: PLC0415 - only a new demo needs it

    yield f"Building a {size} demo (set TAPGATE_DEMO=off to skip it) ..."
    try:
        await build_demo(services, database_url, size)
    except Exception as error:
        yield f"Continuing without the demo, because it could not be built: {error!r}"
