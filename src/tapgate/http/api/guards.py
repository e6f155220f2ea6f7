"""Guards: declarations with which approval rules can require approval for requests.

An endpoint declares `guard=Guard(describe, *operations)`. `describe` takes the handler's arguments
and returns what the request would do, or None if approval rules do not apply to this request.

`describe` reads what may change before the handler locks it. A handler with a database transaction
therefore runs with `run_in_transaction`, which describes the request again before it commits.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from tapgate.http.endpoint import Endpoint
from tapgate_client.errors import ApiError, unavailable
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.approvals import Operation


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """Approvals that a request needs, and the seconds after which it expires.

    `operation` is the operation whose rule requires approval, if there are several.
    """

    operation: Operation | None = None
    roles: list[AdminRole]
    approvers: int
    expires_in: int


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What a request would do, as approvers see it.

    `operations` are the guardable operations that the request counts as. If rules for several of
    them require approval, the one that requires the most approvals applies. Without an amount, the
    request is rejected if these rules name different roles. A `requirement` applies if no rule
    requires approval.

    `before` has the current values of the fields that the request sets, and `implied` the values
    that it sets without naming them. `amount` is in minor units. `other_makers` are people besides
    the maker who cannot approve the request. `rejection` rejects a request that would need an
    approval but cannot wait for it, because a part of it is never stored.
    """

    operations: tuple[Operation, ...]
    summary: str
    resource_id: str | None = None
    before: Mapping[str, Any] = {}
    implied: Mapping[str, Any] = {}
    amount: int | None = None
    other_makers: tuple[str, ...] = ()
    requirement: Requirement | None = None
    rejection: ApiError | None = None


class Description(msgspec.Struct, frozen=True):
    """What a request would do; None if approval rules do not apply to it."""

    proposal: Proposal | None


class Guard:
    """Endpoint guard, with the operations that requests can count as.

    With `ends_in_ledger`, the handler ends an approval in the ledger's transaction, as endpoints
    that move money do.
    """

    def __init__(
        self,
        describe: Callable[..., Awaitable[Proposal | None]],
        *operations: Operation,
        ends_in_ledger: bool = False,
    ) -> None:
        self.describe = describe
        self.operations = operations
        self.ends_in_ledger = ends_in_ledger


async def describe(endpoint: Endpoint, request: Any, arguments: Mapping[str, Any]) -> Any:
    """Return a request's proposal, which is the same for all checks of the request."""
    if request.description is None:
        request.description = Description(await endpoint.guard.describe(request, **arguments))
    return request.description.proposal


async def run_in_transaction(
    endpoint: Endpoint, request: Any, tx: Any, arguments: Mapping[str, Any]
) -> Any:
    """Run a handler, and require that the request did what its guard has described."""
    response = await endpoint.handler(request, tx=tx, **arguments)
    if request.description is not None:
        described = {name: value for name, value in arguments.items() if name != "prepared"}
        await _require_same_description(endpoint, request, described)
    return response


async def _require_same_description(
    endpoint: Endpoint, request: Any, arguments: Mapping[str, Any]
) -> None:
    """Raise 503 if approval rules apply to the request in another way than was checked.

    The handler has locked or changed the records, and has not committed. Another connection
    therefore sees them as the handler found them, and nobody else can change them. It comes from
    the work queues' pool, because requests that hold a connection must not wait for another one
    of their own pool.
    """
    services = request.services
    outside = dataclasses.replace(services, database=services.queue_database)
    before = msgspec.structs.replace(request, services=outside, description=None)
    proposal = await describe(endpoint, before, arguments)
    if proposal is None:
        return  # a replay, or what another request has done already
    checked = request.description.proposal
    if checked is None or _get_facts(request, proposal) != _get_facts(request, checked):
        raise unavailable("The record was changed at the same time. Try again.")


def _get_facts(request: Any, proposal: Proposal) -> Any:
    """Return what must not change: what rules decide on, or all that an approver has seen."""
    if request.approval is None:
        return proposal.operations, proposal.amount, proposal.requirement
    return msgspec.structs.replace(proposal, rejection=None)  # errors are equal only to themselves


def collect_guarded_roles(endpoints: Iterable[Endpoint]) -> dict[str, frozenset[str]]:
    """Return the roles that may request each guarded operation."""
    roles = defaultdict[str, frozenset[str]](frozenset)
    for endpoint in endpoints:
        if endpoint.guard is not None:
            for operation in endpoint.guard.operations:
                roles[operation] |= endpoint.access.role_names
    return dict(roles)


class Unguarded(StrEnum):
    """Reason why approval rules never apply to an endpoint with which admins change something."""

    PIN = "A customer or an agent authorizes it with the PIN"
    ONE_TIME_CODE = "The phone's owner authorizes it with a one-time code"
    OWN_MONEY = "It moves money that the party already has; rules guard how it gets there"
    TAKES_RIGHTS = "It takes rights away, which must not wait"
    NO_MONEY = "It concerns records that cannot move money without the guarded operations"
    CUSTOMER = "It lets a customer use their own wallet or card again, which the PIN protects"
    NO_EFFECT = "It changes no money, rule or right"
    RECALL = "It holds at most the amount of one recent transfer, for a day"
    OWN_ACCOUNT = "It concerns the admin's own account"
    DECISION = "It decides on a request that waits for approval, or on who may decide"


class ApprovedCall(msgspec.Struct, frozen=True, kw_only=True):
    """Approval for the request that is being executed."""

    id: str
    #: ID of the approving admin.
    executed_by: int
