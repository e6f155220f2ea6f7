"""Generator of docs/access.md: the callers of each operation, and the response to all others.

The page is generated from the endpoint declarations of both services.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tapgate.cli.manual.markdown import format_code, format_link, format_table
from tapgate.cli.manual.object_access import OBJECT_ACCESS, ObjectAccess
from tapgate.edge.endpoint import ROLES_BY_LETTER, Access, Endpoint
from tapgate.errors import Code
from tapgate.messenger.routes.route import Route

_INTRODUCTION: Final = """\
# Who may call what

<!-- Made by `make docs` from the declarations of the endpoints. Change those. -->

Every operation of the gateway and of the messenger: who may call it, what everybody else is
answered, and whose things it works on. The tests call each of them with every credential there is
and compare the answers with the same declarations.

## How to read it

**May call** names what is enough, each by itself:"""

_LEGEND: Final = """\
**Others** is what a caller with another good credential is answered; without a credential, or with
one that is not good, it is 401 `UNAUTHORIZED` everywhere but on public operations. *403* is
`FORBIDDEN`, with what would do in `details.required`, and an entry in the audit log
(`access.denied`). *403 or 401* stands where only signed requests are taken: a good signature of
another kind is 403, any other credential counts as none. *401* of a public operation: what proves
who asks is in the body, or signs it.

A credential that is not good is unknown, malformed, expired, deleted, of a disabled admin, of an
ended session, for another environment, signed wrongly or more than five minutes from now: 401
`UNAUTHORIZED`. A right signature of a suspended processor or partner, or of a blocked terminal, is
403 `PROCESSOR_SUSPENDED`, `PARTNER_SUSPENDED` or `TERMINAL_BLOCKED` on every operation that is not
public. Several credentials at once: one decides, see [Signing requests](signing.md). A header that
comes twice is one header with both values, so a second credential of the same kind is refused.

**Whose** is what is looked at beside the credential:"""

_RESTRICTED_FIELDS: Final = (
    "Fields that fewer callers may send (others: 403 `FORBIDDEN`): {fields}."
)
_PUBLIC: Final = "public"

_CREDENTIALS: Final = (
    (_PUBLIC, "anybody, without a credential; one that is sent is not looked at"),
    ("a scope: `payments:read`", "an API key that has this scope"),
    *(
        (name, f"an admin with this role, {format_code(letter)} in short")
        for letter, name in ROLES_BY_LETTER.items()
    ),
    ("every admin", "an admin, whatever the role"),
    ("service", "an internal service, by its signature"),
    ("pos signature", "a processor's or a terminal's signing key"),
    ("partner signature", "a partner's signing key"),
)


def render_page(endpoints: Iterable[Endpoint], routes: Sequence[Route]) -> str:
    by_tag: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        by_tag.setdefault(endpoint.tag, []).append(endpoint)
    blocks = [
        _INTRODUCTION,
        format_table(("Name", "Who"), _CREDENTIALS),
        _LEGEND,
        format_table(("Whose", ""), [(whose.title, whose.description) for whose in ObjectAccess]),
        "## Gateway",
    ]
    for tag, declared in by_tag.items():
        blocks += [f"### {tag}", *_render_endpoints(declared)]
    blocks += ["## Messenger", *_render_messenger(routes)]
    return "\n\n".join(blocks) + "\n"


def _render_endpoints(endpoints: list[Endpoint]) -> Iterator[str]:
    yield format_table(
        ("Operation", "May call", "Others", "Whose"),
        [
            (
                format_code(endpoint.name),
                ", ".join(_list_callers(endpoint.access)),
                _describe_rejection(endpoint),
                ", ".join(whose.title for whose in OBJECT_ACCESS[endpoint.name]),
            )
            for endpoint in endpoints
        ],
    )
    for endpoint in endpoints:
        fields = [
            f"{format_code(name)} ({', '.join(_list_callers(access))})"
            for name, access in endpoint.field_access.items()
        ]
        if fields:
            restricted = _RESTRICTED_FIELDS.format(fields=", ".join(fields))
            yield f"{format_code(endpoint.name)}. {restricted}"


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


def _describe_rejection(endpoint: Endpoint) -> str:
    access = endpoint.access
    if access.public:
        return "401" if Code.UNAUTHORIZED in endpoint.errors else ""
    only_signed = access.hmac and not (access.scope or access.roles or access.service)
    return "403 or 401" if only_signed else "403"


def _render_messenger(routes: Sequence[Route]) -> Iterator[str]:
    yield (
        "It knows no clients and no scopes: each route has one credential of its own, and the"
        " gateway's API keys, tokens and signing keys are none. Refusals have the messenger's form:"
        " `error` and `status`."
    )
    yield format_table(
        ("Operation", "May call", "Others", "In production"),
        [
            (
                format_code(f"{route.method} {route.path}"),
                route.access.description.removeprefix("Access: "),
                " or ".join(str(status) for status in route.access.error_statuses),
                "" if route.in_production else "404",
            )
            for route in routes
        ],
    )
    yield (
        "`GET /openapi.json` describes them to anybody. What each setting means:"
        f" {format_link('Settings', 'settings.md')}."
    )
