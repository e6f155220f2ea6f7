"""Generates docs/access.md: allowed callers of each operation, and responses to others.

The page is generated from the endpoint declarations of both services.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from tapgate.http.api.access import ROLES_BY_LETTER, Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import OWNER_ROLES_BY_LETTER, Binding, get_owner_access
from tapgate.http.endpoint import Endpoint
from tapgate.messenger.routes import ENDPOINTS
from tapgate.server.gateway import list_endpoints
from tapgate.sites.guide.reference.schemas import format_code
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tools.manual.markdown import (
    GENERATED_NOTICE,
    format_link,
    format_table,
    write_if_changed,
)
from tools.manual.two_step_flows import TWO_STEP_FLOWS

_INTRODUCTION: Final = f"""\
# Access

{GENERATED_NOTICE}

This page lists every operation of the gateway and the messenger with its allowed callers, the
response to other callers, and the objects that a caller can access. The tests call each operation
with every type of credential and compare the responses with the same declarations.

## Reading the tables

**Allowed callers** lists the accepted credentials. Any one of them is sufficient:"""

_LEGEND: Final = """\
**Other callers** is the response to a valid credential that is not listed:

- *403* is `FORBIDDEN`. `details.required` lists the accepted credentials, and the audit log records
  the request as `access.denied`.
- *403 or 401* marks operations that accept only signed requests. A valid signature of another kind
  gets 403; any other credential counts as missing.
- *401* marks public operations whose caller is authenticated by the request body or its signature.

Except on public operations, a request without a valid credential gets 401 `UNAUTHORIZED`. A
credential is invalid if it is unknown, malformed, expired or deleted, if it belongs to a disabled
admin, an ended session or another environment, or if its signature is wrong or its timestamp is off
by more than five minutes. A valid signature of a suspended processor or partner, or of a blocked
terminal, gets 403 `PROCESSOR_SUSPENDED`, `PARTNER_SUSPENDED` or `TERMINAL_BLOCKED` on every
operation that is not public.

If a request has several credentials, one of them is used: see [Signing requests](signing.md). A
header that is sent twice is read as one header with both values, so a second credential of the same
kind is rejected.

**Object access** is checked in addition to the credential:"""

_OWNERS: Final = """\
**Owner roles** are the users of a processor, partner or agent that have the operation, and what
they reach. They see and change only data of their owner. Everything else answers like an
unknown ID, or an empty list. An API key with an owner has the operations of merchant_manager,
partner_user or agent_user, within its scopes: the scope among the allowed callers or those in
parentheses. A suspended owner's users and keys can read, but not change. See
[Owners](owners.md)."""

_APPROVALS = """\
Every operation by which an admin changes something declares the
[guarded operations](approvals.md#guarded-operations) that its requests count as, or why approval
rules never apply."""

_TWO_STEP_FLOWS: Final = """\
In these flows, one request starts what another one completes. A second step has at least the
protection of the first step. *Age* is the longest time between them."""

_RESTRICTED_FIELDS: Final = "Fields limited to some callers (403 `FORBIDDEN` for others): {fields}."
_PUBLIC: Final = "public"

_CREDENTIALS: Final = (
    (_PUBLIC, "no credential is needed, and any that is sent is ignored"),
    ("a scope: `payments:read`", "an API key with this scope"),
    *(
        (name, f"an admin with this role, abbreviated {format_code(letter)}")
        for letter, name in ROLES_BY_LETTER.items()
    ),
    ("every admin", "an admin with any role"),
    ("service", "an internal service, identified by its signature"),
    ("pos signature", "a processor's or a terminal's signing key"),
    ("partner signature", "a partner's signing key"),
    ("owner", "a user or an API key of a processor, partner or agent"),
)


def write_access_page(file: Path) -> list[Path]:
    """Write the access page if it changed. Return the changed file, if any."""
    return write_if_changed(file, render_access_page())


def render_access_page() -> str:
    """Return the access page, which covers the gateway and the messenger."""
    by_tag: dict[str, list[Endpoint]] = {}
    for endpoint in list_endpoints():
        by_tag.setdefault(endpoint.tag, []).append(endpoint)
    blocks = [
        _INTRODUCTION,
        format_table(("Name", "Caller"), _CREDENTIALS),
        _LEGEND,
        format_table(
            ("Object access", "Rule"), [(check.title, check.description) for check in ObjectAccess]
        ),
        _OWNERS,
        format_table(
            ("Owner access", "Rule"),
            [(binding.title, binding.description) for binding in Binding],
        ),
        "## Approvals",
        _APPROVALS,
        format_table(("Approval", "Operations"), _list_guards()),
        "## Two-step flows",
        _TWO_STEP_FLOWS,
        format_table(
            ("Flow", "Second step", "Bound to", "Age", "Protection", "Ends with"),
            [
                (
                    flow.title,
                    ", ".join(map(format_code, flow.second_steps)),
                    flow.bound_to,
                    _format_age(flow.lifetime),
                    flow.protection,
                    flow.ended_by,
                )
                for flow in TWO_STEP_FLOWS
            ],
        ),
        "## Gateway",
    ]
    for tag, tag_endpoints in by_tag.items():
        blocks += [f"### {tag}", *_render_endpoints(tag_endpoints)]
    blocks += ["## Messenger", *_render_messenger(ENDPOINTS)]
    return "\n\n".join(blocks) + "\n"


def _render_endpoints(endpoints: list[Endpoint]) -> Iterator[str]:
    yield format_table(
        ("Operation", "Allowed callers", "Other callers", "Object access", "Owner roles"),
        [
            (
                format_code(endpoint.name),
                ", ".join(_list_callers(endpoint.access)),
                _describe_rejection(endpoint),
                ", ".join(check.title for check in endpoint.objects),
                _describe_owners(endpoint),
            )
            for endpoint in endpoints
        ],
    )
    for endpoint in endpoints:
        names_by_callers: dict[str, list[str]] = {}
        for name, access in endpoint.field_access.items():
            callers = ", ".join(_list_callers(access))
            names_by_callers.setdefault(callers, []).append(format_code(name))
        fields = [f"{', '.join(names)} ({callers})" for callers, names in names_by_callers.items()]
        if fields:
            restricted = _RESTRICTED_FIELDS.format(fields="; ".join(fields))
            yield f"{format_code(endpoint.name)}. {restricted}"


def _list_guards() -> Iterator[tuple[str, str]]:
    """Yield each guarded operation, and each reason for none, with its endpoints."""
    endpoints = list_endpoints()
    for operation in Operation:
        guarded = [item for item in endpoints if item.guard and operation in item.guard.operations]
        yield format_code(operation), _format_names(guarded)
    for reason in Unguarded:
        yield (
            f"never: {reason}",
            _format_names([item for item in endpoints if item.unguarded == reason]),
        )


def _format_names(endpoints: list[Endpoint]) -> str:
    return ", ".join(format_code(endpoint.name) for endpoint in endpoints)


def _list_callers(access: Access) -> Iterator[str]:
    if access.public:
        yield _PUBLIC
    if access.scope:
        yield format_code(access.scope)
    if set(access.roles) == set(ROLES_BY_LETTER):
        yield "every admin"
    else:
        yield from (name for letter, name in ROLES_BY_LETTER.items() if letter in access.roles)
    if access.service:
        yield "service"
    if access.hmac:
        yield f"{access.hmac} signature"
    if access.owners:
        yield "owner"


def _describe_owners(endpoint: Endpoint) -> str:
    """Return the owner roles that have the operation, and how its objects belong to the owner."""
    access = get_owner_access(endpoint)
    if access.binding is Binding.NEVER:
        return ""
    names = [name for name in OWNER_ROLES_BY_LETTER.values() if name in access.role_names]
    if len(names) == len(OWNER_ROLES_BY_LETTER):
        names = ["every owner role"]
    keys = access.key_role_names - access.role_names
    names += [f"API key of an owner like {name}" for name in sorted(keys)]
    scopes = f" ({', '.join(map(format_code, access.scopes))})" if access.scopes else ""
    return f"{', '.join(names)}{scopes}: {access.binding.title}"


def _describe_rejection(endpoint: Endpoint) -> str:
    access = endpoint.access
    if access.public:
        return "401" if Code.UNAUTHORIZED in endpoint.errors else ""
    only_signed = access.hmac and not (access.scope or access.roles or access.service)
    return "403 or 401" if only_signed else "403"


def _format_age(lifetime: timedelta) -> str:
    days, minutes = lifetime.days, lifetime.seconds // 60
    if days:
        return f"{days} days" if days > 1 else "24 hours"
    return f"{minutes} minutes"


def _render_messenger(routes: Sequence[Endpoint]) -> Iterator[str]:
    yield (
        "The messenger has no API keys or scopes. Each route accepts one kind of credential. The"
        " gateway's API keys, tokens and signing keys are not accepted. Errors have the fields"
        " `error` and `status`."
    )
    yield format_table(
        ("Operation", "Allowed callers", "Other callers", "In production"),
        [
            (
                format_code(route.name),
                route.access.description.removeprefix("Access: "),
                " or ".join(str(status) for status in route.access.error_statuses),
                "" if route.in_production else "404",
            )
            for route in routes
        ],
    )
    yield (
        "`GET /openapi.json`, which describes these routes, is public. `GET /metrics` needs"
        " TAPGATE_METRICS_TOKEN in staging and production. For the settings, see"
        f" {format_link('Settings', 'settings.md')}."
    )
