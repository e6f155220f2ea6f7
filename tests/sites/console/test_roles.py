"""Console permissions match the API's for every action, page and role."""

import re
from collections.abc import Iterator

import pytest

from builders.books import configure_peer
from drivers.console import ConsoleClient, ConsoleClients
from harness import Harness
from tapgate.http.api.access import ROLES_BY_LETTER
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import ENDPOINT_GROUPS
from tapgate.sites.console.actions import Action
from tapgate.sites.console.console import ACTIONS
from tapgate.sites.console.rendering import get_page_path

_ENDPOINTS = {endpoint.name: endpoint for group in ENDPOINT_GROUPS for endpoint in group}
_LINK = re.compile(r'<li><a href="(/console[^"]*)"')
_FIELD = re.compile(r'<(?:input|select|textarea)[^>]* name="(\w+)"')


def _is_allowed(endpoint: Endpoint, role: str, field: str | None) -> bool:
    """Return whether the role may call the endpoint and, if given, send the field."""
    field_access = None if field is None else endpoint.field_access.get(field)
    return role in endpoint.access.roles and (field_access is None or role in field_access.roles)


def _build_url(action: Action) -> str:
    names = re.findall(
        r"{(\w+)}", action.path + (action.prefill_path or "") + (action.redirect_path or "")
    )
    return f"/console/actions/{action.name}?" + "&".join(f"{name}=x" for name in names)


def _list_navigation_links(page: str) -> Iterator[str]:
    start = page.index('<nav class="side"')
    yield from _LINK.findall(page[start : page.index("</nav>", start)])


@pytest.fixture(params=sorted(ROLES_BY_LETTER))
async def role_and_client(
    request: pytest.FixtureRequest, console_clients: ConsoleClients
) -> tuple[str, ConsoleClient]:
    """Return a role's letter and a client signed in with the role; runs once per role."""
    return request.param, await console_clients.create_signed_in(request.param)


def test_action_names_are_unique_endpoints_exist_and_dangerous_actions_are_described() -> None:
    assert len({action.name for action in ACTIONS}) == len(ACTIONS)
    for console_action in ACTIONS:
        assert console_action.endpoint in _ENDPOINTS, console_action.name
        found = not console_action.is_dangerous or console_action.description
        assert found, f"{console_action.name} has no description"


async def test_action_is_allowed_for_exactly_the_roles_of_its_endpoint(
    role_and_client: tuple[str, ConsoleClient],
) -> None:
    role, console = role_and_client
    csrf = {"X-CSRF-Token": await console.get_csrf_token()}
    for action in ACTIONS:
        allowed = _is_allowed(_ENDPOINTS[action.endpoint], role, action.required_field)
        for response in (
            await console.get_partial(_build_url(action)),
            await console.post_without_csrf(_build_url(action), **csrf),
            await console.post_without_csrf(_build_url(action), **csrf, **{"HX-Request": "true"}),
        ):
            assert response.status_code < 500, f"{action.name}: {response.text}"
            assert (response.status_code != 403) == allowed, f"{role} {action.name}"


async def test_form_contains_exactly_the_action_fields_that_the_role_may_send(
    role_and_client: tuple[str, ConsoleClient],
) -> None:
    role, console = role_and_client
    for action in ACTIONS:
        endpoint = _ENDPOINTS[action.endpoint]
        loads_record = (action.prefill_path or action.preview_path) is not None
        if loads_record or not _is_allowed(endpoint, role, action.required_field):
            continue
        form = (await console.get_partial(_build_url(action))).text
        assert 'class="dialog-content"' in form, f"{action.name}: {form}"
        for field in set(_FIELD.findall(form)) - {"request_id"}:
            assert _is_allowed(endpoint, role, field), f"{role} {action.name} {field}"
        for field in action.fields:
            assert (f'name="{field.name}"' in form) == _is_allowed(endpoint, role, field.name)


async def test_navigation_lists_exactly_the_pages_that_the_role_may_open(
    role_and_client: tuple[str, ConsoleClient], ada: ConsoleClient
) -> None:
    _, console = role_and_client
    all_links = set(_list_navigation_links((await ada.get("/console")).text))
    own_links = set(_list_navigation_links((await console.get("/console")).text))
    assert len(all_links) > 5
    for address in all_links:
        response = await console.get(address)
        assert response.status_code == (200 if address in own_links else 403), address
        if response.status_code == 403:
            assert "Available to: " in response.text


async def test_navigation_pages_offer_only_actions_that_the_role_may_perform(
    role_and_client: tuple[str, ConsoleClient],
) -> None:
    role, console = role_and_client
    for address in set(_list_navigation_links((await console.get("/console")).text)):
        page = (await console.get(address)).text
        for name in set(re.findall(r'hx-get="/console/actions/([\w.]+)', page)):
            console_action = next(action for action in ACTIONS if action.name == name)
            found = _is_allowed(
                _ENDPOINTS[console_action.endpoint], role, console_action.required_field
            )
            assert found, f"{role} {name}"


async def test_simulators_are_linked_and_open_only_for_system_admins(
    role_and_client: tuple[str, ConsoleClient],
) -> None:
    role, console = role_and_client
    assert ('href="/simulator/' in await console.get_page_text("/console")) == (role == "A")
    for path in ("/simulator/pos", "/simulator/phone"):
        assert (await console.get(path)).status_code == (200 if role == "A" else 403)


async def test_book_transfers_are_linked_only_if_there_are_other_books(
    ada: ConsoleClient, harness: Harness
) -> None:
    link = 'href="/console/book-transfers"'
    assert link not in await ada.get_page_text("/console")
    await configure_peer(harness)
    assert link in await ada.get_page_text("/console")


def test_id_is_linked_only_if_the_admin_may_open_its_page() -> None:
    endpoints: list[str] = []
    for prefix in ("sub_", "agt_", "prc_", "ptn_", "txn_", "alr_", "po_", "run_", "bnk_"):
        page_path = get_page_path(f"{prefix}1", lambda endpoint: endpoints.append(endpoint) is None)
        assert page_path is not None
        assert get_page_path(f"{prefix}1", lambda endpoint: False) is None
    assert set(endpoints) <= set(_ENDPOINTS), "every checked endpoint exists"
    assert get_page_path("key_1", lambda endpoint: True) is None


async def test_forbidden_page_names_the_allowed_roles(console_clients: ConsoleClients) -> None:
    support = await console_clients.create_signed_in("S")
    response = await support.get("/console/audit")
    assert response.status_code == 403
    assert "Available to: Compliance, System admin." in response.text
    partial = await support.get_partial("/console/audit/verify")
    assert partial.status_code == 403 and "<html" not in partial.text


async def test_denied_page_request_is_recorded_in_the_audit_log(
    console_clients: ConsoleClients, harness: Harness
) -> None:
    """The console checks access before it calls the API, so it must record denials itself."""
    support = await console_clients.create_signed_in("S")
    person = (await harness.create_subscriber())["id"]
    for page, endpoint in (
        ("/console/cards/upload", "POST /api/v1/cards/upload-csv"),
        ("/console/limits/fees/transfer_p2p", "PUT /api/v1/fee-rules/{type}"),
        ("/console/limits/commission", "PUT /api/v1/commission-rules"),
        ("/simulator/pos", "POST /api/v1/processors/{id}/keys"),
        ("/console/actions/agent.fund", "POST /api/v1/agents/{id}/fund"),
        (f"/console/actions/subscriber.level?id={person}", "PUT /api/v1/subscribers/{id}"),
    ):
        assert (await support.get(page)).status_code == 403, page
        assert len(await harness.list_audit_entries(endpoint, "access.denied")) == 1, page
    response = await support.post_partial("/console/actions/agent.fund?id=agt_1", {"amount": "5"})
    assert response.status_code == 403
    count = len(await harness.list_audit_entries("POST /api/v1/agents/{id}/fund", "access.denied"))
    assert count == 2
