"""Everything a request may need that outlives it, built once per process by the gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tapgate.clock import Clock
    from tapgate.credentials.authenticate import Authenticator
    from tapgate.credentials.pins import PinVerifier
    from tapgate.edge.origin import Origin
    from tapgate.edge.recent import Recent
    from tapgate.errors import ApiError
    from tapgate.ids import IdSource
    from tapgate.ledger.engine import Ledger
    from tapgate.service.throttle import Throttle
    from tapgate.settings import Settings
    from tapgate.store.database import Database
    from tapgate.store.signals import Signals
    from tapgate.vault import Vault

    #: Told about every 403 FORBIDDEN: who, at which endpoint, and what was answered.
    Denied = Callable[[Origin, str, ApiError], Awaitable[None]]


async def _not_recorded(origin: Origin, endpoint: str, error: ApiError) -> None:
    """Until the gateway sets a hook, a refusal is only answered and logged."""


def _not_counted(status: str) -> None:
    """Until the application sets a hook, message statuses are not counted."""


@dataclass(slots=True, kw_only=True)
class Services:
    settings: Settings
    database: Database
    signals: Signals
    vault: Vault
    pins: PinVerifier
    authenticator: Authenticator
    ledger: Ledger
    clock: Clock
    new_id: IdSource
    throttle: Throttle
    recent: Recent
    denied: Denied = _not_recorded
    #: Counts a new delivery status of a message in the metrics.
    count_message: Callable[[str], None] = _not_counted
