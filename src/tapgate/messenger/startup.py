"""What is done once before the first process of the messenger starts."""

from collections.abc import AsyncIterator

import msgspec

from tapgate.dev_secrets import load_dev_form_key
from tapgate.settings import Settings, SettingsError
from tapgate.store.database import Database
from tapgate.store.installation import check_installation
from tapgate.vault import Vault


async def prepare(settings: Settings, database_url: str) -> AsyncIterator[str]:
    """The database must be this installation's. What comes on the way the operator should read."""
    database = await Database.connect(database_url, size=1)
    try:
        await check_installation(
            database,
            secret_fingerprint=Vault(settings.secret_key).key_id,
            currency=settings.currency,
        )
    finally:
        await database.close()
    for line in list_warnings(settings):
        yield line


def add_development_form_key(settings: Settings) -> Settings:
    """Where nothing goes to a provider the only phones are simulated ones: they get forms for PINs
    too, with a key that is made once. At a provider it would not be known."""
    wanted = not (
        settings.is_production
        or settings.messenger_flow_private_key is not None
        or settings.messenger_graph_url is not None
        or settings.messenger_text_pin
    )
    if not wanted:
        return settings
    try:
        key = load_dev_form_key(settings.data_dir)
    except OSError as error:
        raise SettingsError(f"{settings.data_dir} cannot be used: {error.strerror}") from error
    return msgspec.structs.replace(settings, messenger_flow_private_key=key)


def list_warnings(settings: Settings) -> list[str]:
    """What the messenger starts without, and should not stay without."""
    lines = []
    if settings.messenger_app_secret is None:
        meaning = "refuses all deliveries" if settings.is_production else "believes everybody"
        lines.append(
            f"Warning: without TAPGATE_MESSENGER_APP_SECRET the messenger's webhook {meaning}."
        )
    if settings.is_production and settings.messenger_bridge_token is None:
        lines.append(
            "Warning: without TAPGATE_MESSENGER_BRIDGE_TOKEN the messenger refuses all bridges."
        )
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
        return ["The messenger sends nothing: its replies stay in its outbox."]
    return [f"Warning: without {', '.join(missing)} the messenger's replies stay in its outbox."]
