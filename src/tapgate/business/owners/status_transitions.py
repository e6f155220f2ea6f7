"""Status transitions, each with its event name and error code."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from tapgate.auth.actors import Actor
from tapgate.auth.hmac_keys import HmacKeys
from tapgate.business.owners.owner_table import OwnerTable
from tapgate.events.audit.trail import AuditTrail
from tapgate.http.api.guards import Proposal
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.approvals import Operation

S = TypeVar("S", bound=str)
T = TypeVar("T", bound=msgspec.Struct)


class Transition(NamedTuple, Generic[S]):
    """Allowed status change.

    `allowed` maps each valid current status to the new one. From any other status, `apply` raises
    `error_code`.
    """

    event: str
    allowed: Mapping[S, S]
    error_code: Code

    def apply(self, status: S) -> S:
        new_status = self.allowed.get(status)
        if new_status is None:
            raise ApiError(self.error_code)
        return new_status


def build_suspension(active: S, suspended: S) -> tuple[Transition[S], Transition[S]]:
    """Return the transitions that suspend and activate an owner."""
    return (
        Transition("suspended", {active: suspended}, Code.ALREADY_SUSPENDED),
        Transition("activated", {suspended: active}, Code.NOT_SUSPENDED),
    )


def describe_activation(
    operation: Operation, summary: str, record: Any, *, is_allowed: bool
) -> Proposal | None:
    """Describe an activation, after which keys or a PIN move money again.

    Return None if the current status does not allow it: the operation rejects the request.
    """
    if not is_allowed:
        return None
    return Proposal(
        operations=(operation,),
        summary=summary,
        resource_id=record.id,
        before={"status": record.status},
        implied={"status": "active"},
    )


async def change_status(
    tx: Transaction,
    actor: Actor,
    table: OwnerTable[T],
    owner_id: int,
    transition: Transition[Any],
    reason: str | None,
    *,
    to_record: Callable[[T], Any],
    hmac_keys: HmacKeys,
) -> T:
    """Suspend or activate a partner or processor. A suspended owner's keys are rejected.

    Waits up to one second for every process to apply the change.
    """
    before: Any = await table.lock(tx, owner_id)
    status = transition.apply(before.status)
    await table.save_status(tx, owner_id, before.account_id, status, reason)
    after = await table.get(tx, owner_id)
    old, new = to_record(before), to_record(after)
    trail = AuditTrail(table.noun)
    await trail.record_change(tx, actor, new.id, transition.event, old, new, reason=reason)
    await hmac_keys.publish_owner_change(tx)
    return after
