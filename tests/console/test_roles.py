"""Console permissions match the API's for every action, page and role."""

import re
from collections.abc import Iterator

import pytest

from console.console_client import ConsoleClient, ConsoleClients
from harness import Harness
from tapgate.console.actions import Action
from tapgate.console.console import ACTIONS
from tapgate.console.rendering import get_page_path
from tapgate.edge.endpoint import ROLES_BY_LETTER, Endpoint
from tapgate.gateway import ENDPOINT_GROUPS

_ENDPOINTS = {endpoint.name: endpoint for noun in ENDPOINT_GROUPS for endpoint in noun}
_LINK = re.compile(r'<li><a href="(/console[^"]*)"')
_FIELD = re.compile(r'<(?:input|select|textarea)[^>]* name="(\w+)"')


def _is_allowed(endpoint: Endpoint, role: str, field: str | None) -> bool:
    """Return whether the endpoint's declaration allows the role to send the field."""
    narrower = None if field is None else endpoint.field_access.get(field)
    return role in endpoint.access.roles and (narrower is None or role in narrower.roles)


def _build_url(act: Action) -> str:
    names = re.findall(r"{(\w+)}", act.path + (act.prefill_path or "") + (act.redirect_path or ""))
    return f"/console/actions/{act.name}?" + "&".join(f"{name}=x" for name in names)


def _list_navigation_links(page: str) -> Iterator[str]:
    start = page.index('<nav class="side"')
    yield from _LINK.findall(page[start : page.index("</nav>", start)])


@pytest.fixture(params=sorted(ROLES_BY_LETTER))
async def one(
    request: pytest.FixtureRequest, visitors: ConsoleClients
) -> tuple[str, ConsoleClient]:
    """Return each role's letter and a client signed in with that role."""
    return request.param, await visitors.create_signed_in(request.param)


def test_action_names_are_unique_and_refer_to_endpoints() -> None:
    assert len({act.name for act in ACTIONS}) == len(ACTIONS)
    for act in ACTIONS:
        assert act.endpoint in _ENDPOINTS, f"{act.name}: {act.endpoint} is no operation"
        assert not act.is_dangerous or act.description, f"{act.name} does not say what happens"


async def test_action_is_open_to_exactly_the_allowed_roles(one: tuple[str, ConsoleClient]) -> None:
    role, visitor = one
    csrf = {"X-CSRF-Token": await visitor.get_csrf_token()}
    for act in ACTIONS:
        allowed = _is_allowed(_ENDPOINTS[act.endpoint], role, act.required_field)
        for answer in (
            await visitor.get_partial(_build_url(act)),
            await visitor.post_without_csrf(_build_url(act), **csrf),
            await visitor.post_without_csrf(_build_url(act), **csrf, **{"HX-Request": "true"}),
        ):
            assert answer.status_code < 500, f"{act.name}: {answer.text}"
            assert (answer.status_code != 403) == allowed, f"{role} {act.name}"


async def test_form_contains_only_fields_the_role_may_send(
    one: tuple[str, ConsoleClient],
) -> None:
    role, visitor = one
    for act in ACTIONS:
        endpoint = _ENDPOINTS[act.endpoint]
        if act.prefill_path is not None or not _is_allowed(endpoint, role, act.required_field):
            continue
        form = (await visitor.get_partial(_build_url(act))).text
        assert 'class="dialog-content"' in form, f"{act.name}: {form}"
        for field in set(_FIELD.findall(form)) - {"request_id"}:
            assert _is_allowed(endpoint, role, field), f"{role} {act.name} {field}"
        for field in act.fields:
            assert (f'name="{field.name}"' in form) == _is_allowed(endpoint, role, field.name)


async def test_navigation_lists_exactly_the_pages_the_role_may_open(
    one: tuple[str, ConsoleClient], ada: ConsoleClient
) -> None:
    _, visitor = one
    everything = set(_list_navigation_links((await ada.get("/console")).text))
    shown = set(_list_navigation_links((await visitor.get("/console")).text))
    assert len(everything) > 5
    for address in everything:
        answer = await visitor.get(address)
        assert answer.status_code == (200 if address in shown else 403), address
        if answer.status_code == 403:
            assert "Available to: " in answer.text


async def test_list_pages_offer_only_actions_the_role_may_perform(
    one: tuple[str, ConsoleClient],
) -> None:
    role, visitor = one
    for address in set(_list_navigation_links((await visitor.get("/console")).text)):
        page = (await visitor.get(address)).text
        for name in set(re.findall(r'hx-get="/console/actions/([\w.]+)', page)):
            act = next(act for act in ACTIONS if act.name == name)
            assert _is_allowed(_ENDPOINTS[act.endpoint], role, act.required_field), f"{role} {name}"


async def test_simulators_are_linked_only_for_roles_that_may_open_them(
    one: tuple[str, ConsoleClient],
) -> None:
    role, visitor = one
    assert ('href="/simulator/' in await visitor.get_page_text("/console")) == (role == "A")
    for path in ("/simulator/pos", "/simulator/phone"):
        assert (await visitor.get(path)).status_code == (200 if role == "A" else 403)


def test_id_is_linked_only_when_its_page_may_be_opened() -> None:
    asked: list[str] = []
    for start in ("sub_", "agt_", "prc_", "ptn_", "txn_", "alr_"):
        assert (
            get_page_path(f"{start}1", lambda endpoint: asked.append(endpoint) is None) is not None
        )
        assert get_page_path(f"{start}1", lambda endpoint: False) is None
    assert set(asked) <= set(_ENDPOINTS), "they are operations of the interface"
    assert get_page_path("key_1", lambda endpoint: True) is None


async def test_forbidden_page_names_the_allowed_roles(visitors: ConsoleClients) -> None:
    support = await visitors.create_signed_in("S")
    answer = await support.get("/console/audit")
    assert answer.status_code == 403
    assert "Available to: Compliance, System admin." in answer.text
    part = await support.get_partial("/console/audit/verify")
    assert part.status_code == 403 and "<html" not in part.text


async def test_denied_page_request_is_recorded_in_the_audit_log(
    visitors: ConsoleClients, world: Harness
) -> None:
    """The API records its own denials too, so probing never goes unrecorded."""
    support, person = await visitors.create_signed_in("S"), (await world.create_subscriber())["id"]
    for page, endpoint in (
        ("/console/cards/upload", "POST /api/v1/cards/upload-csv"),
        ("/console/limits/fees/transfer_p2p", "PUT /api/v1/fee-rules/{type}"),
        ("/console/limits/commission", "PUT /api/v1/commission-rules"),
        ("/simulator/pos", "POST /api/v1/processors/{id}/keys"),
        ("/console/actions/agent.fund", "POST /api/v1/agents/{id}/fund"),
        (f"/console/actions/subscriber.level?id={person}", "PUT /api/v1/subscribers/{id}"),
    ):
        assert (await support.get(page)).status_code == 403, page
        assert len(await world.list_audit_entries(endpoint, "access.denied")) == 1, page
    answer = await support.post_partial("/console/actions/agent.fund?id=agt_1", {"amount": "5"})
    assert answer.status_code == 403
    assert (
        len(await world.list_audit_entries("POST /api/v1/agents/{id}/fund", "access.denied")) == 2
    )
