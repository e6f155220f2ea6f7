"""One process of the messenger, as its supervisor starts it."""

import os

from tapgate.messenger.app import App
from tapgate.messenger.start import with_forms
from tapgate.messenger.wire import Wire
from tapgate.messenger.wiring import wired
from tapgate.service import logs, worker
from tapgate.service.connection_limit import ConnectionLimit
from tapgate.settings import load_settings


async def main() -> None:
    settings = with_forms(load_settings(os.environ))
    logs.configure()
    logs.install_exception_hooks()
    assert settings.database_url is not None, "the supervisor says where the database is"
    async with wired(settings, settings.database_url) as services:
        await worker.serve(App(services), protocol=Wire, limit=ConnectionLimit(settings))


if __name__ == "__main__":
    worker.run(main)
