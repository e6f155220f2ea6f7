"""Access to other clients' objects.

A caller that may use an operation still cannot read or change another owner's objects, nor learn
whether they exist.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from conftest import ScratchDatabases
from gateway import ownership_requests
from gateway.access_fixtures import Caller, get_status_and_code, run_access_fixtures
from gateway.ownership_requests import (
    OTHER_PIN,
    V1,
    OwnershipFixtures,
    OwnershipRequest,
    SubscriberFixture,
    build_missing_id,
    new_request_id,
)
from harness import PIN
from partners.builders import post_webhook
from tapgate import ids
from tapgate.cli.manual import list_endpoints
from tapgate.cli.manual.object_access import OBJECT_ACCESS, ObjectAccess
from tapgate.edge.endpoint import Access

ACCESS = {endpoint.name: endpoint.access for endpoint in list_endpoints()}
TRANSFER_OPERATION = f"POST {V1}/wallet/transfer"
FLOAT_TRANSFER_OPERATION = f"POST {V1}/agents/transfer"
FUND_OPERATION = f"POST {V1}/wallet/fund-from-partner"
WEBHOOK_OPERATION = f"POST {V1}/webhooks/partners/{{partner_id}}"
CONFIRM_RESET_OPERATION = f"POST {V1}/subscribers/{{id}}/reset-pin/confirm"
VERIFY_ACCESS_OPERATION = f"POST {V1}/subscribers/{{id}}/restricted-access/verify"
SELF_OPERATIONS = {f"POST {V1}/admin/logout", f"GET {V1}/admin/me", f"POST {V1}/admin/refresh"}
STATEMENT_OPERATION = f"GET {V1}/statements/{{token}}"

#: Changed by a failed PIN attempt.
PIN_TABLES = ("pins", "pin_failures")

#: Operations covered here, by kind of ownership check. An operation added to
#: `tapgate.cli.manual.object_access` also needs a request for another owner's object here.
COVERED_OPERATIONS: dict[ObjectAccess, set[str]] = {
    ObjectAccess.UNRESTRICTED: {
        *ownership_requests.RESTRICTED_REQUESTS,
        *ownership_requests.LIST_REQUESTS,
        *ownership_requests.MASKED_REQUESTS,  # in test_masked_transactions.py
        *ownership_requests.MASKED_LIST_REQUESTS,
    },
    ObjectAccess.PIN: {*ownership_requests.PIN_REQUESTS},
    ObjectAccess.OTP: {CONFIRM_RESET_OPERATION, VERIFY_ACCESS_OPERATION},
    ObjectAccess.SUBSCRIBER_WALLETS: {TRANSFER_OPERATION},
    ObjectAccess.SUB_AGENTS: {FLOAT_TRANSFER_OPERATION},
    ObjectAccess.PROCESSOR: {*ownership_requests.PROCESSOR_REQUESTS},
    ObjectAccess.PARTNER: {FUND_OPERATION, WEBHOOK_OPERATION},
    ObjectAccess.OWN: SELF_OPERATIONS,
    ObjectAccess.LINK: {STATEMENT_OPERATION},
    ObjectAccess.PARENT_IN_PATH: {*ownership_requests.NESTED_REQUESTS},
}


@pytest.fixture(scope="module")
async def town(
    tmp_path_factory: pytest.TempPathFactory, postgres: str, copies: ScratchDatabases
) -> AsyncIterator[OwnershipFixtures]:
    async with run_access_fixtures(tmp_path_factory.mktemp("town"), postgres, copies) as house:
        town = OwnershipFixtures(house)
        await town.create_all()
        yield town


@pytest.mark.parametrize("whose", [one for one in ObjectAccess if one in COVERED_OPERATIONS])
def test_every_operation_with_an_ownership_check_is_covered(whose: ObjectAccess) -> None:
    assert {
        name for name, all_of in OBJECT_ACCESS.items() if whose in all_of
    } == COVERED_OPERATIONS[whose]


def test_only_operations_without_owned_objects_are_not_covered() -> None:
    assert set(ObjectAccess) - COVERED_OPERATIONS.keys() == {
        ObjectAccess.NO_OBJECT,
        ObjectAccess.ANY,
    }
    # Signing clients own objects, so the operations they may use on any object are listed
    # explicitly.
    signed = {name for name, access in ACCESS.items() if access.hmac}
    assert {name for name in signed if OBJECT_ACCESS[name] == (ObjectAccess.ANY,)} == {
        f"POST {prefix}"
        for prefix in (
            f"{V1}/pos/lookup-card",
            *(f"{v}/payment{path}" for v in (V1, "") for path in ("", *_CARD_LOOKUP_SUFFIXES)),
        )
    }


_CARD_LOOKUP_SUFFIXES = ("/verify-card", "/lookup-card")


async def send(town: OwnershipFixtures, ask: OwnershipRequest, auth: Any) -> httpx2.Response:
    content = b"" if ask.body is None else json.dumps(ask.body).encode()
    return await town.client.request(ask.method, ask.path, content=content, auth=auth)


def list_allowed_callers(town: OwnershipFixtures, access: Access, *kinds: str) -> list[Caller]:
    """Return the allowed callers of these kinds: one API key and every role."""
    return [
        caller
        for caller in town.access_fixtures.callers
        if caller.is_allowed(access)
        and caller.kind in kinds
        and (caller.kind != "api_key" or caller.name == "key with all scopes")
    ]


async def create_verified_admin(town: OwnershipFixtures, person: SubscriberFixture) -> Any:
    """Return an admin with a verified code from the phone of the person."""
    admin = await town.harness.create_admin()
    url = f"{V1}/subscribers/{person.id}/restricted-access"
    assert (await town.client.post(url, auth=admin)).status_code == 200
    code = await town.harness.get_pending_code(person.phone)
    assert (await town.client.post(f"{url}/verify", json={"otp": code}, auth=admin)).is_success
    return admin


@pytest.mark.parametrize("name", ownership_requests.RESTRICTED_REQUESTS)
async def test_restricted_subscriber_requires_a_verified_code(
    town: OwnershipFixtures, name: str
) -> None:
    person, card = (
        await town.create_subscriber(restricted=True),
        await town.create_unassigned_card(),
    )
    admin = await create_verified_admin(town, person)
    ask, before = (
        ownership_requests.RESTRICTED_REQUESTS[name](town, person, card),
        await town.access_fixtures.snapshot_tables(),
    )
    closed_to = list_allowed_callers(town, ACCESS[name], "api_key", "admin")
    assert closed_to
    for caller in closed_to:
        answer = await send(town, ask, caller.auth)
        assert get_status_and_code(answer) == (403, "OTP_REQUIRED"), (caller.name, answer.text)
        for told in (person.phone, "Aminata", "Kamara", "details"):
            assert told not in answer.text
    assert await town.access_fixtures.snapshot_tables() == before
    for other in list_allowed_callers(town, ACCESS[name], "service"):
        answer = await send(town, ask, other.auth)
        assert get_status_and_code(answer)[1] not in ("OTP_REQUIRED", "FORBIDDEN"), answer.text
    answer = await send(town, ask, admin)
    assert get_status_and_code(answer)[1] not in ("OTP_REQUIRED", "FORBIDDEN"), answer.text


@pytest.mark.parametrize("name", ownership_requests.LIST_REQUESTS)
async def test_restricted_subscriber_is_omitted_from_lists(
    town: OwnershipFixtures, name: str
) -> None:
    person = await town.create_subscriber(restricted=True)
    admin = await create_verified_admin(town, person)
    traces = (person.id, person.card, person.blocked_card, person.transaction_id, person.phone)
    for path in ownership_requests.LIST_REQUESTS[name](town, person):
        for caller in list_allowed_callers(town, ACCESS[name], "api_key", "admin"):
            answer = await town.client.get(path, auth=caller.auth)
            assert answer.status_code == 200, (caller.name, answer.text)
            assert not [one for one in traces if one in answer.text], (caller.name, path)
        for auth in (
            admin,
            *(one.auth for one in list_allowed_callers(town, ACCESS[name], "service")),
        ):
            answer = await town.client.get(path, auth=auth)
            assert [one for one in traces if one in answer.text], path


@pytest.mark.parametrize("filter", ["user_id", "card_serial"])
async def test_transaction_filter_on_a_restricted_subscriber_requires_a_verified_code(
    town: OwnershipFixtures, filter: str
) -> None:
    person = await town.create_subscriber(restricted=True)
    value = {"user_id": person.id, "card_serial": person.card}[filter]
    for path in (
        f"{V1}/transactions",
        f"{V1}/transactions/export",
        f"{V1}/processors/{town.processor_id}/transactions",
    ):
        for caller in list_allowed_callers(
            town, ACCESS[f"GET {V1}/transactions"], "api_key", "admin"
        ):
            answer = await town.client.get(f"{path}?{filter}={value}", auth=caller.auth)
            assert get_status_and_code(answer) == (403, "OTP_REQUIRED"), (caller.name, answer.text)


@pytest.mark.parametrize("name", ownership_requests.PIN_REQUESTS)
async def test_pin_of_another_subscriber_is_rejected(town: OwnershipFixtures, name: str) -> None:
    """The PIN is valid, but for another subscriber."""
    person, card = await town.create_subscriber(), await town.create_unassigned_card()
    ask = ownership_requests.PIN_REQUESTS[name](town, person, card, OTHER_PIN)
    kinds = ("api_key",) if name == TRANSFER_OPERATION else ("api_key", "pos", "admin", "service")
    caller, *_ = list_allowed_callers(town, ACCESS[name], *kinds)
    before = await town.access_fixtures.snapshot_tables(*PIN_TABLES)
    answer = await send(town, ask, caller.auth)
    assert get_status_and_code(answer) == (400, "INVALID_PIN"), answer.text
    assert answer.json()["details"]["attempts_remaining"] == 2
    assert await town.access_fixtures.snapshot_tables(*PIN_TABLES) == before
    for told in (person.phone, "Aminata", "Kamara", "SLE"):
        assert told not in answer.text
    right = PIN if "agent" not in name or "cashout" in name else ownership_requests.AGENT_PIN
    answer = await send(
        town, ownership_requests.PIN_REQUESTS[name](town, person, card, right), caller.auth
    )
    assert answer.is_success, answer.text


@pytest.mark.parametrize("name", ownership_requests.NESTED_REQUESTS)
async def test_nested_object_of_another_owner_looks_like_a_missing_object(
    town: OwnershipFixtures, name: str
) -> None:
    foreign, unknown = ownership_requests.NESTED_REQUESTS[name](town)
    (caller,) = (
        one for one in town.access_fixtures.callers if one.kind == "admin" and one.role == "A"
    )
    await assert_indistinguishable(town, foreign, unknown, caller.auth)


@pytest.mark.parametrize("name", ownership_requests.PROCESSOR_REQUESTS)
async def test_object_of_another_processor_looks_like_a_missing_object(
    town: OwnershipFixtures, name: str
) -> None:
    foreign, unknown = ownership_requests.PROCESSOR_REQUESTS[name](town)
    pays = name.endswith("/pos/payment")
    auth = town.processor if pays else town.other_processor
    answer = await assert_indistinguishable(town, foreign, unknown, auth)
    code = "TERMINAL_NOT_FOUND" if pays else "TRANSACTION_NOT_FOUND"
    assert get_status_and_code(answer) == (404, code)


async def assert_indistinguishable(
    town: OwnershipFixtures, foreign: OwnershipRequest, unknown: OwnershipRequest, auth: Any
) -> httpx2.Response:
    """Assert that another owner's object gets exactly the response of a missing object."""
    before = await town.access_fixtures.snapshot_tables()
    answer, other = await send(town, foreign, auth), await send(town, unknown, auth)
    assert (answer.status_code, answer.json()) == (other.status_code, other.json())
    assert answer.status_code in (401, 404, 422), answer.text
    quiet = ("x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset")
    first, second = (
        {name: value for name, value in one.headers.items() if name not in quiet}
        for one in (answer, other)
    )
    assert first == second
    assert await town.access_fixtures.snapshot_tables() == before
    return answer


async def test_terminal_key_determines_the_terminal_of_a_payment(town: OwnershipFixtures) -> None:
    """A terminal in the body is ignored, including another processor's."""
    key = town.access_fixtures.terminal
    body = {
        "request_id": new_request_id(),
        "card_serial": town.subscriber.card,
        "amount": "1",
        "terminal_id": town.other_terminal,
    }
    paid = await send(town, OwnershipRequest("POST", f"{V1}/pos/payment", body), key)
    assert paid.status_code == 200, paid.text
    path = f"{V1}/transactions/{paid.json()['transaction_id']}"
    found = (await town.client.get(path, auth=await town.harness.create_admin())).json()
    assert found["terminal_id"] not in (None, town.other_terminal)
    assert found["processor_id"] == await town.harness.get_processor_id(
        town.access_fixtures.processor
    )


async def test_partner_cannot_fund_a_wallet_from_another_partner(town: OwnershipFixtures) -> None:
    def ask(partner_id: str) -> OwnershipRequest:
        body = {
            "partner_id": partner_id,
            "subscriber_id": town.subscriber.id,
            "partner_reference": "stranger",
            "amount": "1",
        }
        return OwnershipRequest("POST", f"{V1}/wallet/fund-from-partner", body)

    other = town.other_partner_record["partner"]["id"]
    answer = await assert_indistinguishable(
        town, ask(other), ask(build_missing_id(ids.PARTNER)), town.partner_auth
    )
    assert get_status_and_code(answer) == (422, "VALIDATION_FAILED")


async def test_partner_webhook_rejects_the_secret_of_another_partner(
    town: OwnershipFixtures,
) -> None:
    """Signed with the sender's own secret, sent to another partner's path."""
    body = {"reference": "stranger", "card_serial": town.subscriber.card, "amount": "1"}
    before = await town.access_fixtures.snapshot_tables()
    nobody = {"id": build_missing_id(ids.PARTNER)}
    foreign, unknown = [
        await post_webhook(town.client, {**town.partner_record, "partner": partner}, body)
        for partner in (town.other_partner_record["partner"], nobody)
    ]
    assert (foreign.status_code, foreign.json()) == (unknown.status_code, unknown.json())
    assert get_status_and_code(foreign) == (401, "UNAUTHORIZED")
    assert await town.access_fixtures.snapshot_tables() == before


async def test_idempotency_keys_are_scoped_to_the_client(town: OwnershipFixtures) -> None:
    """Another client's key or reference is neither a replay nor a conflict."""
    name = new_request_id()
    body = {"request_id": name, "card_serial": town.subscriber.card, "amount": "1"}
    first = await send(town, OwnershipRequest("POST", f"{V1}/pos/payment", body), town.processor)
    for amount in ("1", "2"):
        ask = OwnershipRequest("POST", f"{V1}/pos/payment", body | {"amount": amount})
        auth = town.other_processor if amount == "1" else town.access_fixtures.processor
        answer = await send(town, ask, auth)
        assert answer.status_code == 200, answer.text
        assert "Idempotent-Replayed" not in answer.headers
        assert answer.json()["transaction_id"] != first.json()["transaction_id"]
    top_up = {"reference": name, "card_serial": town.subscriber.card, "amount": "1"}
    ours, theirs = [
        await post_webhook(town.client, one, top_up)
        for one in (town.partner_record, town.other_partner_record)
    ]
    assert ours.json()["transaction_id"] != theirs.json()["transaction_id"]


async def test_float_transfer_is_limited_to_the_agents_own_sub_agents(
    town: OwnershipFixtures,
) -> None:
    def ask(to: str) -> OwnershipRequest:
        sender = town.agents[1]["id"]
        body = {
            "from_agent_id": sender,
            "to_agent_id": to,
            "amount": "1",
            "pin": ownership_requests.AGENT_PIN,
        }
        return OwnershipRequest("POST", f"{V1}/agents/transfer", body)

    await assert_rejected_and_audited(
        town, FLOAT_TRANSFER_OPERATION, ask(town.sub_agents[0]["id"]), "api_key", "admin"
    )
    await assert_rejected_and_audited(
        town, FLOAT_TRANSFER_OPERATION, ask(town.agents[0]["id"]), "api_key", "admin"
    )


async def test_api_key_can_transfer_only_between_subscriber_wallets(
    town: OwnershipFixtures,
) -> None:
    account, agent = town.subscriber.account_id, town.agents[0]["account_id"]
    for payer, payee in ((agent, account), (account, agent)):
        body = {"from_account_id": payer, "to_account_id": payee, "amount": "1", "pin": PIN}
        ask = OwnershipRequest("POST", f"{V1}/wallet/transfer", body)
        await assert_rejected_and_audited(town, TRANSFER_OPERATION, ask, "api_key")


async def assert_rejected_and_audited(
    town: OwnershipFixtures, name: str, ask: OwnershipRequest, *kinds: str
) -> None:
    before, denials = (
        await town.access_fixtures.snapshot_tables(),
        await town.access_fixtures.count_denials(),
    )
    tried = list_allowed_callers(town, ACCESS[name], *kinds)
    for caller in tried:
        answer = await send(town, ask, caller.auth)
        assert get_status_and_code(answer) == (403, "FORBIDDEN"), (caller.name, answer.text)
        assert answer.json()["details"]["required"]
        assert "SLE" not in answer.text
    assert await town.access_fixtures.snapshot_tables() == before
    assert await town.access_fixtures.count_denials() == denials + len(tried)


async def test_access_code_is_bound_to_one_subscriber_and_one_admin(
    town: OwnershipFixtures,
) -> None:
    first, second = (
        await town.create_subscriber(restricted=True),
        await town.create_subscriber(restricted=True),
    )
    asker, other = await town.harness.create_admin(), await town.harness.create_admin()
    for person in (first, second):
        url = f"{V1}/subscribers/{person.id}/restricted-access"
        assert (await town.client.post(url, auth=asker)).is_success
    codes = [await town.harness.get_pending_code(person.phone) for person in (first, second)]
    assert codes[0] != codes[1] or pytest.skip("one in a million: both codes are the same")
    url = f"{V1}/subscribers/{first.id}"
    for auth, code in ((other, codes[0]), (asker, codes[1])):
        ask = OwnershipRequest("POST", f"{url}/restricted-access/verify", {"otp": code})
        assert get_status_and_code(await send(town, ask, auth)) == (400, "INVALID_OTP")
    # A code is valid for one purpose only.
    ask = OwnershipRequest("POST", f"{url}/reset-pin/confirm", {"otp": codes[0], "new_pin": "7384"})
    assert get_status_and_code(await send(town, ask, town.harness.get_service_auth())) == (
        400,
        "INVALID_OTP",
    )
    assert get_status_and_code(await town.client.get(url, auth=asker)) == (403, "OTP_REQUIRED")
    ask = OwnershipRequest("POST", f"{url}/restricted-access/verify", {"otp": codes[0]})
    assert (await send(town, ask, asker)).is_success
    assert (await town.client.get(url, auth=asker)).is_success
    assert get_status_and_code(await town.client.get(url, auth=other)) == (403, "OTP_REQUIRED")


async def test_pin_reset_rejects_the_code_of_another_subscriber(town: OwnershipFixtures) -> None:
    first, second = await town.create_subscriber(), await town.create_subscriber()
    service = town.harness.get_service_auth()
    for person in (first, second):
        await town.client.post(f"{V1}/subscribers/{person.id}/reset-pin", auth=service)
    codes = [await town.harness.get_pending_code(person.phone) for person in (first, second)]
    assert codes[0] != codes[1] or pytest.skip("one in a million: both codes are the same")
    ask = OwnershipRequest(
        "POST",
        f"{V1}/subscribers/{first.id}/reset-pin/confirm",
        {"otp": codes[1], "new_pin": "7384"},
    )
    before = await town.access_fixtures.snapshot_tables("one_time_codes")
    assert get_status_and_code(await send(town, ask, service)) == (400, "INVALID_OTP")
    assert await town.access_fixtures.snapshot_tables("one_time_codes") == before


async def test_logout_ends_only_the_admins_own_session(town: OwnershipFixtures) -> None:
    first, second = await town.harness.create_admin("S"), await town.harness.create_admin("F")
    for admin in (first, second):
        me = await town.client.get(f"{V1}/admin/me", auth=admin)
        assert me.json()["id"] == admin.id
    assert (await town.client.post(f"{V1}/admin/logout", auth=first)).status_code == 204
    assert get_status_and_code(await town.client.get(f"{V1}/admin/me", auth=first)) == (
        401,
        "UNAUTHORIZED",
    )
    assert (await town.client.get(f"{V1}/admin/me", auth=second)).status_code == 200
    nobodys = await town.client.post(f"{V1}/admin/refresh", json={"refresh_token": "x" * 43})
    assert get_status_and_code(nobodys) == (401, "UNAUTHORIZED")


async def test_statement_requires_the_exact_link(town: OwnershipFixtures) -> None:
    body = {"subscriber_id": town.subscriber.id, "format": "csv", **ownership_requests.PERIOD}
    path = f"{V1}/wallet/account-statement"
    made = (
        await send(town, OwnershipRequest("POST", path, body), town.harness.get_service_auth())
    ).json()
    link = httpx2.URL(made["statement_url"]).path
    assert (await town.client.get(link)).status_code == 200
    token = link.rpartition("/")[2]
    answers = [
        await town.client.get(f"{V1}/statements/{other}")
        for other in (token[:-1], f"{token}x", token.swapcase(), made["statement_id"], "x" * 43)
    ]
    assert {get_status_and_code(answer) for answer in answers} == {(404, "NOT_FOUND")}
    assert len({answer.text for answer in answers}) == 1
