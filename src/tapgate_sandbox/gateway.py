"""Sandbox gateway, with the simulators.

The supervisor runs this module instead of `tapgate.server.gateway` in development and testing.
"""

from tapgate.core.settings.declaration import SettingsError
from tapgate.http import worker
from tapgate.http.api.app import App
from tapgate.http.api.services import Services
from tapgate.server import gateway
from tapgate_sandbox.clock import choose_clock, wrap_probe
from tapgate_sandbox.simulators.site import build_simulator_sites


def create_app(services: Services) -> App:
    if not services.settings.has_simulators:
        raise SettingsError(f"there are no simulators in {services.settings.environment}")
    services.health.probe = wrap_probe(services.settings, services.health.probe)
    return gateway.create_app(services, build_simulator_sites())


async def main() -> None:
    await gateway.main(create_app, choose_clock)


if __name__ == "__main__":
    worker.run(main)
