"""Everything a request may need that outlives it, built once per process by the gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol

import msgspec

from tapgate.service.fair_limit import FairLimit

if TYPE_CHECKING:
    from tapgate.clock import Clock
    from tapgate.credentials.authenticator import Authenticator
    from tapgate.credentials.pins import PinVerifier
    from tapgate.edge.latency_samples import LatencySamples
    from tapgate.edge.origin import Origin
    from tapgate.errors import ApiError
    from tapgate.ids import IdGenerator
    from tapgate.ledger.engine import Ledger
    from tapgate.service.throttle import Throttle
    from tapgate.settings import Settings
    from tapgate.store.database import Database
    from tapgate.store.signals import Signals
    from tapgate.vault import Vault

    #: Told about every 403 FORBIDDEN: who, at which endpoint, and what was answered.
    DenialHook = Callable[[Origin, str, ApiError], Awaitable[None]]


def create_heavy_read_limit() -> FairLimit:
    """Slots for expensive reads: fewer than pooled connections, and not all for one caller."""
    return FairLimit(
        "Too many large requests are being worked on",
        slots=4,
        slots_per_group=2,
        queue=32,
        queue_per_group=8,
        timeout=2.0,
    )


class RejectedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A refused request as the audit log records it."""

    event: str
    resource_type: str
    resource_id: str | None
    result: Literal["failure", "denied"]
    reason: str | None


class RejectionLog(Protocol):
    async def record(self, origin: Origin, refusal: RejectedRequest) -> None:
        """Add an entry, or count the refusal where there are too many of its kind."""

    async def run(self) -> NoReturn:
        """Store counts until cancelled."""


async def _ignore_denial(origin: Origin, endpoint: str, error: ApiError) -> None:
    """Until the gateway sets a hook, a refusal is only answered and logged."""


def _ignore_message_status(status: str) -> None:
    """Until the application sets a hook, message statuses are not counted."""


class _NullRejectionLog:
    async def record(self, origin: Origin, refusal: RejectedRequest) -> None:
        pass

    async def run(self) -> NoReturn:
        raise NotImplementedError


_NULL_REJECTION_LOG: RejectionLog = _NullRejectionLog()


@dataclass(slots=True, kw_only=True)
class Services:
    settings: Settings
    database: Database
    signals: Signals
    vault: Vault
    pin_verifier: PinVerifier
    authenticator: Authenticator
    ledger: Ledger
    clock: Clock
    new_id: IdGenerator
    throttle: Throttle
    latency_samples: LatencySamples
    on_denied: DenialHook = _ignore_denial
    #: Counts a new delivery status of a message in the metrics.
    count_message_status: Callable[[str], None] = _ignore_message_status
    rejection_log: RejectionLog = _NULL_REJECTION_LOG
    heavy_read_limit: FairLimit = field(default_factory=create_heavy_read_limit)
