"""`tapgate trigger`: send a sample event to webhook endpoints, in development and testing."""

from typing import Any, Final

from tapgate.core.settings import Settings
from tapgate.core.settings.declaration import SettingsError
from tapgate.events.webhooks.event_data import build_event_data
from tapgate.events.webhooks.webhook_events import publish_data
from tapgate.http.api.examples import build_response_example
from tapgate.http.api.services import Services
from tapgate.server.event_records import EVENT_RECORD_LOADERS, EVENT_RECORD_TYPES
from tapgate_client.schemas.webhooks import (
    WEBHOOK_EVENT_CATALOG,
    WEBHOOK_EVENT_TYPES,
    get_resource_type,
)

_TABLES: Final = {
    "transaction": "transactions",
    "alert": "alerts",
    "agent": "agents",
    "card": "cards",
}


def list_events() -> str:
    """Return one line per event type, with its description."""
    width = max(map(len, WEBHOOK_EVENT_TYPES))
    return "\n".join(
        f"  {event.name:{width}}  {event.description}" for event in WEBHOOK_EVENT_CATALOG
    )


def require_event(settings: Settings, event: str) -> None:
    """Raise an error that lists the events if there is no such event."""
    if settings.requires_secrets:
        raise SettingsError("events cannot be triggered in staging and production")
    if event not in WEBHOOK_EVENT_TYPES:
        raise SettingsError(f"there is no event {event}. The events are:\n{list_events()}")


async def trigger_event(services: Services, event: str) -> str:
    """Queue an event for all endpoints that subscribe to it; return a line for the operator."""
    data = await _load_data(services, event)
    async with services.transaction() as tx:
        count = await publish_data(tx, event, data)
    if not count:
        return f"No webhook endpoint subscribes to {event}. Run `tapgate listen` first."
    endpoints = "1 endpoint" if count == 1 else f"{count} endpoints"
    return f"Queued {event} ({data.get('id') or data.get('serial')}) for {endpoints}."


async def _load_data(services: Services, event: str) -> dict[str, Any]:
    """Return the newest record for the event's type, or else the example in the API's documents."""
    resource_type = get_resource_type(event)
    if resource_type in EVENT_RECORD_LOADERS:
        newest = await services.database.fetchval(
            f"SELECT id FROM {_TABLES[resource_type]} ORDER BY id DESC LIMIT 1"
        )
        loaded = await EVENT_RECORD_LOADERS[resource_type](services, [newest or 0])
        if newest in loaded:
            return build_event_data(event, loaded[newest])
    example: dict[str, Any] = build_response_example(EVENT_RECORD_TYPES[resource_type])
    return example
