"""`tapgate messages`: show messages, such as one-time codes, when no phone is connected."""

from rich.console import Console

from tapgate.core.settings import Settings
from tapgate.core.settings.declaration import SettingsError
from tapgate.core.vault import Vault
from tapgate.events.notifications.notification_messages import list_pending
from tapgate.messenger.outbox.outbox_messages import list_recent
from tapgate.runtime.store.database import Database
from tapgate_client.clock import format_rfc3339


async def print_messages(settings: Settings, url: str, to: str) -> None:
    if settings.is_production:
        raise SettingsError("messages cannot be shown in production")
    database = await Database.connect(url)
    try:
        lines = await _load_lines(database, Vault(settings.secret_key), to)
    finally:
        await database.close()
    console = Console(highlight=False)
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
    if not lines:
        console.print(f"No messages for {to}.", markup=False)


async def _load_lines(database: Database, vault: Vault, to: str) -> list[str]:
    """Return messages, newest first: those not yet passed to the messenger, then its outbox."""
    pending = [
        f"{format_rfc3339(item.created_at)} {item.template}: {' '.join(item.parameters)}"
        for item in await list_pending(database, vault, to)
    ]
    sent = [
        f"{entry.created_at} {entry.template}: {' '.join(entry.parameters or ())}"
        if entry.template is not None
        else f"{entry.created_at} {entry.text}"
        for entry in await list_recent(database, vault, to)
    ]
    return pending + sent
