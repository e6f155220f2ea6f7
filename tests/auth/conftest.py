"""Fixtures that simulate gateway processes on one database."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builders.auth import FakeClock, GatewayProcess, OwnerBuilder
from builders.passwords import FAST_ARGON2
from tapgate.auth.authenticator import Authenticator
from tapgate.auth.logins import Logins
from tapgate.auth.passwords import Passwords
from tapgate.core import settings
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import Settings
from tapgate.core.vault import Vault
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.signals import Signals


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 1, 31, 10, 15, 30, tzinfo=UTC))


@pytest.fixture
def vault() -> Vault:
    return Vault("k" * 32)


@pytest.fixture
def new_id() -> IdGenerator:
    return IdGenerator(0)


@pytest.fixture
def test_settings(tmp_path: Path) -> Settings:
    return settings.load_settings(
        {
            "TAPGATE_DATA_DIR": str(tmp_path),
            "TAPGATE_SERVICE_SECRETS": '{"messenger": "the messenger\'s secret"}',
        }
    )


@pytest.fixture
async def start_process(
    database_url: str,
    test_settings: Settings,
    clock: FakeClock,
    vault: Vault,
    new_id: IdGenerator,
) -> AsyncIterator[Callable[[], Awaitable[GatewayProcess]]]:
    """Yield a function that starts another simulated process on the test's database."""
    async with AsyncExitStack() as running:

        async def start() -> GatewayProcess:
            database = await Database.connect(database_url)
            running.push_async_callback(database.close)
            signals = Signals(database_url)
            authenticator = Authenticator(
                settings=test_settings,
                database=database,
                signals=signals,
                vault=vault,
                clock=clock,
                new_id=new_id,
            )
            await signals.start()
            running.push_async_callback(signals.stop)
            logins = Logins(
                database,
                Passwords(FAST_ARGON2),
                clock,
                vault,
                authenticator.factors,
                authenticator.passkeys,
            )
            return GatewayProcess(database, signals, authenticator, logins, clock, new_id)

        yield start


@pytest.fixture
async def process(start_process: Callable[[], Awaitable[GatewayProcess]]) -> GatewayProcess:
    return await start_process()


@pytest.fixture
async def other_process(start_process: Callable[[], Awaitable[GatewayProcess]]) -> GatewayProcess:
    return await start_process()


@pytest.fixture
def owners(process: GatewayProcess, clock: FakeClock, new_id: IdGenerator) -> OwnerBuilder:
    return OwnerBuilder(process.database, clock, new_id)
