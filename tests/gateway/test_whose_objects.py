"""Another client's things: whoever may call an operation still gets nothing of what is another's,
changes nothing of it, and learns nothing about it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from conftest import Copies
from gateway import strangers
from gateway.house import Caller, open_house, said
from gateway.strangers import OTHER_PIN, V1, Ask, Person, Town, missing, request_id
from partners.stage import deliver
from tapgate import ids
from tapgate.cli.manual import list_endpoints
from tapgate.cli.manual.object_access import OBJECT_ACCESS, ObjectAccess
from tapgate.edge.endpoint import Access
from world import PIN

ACCESS = {endpoint.name: endpoint.access for endpoint in list_endpoints()}
TRANSFER = f"POST {V1}/wallet/transfer"
FLOAT = f"POST {V1}/agents/transfer"
FUND = f"POST {V1}/wallet/fund-from-partner"
WEBHOOK = f"POST {V1}/webhooks/partners/{{partner_id}}"
CONFIRM = f"POST {V1}/subscribers/{{id}}/reset-pin/confirm"
VERIFY = f"POST {V1}/subscribers/{{id}}/restricted-access/verify"
OWN = {f"POST {V1}/admin/logout", f"GET {V1}/admin/me", f"POST {V1}/admin/refresh"}
STATEMENT = f"GET {V1}/statements/{{token}}"

#: What a wrong PIN may change: that it was tried.
TRIED = ("pins", "pin_failures")

#: The operations that are tried here, by what is looked at. Who adds one to the table of
#: `tapgate.cli.manual.object_access` says here how it is asked for somebody else's thing.
COVERED: dict[ObjectAccess, set[str]] = {
    ObjectAccess.UNRESTRICTED: {
        *strangers.CLOSED,
        *strangers.LISTS,
        *strangers.MASKED,  # in test_masked_transactions.py
        *strangers.MASKED_LISTS,
    },
    ObjectAccess.PIN: {*strangers.PINS},
    ObjectAccess.OTP: {CONFIRM, VERIFY},
    ObjectAccess.SUBSCRIBER_WALLETS: {TRANSFER},
    ObjectAccess.SUB_AGENTS: {FLOAT},
    ObjectAccess.PROCESSOR: {*strangers.PROCESSORS},
    ObjectAccess.PARTNER: {FUND, WEBHOOK},
    ObjectAccess.OWN: OWN,
    ObjectAccess.LINK: {STATEMENT},
    ObjectAccess.PARENT_IN_PATH: {*strangers.INSIDE},
}


@pytest.fixture(scope="module")
async def town(
    tmp_path_factory: pytest.TempPathFactory, postgres: str, copies: Copies
) -> AsyncIterator[Town]:
    async with open_house(tmp_path_factory.mktemp("town"), postgres, copies) as house:
        town = Town(house)
        await town.found()
        yield town


@pytest.mark.parametrize("whose", [one for one in ObjectAccess if one in COVERED])
def test_every_operation_is_tried(whose: ObjectAccess) -> None:
    assert {name for name, all_of in OBJECT_ACCESS.items() if whose in all_of} == COVERED[whose]


def test_there_is_nothing_to_try_where_nobody_owns_anything() -> None:
    assert set(ObjectAccess) - COVERED.keys() == {ObjectAccess.NO_OBJECT, ObjectAccess.ANY}
    # Who signs is a client with things of its own: what it may do with any is few and known.
    signed = {name for name, access in ACCESS.items() if access.hmac}
    assert {name for name in signed if OBJECT_ACCESS[name] == (ObjectAccess.ANY,)} == {
        f"POST {prefix}"
        for prefix in (
            f"{V1}/pos/lookup-card",
            *(f"{v}/payment{path}" for v in (V1, "") for path in ("", *_LOOKS)),
        )
    }


_LOOKS = ("/verify-card", "/lookup-card")


async def asked(town: Town, ask: Ask, auth: Any) -> httpx2.Response:
    content = b"" if ask.body is None else json.dumps(ask.body).encode()
    return await town.client.request(ask.method, ask.path, content=content, auth=auth)


def callers(town: Town, access: Access, *kinds: str) -> list[Caller]:
    """Those of these kinds who may: one key, and every role."""
    return [
        caller
        for caller in town.house.callers
        if caller.may(access)
        and caller.kind in kinds
        and (caller.kind != "api_key" or caller.name == "key with all scopes")
    ]


async def opened(town: Town, person: Person) -> Any:
    """An admin who has verified a code from the person's phone."""
    admin = await town.world.admin()
    url = f"{V1}/subscribers/{person.id}/restricted-access"
    assert (await town.client.post(url, auth=admin)).status_code == 200
    code = await town.world.code_sent_to(person.phone)
    assert (await town.client.post(f"{url}/verify", json={"otp": code}, auth=admin)).is_success
    return admin


@pytest.mark.parametrize("name", strangers.CLOSED)
async def test_a_restricted_subscriber_is_closed(town: Town, name: str) -> None:
    person, card = await town.person(restricted=True), await town.free_card()
    admin = await opened(town, person)
    ask, before = strangers.CLOSED[name](town, person, card), await town.house.state()
    closed_to = callers(town, ACCESS[name], "api_key", "admin")
    assert closed_to
    for caller in closed_to:
        answer = await asked(town, ask, caller.auth)
        assert said(answer) == (403, "OTP_REQUIRED"), (caller.name, answer.text)
        for told in (person.phone, "Aminata", "Kamara", "details"):
            assert told not in answer.text
    assert await town.house.state() == before
    for other in callers(town, ACCESS[name], "service"):
        answer = await asked(town, ask, other.auth)
        assert said(answer)[1] not in ("OTP_REQUIRED", "FORBIDDEN"), answer.text
    answer = await asked(town, ask, admin)
    assert said(answer)[1] not in ("OTP_REQUIRED", "FORBIDDEN"), answer.text


@pytest.mark.parametrize("name", strangers.LISTS)
async def test_a_restricted_subscriber_is_left_out_of_lists(town: Town, name: str) -> None:
    person = await town.person(restricted=True)
    admin = await opened(town, person)
    traces = (person.id, person.card, person.blocked_card, person.transaction, person.phone)
    for path in strangers.LISTS[name](town, person):
        for caller in callers(town, ACCESS[name], "api_key", "admin"):
            answer = await town.client.get(path, auth=caller.auth)
            assert answer.status_code == 200, (caller.name, answer.text)
            assert not [one for one in traces if one in answer.text], (caller.name, path)
        for auth in (admin, *(one.auth for one in callers(town, ACCESS[name], "service"))):
            answer = await town.client.get(path, auth=auth)
            assert [one for one in traces if one in answer.text], path


@pytest.mark.parametrize("filter", ["user_id", "card_serial"])
async def test_who_asks_for_a_restricted_one_by_name_is_refused(town: Town, filter: str) -> None:
    person = await town.person(restricted=True)
    value = {"user_id": person.id, "card_serial": person.card}[filter]
    for path in (
        f"{V1}/transactions",
        f"{V1}/transactions/export",
        f"{V1}/processors/{town.shop_id}/transactions",
    ):
        for caller in callers(town, ACCESS[f"GET {V1}/transactions"], "api_key", "admin"):
            answer = await town.client.get(f"{path}?{filter}={value}", auth=caller.auth)
            assert said(answer) == (403, "OTP_REQUIRED"), (caller.name, answer.text)


@pytest.mark.parametrize("name", strangers.PINS)
async def test_another_subscribers_pin_opens_nothing(town: Town, name: str) -> None:
    """It is a right one, but somebody else's."""
    person, card = await town.person(), await town.free_card()
    ask = strangers.PINS[name](town, person, card, OTHER_PIN)
    kinds = ("api_key",) if name == TRANSFER else ("api_key", "pos", "admin", "service")
    caller, *_ = callers(town, ACCESS[name], *kinds)
    before = await town.house.state(*TRIED)
    answer = await asked(town, ask, caller.auth)
    assert said(answer) == (400, "INVALID_PIN"), answer.text
    assert answer.json()["details"]["attempts_remaining"] == 2
    assert await town.house.state(*TRIED) == before
    for told in (person.phone, "Aminata", "Kamara", "SLE"):
        assert told not in answer.text
    right = PIN if "agent" not in name or "cashout" in name else strangers.AGENT_PIN
    answer = await asked(town, strangers.PINS[name](town, person, card, right), caller.auth)
    assert answer.is_success, answer.text


@pytest.mark.parametrize("name", strangers.INSIDE)
async def test_what_is_anothers_is_not_there(town: Town, name: str) -> None:
    foreign, unknown = strangers.INSIDE[name](town)
    (caller,) = (one for one in town.house.callers if one.kind == "admin" and one.role == "A")
    await the_same(town, foreign, unknown, caller.auth)


@pytest.mark.parametrize("name", strangers.PROCESSORS)
async def test_another_processors_things_are_not_there(town: Town, name: str) -> None:
    foreign, unknown = strangers.PROCESSORS[name](town)
    pays = name.endswith("/pos/payment")
    auth = town.shop if pays else town.other_shop
    answer = await the_same(town, foreign, unknown, auth)
    code = "TERMINAL_NOT_FOUND" if pays else "TRANSACTION_NOT_FOUND"
    assert said(answer) == (404, code)


async def the_same(town: Town, foreign: Ask, unknown: Ask, auth: Any) -> httpx2.Response:
    """Another's thing is answered like what does not exist, to the letter."""
    before = await town.house.state()
    answer, other = await asked(town, foreign, auth), await asked(town, unknown, auth)
    assert (answer.status_code, answer.json()) == (other.status_code, other.json())
    assert answer.status_code in (401, 404, 422), answer.text
    quiet = ("x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset")
    first, second = (
        {name: value for name, value in one.headers.items() if name not in quiet}
        for one in (answer, other)
    )
    assert first == second
    assert await town.house.state() == before
    return answer


async def test_a_terminals_key_fixes_the_terminal(town: Town) -> None:
    """Whatever the body says: also another processor's."""
    key = town.house.terminal
    body = {
        "request_id": request_id(),
        "card_serial": town.somebody.card,
        "amount": "1",
        "terminal_id": town.other_terminal,
    }
    paid = await asked(town, Ask("POST", f"{V1}/pos/payment", body), key)
    assert paid.status_code == 200, paid.text
    path = f"{V1}/transactions/{paid.json()['transaction_id']}"
    found = (await town.client.get(path, auth=await town.world.admin())).json()
    assert found["terminal_id"] not in (None, town.other_terminal)
    assert found["processor_id"] == await town.world.processor_of(town.house.processor)


async def test_another_partner_cannot_be_made_to_pay(town: Town) -> None:
    def ask(partner_id: str) -> Ask:
        body = {
            "partner_id": partner_id,
            "subscriber_id": town.somebody.id,
            "partner_reference": "stranger",
            "amount": "1",
        }
        return Ask("POST", f"{V1}/wallet/fund-from-partner", body)

    other = town.other_bank["partner"]["id"]
    answer = await the_same(town, ask(other), ask(missing(ids.PARTNER)), town.partner)
    assert said(answer) == (422, "VALIDATION_FAILED")


async def test_a_partners_webhook_is_its_own(town: Town) -> None:
    """Signed with one's own secret, sent in the name of another."""
    body = {"reference": "stranger", "card_serial": town.somebody.card, "amount": "1"}
    before = await town.house.state()
    nobody = {"id": missing(ids.PARTNER)}
    foreign, unknown = [
        await deliver(town.client, {**town.bank, "partner": partner}, body)
        for partner in (town.other_bank["partner"], nobody)
    ]
    assert (foreign.status_code, foreign.json()) == (unknown.status_code, unknown.json())
    assert said(foreign) == (401, "UNAUTHORIZED")
    assert await town.house.state() == before


async def test_names_of_requests_are_each_clients_own(town: Town) -> None:
    """Another's request id, or reference, is neither a replay nor a conflict: it tells nothing."""
    name = request_id()
    body = {"request_id": name, "card_serial": town.somebody.card, "amount": "1"}
    first = await asked(town, Ask("POST", f"{V1}/pos/payment", body), town.shop)
    for amount in ("1", "2"):
        ask = Ask("POST", f"{V1}/pos/payment", body | {"amount": amount})
        auth = town.other_shop if amount == "1" else town.house.processor
        answer = await asked(town, ask, auth)
        assert answer.status_code == 200, answer.text
        assert "Idempotent-Replayed" not in answer.headers
        assert answer.json()["transaction_id"] != first.json()["transaction_id"]
    top_up = {"reference": name, "card_serial": town.somebody.card, "amount": "1"}
    ours, theirs = [await deliver(town.client, one, top_up) for one in (town.bank, town.other_bank)]
    assert ours.json()["transaction_id"] != theirs.json()["transaction_id"]


async def test_float_goes_to_ones_own_sub_agents(town: Town) -> None:
    def ask(to: str) -> Ask:
        sender = town.agents[1]["id"]
        body = {
            "from_agent_id": sender,
            "to_agent_id": to,
            "amount": "1",
            "pin": strangers.AGENT_PIN,
        }
        return Ask("POST", f"{V1}/agents/transfer", body)

    await refused_and_recorded(town, FLOAT, ask(town.sub_agents[0]["id"]), "api_key", "admin")
    await refused_and_recorded(town, FLOAT, ask(town.agents[0]["id"]), "api_key", "admin")


async def test_an_api_key_moves_subscribers_money_only(town: Town) -> None:
    account, agent = town.somebody.account, town.agents[0]["account_id"]
    for payer, payee in ((agent, account), (account, agent)):
        body = {"from_account_id": payer, "to_account_id": payee, "amount": "1", "pin": PIN}
        ask = Ask("POST", f"{V1}/wallet/transfer", body)
        await refused_and_recorded(town, TRANSFER, ask, "api_key")


async def refused_and_recorded(town: Town, name: str, ask: Ask, *kinds: str) -> None:
    before, denials = await town.house.state(), await town.house.denials()
    tried = callers(town, ACCESS[name], *kinds)
    for caller in tried:
        answer = await asked(town, ask, caller.auth)
        assert said(answer) == (403, "FORBIDDEN"), (caller.name, answer.text)
        assert answer.json()["details"]["required"]
        assert "SLE" not in answer.text
    assert await town.house.state() == before
    assert await town.house.denials() == denials + len(tried)


async def test_a_code_is_one_subscribers_and_one_admins(town: Town) -> None:
    first, second = await town.person(restricted=True), await town.person(restricted=True)
    asker, other = await town.world.admin(), await town.world.admin()
    for person in (first, second):
        url = f"{V1}/subscribers/{person.id}/restricted-access"
        assert (await town.client.post(url, auth=asker)).is_success
    codes = [await town.world.code_sent_to(person.phone) for person in (first, second)]
    assert codes[0] != codes[1] or pytest.skip("one in a million: both codes are the same")
    url = f"{V1}/subscribers/{first.id}"
    for auth, code in ((other, codes[0]), (asker, codes[1])):
        ask = Ask("POST", f"{url}/restricted-access/verify", {"otp": code})
        assert said(await asked(town, ask, auth)) == (400, "INVALID_OTP")
    # A code for one thing is none for another.
    ask = Ask("POST", f"{url}/reset-pin/confirm", {"otp": codes[0], "new_pin": "7384"})
    assert said(await asked(town, ask, town.world.service())) == (400, "INVALID_OTP")
    assert said(await town.client.get(url, auth=asker)) == (403, "OTP_REQUIRED")
    ask = Ask("POST", f"{url}/restricted-access/verify", {"otp": codes[0]})
    assert (await asked(town, ask, asker)).is_success
    assert (await town.client.get(url, auth=asker)).is_success
    assert said(await town.client.get(url, auth=other)) == (403, "OTP_REQUIRED")


async def test_a_pin_is_reset_with_ones_own_code(town: Town) -> None:
    first, second = await town.person(), await town.person()
    service = town.world.service()
    for person in (first, second):
        await town.client.post(f"{V1}/subscribers/{person.id}/reset-pin", auth=service)
    codes = [await town.world.code_sent_to(person.phone) for person in (first, second)]
    assert codes[0] != codes[1] or pytest.skip("one in a million: both codes are the same")
    ask = Ask(
        "POST",
        f"{V1}/subscribers/{first.id}/reset-pin/confirm",
        {"otp": codes[1], "new_pin": "7384"},
    )
    before = await town.house.state("one_time_codes")
    assert said(await asked(town, ask, service)) == (400, "INVALID_OTP")
    assert await town.house.state("one_time_codes") == before


async def test_a_session_is_ones_own(town: Town) -> None:
    first, second = await town.world.admin("S"), await town.world.admin("F")
    for admin in (first, second):
        me = await town.client.get(f"{V1}/admin/me", auth=admin)
        assert me.json()["id"] == admin.id
    assert (await town.client.post(f"{V1}/admin/logout", auth=first)).status_code == 204
    assert said(await town.client.get(f"{V1}/admin/me", auth=first)) == (401, "UNAUTHORIZED")
    assert (await town.client.get(f"{V1}/admin/me", auth=second)).status_code == 200
    nobodys = await town.client.post(f"{V1}/admin/refresh", json={"refresh_token": "x" * 43})
    assert said(nobodys) == (401, "UNAUTHORIZED")


async def test_a_statement_is_for_whoever_has_its_link(town: Town) -> None:
    body = {"subscriber_id": town.somebody.id, "format": "csv", **strangers.PERIOD}
    path = f"{V1}/wallet/account-statement"
    made = (await asked(town, Ask("POST", path, body), town.world.service())).json()
    link = httpx2.URL(made["statement_url"]).path
    assert (await town.client.get(link)).status_code == 200
    token = link.rpartition("/")[2]
    answers = [
        await town.client.get(f"{V1}/statements/{other}")
        for other in (token[:-1], f"{token}x", token.swapcase(), made["statement_id"], "x" * 43)
    ]
    assert {said(answer) for answer in answers} == {(404, "NOT_FOUND")}
    assert len({answer.text for answer in answers}) == 1
