"""docs/access.md matches the endpoint declarations of both services."""

from datetime import timedelta
from pathlib import Path

import msgspec

from tapgate.http.api.access import ROLES_BY_LETTER
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import get_owner_access
from tapgate.messenger.routes import ENDPOINTS
from tapgate.server.gateway import list_endpoints
from tools.manual.access import render_access_page, write_access_page
from tools.manual.two_step_flows import SINGLE_STEPS, TWO_STEP_FLOWS

DOCUMENT = Path(__file__).parents[2] / "docs" / "access.md"
#: Fields in which a request repeats what an earlier request, or its message, has issued.
PROOF_FIELDS = {"code", "otp", "token", "login_token", "state", "credential", "passkey"}
PROOF_FIELDS |= {"refresh_token"}
PROOF_WORDS = ("confirm", "verify", "accept", "approve", "complete")


def test_access_page_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == render_access_page(), "docs/access.md is stale: run make docs"
    assert render_access_page() == render_access_page()


def test_every_operation_declares_its_object_access() -> None:
    for endpoint in list_endpoints():
        assert endpoint.objects, f"{endpoint.name} must declare `objects`"
        combinable = not endpoint.objects & (ObjectAccess.NO_OBJECT | ObjectAccess.ANY)
        found = combinable or len(endpoint.objects) == 1
        assert found, f"{endpoint.name}: NO_OBJECT and ANY must be alone"


def find_row(operation: str) -> list[str]:
    """Return the cells after the name in the operation's first row; /health has two rows."""
    lines = (
        item for item in render_access_page().splitlines() if item.startswith(f"| `{operation}` |")
    )
    line = next(lines)
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_every_operation_has_a_row_with_its_declared_callers() -> None:
    for endpoint in list_endpoints():
        callers, other_status, _, owners = find_row(endpoint.name)
        assert bool(other_status) or endpoint.access.public
        assert (endpoint.access.scope or "") in callers
        for letter, role in ROLES_BY_LETTER.items():
            documented = role in callers or "every admin" in callers
            assert documented == (letter in endpoint.access.roles), endpoint.name
        assert ("service" in callers) == endpoint.access.service
        for role in get_owner_access(endpoint).role_names:
            assert role in owners or "every owner role" in owners, endpoint.name
    for route in ENDPOINTS:
        assert f"| `{route.name}` |" in render_access_page().partition("## Messenger")[2]


def test_rows_show_callers_status_and_object_access() -> None:
    assert find_row("POST /api/v1/subscribers") == [
        "`subscribers:write`, system_admin, support_user, service",
        "403",
        "no object",
        "",
    ]
    assert find_row("POST /api/v1/pos/refund") == [
        "pos signature",
        "403 or 401",
        "own processor",
        "",
    ]
    assert find_row("GET /api/v1/transactions/{id}")[-1] == "every owner role: own object"
    assert find_row("POST /api/v1/webhooks/partners/{partner_id}") == [
        "public",
        "401",
        "own partner",
        "",
    ]
    assert "`PUT /api/v1/subscribers/{id}`. Fields limited to some callers" in render_access_page()


def test_access_page_is_written_only_if_missing_or_stale(tmp_path: Path) -> None:
    file = tmp_path / "access.md"
    assert write_access_page(file) == [file]
    assert write_access_page(file) == []
    file.write_text("stale")
    assert write_access_page(file) == [file]
    assert file.read_text() == render_access_page()


def test_every_second_step_declares_its_flow() -> None:
    declared = {name for flow in TWO_STEP_FLOWS for name in flow.second_steps}
    candidates = set()
    for endpoint in list_endpoints():
        body = endpoint.body_struct
        fields = {field.encode_name for field in msgspec.structs.fields(body)} if body else set()
        action = endpoint.path.rpartition("/")[2]
        if endpoint.method != "GET" and (
            fields & PROOF_FIELDS or action.startswith(PROOF_WORDS) or "verify" in action
        ):
            candidates.add(endpoint.name)
    expected = declared | SINGLE_STEPS.keys()
    assert candidates == expected, "declare it in tools/manual/two_step_flows.py"
    assert not declared & SINGLE_STEPS.keys()


def test_second_step_has_the_protection_of_the_first_step() -> None:
    endpoints = {endpoint.name: endpoint for endpoint in list_endpoints()}
    for flow in TWO_STEP_FLOWS:
        firsts = [endpoints[name] for name in flow.first_steps]
        if not firsts:
            firsts = [endpoint for endpoint in endpoints.values() if endpoint.guard is not None]
        for second in (endpoints[name] for name in flow.second_steps):
            if second.access.public:
                continue  # the caller has no session: what was issued is the credential
            required = any(first.step_up is True for first in firsts)
            assert second.step_up is required, second.name
        assert timedelta(0) < flow.lifetime <= timedelta(days=7), flow.title
