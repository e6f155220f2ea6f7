import asyncio

import pytest

from tapgate.core.settings.declaration import SettingsError
from tapgate.core.vault import Vault
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.installation import check_installation

FIRST, OTHER = Vault("a" * 32), Vault("b" * 32)


async def test_later_starts_require_the_secret_key_and_currency_of_the_first_start(
    database: Database,
) -> None:
    await asyncio.gather(*(check_installation(database, FIRST, currency="SLE") for _ in range(4)))
    with pytest.raises(
        SettingsError, match="TAPGATE_SECRET_KEY does not match this database's key"
    ):
        await check_installation(database, OTHER, currency="SLE")
    with pytest.raises(
        SettingsError, match="TAPGATE_CURRENCY does not match this database's currency"
    ):
        await check_installation(database, FIRST, currency="EUR")
    await check_installation(database, FIRST, currency="SLE")


async def test_key_is_required_once_it_was_the_first_one(database: Database) -> None:
    swapped, both = Vault(f"{'a' * 32},1:{'b' * 32}"), Vault(f"1:{'b' * 32},{'a' * 32}")
    for vault in (FIRST, swapped, FIRST, both, swapped):
        await check_installation(database, vault, currency="SLE")
    with pytest.raises(SettingsError, match=rf"lacks key 1 \({OTHER.key_id}\)"):
        await check_installation(database, FIRST, currency="SLE")
