"""Entry point of one messenger process, started by the supervisor."""

import os

from tapgate.core.settings import load_settings
from tapgate.http import worker
from tapgate.http.connection_limit import ConnectionLimit
from tapgate.messenger.app import App
from tapgate.messenger.startup import add_development_form_key
from tapgate.messenger.understanding.resolver import get_resolver
from tapgate.messenger.wiring import open_services
from tapgate.runtime import logs


async def main() -> None:
    settings = add_development_form_key(load_settings(os.environ))
    logs.configure(log_format=settings.log_format)
    logs.install_exception_hooks()
    assert settings.database_url is not None, "the supervisor sets the database URL"
    get_resolver()  # otherwise the first message would wait for it
    async with open_services(settings, settings.database_url) as services:
        await worker.serve(
            App(services),
            ConnectionLimit(settings),
            health=services.health,
            drain_seconds=settings.drain_seconds,
        )


if __name__ == "__main__":
    worker.run(main, service_name="tapgate-messenger")
