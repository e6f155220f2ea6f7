"""Messenger startup: installation check, warnings, and a form key for development."""

from collections.abc import AsyncIterator
from functools import partial

from tapgate.core.settings import Settings
from tapgate.core.settings.dev_secrets import build_folder_error, load_dev_form_key
from tapgate.core.settings.nodes import Environment
from tapgate.core.vault import Vault
from tapgate.runtime.health import HealthMonitor
from tapgate.runtime.nodes import NodeRegistry
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.installation import check_installation
from tapgate.runtime.store.server_status import get_server_status
from tapgate_client.schemas.nodes import NodeRole


async def prepare(settings: Settings, database_url: str) -> AsyncIterator[str]:
    """Check that the database belongs to this installation; yield warnings for the operator."""
    # Workers add the key too, and their settings are compared with those registered here.
    settings = add_development_form_key(settings)
    require_complete_sms(settings)
    database = await Database.connect(database_url, size=1)
    try:
        vault = Vault(settings.secret_key)
        await check_installation(database, vault, currency=settings.currency)
        health = HealthMonitor(settings, partial(get_server_status, database))
        lines = await NodeRegistry(settings, NodeRole.MESSENGER, database, health).join()
    finally:
        await database.close()
    for line in [*lines, *list_warnings(settings)]:
        yield line


def add_development_form_key(settings: Settings) -> Settings:
    """Add a generated form key in development if no key, provider or text PIN entry is set.

    The key enables PIN forms on simulated phones. A provider could not use the key, because the
    provider does not have the public key.
    """
    needs_key = not (
        settings.is_production
        or settings.messenger_flow_private_key is not None
        or settings.messenger_graph_url is not None
        or settings.messenger_text_pin
    )
    if not needs_key:
        return settings
    try:
        key = load_dev_form_key(settings.data_dir)
    except OSError as error:
        raise build_folder_error(settings.data_dir, error) from error
    return settings.replace(messenger_flow_private_key=key)


def require_complete_sms(settings: Settings) -> None:
    """Raise SettingsError if only one of the SMS settings is set.

    Not checked when settings are read: the gateway's processes do not get the token.
    """
    if (settings.sms_url is None) != (settings.sms_token is None):
        missing = Settings.sms_url if settings.sms_url is None else Settings.sms_token
        raise missing.build_error("must be set too. SMS needs both")


def list_warnings(settings: Settings) -> list[str]:
    """Return warnings about missing settings that are not required to start."""
    lines = []
    # In development without a provider, no webhooks arrive.
    is_local = (
        settings.environment == Environment.DEVELOPMENT and settings.messenger_graph_url is None
    )
    if settings.messenger_app_secret is None and not is_local:
        result = "rejected" if settings.is_production else "not verified (fine in development)"
        lines.append(
            f"Warning: TAPGATE_MESSENGER_APP_SECRET is not set: incoming webhooks are {result}."
        )
    if settings.is_production and settings.messenger_bridge_token is None:
        lines.append("Warning: TAPGATE_MESSENGER_BRIDGE_TOKEN is not set: bridges are rejected.")
    return lines + _list_channel_warnings(settings)


def _list_channel_warnings(settings: Settings) -> list[str]:
    needed = {
        "TAPGATE_MESSENGER_GRAPH_URL": settings.messenger_graph_url,
        "TAPGATE_MESSENGER_ACCESS_TOKEN": settings.messenger_access_token,
        "TAPGATE_MESSENGER_PHONE_NUMBER_ID": settings.messenger_phone_number_id,
    }
    missing = [name for name, value in needed.items() if value is None]
    if not missing:
        return []
    if missing == list(needed) and not settings.is_production:
        return ["No messaging provider is configured: replies stay in the local outbox."]
    return [f"Warning: replies stay in the local outbox. Missing settings: {', '.join(missing)}."]
