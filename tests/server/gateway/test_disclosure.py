"""No endpoint discloses personal data about a restricted subscriber.

Every declared endpoint, except logout and those for terminals, is called with references to a
restricted subscriber, by an API key with all scopes, by each role without a verified code, and by a
partner. No personal value may appear in any response.
"""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import msgspec
import pytest

from builders.participants import AGENT_PIN, get_partner_auth, post_webhook
from cases import run_cases
from harness import PIN
from server.gateway.fixtures import (
    V1,
    Caller,
    OwnershipFixtures,
    SubscriberFixture,
    build_missing_id,
    build_missing_path,
    new_request_id,
)
from tapgate.http.api.examples import build_example
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import list_endpoints
from tapgate_client import ids

NAME, CHILD = "Zebulonia", "Persephina"
PROFILE = {
    "first_name": NAME,
    "last_name": "Quartermain",
    "email": "zq@secluded.example",
    "address": "77 Hidden Lane",
    "id_type": "PASSPORT",
    "id_number": "XK-5550199",
    "date_of_birth": "1987-11-23",
}
#: Excluded because it would end the caller's session.
EXCLUDED_ENDPOINT = f"POST {V1}/admin/logout"
#: Endpoints for terminals, which the restriction does not affect.
POS_PATHS = (f"{V1}/pos/", f"{V1}/payment", "/payment")
ENDPOINTS = {
    endpoint.name: endpoint
    for endpoint in list_endpoints()
    if endpoint.name != EXCLUDED_ENDPOINT and not endpoint.path.startswith(POS_PATHS)
}
_BODY_OVERRIDES = {f"POST {V1}/cards/{{serial}}/block": {"reason": "customer_request"}}
#: Changes to the body for endpoints whose fields exclude each other: one body for each.
_BODY_ALTERNATIVES: dict[str, tuple[dict[str, Any], ...]] = {
    f"POST {V1}/wallet/quote": (
        {"type": "transfer_p2p", "card_serial": None, "recipient_card_serial": None},
        {"type": "transfer_p2p", "card_serial": None, "sender_id": None},
        {"type": "pos_payment", "recipient_card_serial": None, "sender_id": None},
    ),
    f"POST {V1}/wallet/transfer-p2p": (
        {"recipient_phone_number": None},
        {"recipient_card_serial": None},
    ),
}


class RestrictedSubscriber(SubscriberFixture):
    """A restricted subscriber that objects of every kind refer to."""

    alert = statement = ""


async def create_restricted_subscriber(
    ownership_fixtures: OwnershipFixtures,
) -> RestrictedSubscriber:
    harness, service = ownership_fixtures.harness, ownership_fixtures.harness.get_service_auth()
    admin = await harness.create_admin()
    number = {"id_number": f"XK-{new_request_id()}"}
    person = RestrictedSubscriber(
        await harness.create_subscriber(balance="846.19", **PROFILE | number), PIN
    )
    person.record |= number
    person.card, person.blocked_card = (
        await harness.create_card(person.id),
        await harness.create_card(person.id),
    )
    person.child_card = await harness.create_card(
        person.id, type="CHILD", holder_name=CHILD, relationship="niece", daily_limit=5000
    )
    url, personal_text = f"{V1}/subscribers/{person.id}", f"{NAME} {person.phone}"

    async def post(path: str, body: Any, auth: Any, status: int = 200) -> Any:
        response = await ownership_fixtures.client.post(path, json=body, auth=auth)
        assert response.status_code == status, response.text
        return response.json()

    payment = {
        "request_id": new_request_id(),
        "card_serial": person.card,
        "amount": "12",
        "metadata": {"customer": personal_text},
    }
    person.transaction_id = (
        await post(f"{V1}/pos/payment", payment, ownership_fixtures.processor)
    )["transaction_id"]
    transfer = {
        "sender_id": person.id,
        "recipient_card_serial": ownership_fixtures.subscriber.card,
        "amount": "100",
        "pin": PIN,
        "memo": f"From {personal_text}",
    }
    await post(f"{V1}/wallet/transfer-p2p", transfer | {"request_id": new_request_id()}, service)
    # Declined: the error details contain the balance.
    transfer |= {"amount": "45000", "request_id": new_request_id()}
    await post(f"{V1}/wallet/transfer-p2p", transfer, service, 402)
    alert = {
        "subscriber_id": person.id,
        "alert_type": "support",
        "details": {"asked_by": person.phone, "figure": NAME, "note": personal_text},
    }
    person.alert = (await post(f"{V1}/compliance/alerts", alert, service, 201))["alert_id"]
    alert = {
        "transaction_id": person.transaction_id,
        "alert_type": "odd",
        "details": {"note": personal_text},
    }
    other = (await post(f"{V1}/compliance/alerts", alert, service, 201))["alert_id"]
    await post(
        f"{V1}/compliance/alerts/{other}/resolve",
        {"status": "resolved", "resolution_notes": f"Called {personal_text}"},
        admin,
    )
    await post(f"{V1}/compliance/alerts/{person.alert}/investigate", {"note": personal_text}, admin)
    message = {"phone_number": person.phone, "text": f"This is {personal_text}"}
    person.support_request = (await post(f"{V1}/support/requests", message, service, 201))["id"]
    today = ownership_fixtures.harness.services.clock().date().isoformat()
    period = {"from_date": today, "to_date": today}
    statement = {"subscriber_id": person.id, "format": "csv", **period}
    link = (await post(f"{V1}/wallet/account-statement", statement, admin))["statement_url"]
    person.statement = link.rpartition("/")[2]
    response = await ownership_fixtures.client.put(
        url, json={"address": PROFILE["address"] + "!"}, auth=admin
    )
    assert response.is_success
    response = await ownership_fixtures.client.put(url, json={"restricted": True}, auth=admin)
    assert response.json() == {
        "id": person.id,
        "restricted": True,
        "status": "ACTIVE",
        "status_reason": None,
    }
    return person


async def list_personal_values(
    ownership_fixtures: OwnershipFixtures, person: RestrictedSubscriber
) -> set[str]:
    url = f"{V1}/subscribers/{person.id}"
    record = (
        await ownership_fixtures.client.get(url, auth=ownership_fixtures.harness.get_service_auth())
    ).json()
    fields = ("phone_number", "balance", *(name for name in PROFILE if name != "id_type"))
    return {record[name] for name in fields} | {CHILD, "niece"}


def build_body_fields(
    ownership_fixtures: OwnershipFixtures, person: RestrictedSubscriber, name: str
) -> dict[str, Any]:
    """Return values of body fields that refer to the person or must accompany such a field."""
    agent = ownership_fixtures.agents[1]["id"]
    return {
        "subscriber_id": person.id,
        "parent_subscriber_id": person.id,
        "user_id": person.id,
        "sender_id": person.id if name.endswith("/quote") else ownership_fixtures.subscriber.id,
        "card_serial": person.card,
        "recipient_card_serial": person.card,
        "recipient_phone_number": person.phone,
        "from_account_id": ownership_fixtures.subscriber.account_id,
        "to_account_id": person.account_id,
        "transaction_id": person.transaction_id,
        "resource_id": person.id,
        "agent_id": agent,
        "agent_pin": AGENT_PIN,
        "partner_id": ownership_fixtures.partner_record["partner"]["id"],
    }


REFERENCE_FIELDS = {
    "subscriber_id",
    "parent_subscriber_id",
    "user_id",
    "card_serial",
    "recipient_card_serial",
    "recipient_phone_number",
    "to_account_id",
    "transaction_id",
}


def list_paths(
    endpoint: Endpoint, ownership_fixtures: OwnershipFixtures, person: RestrictedSubscriber
) -> list[str]:
    """Return the endpoint's paths that refer to the person or to objects related to them.

    Any other path parameter is an identifier that does not exist.
    """
    ids_by_path = {
        f"{V1}/subscribers/{{id}}": [person.id],
        f"{V1}/cards/{{serial}}": [person.card, person.child_card],
        f"{V1}/balance/{{user_id}}": [person.id],
        f"{V1}/transactions/{{id}}": [person.transaction_id],
        f"{V1}/compliance/alerts/{{id}}": [person.alert],
        f"{V1}/support/requests/{{id}}": [person.support_request],
        f"{V1}/processors/{{id}}/transfer": [ownership_fixtures.processor_id],
        f"{V1}/processors/{{id}}/transactions": [ownership_fixtures.processor_id],
        f"{V1}/statements/{{token}}": [person.statement],
        f"{V1}/webhooks/partners/{{partner_id}}": [
            ownership_fixtures.partner_record["partner"]["id"]
        ],
    }
    for prefix, object_ids in ids_by_path.items():
        if endpoint.path.startswith(prefix):
            first, rest = prefix.index("{"), endpoint.path.partition("}")[2]
            rest = rest.replace("{document_id}", build_missing_id(ids.DOCUMENT))
            return [f"{prefix[:first]}{object_id}{rest}" for object_id in object_ids]
    return [build_missing_path(endpoint)]


def list_queries(
    endpoint: Endpoint, person: RestrictedSubscriber, values: set[str]
) -> Iterator[str]:
    yield ""
    names = {f.encode_name for f in msgspec.structs.fields(endpoint.query_type or msgspec.Struct)}
    values_by_filter = {
        "user_id": person.id,
        "card_serial": person.card,
        "subscriber_id": person.id,
        "transaction_id": person.transaction_id,
        "phone_number": person.phone,
    }
    for name in names & values_by_filter.keys():
        yield f"?{name}={quote(values_by_filter[name])}"
    if "search" in names:
        yield from (f"?search={quote(value)}" for value in (*values, person.id, person.card))
    if "resource_id" in names:
        resource_ids = (
            person.id,
            person.card,
            person.transaction_id,
            person.alert,
            person.support_request,
        )
        yield from (f"?resource_id={resource_id}" for resource_id in resource_ids)


def list_bodies(
    endpoint: Endpoint, ownership_fixtures: OwnershipFixtures, person: RestrictedSubscriber
) -> Iterator[Any]:
    """Yield bodies that refer to the person, {} if no field does, or None without a JSON body."""
    kind = endpoint.body_struct
    if kind is None:
        yield None
        return
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    reference_fields = build_body_fields(ownership_fixtures, person, endpoint.name)
    about_person = bool(names & REFERENCE_FIELDS) or any(
        thing in endpoint.path
        for thing in ("/subscribers/{", "/cards/{", "/alerts/{", "/requests/{", "/quote")
    )
    if not about_person:
        yield {}
        return
    body = build_example(kind) | {
        name: reference_fields[name] for name in names & reference_fields.keys()
    }
    body |= dict.fromkeys(names & {"pin", "parent_pin"}, PIN) | {"request_id": new_request_id()}
    body |= {"amount": "1", "partner_reference": new_request_id()}
    body |= _BODY_OVERRIDES.get(endpoint.name, {})
    body = {name: value for name, value in body.items() if name in names}
    if {"subscriber_id", "card_serial"} <= names and "pin" not in names:
        body.pop("card_serial")
    if endpoint.path.endswith("/cashout"):
        body["pin"] = "0000"  # with the correct PIN, the transaction is the subscriber's own
    for changes in _BODY_ALTERNATIVES.get(endpoint.name, ({},)):
        yield body | changes | ({"request_id": new_request_id()} if "request_id" in names else {})
    if endpoint.path.endswith("/alerts"):
        yield body | {"details": {"note": NAME, "phone": person.phone}}


def can_change(
    endpoint: Endpoint, ownership_fixtures: OwnershipFixtures, person: RestrictedSubscriber
) -> bool:
    """Return whether the endpoint's requests may change the person: they refer to it."""
    return endpoint.method != "GET" and (
        list_paths(endpoint, ownership_fixtures, person) != [build_missing_path(endpoint)]
        or any(list_bodies(endpoint, ownership_fixtures, person))
    )


def list_callers(ownership_fixtures: OwnershipFixtures) -> list[Caller]:
    callers = [
        caller
        for caller in ownership_fixtures.access_fixtures.callers
        if caller.kind in ("api_key", "admin")
    ]
    callers = [
        caller
        for caller in callers
        if caller.kind == "admin" or caller.name == "key with all scopes"
    ]
    return [
        *callers,
        Caller("partner", get_partner_auth(ownership_fixtures.partner_record), "partner"),
    ]


async def undo_block(ownership_fixtures: OwnershipFixtures, person: RestrictedSubscriber) -> None:
    """Activate the person's accounts and cards, so that the next caller can block them too."""
    database = ownership_fixtures.harness.database
    number = ids.decode(ids.SUBSCRIBER, person.id)
    await database.execute("UPDATE accounts SET status = 'active' WHERE owner_id = $1", number)
    await database.execute("UPDATE cards SET status = 'ACTIVE' WHERE subscriber_id = $1", number)


@pytest.mark.parametrize("method", ["GET", "other"])
async def test_response_contains_no_personal_data_of_a_restricted_subscriber(
    ownership_fixtures: OwnershipFixtures, method: str
) -> None:
    """All cases that cannot change the restricted subscriber share one."""
    observed = await create_restricted_subscriber(ownership_fixtures)
    await run_cases(
        (name, check_responses(ownership_fixtures, observed, name))
        for name, endpoint in ENDPOINTS.items()
        if (endpoint.method == "GET") == (method == "GET")
    )


async def check_responses(
    ownership_fixtures: OwnershipFixtures, observed: RestrictedSubscriber, name: str
) -> None:
    endpoint = ENDPOINTS[name]
    reads_only = not can_change(endpoint, ownership_fixtures, observed)
    person = observed if reads_only else await create_restricted_subscriber(ownership_fixtures)
    before = await list_personal_values(ownership_fixtures, person)
    for caller in list_callers(ownership_fixtures):
        for path in list_paths(endpoint, ownership_fixtures, person):
            for query in list_queries(endpoint, person, before):
                for body in list_bodies(endpoint, ownership_fixtures, person):
                    response = await call_endpoint(
                        ownership_fixtures, endpoint, path + query, body, caller
                    )
                    values = before
                    if not reads_only and response.is_success:
                        before = await list_personal_values(ownership_fixtures, person)
                        values = values | before
                    disclosed = [value for value in values if value in response.text]
                    if "/alerts" in name and endpoint.method == "POST":
                        disclosed = [value for value in disclosed if value not in json.dumps(body)]
                    assert disclosed == [], (caller.name, path + query, response.text)
                    assert response.status_code < 500
                    if name in _BODY_ALTERNATIVES:
                        assert response.status_code != 422, (body, response.text)
            if not reads_only:
                await undo_block(ownership_fixtures, person)


async def call_endpoint(
    ownership_fixtures: OwnershipFixtures, endpoint: Endpoint, path: str, body: Any, caller: Caller
) -> httpx2.Response:
    if endpoint.path.startswith(f"{V1}/webhooks/partners/"):
        body = {"reference": new_request_id(), "card_serial": body["card_serial"], "amount": "1"}
        return await post_webhook(
            ownership_fixtures.client, ownership_fixtures.partner_record, body
        )
    content = b"" if body is None else json.dumps(body).encode()
    return await ownership_fixtures.client.request(
        endpoint.method, path, content=content, auth=caller.auth
    )
