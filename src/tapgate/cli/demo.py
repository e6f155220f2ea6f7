"""`tapgate demo`: create demo data, also while Tapgate runs."""

import sys

from tapgate.cli import operator
from tapgate.core.settings import Settings
from tapgate.runtime import event_loop
from tapgate.server import supervisor
from tapgate.server.gateway_installation import require_same_installation
from tapgate.server.gateway_services import open_services
from tapgate_sandbox.demo import examples
from tapgate_sandbox.demo.administrator import DemoError
from tapgate_sandbox.demo.build import build_demo


def build(settings: Settings, size: str) -> None:
    if settings.is_production:
        sys.exit("tapgate: demo data cannot be loaded in production")
    try:
        with supervisor.provide_database_url(settings) as url:
            lines = event_loop.run(_build(settings, url, size))
    except DemoError as error:
        sys.exit(f"tapgate: {error}")
    except KeyboardInterrupt:
        print("Interrupted. The demo data is incomplete; the ledger is valid.", file=sys.stderr)
        sys.exit(operator.INTERRUPTED_EXIT_CODE)
    for line in lines:
        print(line)
    print(f"Saved to {examples.get_file(settings.data_dir)}.")


async def _build(settings: Settings, url: str, size: str) -> list[str]:
    async with open_services(settings, url) as services:
        await require_same_installation(services)
        return await build_demo(services, url, size)
