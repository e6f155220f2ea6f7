"""Who sees an invitation or reset link may be its admin, and does not count as another person."""

import re
from typing import Any

import httpx2
import pytest

from builders.approvals import (
    APPROVALS_URL,
    RULES_URL,
    V1,
    approve,
    build_rule,
    decide,
    get_approval,
    require_held,
    set_rules,
)
from drivers.console import ConsoleClients
from drivers.in_process import AppTransport
from harness import BearerAuth, Harness, parse_error
from tapgate.auth.actors import SYSTEM_ACTOR
from tapgate.business.approvals.operations import suspend
from tapgate.cli import admin as admin_command
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import create_app, list_endpoints
from tapgate_client import ids
from tapgate_client.errors import ApiError
from tapgate_client.schemas.admin import Invitation

ADMINS_URL = f"{V1}/admin/users"
LINK = "/console/invitation#"
EVE = {"email": "eve@example.com", "name": "Eve", "role": "system_admin"}
PASSWORD = "a long passphrase 42"


@pytest.fixture
async def staff(harness: Harness) -> list[BearerAuth]:
    """Ada, Ben and Cleo, the only active admins, whose links no one has seen."""
    await harness.database.execute("UPDATE admins SET status = 'disabled'")
    return [await harness.create_admin() for _ in range(3)]


async def save_rules(harness: Harness, auth: BearerAuth, *rules: dict[str, Any]) -> httpx2.Response:
    return await harness.put(RULES_URL, json={"data": rules}, auth=auth)


def only_admins(operation: str, approvers: int = 1) -> dict[str, Any]:
    return build_rule(operation, roles=["system_admin"], approvers=approvers)


def find_link(approval: dict[str, Any]) -> str | None:
    result = approval["result"] or {}
    invitation = result.get("invitation", result)
    url = invitation["url"] if isinstance(invitation, dict) else invitation
    return url if LINK in url else None


async def accept(harness: Harness, url: str, email: str) -> BearerAuth:
    """Set the password with a link, and log in."""
    body = {"token": url.partition("#")[2], "password": PASSWORD}
    accepted = await harness.post(f"{V1}/admin/invitations/accept", json=body)
    assert accepted.status_code == 204, accepted.text
    login = {"email": email, "password": PASSWORD}
    tokens = (await harness.post(f"{V1}/admin/login", json=login)).json()
    admin_id = await harness.database.fetchval("SELECT id FROM admins WHERE email = $1", email)
    return BearerAuth(tokens["token"], ids.encode(ids.ADMIN, admin_id))


async def invite(harness: Harness, auth: BearerAuth, email: str = EVE["email"]) -> BearerAuth:
    """Invite a system_admin without approval rules, and accept the link."""
    created = await harness.post(ADMINS_URL, json={**EVE, "email": email}, auth=auth)
    assert created.json()["link_seen_by"] == [auth.id]
    return await accept(harness, created.json()["invitation"]["url"], email)


async def ask(harness: Harness, auth: BearerAuth) -> dict[str, Any]:
    """Request a keyset, which needs an approval."""
    body = {"name": "Bureau", "meta_read_key": "0" * 32}
    return require_held(await harness.post(f"{V1}/cards/keysets", json=body, auth=auth))


@pytest.mark.parametrize("path", ["", "/{id}/reset-password"])
async def test_link_is_shown_once_to_the_approver_who_executed(
    harness: Harness, staff: list[BearerAuth], path: str
) -> None:
    ada, ben, cleo = staff
    dan = await harness.create_admin()
    assert (await save_rules(harness, ada, only_admins("admin_users", 2))).status_code == 200
    url, body = ADMINS_URL + path.format(id=dan.id), None if path else EVE
    held = require_held(await harness.post(url, json=body, auth=ada))
    first = await approve(harness, held, ben)
    assert (first["status"], first["result"]) == ("pending", None)
    executed = await approve(harness, held, cleo)
    assert (executed["status"], executed["disclosed"]) == ("executed", True)
    link = find_link(executed)
    assert link is not None
    for auth in (ada, ben, cleo, ada):
        seen = await get_approval(harness, held, auth)
        assert (find_link(seen), "disclosed" in seen) == (None, False)
        listed = await harness.get(APPROVALS_URL, auth=auth)
        assert LINK not in listed.text
    events = await harness.database.fetch("SELECT data::text FROM events")
    assert not any(LINK in row["data"] for row in events)
    await accept(harness, link, "eve@example.com" if not path else await get_email(harness, dan))


async def get_email(harness: Harness, admin: BearerAuth) -> str:
    return str(
        await harness.database.fetchval(
            "SELECT email FROM admins WHERE id = $1", ids.decode(ids.ADMIN, admin.id)
        )
    )


async def test_maker_and_approver_do_not_become_two_people(
    harness: Harness, staff: list[BearerAuth]
) -> None:
    """The approver has seen the link, and the maker chose the mailbox that it is sent to."""
    ada, ben, cleo = staff
    rules = [only_admins("admin_users"), only_admins("keysets")]
    assert (await save_rules(harness, ada, *rules)).status_code == 200
    held = require_held(await harness.post(ADMINS_URL, json=EVE, auth=ada))
    link = find_link(await approve(harness, held, ben))
    assert link is not None
    eve = await accept(harness, link, EVE["email"])
    for maker, approver in ((ben, eve), (eve, ben), (ada, eve), (eve, ada)):
        refused = await decide(harness, await ask(harness, maker), "approve", approver)
        assert parse_error(refused) == (403, "FORBIDDEN")
    rejected = await decide(harness, await ask(harness, ben), "reject", eve, reason="Not needed")
    assert rejected.status_code == 200
    # Each of them may be Eve, but they are certainly two people. Cleo is not Eve.
    assert (await approve(harness, await ask(harness, ada), ben))["status"] == "executed"
    assert (await approve(harness, await ask(harness, cleo), eve))["status"] == "executed"

    for auth in (ada, ben, eve):
        refused = await harness.post(f"{ADMINS_URL}/{eve.id}/confirm", auth=auth)
        assert parse_error(refused) == (403, "FORBIDDEN")
    confirmed = await harness.post(f"{ADMINS_URL}/{eve.id}/confirm", auth=cleo)
    assert (confirmed.status_code, confirmed.json()["link_seen_by"]) == (200, [])
    for maker in (ada, ben):
        assert (await approve(harness, await ask(harness, maker), eve))["status"] == "executed"
    entry = await harness.database.fetchrow(
        "SELECT actor ->> 'id' AS actor, changes FROM audit_entries WHERE event = 'admin.confirmed'"
    )
    assert entry is not None
    assert (entry["actor"], entry["changes"]) == (cleo.id, {"link_seen_by": [[ada.id, ben.id], []]})


async def test_unconfirmed_accounts_of_one_maker_count_once(
    harness: Harness, staff: list[BearerAuth]
) -> None:
    """Different approvers saw the links, but one person may own both mailboxes."""
    ada, ben, cleo = staff
    rules = [only_admins("admin_users"), only_admins("keysets", 2)]
    assert (await save_rules(harness, ada, *rules)).status_code == 200
    accounts = []
    for approver, email in ((ben, "eve@example.com"), (cleo, "fay@example.com")):
        new = {**EVE, "email": email}
        held = require_held(await harness.post(ADMINS_URL, json=new, auth=ada))
        link = find_link(await approve(harness, held, approver))
        assert link is not None
        accounts.append(await accept(harness, link, email))
    dan = await harness.create_admin()
    held = await ask(harness, dan)
    for auth in accounts:
        assert (await approve(harness, held, auth))["status"] == "pending"
    assert (await approve(harness, held, ben))["status"] == "executed"


async def test_two_admins_can_invite_a_third_under_rules(
    harness: Harness, staff: list[BearerAuth]
) -> None:
    """The requests of the third admin wait for the confirmation."""
    ada, ben, cleo = staff
    assert (await harness.post(f"{ADMINS_URL}/{cleo.id}/disable", auth=ada)).status_code == 200
    assert (await save_rules(harness, ada, only_admins("admin_users"))).status_code == 200
    held = require_held(await harness.post(ADMINS_URL, json=EVE, auth=ada))
    assert (await approve(harness, held, ben))["status"] == "executed"


async def test_link_made_with_a_taken_account_stays_linked_after_its_confirmation(
    harness: Harness, staff: list[BearerAuth]
) -> None:
    ada, ben, cleo = staff
    reset = await harness.post(f"{ADMINS_URL}/{ada.id}/reset-password", auth=ben)
    taken = await accept(harness, reset.json()["url"], await get_email(harness, ada))
    created = (await harness.post(ADMINS_URL, json=EVE, auth=taken)).json()
    assert created["link_seen_by"] == [ada.id, ben.id]
    eve = await accept(harness, created["invitation"]["url"], EVE["email"])
    assert (await harness.post(f"{ADMINS_URL}/{ada.id}/confirm", auth=cleo)).status_code == 200
    assert (await save_rules(harness, cleo, only_admins("keysets"))).status_code == 200
    refused = await decide(harness, await ask(harness, ben), "approve", eve)
    assert parse_error(refused) == (403, "FORBIDDEN")


async def test_linked_accounts_count_once_among_several_approvers(
    harness: Harness, staff: list[BearerAuth]
) -> None:
    ada, ben, cleo = staff
    eve = await invite(harness, ben)
    assert (await save_rules(harness, ada, only_admins("keysets", 2))).status_code == 200
    held = await ask(harness, ada)
    assert (await approve(harness, held, ben))["status"] == "pending"
    assert (await approve(harness, held, eve))["status"] == "pending"
    assert (await approve(harness, held, cleo))["status"] == "executed"


async def test_accounts_with_a_common_viewer_may_be_one_person(
    harness: Harness, staff: list[BearerAuth]
) -> None:
    """Otherwise one person invites two accounts, one of which approves for the other."""
    ada, ben, cleo = staff
    eve, fay = await invite(harness, ben), await invite(harness, ben, "fay@example.com")
    assert (await save_rules(harness, ada, only_admins("keysets"))).status_code == 200
    held = await ask(harness, eve)
    assert parse_error(await decide(harness, held, "approve", fay)) == (403, "FORBIDDEN")
    refused = await harness.post(f"{ADMINS_URL}/{fay.id}/confirm", auth=eve)
    assert parse_error(refused) == (403, "FORBIDDEN")
    assert (await harness.post(f"{ADMINS_URL}/{fay.id}/confirm", auth=cleo)).status_code == 200
    assert (await approve(harness, held, fay))["status"] == "executed"


async def test_new_link_needs_a_new_confirmation(harness: Harness, staff: list[BearerAuth]) -> None:
    ada, ben, cleo = staff
    eve = await invite(harness, ben)
    assert (await harness.post(f"{ADMINS_URL}/{eve.id}/confirm", auth=cleo)).status_code == 200
    assert (await harness.post(f"{ADMINS_URL}/{eve.id}/confirm", auth=ben)).status_code == 200
    reset = await harness.post(f"{ADMINS_URL}/{eve.id}/reset-password", auth=ben)
    eve = await accept(harness, reset.json()["url"], EVE["email"])
    assert (await save_rules(harness, ada, only_admins("keysets"))).status_code == 200
    refused = await decide(harness, await ask(harness, ben), "approve", eve)
    assert parse_error(refused) == (403, "FORBIDDEN")


@pytest.mark.parametrize("is_reset", [False, True])
async def test_account_is_confirmed_only_after_its_link(
    harness: Harness,
    staff: list[BearerAuth],
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_reset: bool,
) -> None:
    """Otherwise the viewer uses the link after the confirmation, and is two people."""
    _ada, ben, cleo = staff
    if is_reset:
        eve = await invite(harness, ben)
        assert (await harness.post(f"{ADMINS_URL}/{eve.id}/confirm", auth=cleo)).status_code == 200
        reset = await harness.post(f"{ADMINS_URL}/{eve.id}/reset-password", auth=ben)
        confirm, link = f"{ADMINS_URL}/{eve.id}/confirm", reset.json()["url"]
    else:
        created = (await harness.post(ADMINS_URL, json=EVE, auth=ben)).json()
        confirm, link = f"{ADMINS_URL}/{created['id']}/confirm", created["invitation"]["url"]
    early = await harness.post(confirm, auth=cleo)
    assert parse_error(early) == (422, "VALIDATION_FAILED")
    tasks: list[Any] = []
    monkeypatch.setattr(admin_command, "run_with_services", tasks.append)
    admin_command.confirm(email=EVE["email"])
    with pytest.raises(ApiError, match="VALIDATION_FAILED"):
        await tasks.pop()(harness.services)
    await accept(harness, link, EVE["email"])
    assert (await harness.post(confirm, auth=cleo)).json()["link_seen_by"] == []


async def test_account_with_an_expired_link_stays_linked_to_the_first_maker(
    harness: Harness, staff: list[BearerAuth]
) -> None:
    """The next link is sent to the same address, which the first maker chose."""
    ada, ben, cleo = staff
    created = (await harness.post(ADMINS_URL, json=EVE, auth=ben)).json()
    await harness.database.execute("UPDATE admin_invitations SET expires_at = created_at")
    refused = await harness.post(f"{ADMINS_URL}/{created['id']}/confirm", auth=cleo)
    assert parse_error(refused) == (422, "VALIDATION_FAILED")
    reset = await harness.post(f"{ADMINS_URL}/{created['id']}/reset-password", auth=ada)
    await accept(harness, reset.json()["url"], EVE["email"])
    response = await harness.get(f"{ADMINS_URL}", auth=cleo)
    assert response.json()["data"][0]["link_seen_by"] == [ada.id, ben.id]
    confirmed = await harness.post(f"{ADMINS_URL}/{created['id']}/confirm", auth=cleo)
    assert confirmed.json()["link_seen_by"] == []


async def test_suspension_does_not_widen_who_may_confirm(
    harness: Harness, staff: list[BearerAuth]
) -> None:
    """The confirmation outlives the suspension."""
    ada, ben, cleo = staff
    eve, fay = await invite(harness, ben), await invite(harness, ben, "fay@example.com")
    assert (await save_rules(harness, ada, only_admins("keysets"))).status_code == 200
    async with harness.services.transaction() as tx:
        await suspend(tx, SYSTEM_ACTOR, "Ben has left")
    refused = await harness.post(f"{ADMINS_URL}/{fay.id}/confirm", auth=eve)
    assert parse_error(refused) == (403, "FORBIDDEN")
    assert (await harness.post(f"{ADMINS_URL}/{fay.id}/confirm", auth=cleo)).status_code == 200


async def test_console_tells_what_the_first_rules_trust(
    harness: Harness, staff: list[BearerAuth]
) -> None:
    console = ConsoleClients(
        harness, AppTransport(create_app(harness.services))
    ).create_signed_out()
    console.set_session(staff[0])
    warning = "Check first that each account belongs to a different person"
    assert warning in (await console.get("/console/approvals/rules")).text
    assert (await save_rules(harness, staff[0], only_admins("keysets"))).status_code == 200
    assert warning not in (await console.get("/console/approvals/rules")).text


async def test_pairs_count_when_enough_approvers_are_required(
    harness: Harness, staff: list[BearerAuth], monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, ben, cleo = staff
    for other in (ben, cleo):
        await harness.post(f"{ADMINS_URL}/{other.id}/disable", auth=ada)
    eve = await invite(harness, ada)
    refused = await save_rules(harness, ada, only_admins("keysets"))
    assert parse_error(refused) == (422, "VALIDATION_FAILED")
    assert refused.json()["details"]["missing"][0]["available"] == 0
    tasks: list[Any] = []
    monkeypatch.setattr(admin_command, "run_with_services", tasks.append)
    admin_command.confirm(email=EVE["email"])
    await tasks.pop()(harness.services)
    assert (await save_rules(harness, ada, only_admins("keysets"))).status_code == 200
    # After the reset, one person would control the only two admin accounts.
    reset = await harness.post(f"{ADMINS_URL}/{eve.id}/reset-password", auth=ada)
    assert parse_error(reset) == (422, "VALIDATION_FAILED")
    assert (await harness.get(f"{V1}/admin/me", auth=eve)).status_code == 200


async def test_three_invited_admins_confirm_each_other_before_rules_exist(
    harness: Harness, staff: list[BearerAuth]
) -> None:
    ada, *others = staff
    for other in others:
        await harness.post(f"{ADMINS_URL}/{other.id}/disable", auth=ada)
    eve, fay = await invite(harness, ada), await invite(harness, ada, "fay@example.com")
    assert parse_error(await save_rules(harness, ada, only_admins("keysets")))[0] == 422
    for account, confirmer in ((eve, fay), (fay, eve)):
        url = f"{ADMINS_URL}/{account.id}/confirm"
        assert (await harness.post(url, auth=confirmer)).status_code == 200
    assert (await save_rules(harness, ada, only_admins("keysets"))).status_code == 200


async def test_console_shows_the_link_to_the_approver_and_the_confirmation(
    harness: Harness, staff: list[BearerAuth]
) -> None:
    ada, *_ = staff
    assert (await save_rules(harness, ada, only_admins("admin_users"))).status_code == 200
    held = require_held(await harness.post(ADMINS_URL, json=EVE, auth=ada))
    clients = ConsoleClients(harness, AppTransport(create_app(harness.services)))
    consoles = [clients.create_signed_out() for _ in staff]
    for console, auth in zip(consoles, staff, strict=True):
        console.set_session(auth)
    shown = await consoles[1].submit_action("approval.approve", id=held["id"])
    (token,) = re.findall(rf"{LINK}([\w-]+)", shown.text)[:1]
    for console in consoles:
        assert LINK not in (await console.get(f"/console/approvals/{held['id']}")).text
        page = (await console.get("/console/administrators")).text
        assert "not confirmed" in page
        assert ("administrator.confirm" in page) is (console is consoles[2])
    eve = await accept(harness, LINK + token, EVE["email"])
    await consoles[2].submit_action("administrator.confirm", id=eve.id)
    assert "not confirmed" not in (await consoles[0].get("/console/administrators")).text


def returns_link(endpoint: Endpoint) -> bool:
    response = endpoint.response_type
    types = getattr(response, "__annotations__", {})
    return response is Invitation or "Invitation" in str(types)


def test_every_endpoint_that_returns_a_link_is_known() -> None:
    """A new one must store who sees the link."""
    names = {endpoint.operation_id for endpoint in list_endpoints() if returns_link(endpoint)}
    assert names == {"create_admin", "reset_password"}


async def test_sealed_link_of_an_interrupted_execution_waits_for_the_approver(
    harness: Harness, staff: list[BearerAuth], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tapgate.business.approvals import routes
    from tapgate.business.approvals.execution import ApprovalWorker, execute

    ada, ben, _cleo = staff
    await set_rules(harness, only_admins("admin_users"))
    held = require_held(await harness.post(ADMINS_URL, json=EVE, auth=ada))

    async def crash(*_: Any) -> None:
        pass

    monkeypatch.setattr(routes, "execute", crash)
    assert (await approve(harness, held, ben))["status"] == "approved"
    monkeypatch.setattr(routes, "execute", execute)
    await harness.database.execute("UPDATE approvals SET next_attempt_at = created_at")
    await ApprovalWorker(harness.services).work()
    assert find_link(await get_approval(harness, held, ada)) is None
    assert find_link(await get_approval(harness, held, ben)) is not None
    assert find_link(await get_approval(harness, held, ben)) is None


async def test_console_shows_links_that_need_no_approval(
    harness: Harness, staff: list[BearerAuth]
) -> None:
    console = ConsoleClients(
        harness, AppTransport(create_app(harness.services))
    ).create_signed_out()
    console.set_session(staff[0])
    invited = await console.submit_action("administrator.create", EVE)
    reset = await console.submit_action("administrator.reset_password", id=staff[1].id)
    for shown in (invited, reset):
        assert (shown.status_code, LINK in shown.text) == (200, True)
