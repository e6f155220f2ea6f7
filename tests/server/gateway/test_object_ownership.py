"""Access to other clients' objects.

A caller that may use an operation still cannot read or change another owner's objects, nor learn
whether they exist.
"""

from typing import Any

import httpx2
import pytest

from builders.cash_out_requests import create_cash_out_request
from builders.object_access import ACCESS, create_verified_admin, list_allowed_callers, send
from builders.participants import AGENT_PIN, create_agent, post_webhook
from cases import each
from harness import PIN
from server.gateway import ownership_requests
from server.gateway.fixtures import (
    OTHER_PIN,
    PERIOD,
    V1,
    OwnershipFixtures,
    OwnershipRequest,
    build_missing_id,
    get_status_and_code,
    new_request_id,
)
from tapgate.http.api.object_access import ObjectAccess
from tapgate.server.gateway import list_endpoints
from tapgate_client import ids

OBJECTS = {endpoint.name: endpoint.objects for endpoint in list_endpoints()}
TRANSFER_OPERATION = f"POST {V1}/wallet/transfer"
FLOAT_TRANSFER_OPERATION = f"POST {V1}/agents/transfer"
FUND_OPERATION = f"POST {V1}/wallet/fund-from-partner"
WEBHOOK_OPERATION = f"POST {V1}/webhooks/partners/{{partner_id}}"
CONFIRM_RESET_OPERATIONS = {
    f"POST {V1}/{resource}/reset-pin/confirm"
    for resource in ("subscribers/{id}", "cards/{serial}", "agents/{id}")
}
CONFIRM_REPLACEMENT_OPERATION = f"POST {V1}/cards/{{serial}}/replace/confirm"
VERIFY_ACCESS_OPERATION = f"POST {V1}/subscribers/{{id}}/restricted-access/verify"
APPROVAL_OPERATIONS = {
    f"GET {V1}/approvals",
    f"GET {V1}/approvals/{{id}}",
    *(f"POST {V1}/approvals/{{id}}/{verb}" for verb in ("approve", "reject", "cancel")),
}
#: Operations on the caller's own account. tests/business/staff/test_account.py ends a session of
#: another admin.
SELF_OPERATIONS = {
    f"POST {V1}/admin/logout",
    f"POST {V1}/admin/refresh",
    *(name for name in ACCESS if f" {V1}/admin/me" in name),
    f"GET {V1}/me/owner",
}
STATEMENT_OPERATION = f"GET {V1}/statements/{{token}}"

#: Tables that a failed PIN attempt changes.
PIN_TABLES = ("pins", "pin_failures", "pin_attempts")

#: Operations covered here, by kind of ownership check. Requests about subscribers and with PINs are
#: built from declarations. Any other check also needs a request for another owner's object here.
COVERED_OPERATIONS: dict[ObjectAccess, set[str]] = {
    ObjectAccess.UNRESTRICTED: {
        *ownership_requests.RESTRICTED_REQUESTS,
        *ownership_requests.LIST_REQUESTS,
        *ownership_requests.MASKED_REQUESTS,  # in test_masked_transactions.py
        *ownership_requests.MASKED_LIST_REQUESTS,
        ownership_requests.PROOF_REQUEST,  # in tests/business/finance/day_close
    },
    ObjectAccess.PIN: {*ownership_requests.PIN_REQUESTS},
    ObjectAccess.OTP: {
        *CONFIRM_RESET_OPERATIONS,
        CONFIRM_REPLACEMENT_OPERATION,
        VERIFY_ACCESS_OPERATION,
    },
    ObjectAccess.SUBSCRIBER_WALLETS: {TRANSFER_OPERATION},
    ObjectAccess.SUB_AGENTS: {FLOAT_TRANSFER_OPERATION},
    ObjectAccess.PROCESSOR: {*ownership_requests.PROCESSOR_REQUESTS},
    # tests/business/payments/books covers transfers between books.
    ObjectAccess.PARTNER: {
        FUND_OPERATION,
        WEBHOOK_OPERATION,
        f"POST {V1}/books/transfers",
        f"POST {V1}/books/transfers/cancel",
        f"GET {V1}/books/position",
    },
    ObjectAccess.OWN: SELF_OPERATIONS,
    ObjectAccess.APPROVABLE: APPROVAL_OPERATIONS,  # in tests/business/approvals
    # tests/business/staff/test_account.py covers invitation links.
    ObjectAccess.LINK: {STATEMENT_OPERATION, f"POST {V1}/admin/invitations/accept"},
    ObjectAccess.PARENT_IN_PATH: {*ownership_requests.NESTED_REQUESTS},
}


@each("kind", [kind for kind in ObjectAccess if kind in COVERED_OPERATIONS])
def test_every_operation_with_an_ownership_check_is_covered(kind: ObjectAccess) -> None:
    declared = {name for name, checks in OBJECTS.items() if kind in checks}
    assert declared == COVERED_OPERATIONS[kind]


def test_only_operations_without_owned_objects_are_not_covered() -> None:
    assert set(ObjectAccess) - COVERED_OPERATIONS.keys() == {
        ObjectAccess.NO_OBJECT,
        ObjectAccess.ANY,
    }
    # Signing clients own objects, so the operations they may use on any object are listed
    # explicitly.
    signed = {name for name, access in ACCESS.items() if access.hmac}
    expected = {
        f"POST {prefix}"
        for prefix in (
            f"{V1}/books/lookup",
            f"{V1}/pos/lookup-card",
            *(f"{v}/payment{path}" for v in (V1, "") for path in ("", *_CARD_LOOKUP_SUFFIXES)),
        )
    }
    assert {name for name in signed if OBJECTS[name] == ObjectAccess.ANY} == expected


_CARD_LOOKUP_SUFFIXES = ("/verify-card", "/lookup-card")


@pytest.mark.parametrize("name", ownership_requests.RESTRICTED_REQUESTS)
async def test_restricted_subscriber_requires_a_verified_code(
    ownership_fixtures: OwnershipFixtures, name: str
) -> None:
    person = await ownership_fixtures.create_subscriber(restricted=True)
    card = await ownership_fixtures.create_unassigned_card()
    admin = await create_verified_admin(ownership_fixtures, person)
    request = ownership_requests.build_request(name, ownership_fixtures, person, card)
    before = await ownership_fixtures.access_fixtures.snapshot_tables()
    rejected_callers = list_allowed_callers(ownership_fixtures, ACCESS[name], "api_key", "admin")
    assert rejected_callers
    for caller in rejected_callers:
        response = await send(ownership_fixtures, request, caller.auth)
        assert get_status_and_code(response) == (403, "OTP_REQUIRED"), (caller.name, response.text)
        for value in (person.phone, "Aminata", "Kamara", "details"):
            assert value not in response.text
    assert await ownership_fixtures.access_fixtures.snapshot_tables() == before
    for service in list_allowed_callers(ownership_fixtures, ACCESS[name], "service"):
        response = await send(ownership_fixtures, request, service.auth)
        assert get_status_and_code(response)[1] not in ("OTP_REQUIRED", "FORBIDDEN"), response.text
    response = await send(ownership_fixtures, request, admin)
    assert get_status_and_code(response)[1] not in ("OTP_REQUIRED", "FORBIDDEN"), response.text


@pytest.mark.parametrize("name", ownership_requests.LIST_REQUESTS)
async def test_restricted_subscriber_is_omitted_from_lists(
    ownership_fixtures: OwnershipFixtures, name: str
) -> None:
    person = await ownership_fixtures.create_subscriber(restricted=True)
    admin = await create_verified_admin(ownership_fixtures, person)
    traces = (person.id, person.card, person.blocked_card, person.transaction_id, person.phone)
    for path in ownership_requests.LIST_REQUESTS[name](ownership_fixtures, person):
        for caller in list_allowed_callers(ownership_fixtures, ACCESS[name], "api_key", "admin"):
            response = await ownership_fixtures.client.get(path, auth=caller.auth)
            assert response.status_code == 200, (caller.name, response.text)
            assert not [item for item in traces if item in response.text], (caller.name, path)
        for auth in (
            admin,
            *(
                caller.auth
                for caller in list_allowed_callers(ownership_fixtures, ACCESS[name], "service")
            ),
        ):
            response = await ownership_fixtures.client.get(path, auth=auth)
            assert [entry for entry in traces if entry in response.text], path


@pytest.mark.parametrize("filter", ["user_id", "card_serial"])
async def test_transaction_filter_on_a_restricted_subscriber_requires_a_verified_code(
    ownership_fixtures: OwnershipFixtures, filter: str
) -> None:
    person = await ownership_fixtures.create_subscriber(restricted=True)
    value = {"user_id": person.id, "card_serial": person.card}[filter]
    for path in (
        f"{V1}/transactions",
        f"{V1}/transactions/export",
        f"{V1}/processors/{ownership_fixtures.processor_id}/transactions",
    ):
        for caller in list_allowed_callers(
            ownership_fixtures, ACCESS[f"GET {V1}/transactions"], "api_key", "admin"
        ):
            response = await ownership_fixtures.client.get(
                f"{path}?{filter}={value}", auth=caller.auth
            )
            assert get_status_and_code(response) == (403, "OTP_REQUIRED"), (
                caller.name,
                response.text,
            )


@pytest.mark.parametrize("name", ownership_requests.PIN_REQUESTS)
async def test_pin_of_another_subscriber_is_rejected(
    ownership_fixtures: OwnershipFixtures, name: str
) -> None:
    """The PIN is valid, but for another subscriber."""
    person = await ownership_fixtures.create_subscriber()
    card = await ownership_fixtures.create_unassigned_card()
    if "/cash-out-requests/{id}" in name:
        asked = await create_cash_out_request(
            ownership_fixtures.harness, ownership_fixtures.agents[1], person.record
        )
        person.cash_out_request = asked["id"]
    request = ownership_requests.build_request(name, ownership_fixtures, person, card, OTHER_PIN)
    kinds = ("api_key",) if name == TRANSFER_OPERATION else ("api_key", "pos", "admin", "service")
    caller, *_ = list_allowed_callers(ownership_fixtures, ACCESS[name], *kinds)
    database = ownership_fixtures.harness.database
    await database.execute("DELETE FROM pin_attempts")
    before = await ownership_fixtures.access_fixtures.snapshot_tables(*PIN_TABLES)
    response = await send(ownership_fixtures, request, caller.auth)
    assert get_status_and_code(response) == (400, "INVALID_PIN"), response.text
    assert response.json()["details"]["attempts_remaining"] == 2
    assert await ownership_fixtures.access_fixtures.snapshot_tables(*PIN_TABLES) == before
    counts = await database.fetch("SELECT credential, sum(wrong) FROM pin_attempts GROUP BY 1")
    # Service requests are counted per phone owner.
    is_agents_request = "float-requests" in name or name.endswith("/cash-out-requests")
    phone_owner = ownership_fixtures.agents[1]["id"] if is_agents_request else person.id
    credential = phone_owner if caller.kind == "service" else caller.auth.id
    assert [tuple(row) for row in counts] == [(credential, 1)]
    for value in (person.phone, "Aminata", "Kamara", "SLE"):
        assert value not in response.text
    is_agents_pin = is_agents_request or ("agent" in name and "cashout" not in name)
    correct_pin = AGENT_PIN if is_agents_pin else PIN
    response = await send(
        ownership_fixtures,
        ownership_requests.build_request(name, ownership_fixtures, person, card, correct_pin),
        caller.auth,
    )
    assert response.is_success, response.text


@pytest.mark.parametrize("name", ownership_requests.NESTED_REQUESTS)
async def test_nested_object_of_another_owner_looks_like_a_missing_object(
    ownership_fixtures: OwnershipFixtures, name: str
) -> None:
    foreign, unknown = ownership_requests.NESTED_REQUESTS[name](ownership_fixtures)
    (caller,) = (
        caller
        for caller in ownership_fixtures.access_fixtures.callers
        if caller.kind == "admin" and caller.role == "A"
    )
    await assert_indistinguishable(ownership_fixtures, foreign, unknown, caller.auth)


@pytest.mark.parametrize("name", ownership_requests.PROCESSOR_REQUESTS)
async def test_object_of_another_processor_looks_like_a_missing_object(
    ownership_fixtures: OwnershipFixtures, name: str
) -> None:
    foreign, unknown = ownership_requests.PROCESSOR_REQUESTS[name](ownership_fixtures)
    pays = name.endswith("/pos/payment")
    auth = ownership_fixtures.processor if pays else ownership_fixtures.other_processor
    response = await assert_indistinguishable(ownership_fixtures, foreign, unknown, auth)
    if name == f"GET {V1}/disputes":
        assert response.json()["data"] == []
        return
    code = "TERMINAL_NOT_FOUND" if pays else "TRANSACTION_NOT_FOUND"
    code = "DISPUTE_NOT_FOUND" if "/disputes/" in name else code
    assert get_status_and_code(response) == (404, code)


async def assert_indistinguishable(
    ownership_fixtures: OwnershipFixtures,
    foreign: OwnershipRequest,
    unknown: OwnershipRequest,
    auth: Any,
) -> httpx2.Response:
    """Assert that another owner's object gets exactly the response for a missing object."""
    before = await ownership_fixtures.access_fixtures.snapshot_tables()
    response = await send(ownership_fixtures, foreign, auth)
    other = await send(ownership_fixtures, unknown, auth)
    assert (response.status_code, response.json()) == (other.status_code, other.json())
    is_empty_list = response.json().get("data") == []
    assert is_empty_list or response.status_code in (401, 404, 422), response.text
    ignored_headers = ("x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset")
    first, second = (
        {name: value for name, value in item.headers.items() if name not in ignored_headers}
        for item in (response, other)
    )
    assert first == second
    assert await ownership_fixtures.access_fixtures.snapshot_tables() == before
    return response


async def test_terminal_key_determines_the_terminal_of_a_payment(
    ownership_fixtures: OwnershipFixtures,
) -> None:
    """A terminal in the body is ignored, even if it belongs to another processor."""
    key = ownership_fixtures.access_fixtures.terminal
    body = {
        "request_id": new_request_id(),
        "card_serial": ownership_fixtures.subscriber.card,
        "amount": "1",
        "terminal_id": ownership_fixtures.other_terminal,
    }
    paid = await send(ownership_fixtures, OwnershipRequest("POST", f"{V1}/pos/payment", body), key)
    assert paid.status_code == 200, paid.text
    path = f"{V1}/transactions/{paid.json()['transaction_id']}"
    found = (
        await ownership_fixtures.client.get(
            path, auth=await ownership_fixtures.harness.create_admin()
        )
    ).json()
    assert found["terminal_id"] not in (None, ownership_fixtures.other_terminal)
    expected = await ownership_fixtures.harness.get_processor_id(
        ownership_fixtures.access_fixtures.processor
    )
    assert found["processor_id"] == expected


async def test_partner_cannot_fund_a_wallet_from_another_partner(
    ownership_fixtures: OwnershipFixtures,
) -> None:
    def build_request(partner_id: str) -> OwnershipRequest:
        body = {
            "partner_id": partner_id,
            "subscriber_id": ownership_fixtures.subscriber.id,
            "partner_reference": "stranger",
            "amount": "1",
        }
        return OwnershipRequest("POST", f"{V1}/wallet/fund-from-partner", body)

    other = ownership_fixtures.other_partner_record["partner"]["id"]
    response = await assert_indistinguishable(
        ownership_fixtures,
        build_request(other),
        build_request(build_missing_id(ids.PARTNER)),
        ownership_fixtures.partner_auth,
    )
    assert get_status_and_code(response) == (422, "VALIDATION_FAILED")


async def test_partner_webhook_rejects_the_secret_of_another_partner(
    ownership_fixtures: OwnershipFixtures,
) -> None:
    """The sender signs with its own secret but sends to another partner's path."""
    body = {
        "reference": "stranger",
        "card_serial": ownership_fixtures.subscriber.card,
        "amount": "1",
    }
    before = await ownership_fixtures.access_fixtures.snapshot_tables()
    missing_partner = {"id": build_missing_id(ids.PARTNER)}
    foreign, unknown = [
        await post_webhook(
            ownership_fixtures.client,
            {**ownership_fixtures.partner_record, "partner": partner},
            body,
        )
        for partner in (ownership_fixtures.other_partner_record["partner"], missing_partner)
    ]
    assert (foreign.status_code, foreign.json()) == (unknown.status_code, unknown.json())
    assert get_status_and_code(foreign) == (401, "UNAUTHORIZED")
    assert await ownership_fixtures.access_fixtures.snapshot_tables() == before


async def test_idempotency_keys_are_scoped_to_the_client(
    ownership_fixtures: OwnershipFixtures,
) -> None:
    """Reusing another client's key or reference is neither a replay nor a conflict."""
    name = new_request_id()
    body = {"request_id": name, "card_serial": ownership_fixtures.subscriber.card, "amount": "1"}
    first = await send(
        ownership_fixtures,
        OwnershipRequest("POST", f"{V1}/pos/payment", body),
        ownership_fixtures.processor,
    )
    for amount in ("1", "2"):
        request = OwnershipRequest("POST", f"{V1}/pos/payment", body | {"amount": amount})
        auth = (
            ownership_fixtures.other_processor
            if amount == "1"
            else ownership_fixtures.access_fixtures.processor
        )
        response = await send(ownership_fixtures, request, auth)
        assert response.status_code == 200, response.text
        assert "Idempotent-Replayed" not in response.headers
        assert response.json()["transaction_id"] != first.json()["transaction_id"]
    top_up = {"reference": name, "card_serial": ownership_fixtures.subscriber.card, "amount": "1"}
    ours, theirs = [
        await post_webhook(ownership_fixtures.client, item, top_up)
        for item in (ownership_fixtures.partner_record, ownership_fixtures.other_partner_record)
    ]
    assert ours.json()["transaction_id"] != theirs.json()["transaction_id"]


async def test_float_transfer_is_limited_to_the_agents_own_sub_agents(
    ownership_fixtures: OwnershipFixtures,
) -> None:
    def build_request(to: str) -> OwnershipRequest:
        sender = ownership_fixtures.agents[1]["id"]
        body = {"from_agent_id": sender, "to_agent_id": to, "amount": "1", "pin": AGENT_PIN}
        return OwnershipRequest("POST", f"{V1}/agents/transfer", body)

    await assert_rejected_and_audited(
        ownership_fixtures,
        FLOAT_TRANSFER_OPERATION,
        build_request(ownership_fixtures.sub_agents[0]["id"]),
        "api_key",
        "admin",
    )
    await assert_rejected_and_audited(
        ownership_fixtures,
        FLOAT_TRANSFER_OPERATION,
        build_request(ownership_fixtures.agents[0]["id"]),
        "api_key",
        "admin",
    )


async def test_api_key_can_transfer_only_between_subscriber_wallets(
    ownership_fixtures: OwnershipFixtures,
) -> None:
    account = ownership_fixtures.subscriber.account_id
    agent = ownership_fixtures.agents[0]["account_id"]
    for payer, payee in ((agent, account), (account, agent)):
        body = {"from_account_id": payer, "to_account_id": payee, "amount": "1", "pin": PIN}
        request = OwnershipRequest("POST", f"{V1}/wallet/transfer", body)
        await assert_rejected_and_audited(
            ownership_fixtures, TRANSFER_OPERATION, request, "api_key"
        )


async def assert_rejected_and_audited(
    ownership_fixtures: OwnershipFixtures, name: str, request: OwnershipRequest, *kinds: str
) -> None:
    before = await ownership_fixtures.access_fixtures.snapshot_tables()
    denials = await ownership_fixtures.access_fixtures.count_denials()
    callers = list_allowed_callers(ownership_fixtures, ACCESS[name], *kinds)
    for caller in callers:
        response = await send(ownership_fixtures, request, caller.auth)
        assert get_status_and_code(response) == (403, "FORBIDDEN"), (caller.name, response.text)
        assert response.json()["details"]["required"]
        assert "SLE" not in response.text
    assert await ownership_fixtures.access_fixtures.snapshot_tables() == before
    assert await ownership_fixtures.access_fixtures.count_denials() == denials + len(callers)


async def test_access_code_is_bound_to_one_subscriber_and_one_admin(
    ownership_fixtures: OwnershipFixtures,
) -> None:
    first = await ownership_fixtures.create_subscriber(restricted=True)
    second = await ownership_fixtures.create_subscriber(restricted=True)
    admin = await ownership_fixtures.harness.create_admin()
    other_admin = await ownership_fixtures.harness.create_admin()
    for person in (first, second):
        url = f"{V1}/subscribers/{person.id}/restricted-access"
        assert (await ownership_fixtures.client.post(url, auth=admin)).is_success
    codes = [
        await ownership_fixtures.harness.get_pending_code(person.phone)
        for person in (first, second)
    ]
    assert codes[0] != codes[1] or pytest.skip("one in a million: both codes are the same")
    url = f"{V1}/subscribers/{first.id}"
    for auth, code in ((other_admin, codes[0]), (admin, codes[1])):
        request = OwnershipRequest("POST", f"{url}/restricted-access/verify", {"otp": code})
        assert get_status_and_code(await send(ownership_fixtures, request, auth)) == (
            400,
            "INVALID_OTP",
        )
    # A code is valid for one purpose only.
    request = OwnershipRequest(
        "POST", f"{url}/reset-pin/confirm", {"otp": codes[0], "new_pin": "7384"}
    )
    status_and_code = get_status_and_code(
        await send(ownership_fixtures, request, ownership_fixtures.harness.get_service_auth())
    )
    assert status_and_code == (400, "INVALID_OTP")
    assert get_status_and_code(await ownership_fixtures.client.get(url, auth=admin)) == (
        403,
        "OTP_REQUIRED",
    )
    request = OwnershipRequest("POST", f"{url}/restricted-access/verify", {"otp": codes[0]})
    assert (await send(ownership_fixtures, request, admin)).is_success
    assert (await ownership_fixtures.client.get(url, auth=admin)).is_success
    assert get_status_and_code(await ownership_fixtures.client.get(url, auth=other_admin)) == (
        403,
        "OTP_REQUIRED",
    )


@pytest.mark.parametrize("resource", ["subscribers", "cards", "agents"])
async def test_pin_reset_rejects_the_code_of_another_owner(
    ownership_fixtures: OwnershipFixtures, resource: str
) -> None:
    harness, service = ownership_fixtures.harness, ownership_fixtures.harness.get_service_auth()
    first, second = (
        await ownership_fixtures.create_subscriber(),
        await ownership_fixtures.create_subscriber(),
    )
    agents = [await create_agent(harness), await create_agent(harness)]
    (path, phone), (other_path, other_phone) = {
        "subscribers": [(f"/subscribers/{person.id}", person.phone) for person in (first, second)],
        "cards": [
            (f"/cards/{first.child_card}", first.phone),
            (f"/subscribers/{second.id}", second.phone),
        ],
        "agents": [(f"/agents/{agent['id']}", agent["phone_number"]) for agent in agents],
    }[resource]
    for owner in (path, other_path):
        await ownership_fixtures.client.post(f"{V1}{owner}/reset-pin", auth=service)
    codes = [await harness.get_pending_code(number) for number in (phone, other_phone)]
    assert codes[0] != codes[1] or pytest.skip("one in a million: both codes are the same")
    request = OwnershipRequest(
        "POST", f"{V1}{path}/reset-pin/confirm", {"otp": codes[1], "new_pin": "7384"}
    )
    before = await ownership_fixtures.access_fixtures.snapshot_tables("one_time_codes")
    assert get_status_and_code(await send(ownership_fixtures, request, service)) == (
        400,
        "INVALID_OTP",
    )
    assert await ownership_fixtures.access_fixtures.snapshot_tables("one_time_codes") == before


async def test_card_replacement_rejects_the_code_of_another_owner_or_admin(
    ownership_fixtures: OwnershipFixtures,
) -> None:
    harness = ownership_fixtures.harness
    admin, other_admin = [await harness.create_admin("S") for _ in range(2)]
    people = [await ownership_fixtures.create_subscriber() for _ in range(2)]
    new_card = await ownership_fixtures.create_unassigned_card()
    for person in people:
        begun = await ownership_fixtures.client.post(
            f"{V1}/cards/{person.card}/replace", json={"reason": "lost"}, auth=admin
        )
        assert begun.status_code == 200, begun.text
    codes = [await harness.get_pending_code(person.phone) for person in people]
    assert codes[0] != codes[1] or pytest.skip("one in a million: both codes are the same")

    def build_request(code: str) -> OwnershipRequest:
        body = {"card_serial": new_card, "otp": code}
        return OwnershipRequest("POST", f"{V1}/cards/{people[0].card}/replace/confirm", body)

    before = await ownership_fixtures.access_fixtures.snapshot_tables("one_time_codes")
    for auth, code in ((admin, codes[1]), (other_admin, codes[0])):
        response = await send(ownership_fixtures, build_request(code), auth)
        assert get_status_and_code(response) == (400, "INVALID_OTP"), response.text
    assert await ownership_fixtures.access_fixtures.snapshot_tables("one_time_codes") == before
    replaced = await send(ownership_fixtures, build_request(codes[0]), admin)
    assert replaced.is_success, replaced.text
    assert replaced.json()["card"]["subscriber_id"] == people[0].id


async def test_statement_requires_the_exact_link(ownership_fixtures: OwnershipFixtures) -> None:
    body = {"subscriber_id": ownership_fixtures.subscriber.id, "format": "csv", **PERIOD}
    path = f"{V1}/wallet/account-statement"
    created = (
        await send(
            ownership_fixtures,
            OwnershipRequest("POST", path, body),
            ownership_fixtures.harness.get_service_auth(),
        )
    ).json()
    link = httpx2.URL(created["statement_url"]).path
    assert (await ownership_fixtures.client.get(link)).status_code == 200
    token = link.rpartition("/")[2]
    responses = [
        await ownership_fixtures.client.get(f"{V1}/statements/{other}")
        for other in (token[:-1], f"{token}x", token.swapcase(), created["statement_id"], "x" * 43)
    ]
    assert {get_status_and_code(response) for response in responses} == {(404, "NOT_FOUND")}
    assert len({response.text for response in responses}) == 1
