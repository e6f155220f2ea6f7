import asyncio

import pytest

from tapgate.settings import SettingsError
from tapgate.store.database import Database
from tapgate.store.installation import check_installation


async def test_later_starts_require_the_secret_key_and_currency_of_the_first_start(
    database: Database,
) -> None:
    await asyncio.gather(
        *(check_installation(database, secret_fingerprint="a", currency="SLE") for _ in range(4))
    )
    with pytest.raises(SettingsError, match="TAPGATE_SECRET_KEY does not match the key"):
        await check_installation(database, secret_fingerprint="b", currency="SLE")
    with pytest.raises(SettingsError, match="TAPGATE_CURRENCY does not match the currency"):
        await check_installation(database, secret_fingerprint="a", currency="EUR")
    await check_installation(database, secret_fingerprint="a", currency="SLE")
