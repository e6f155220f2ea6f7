"""Rules and people always leave enough admins who can approve every request."""

import asyncio
from itertools import combinations, pairwise
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.approvals import RULES_URL, V1, approve, build_rule, require_held, set_email
from drivers.console import ConsoleClient, ConsoleClients
from drivers.in_process import AppTransport
from harness import BearerAuth, Harness, insert_row, parse_error
from tapgate.business.approval_rules.check import load_approver_counts
from tapgate.business.approval_rules.model import Rule
from tapgate.business.approval_rules.people import LinkedPeople, Person, count_approvers
from tapgate.business.approvals.operations import require_unguarded_reset
from tapgate.cli import admin as admin_command
from tapgate.server.gateway import create_app
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.approvals import GUARDABLE_OPERATIONS, Operation

ADMINS_URL = f"{V1}/admin/users"
ONLY_ADMINS = build_rule("admin_users", roles=["system_admin"])
TREASURY = build_rule("agent_fund", roles=["finance_user"])


@pytest.fixture
async def ada(harness: Harness) -> BearerAuth:
    """The only active admin."""
    await harness.database.execute("UPDATE admins SET status = 'disabled'")
    return await harness.create_admin()


async def save(harness: Harness, auth: BearerAuth, *rules: dict[str, Any]) -> httpx2.Response:
    return await harness.put(RULES_URL, json={"data": rules}, auth=auth)


async def change(
    harness: Harness, auth: BearerAuth, admin: BearerAuth, role: str | None = None
) -> httpx2.Response:
    """Disable an admin, or give the admin another role."""
    if role is None:
        return await harness.post(f"{ADMINS_URL}/{admin.id}/disable", auth=auth)
    return await harness.put(f"{ADMINS_URL}/{admin.id}", json={"role": role}, auth=auth)


async def test_one_admin_cannot_lock_the_house(harness: Harness, ada: BearerAuth) -> None:
    for operation in GUARDABLE_OPERATIONS:
        refused = await save(harness, ada, build_rule(operation, roles=["system_admin"]))
        assert parse_error(refused) == (422, "VALIDATION_FAILED"), operation
        body = refused.json()
        assert f"Approval rule {operation} needs more active people" in body["message"]
        assert body["details"]["missing"][0]["operation"] == operation
        assert body["details"]["fields"].keys() == {"data[0].roles"}
    assert (await harness.get(RULES_URL, auth=ada)).json()["data"] == []
    ben = await harness.create_admin()
    assert (await save(harness, ada, ONLY_ADMINS)).status_code == 200
    new_admin = {"email": "eve@example.com", "name": "Eve", "role": "support_user"}
    held = require_held(await harness.post(ADMINS_URL, json=new_admin, auth=ada))
    assert (await approve(harness, held, ben))["status"] == "executed"


async def test_every_admin_who_may_ask_counts(harness: Harness, ada: BearerAuth) -> None:
    """Finance users fund agents too, so one of them is not enough for the others."""
    await harness.create_admin("F")
    refused = await save(harness, ada, TREASURY)
    assert refused.json()["details"]["missing"][0]["available"] == 0
    await harness.create_admin("F")
    two_approvers = await save(harness, ada, {**TREASURY, "approvers": 2})
    assert parse_error(two_approvers) == (422, "VALIDATION_FAILED")
    assert (await save(harness, ada, TREASURY)).status_code == 200


async def test_two_accounts_of_one_person_count_once(harness: Harness, ada: BearerAuth) -> None:
    second = await harness.create_admin()
    for auth, email in ((ada, "ada@example.com"), (second, "Ada+2@example.com")):
        await harness.database.execute(
            "UPDATE admins SET email = $2 WHERE id = $1", ids.decode(ids.ADMIN, auth.id), email
        )
    assert parse_error(await save(harness, ada, ONLY_ADMINS)) == (422, "VALIDATION_FAILED")


NEW_ADMIN = {"email": "ben@example.com", "name": "Ben", "role": "system_admin"}


async def accept(harness: Harness, link: str) -> None:
    body = {"token": link.partition("#")[2], "password": "a long passphrase 42"}
    accepted = await harness.post(f"{V1}/admin/invitations/accept", json=body)
    assert accepted.status_code == 204, accepted.text


async def forget_link_views(harness: Harness) -> None:
    """Confirm all accounts, so that only the ability to sign in matters."""
    await harness.database.execute("UPDATE admin_link_views SET confirmed_at = now()")


@pytest.mark.parametrize("link", ["invitation", "reset", "expired", "revoked"])
async def test_admin_counts_once_the_link_was_used(
    harness: Harness, ada: BearerAuth, link: str
) -> None:
    created = (await harness.post(ADMINS_URL, json=NEW_ADMIN, auth=ada)).json()
    url, path = created["invitation"]["url"], f"{ADMINS_URL}/{created['id']}"
    if link == "reset":
        await accept(harness, url)
        url = (await harness.post(f"{path}/reset-password", auth=ada)).json()["url"]
    if link == "expired":
        await harness.database.execute("UPDATE admin_invitations SET expires_at = created_at")
    if link == "revoked":
        for verb in ("disable", "enable"):
            assert (await harness.post(f"{path}/{verb}", auth=ada)).status_code == 200
    await forget_link_views(harness)
    refused = await save(harness, ada, ONLY_ADMINS)
    assert parse_error(refused) == (422, "VALIDATION_FAILED")
    if link in ("expired", "revoked"):
        url = (await harness.post(f"{path}/reset-password", auth=ada)).json()["url"]
        await forget_link_views(harness)
    await accept(harness, url)
    assert (await save(harness, ada, ONLY_ADMINS)).status_code == 200


async def test_invited_admin_with_an_identity_counts(harness: Harness, ada: BearerAuth) -> None:
    created = (await harness.post(ADMINS_URL, json=NEW_ADMIN, auth=ada)).json()
    await forget_link_views(harness)
    await insert_row(
        harness.database,
        "admin_identities",
        admin_id=ids.decode(ids.ADMIN, created["id"]),
        issuer="https://login.example",
        subject="ben",
        created_at=harness.services.clock(),
    )
    assert (await save(harness, ada, ONLY_ADMINS)).status_code == 200


async def test_invited_admin_counts_as_a_maker(harness: Harness, ada: BearerAuth) -> None:
    """Otherwise the invitation is accepted later, and no one can approve the admin's requests."""
    await set_email(harness, await harness.create_admin("C"), "cleo@example.com")
    rule = build_rule("agent_fund", roles=["compliance_user"])
    new = {**NEW_ADMIN, "email": "cleo+2@example.com", "role": "finance_user"}
    assert (await harness.post(ADMINS_URL, json=new, auth=ada)).status_code == 201
    await forget_link_views(harness)
    refused = await save(harness, ada, rule)
    assert refused.json()["details"]["missing"][0]["maker"] == "Ben"


async def test_operator_can_reset_a_password_if_no_one_else_can_sign_in(
    harness: Harness, ada: BearerAuth
) -> None:
    for name in ("ben", "cleo"):
        new = {**NEW_ADMIN, "email": f"{name}@example.com"}
        assert (await harness.post(ADMINS_URL, json=new, auth=ada)).status_code == 201
    await forget_link_views(harness)
    await harness.database.execute(
        """INSERT INTO approval_rules (id, operation, roles, approvers, expires_in)
           VALUES (1, 'admin_users', '{system_admin}', 1, 86400)"""
    )
    async with harness.services.transaction() as tx:
        await require_unguarded_reset(tx, ids.decode(ids.ADMIN, ada.id) or 0)
        await tx.execute("DELETE FROM admin_invitations")
        with pytest.raises(ApiError, match="FORBIDDEN"):
            await require_unguarded_reset(tx, ids.decode(ids.ADMIN, ada.id) or 0)


@pytest.mark.parametrize("role", [None, "support_user"])
async def test_last_possible_approver_stays(
    harness: Harness, ada: BearerAuth, role: str | None
) -> None:
    fay, _gus, hal = [await harness.create_admin("F") for _ in range(3)]
    assert (await save(harness, ada, TREASURY)).status_code == 200
    assert (await change(harness, ada, hal, role)).status_code == 200
    refused = await change(harness, ada, fay, role)
    assert parse_error(refused) == (422, "VALIDATION_FAILED")
    assert refused.json()["details"]["missing"][0]["operation"] == "agent_fund"
    assert (await harness.get(f"{V1}/agents", auth=fay)).status_code == 200


@pytest.mark.parametrize("role", [None, "support_user"])
async def test_parallel_changes_leave_enough_approvers(
    harness: Harness, ada: BearerAuth, role: str | None
) -> None:
    for _ in range(5):
        people = [await harness.create_admin("F") for _ in range(3)]
        await harness.database.execute("DELETE FROM approval_rules")
        assert (await save(harness, ada, TREASURY)).status_code == 200
        responses = await asyncio.gather(*(change(harness, ada, each, role) for each in people))
        assert sorted(each.status_code for each in responses) == [200, 422, 422]
        await harness.database.execute(
            "UPDATE admins SET status = 'disabled' WHERE role = 'finance_user'"
        )


async def test_rules_and_people_cannot_change_past_each_other(
    harness: Harness, ada: BearerAuth
) -> None:
    for _ in range(5):
        await harness.database.execute("DELETE FROM approval_rules")
        ben = await harness.create_admin()
        saved, disabled = await asyncio.gather(
            save(harness, ada, ONLY_ADMINS), change(harness, ada, ben)
        )
        assert sorted([saved.status_code, disabled.status_code]) == [200, 422]
        await harness.database.execute(
            "UPDATE admins SET status = 'disabled' WHERE id = $1", ids.decode(ids.ADMIN, ben.id)
        )


async def test_counts_tell_how_many_approvers_remain(harness: Harness, ada: BearerAuth) -> None:
    people = [await harness.create_admin("F") for _ in range(3)]
    assert (await save(harness, ada, TREASURY)).status_code == 200
    makers = harness.services.guarded_roles
    for without, available in ((None, 2), (ids.decode(ids.ADMIN, people[0].id), 1)):
        funding, changing = await load_approver_counts(harness.database, makers, without=without)
        assert (funding.rule.operation, funding.available) == ("agent_fund", available)
        assert (changing.rule.operation, changing.missing) == (Operation.APPROVAL_RULES, 0)


async def run_command(harness: Harness, monkeypatch: pytest.MonkeyPatch, command: Any) -> None:
    tasks: list[Any] = []
    monkeypatch.setattr(admin_command, "run_with_services", tasks.append)
    command()
    await tasks.pop()(harness.services)


async def test_suspended_rules_hold_nothing_until_they_are_resumed(
    harness: Harness, ada: BearerAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    ben = await harness.create_admin()
    assert (await save(harness, ada, ONLY_ADMINS)).status_code == 200
    # Ben has left, and his account was disabled before Tapgate checked the rules.
    await harness.database.execute(
        "UPDATE admins SET status = 'disabled' WHERE id = $1", ids.decode(ids.ADMIN, ben.id)
    )
    enable = f"{ADMINS_URL}/{ben.id}/enable"
    held = require_held(await harness.post(enable, auth=ada))
    assert held["operation"] == "admin_users"

    def suspend() -> None:
        admin_command.suspend_approvals(reason="Ben has left")

    with pytest.raises(ApiError) as empty:
        await run_command(harness, monkeypatch, lambda: admin_command.suspend_approvals(reason=" "))
    assert empty.value.code is Code.VALIDATION_FAILED
    await run_command(harness, monkeypatch, suspend)
    with pytest.raises(ApiError, match="ALREADY_SUSPENDED"):
        await run_command(harness, monkeypatch, suspend)
    record = (await harness.get(RULES_URL, auth=ada)).json()
    assert (record["data"][0]["operation"], record["suspended"]["reason"]) == (
        "admin_users",
        "Ben has left",
    )
    with pytest.raises(ApiError, match="VALIDATION_FAILED"):
        await run_command(harness, monkeypatch, admin_command.resume_approvals)
    assert (await harness.post(enable, auth=ada)).status_code == 200
    await run_command(harness, monkeypatch, admin_command.resume_approvals)
    with pytest.raises(ApiError, match="NOT_SUSPENDED"):
        await run_command(harness, monkeypatch, admin_command.resume_approvals)
    url = f"{ADMINS_URL}/{ben.id}/reset-factors"
    require_held(await harness.post(url, auth=ada))
    events = await harness.database.fetch(
        """SELECT event, reason, actor ->> 'id' AS actor FROM audit_entries
           WHERE resource_type = 'approval_rules' ORDER BY id"""
    )
    assert [tuple(row)[:2] for row in events][1:] == [
        ("approval_rules.suspended", "Ben has left"),
        ("approval_rules.resumed", None),
    ]
    assert events[1]["actor"].startswith("command line:")


async def test_deadlocked_rules_can_be_replaced_while_suspended(
    harness: Harness, ada: BearerAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.database.execute(
        """INSERT INTO approval_rules (id, operation, roles, approvers, expires_in)
           VALUES (1, 'admin_users', '{system_admin}', 1, 86400)"""
    )
    assert require_held(await save(harness, ada))["operation"] == "approval_rules"
    await run_command(
        harness, monkeypatch, lambda: admin_command.suspend_approvals(reason="Locked")
    )
    assert (await save(harness, ada, ONLY_ADMINS)).status_code == 422
    assert (await save(harness, ada)).json()["data"] == []


async def test_console_shows_the_suspension(
    harness: Harness, ada: BearerAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    console: ConsoleClient = ConsoleClients(
        harness, AppTransport(create_app(harness.services))
    ).create_signed_out()
    console.set_session(ada)
    assert "Approvals are suspended" not in (await console.get("/console")).text
    await run_command(
        harness, monkeypatch, lambda: admin_command.suspend_approvals(reason="Ben has left")
    )
    for path in ("/console", "/console/agents", "/console/approvals/rules"):
        page = (await console.get(path)).text
        assert "Approvals are suspended" in page
        assert "Ben has left" in page
    french = (await console.get("/console", **{"Accept-Language": "fr"})).text
    assert "Les approbations sont suspendues" in french


ROLES = tuple(AdminRole)
PEOPLE = ("a", "b", "c", "d")


@given(
    admins=st.lists(
        st.tuples(st.sampled_from(PEOPLE), st.sampled_from(ROLES), st.booleans(), st.booleans()),
        max_size=6,
    ),
    pairs=st.lists(st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PEOPLE)), max_size=3),
    roles=st.sets(st.sampled_from(ROLES), min_size=1),
    makers=st.frozensets(st.sampled_from(ROLES)),
    approvers=st.integers(1, 2),
)
def test_counts_agree_with_a_simple_model(
    admins: list[tuple[str, str, bool, bool]],
    pairs: list[tuple[str, str]],
    roles: set[str],
    makers: frozenset[str],
    approvers: int,
) -> None:
    """The model tries every maker, and every set of people who could use the other accounts."""
    accounts = [
        Person(number, "", role, True, who, can_sign_in, is_confirmed=is_confirmed)
        for number, (who, role, can_sign_in, is_confirmed) in enumerate(admins)
    ]
    rule = Rule(
        id=1, operation="keysets", above=None, roles=[*roles], approvers=approvers, expires_in=60
    )
    linked = LinkedPeople(pairs)
    counted, *_ = count_approvers([rule], accounts, linked, {"keysets": makers})

    def list_actors(person: str) -> set[str]:
        known = {person}
        for _ in PEOPLE:
            known |= {b for a, b in pairs if a in known}
        return known

    results = []
    for maker in accounts:
        if maker.role in makers:
            # Unconfirmed accounts count as if they were confirmed, because their requests can wait.
            people = list_actors(maker.person) if maker.is_confirmed else {maker.person}
            asked = [
                list_actors(admin.person)
                for admin in accounts
                if admin.role in roles
                and admin.can_sign_in
                and people.isdisjoint(list_actors(admin.person))
            ]
            results.append(count_actors(asked))
    assert counted.missing == max((max(0, approvers - each) for each in results), default=0)
    if results:
        assert min(counted.available, 2) == min(2, *results)


def count_actors(accounts: list[set[str]]) -> int:
    """Return the smallest number of people who could use all accounts, by trying all of them."""
    for size in range(len(PEOPLE) + 1):
        for actors in combinations(PEOPLE, size):
            if all(account.intersection(actors) for account in accounts):
                return size
    raise AssertionError("everyone together uses all accounts")


def test_links_connect_accounts_but_not_those_who_saw_them() -> None:
    chain = LinkedPeople(pairwise("abcde"))
    assert chain.get("a") == {*"abcde"}
    assert all(chain.may_be_same(one, other) for one, other in pairwise("abcde"))
    assert (chain.count("abcde"), chain.count("f")) == (1, 1)
    shared = LinkedPeople([("a", "b"), ("a", "c"), ("d", "c")])
    assert not shared.may_be_same("b", "c")
    assert shared.may_be_same("a", "d")
    assert (shared.count("abc"), shared.count("ad"), shared.count("")) == (2, 1, 0)
    assert shared.count("abcdefgh") >= 6
