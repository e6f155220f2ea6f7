"""`tapgate messages`: read a one-time code where there is no messenger to deliver it."""

from rich.console import Console

from tapgate.clock import rfc3339
from tapgate.notifications.messages import pending
from tapgate.settings import Settings, SettingsError
from tapgate.store.database import Database
from tapgate.vault import Vault


async def show(settings: Settings, url: str, to: str) -> None:
    if settings.production:
        raise SettingsError("messages are not shown in production")
    database = await Database.connect(url)
    try:
        waiting = await pending(database, Vault(settings.secret_key), to)
    finally:
        await database.close()
    console = Console(highlight=False)
    for message in waiting:
        words = " ".join(message.parameters)
        console.print(f"{rfc3339(message.created_at)} {message.template}: {words}", markup=False)
    if not waiting:
        console.print("Nothing waits for this phone.")
