"""Everything a request may need that outlives it, built once per process by the gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol

import msgspec

from tapgate.service.fair_limit import FairLimit

if TYPE_CHECKING:
    from tapgate.clock import Clock
    from tapgate.credentials.authenticate import Authenticator
    from tapgate.credentials.pins import PinVerifier
    from tapgate.edge.origin import Origin
    from tapgate.edge.recent import Recent
    from tapgate.errors import ApiError
    from tapgate.ids import IdGenerator
    from tapgate.ledger.engine import Ledger
    from tapgate.service.throttle import Throttle
    from tapgate.settings import Settings
    from tapgate.store.database import Database
    from tapgate.store.signals import Signals
    from tapgate.vault import Vault

    #: Told about every 403 FORBIDDEN: who, at which endpoint, and what was answered.
    Denied = Callable[[Origin, str, ApiError], Awaitable[None]]


def heavy_limit() -> FairLimit:
    """Slots for expensive reads: fewer than pooled connections, and not all for one caller."""
    return FairLimit(
        "Too many large requests are being worked on",
        slots=4,
        slots_per_group=2,
        queue=32,
        queue_per_group=8,
        timeout=2.0,
    )


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A refused request as the audit log records it."""

    event: str
    resource_type: str
    resource_id: str | None
    result: Literal["failure", "denied"]
    reason: str | None


class RefusalLog(Protocol):
    async def record(self, origin: Origin, refusal: Refusal) -> None:
        """Add an entry, or count the refusal where there are too many of its kind."""

    async def run(self) -> NoReturn:
        """Store counts until cancelled."""


async def _not_recorded(origin: Origin, endpoint: str, error: ApiError) -> None:
    """Until the gateway sets a hook, a refusal is only answered and logged."""


def _not_counted(status: str) -> None:
    """Until the application sets a hook, message statuses are not counted."""


class _Unrecorded:
    async def record(self, origin: Origin, refusal: Refusal) -> None:
        pass

    async def run(self) -> NoReturn:
        raise NotImplementedError


_NOT_RECORDED: RefusalLog = _Unrecorded()


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
    new_id: IdGenerator
    throttle: Throttle
    recent: Recent
    denied: Denied = _not_recorded
    #: Counts a new delivery status of a message in the metrics.
    count_message: Callable[[str], None] = _not_counted
    refusals: RefusalLog = _NOT_RECORDED
    heavy: FairLimit = field(default_factory=heavy_limit)
