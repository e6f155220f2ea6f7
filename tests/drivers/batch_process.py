"""Gateway process that only pays batches, until it is killed.

`python batch_process.py` takes its settings from the environment, as every process does.
"""

import asyncio
import os
import sys
from pathlib import Path

from tapgate.business.finance.batches import worker
from tapgate.business.finance.batches.worker import BatchWorker
from tapgate.core.settings import Settings, load_settings
from tapgate.server.gateway import open_gateway_services


async def start_process(settings: Settings) -> asyncio.subprocess.Process:
    """Start a process that pays the batches of a test's installation."""
    environ = {name: value for name, value in os.environ.items() if "TAPGATE" not in name}
    environ |= {
        "TAPGATE_DATA_DIR": str(settings.data_dir),
        "TAPGATE_DATABASE_URL": str(settings.database_url),
    }
    return await asyncio.create_subprocess_exec(sys.executable, Path(__file__), env=environ)


async def pay_batches() -> None:
    worker.CHUNK_SIZE = 20  # type: ignore[misc]  # more points at which it can be killed
    settings = load_settings(os.environ)
    assert settings.database_url is not None
    async with open_gateway_services(settings, settings.database_url) as services:
        await BatchWorker(services).run()


if __name__ == "__main__":
    asyncio.run(pay_batches())
