"""Gateway of a sandbox: with the simulators, and with demo data in a new installation.

The supervisor runs this module instead of `tapgate.gateway` in development and testing.
"""

from collections.abc import AsyncIterator

from tapgate import gateway
from tapgate.api.app import App
from tapgate.api.services import Services
from tapgate.http import worker
from tapgate.sandbox.simulators.site import build_simulator_site
from tapgate.settings import NO_DEMO, Settings, SettingsError


def create_app(services: Services) -> App:
    if not services.settings.has_simulators:
        raise SettingsError(f"there are no simulators in {services.settings.environment}")
    return gateway.create_app(services, [build_simulator_site()])


def prepare_installation(settings: Settings, database_url: str) -> AsyncIterator[str]:
    """Prepare the installation like the gateway, and build the demo in a new one."""
    return gateway.prepare_installation(settings, database_url, _build_demo)


async def _build_demo(services: Services, database_url: str) -> AsyncIterator[str]:
    size = services.settings.demo
    if size == NO_DEMO:
        return
    from tapgate.sandbox.demo.build import build_demo  # noqa: PLC0415 - only a new demo needs it

    yield f"Building a {size} demo (set TAPGATE_DEMO=off to skip it) ..."
    try:
        await build_demo(services, database_url, size)
    except Exception as error:
        yield f"Continuing without the demo, because it could not be built: {error!r}"


async def main() -> None:
    await gateway.main(create_app)


if __name__ == "__main__":
    worker.run(main)
