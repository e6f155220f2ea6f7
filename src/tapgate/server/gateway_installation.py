"""Prepares the gateway's installation at every start, before the worker processes.

Separate from the endpoints, which take longer to import than the preparation takes.
"""

import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from tapgate.business.staff import operations as admin_operations
from tapgate.business.staff import queries as admin_queries
from tapgate.core import private_files
from tapgate.core.settings import Settings
from tapgate.core.settings.declaration import SettingsError
from tapgate.http.api.services import Services
from tapgate.ledger.maintenance import ensure_partitions
from tapgate.ledger.rules import loaded_rules
from tapgate.runtime.store.installation import check_installation, start_onboarding
from tapgate.server.gateway_services import open_services

_DEVELOPMENT_ADMIN_EMAIL: Final = "admin@example.com"

#: Fills a new installation, and yields lines for the operator.
FillInstallation = Callable[[Services, str], AsyncIterator[str]]


async def prepare_installation(
    settings: Settings, database_url: str, fill: FillInstallation | None = None
) -> AsyncIterator[str]:
    """Prepare the installation before its workers start; yield lines for the operator.

    Checks that the secret key and currency match the database, and ensures that an admin exists. A
    new installation also gets the default rules, the platform accounts and the data of `fill`.
    """
    breached = settings.breached_passwords
    if breached is not None and not breached.is_file():
        raise SettingsError(f"TAPGATE_BREACHED_PASSWORDS: {breached} is not a file")
    async with open_services(settings, database_url) as services:
        await require_same_installation(services)
        for line in [*await services.nodes.join(), *await services.throttle.list_warnings()]:
            yield line
        await ensure_partitions(services.database, services.clock())
        async with services.transaction() as tx:
            await loaded_rules.insert_defaults(tx, settings.currency, services.new_id)
        is_new = await _is_new_installation(services)
        for line in await _ensure_admin_exists(services):
            yield line
        if is_new and fill is not None:
            async for line in fill(services, database_url):
                yield line
        elif is_new:
            await start_onboarding(services.database)


async def _is_new_installation(services: Services) -> bool:
    if await admin_queries.has_system_admin(services.database):
        return False
    return not await services.database.fetchval("SELECT EXISTS (SELECT FROM subscribers)")


async def require_same_installation(services: Services) -> None:
    """Require the database's secret keys and currency. On first start, store them."""
    await check_installation(services.database, services.vault, currency=services.settings.currency)


async def create_first_admin(services: Services, email: str, password: str) -> bool:
    password_hash = await services.authenticator.passwords.hash(password)
    async with services.transaction() as tx:
        return await admin_operations.create_first_admin(
            tx, email=email, password_hash=password_hash
        )


async def _ensure_admin_exists(services: Services) -> list[str]:
    settings = services.settings
    if await admin_queries.has_system_admin(services.database):
        return []
    email, password = settings.admin_email, settings.admin_password
    if email is not None and password is not None:
        await create_first_admin(services, email, password)
        return [f"The first administrator is {email}."]
    if settings.requires_secrets:
        raise SettingsError(
            "TAPGATE_ADMIN_EMAIL and TAPGATE_ADMIN_PASSWORD must be set for the first start"
        )
    email, password = _DEVELOPMENT_ADMIN_EMAIL, secrets.token_urlsafe(15)
    if not await create_first_admin(services, email, password):
        return []
    file = get_first_admin_path(settings.data_dir)
    private_files.write(file, (email, password))
    return [f"The first administrator is {email}. The password is saved in {file}."]


def get_first_admin_path(data_dir: Path) -> Path:
    """Return the path to the file with the first admin's generated credentials."""
    return data_dir / "administrator.txt"
