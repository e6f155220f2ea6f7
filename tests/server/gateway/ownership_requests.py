"""Requests for another client's objects, for every operation with an ownership check."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import msgspec

from builders.participants import AGENT_PIN
from harness import PIN
from server.gateway.fixtures import (
    IMAGE_DATA_URI,
    NEW_PIN,
    PERIOD,
    V1,
    OwnershipFixtures,
    OwnershipRequest,
    SubscriberFixture,
    build_missing_id,
    new_request_id,
)
from tapgate.http.api.examples import build_example
from tapgate.http.api.object_access import ObjectAccess
from tapgate.server.gateway import list_endpoints
from tapgate_client import ids

# Lists omit a restricted subscriber.
LIST_REQUESTS: dict[str, Callable[[OwnershipFixtures, SubscriberFixture], list[str]]] = {
    f"GET {V1}/subscribers": lambda t, p: [
        f"{V1}/subscribers",
        f"{V1}/subscribers?phone_number=%2B{p.phone[1:]}",
        f"{V1}/subscribers?search={p.phone[-6:]}",
        # The oldest come first, and other tests have registered subscribers too.
        f"{V1}/subscribers?kyc_status=PENDING&limit=100",
    ],
    f"GET {V1}/kyc-reviews": lambda t, p: [
        f"{V1}/kyc-reviews",
        f"{V1}/kyc-reviews?subscriber_id={p.id}",
    ],
    f"GET {V1}/cards": lambda t, p: [
        f"{V1}/cards",
        f"{V1}/cards?subscriber_id={p.id}",
        f"{V1}/cards?search={p.card}",
    ],
    f"GET {V1}/search": lambda t, p: [
        f"{V1}/search?q=%2B{p.phone[1:]}",
        f"{V1}/search?q={p.phone[-6:]}",
    ],
}

# In these lists, admins see a restricted subscriber's transactions masked.
MASKED_LIST_REQUESTS: dict[str, Callable[[OwnershipFixtures, SubscriberFixture], list[str]]] = {
    f"GET {V1}/transactions": lambda t, p: [
        f"{V1}/transactions",
        f"{V1}/transactions?user_id={t.processor_id}",
    ],
    f"GET {V1}/transactions/export": lambda t, p: [
        f"{V1}/transactions/export",
        f"{V1}/transactions/export?user_id={t.processor_id}",
    ],
    f"GET {V1}/processors/{{id}}/transactions": lambda t, p: [
        f"{V1}/processors/{t.processor_id}/transactions"
    ],
}

SUBSCRIBER_PATH = f"{V1}/subscribers/{{id}}"

ENDPOINTS = {endpoint.name: endpoint for endpoint in list_endpoints()}

#: Values that differ from `_build_values` in some requests. None removes an optional field.
BuildChanges = Callable[[OwnershipFixtures, SubscriberFixture], dict[str, Any]]
_CHANGES: dict[str, BuildChanges] = {
    f"PUT {SUBSCRIBER_PATH}": lambda t, p: {"language": "fr"},
    f"POST {SUBSCRIBER_PATH}/kyc-decision": lambda t, p: {
        "decision": "reject",
        "reason": "blurred",
    },
    f"POST {V1}/cards/{{serial}}/unblock": lambda t, p: {"serial": p.blocked_card},
    f"PUT {V1}/cards/{{serial}}": lambda t, p: {"serial": p.child_card, "child_name": "Eve"},
    f"POST {V1}/cards/{{serial}}/change-pin": lambda t, p: {"serial": p.child_card},
    f"POST {V1}/cards/{{serial}}/reset-pin": lambda t, p: {"serial": p.child_card},
    f"POST {V1}/cards/{{serial}}/reset-pin/confirm": lambda t, p: {"serial": p.child_card},
    f"GET {V1}/transactions/totals": lambda t, p: {"user_id": p.id},
    f"POST {V1}/pos/payment": lambda t, p: {"card_serial": p.card, "request_id": new_request_id()},
    f"POST {V1}/disputes": lambda t, p: {
        "transaction_id": p.transaction_id,
        "request_id": new_request_id(),
    },
    f"POST {V1}/transactions/{{id}}/reverse": lambda t, p: {"request_id": new_request_id()},
    f"POST {V1}/transactions/{{id}}/refund": lambda t, p: {"request_id": new_request_id()},
    f"POST {V1}/transactions/{{id}}/recall": lambda t, p: {
        "transactions": p.transfer_id,
        "request_id": new_request_id(),
    },
    f"POST {V1}/pos/verify-card": lambda t, p: {"card_serial": p.card},
    f"POST {V1}/wallet/fund-from-partner": lambda t, p: {
        "card_serial": p.card,
        "partner_id": t.partner_record["partner"]["id"],
        "subscriber_id": None,
    },
    f"POST {V1}/wallet/quote": lambda t, p: {"type": "transfer_p2p", "card_serial": None},
    f"POST {V1}/cash-out-requests": lambda t, p: {
        "card_serial": None,
        "request_id": new_request_id(),
    },
    f"POST {V1}/agents/cashin": lambda t, p: {"card_serial": None},
    f"POST {V1}/agents/cashout": lambda t, p: {"card_serial": None, "agent_pin": AGENT_PIN},
    f"POST {V1}/compliance/check": lambda t, p: {"transaction_type": "transfer_p2p"},
}
#: Optional fields that say which subscriber a request is about, or that authorize it.
_OPTIONAL_FIELDS = {"card_serial", "pin", "recipient_card_serial", "sender_id", "subscriber_id"}


def _build_values(
    t: OwnershipFixtures, p: SubscriberFixture, card: str, pin: str | None
) -> dict[str, Any]:
    """Return the values of fields and path parameters by name, for a request about `p`.

    With a PIN, `p` or an agent pays. Otherwise `p` receives money, and all PINs are correct.
    """
    payer, payee = (t.subscriber, p) if pin is None else (p, t.other_subscriber)
    return {
        **dict.fromkeys(("subscriber_id", "parent_subscriber_id", "sender_id", "user_id"), p.id),
        **dict.fromkeys(("pin", "old_pin", "parent_pin"), pin or PIN),
        **dict.fromkeys(("new_pin", "child_pin"), NEW_PIN),
        "partner_reference": new_request_id(),
        **PERIOD,
        "agent_id": t.agents[1]["id"],
        "agent_pin": pin or AGENT_PIN,
        "amount": "1",
        "card_serial": card,
        "daily_limit": "5",
        "document_id": p.document_id,
        "from_account_id": payer.account_id,
        "from_agent_id": t.agents[1]["id"],
        "image": IMAGE_DATA_URI,
        "keyset_id": build_missing_id(ids.CARD_KEYSET),
        "otp": "000000",
        "recipient_card_serial": t.other_subscriber.card,
        "serial": p.card,
        "to_account_id": payee.account_id,
        "to_agent_id": t.sub_agents[1]["id"],
        "subscribers": p.id,
        "processors": t.processor_id,
        "agents": t.agents[0]["id"],
        "float-requests": t.float_request,
        "cash-out-requests": p.cash_out_request,
        "requests": p.support_request,
        "transactions": p.transaction_id,
        "transaction_id": p.transaction_id,
        "disputes": p.dispute,
        "recalls": p.recall,
    }


def build_request(
    name: str, t: OwnershipFixtures, p: SubscriberFixture, card: str, pin: str | None = None
) -> OwnershipRequest:
    """Build an endpoint request about `p` from its declaration.

    The value of `{id}` has the preceding path segment's name.
    """
    endpoint = ENDPOINTS[name]
    changes = _CHANGES[name](t, p) if name in _CHANGES else {}
    values = _build_values(t, p, card, pin) | changes
    parts: list[str] = []
    for part in endpoint.path.split("/"):
        key = part.strip("{}")
        parts.append(str(values[parts[-1] if key == "id" else key]) if part[:1] == "{" else part)
    path = "/".join(parts)
    if endpoint.body_struct is None:
        query = {key: changes[key] for key in endpoint.query_names & changes.keys()}
        return OwnershipRequest(endpoint.method, path + (f"?{urlencode(query)}" if query else ""))
    example, body = build_example(endpoint.body_struct), {}
    for field in msgspec.structs.fields(endpoint.body_struct):
        key = field.encode_name
        if field.required or key in _OPTIONAL_FIELDS or key in changes:
            value = values.get(key, example.get(key))
            body |= {} if value is None else {key: value}
    return OwnershipRequest(endpoint.method, path, body)


def _list_names(check: ObjectAccess) -> list[str]:
    return [name for name, endpoint in ENDPOINTS.items() if check in endpoint.objects]


# Rejected for API keys, masked for admins.
MASKED_REQUESTS = [f"GET {V1}/transactions/{{id}}{part}" for part in ("", "/entries", "/chain")]

# Also rejected for API keys only. A proof has the same IDs and amounts as masked entries.
PROOF_REQUEST = f"GET {V1}/transactions/{{id}}/proof"

# Requests about one subscriber that are rejected if the subscriber is restricted.
RESTRICTED_REQUESTS = [
    name
    for name in _list_names(ObjectAccess.UNRESTRICTED)
    if name not in (*LIST_REQUESTS, *MASKED_LIST_REQUESTS, *MASKED_REQUESTS, PROOF_REQUEST)
]

# Requests on behalf of a subscriber or agent whose PIN the caller does not know.
PIN_REQUESTS = _list_names(ObjectAccess.PIN)

# Two requests each: for another owner's object, and for an object that does not exist.
BuildRequestPair = Callable[[OwnershipFixtures], tuple[OwnershipRequest, OwnershipRequest]]


def _build_pair(
    make: Callable[[OwnershipFixtures, str], OwnershipRequest],
    foreign: Callable[[OwnershipFixtures], str],
    prefix: str,
) -> BuildRequestPair:
    return lambda t: (make(t, foreign(t)), make(t, build_missing_id(prefix)))


def _build_terminal_pair(verb: str) -> BuildRequestPair:
    return _build_pair(
        lambda t, it: OwnershipRequest(
            "POST", f"{V1}/processors/{t.processor_id}/terminals/{it}/{verb}", {}
        ),
        lambda t: t.other_terminal,
        ids.TERMINAL,
    )


NESTED_REQUESTS: dict[str, BuildRequestPair] = {
    f"POST {V1}/processors/{{id}}/terminals/{{terminal_id}}/block": _build_terminal_pair("block"),
    f"POST {V1}/processors/{{id}}/terminals/{{terminal_id}}/unblock": _build_terminal_pair(
        "unblock"
    ),
    f"POST {V1}/processors/{{id}}/keys": _build_pair(
        lambda t, it: OwnershipRequest(
            "POST", f"{V1}/processors/{t.processor_id}/keys", {"terminal_id": it}
        ),
        lambda t: t.other_terminal,
        ids.TERMINAL,
    ),
    f"DELETE {V1}/processors/{{id}}/keys/{{api_key_id}}": _build_pair(
        lambda t, it: OwnershipRequest("DELETE", f"{V1}/processors/{t.processor_id}/keys/{it}"),
        lambda t: t.other_key,
        ids.KEY,
    ),
    f"DELETE {V1}/admin/partners/{{id}}/keys/{{api_key_id}}": _build_pair(
        lambda t, it: OwnershipRequest(
            "DELETE", f"{V1}/admin/partners/{t.partner_record['partner']['id']}/keys/{it}"
        ),
        lambda t: t.other_partner_record["api_key_id"],
        ids.KEY,
    ),
    f"GET {SUBSCRIBER_PATH}/kyc-documents/{{document_id}}": _build_pair(
        lambda t, it: OwnershipRequest(
            "GET", f"{V1}/subscribers/{t.subscriber.id}/kyc-documents/{it}"
        ),
        lambda t: t.other_subscriber.document_id,
        ids.DOCUMENT,
    ),
    f"GET {V1}/admin/webhook-endpoints/{{id}}/deliveries/{{delivery_id}}": _build_pair(
        lambda t, it: OwnershipRequest(
            "GET", f"{V1}/admin/webhook-endpoints/{t.webhook_endpoints[0]}/deliveries/{it}"
        ),
        lambda t: t.delivery,
        ids.DELIVERY,
    ),
    f"POST {V1}/admin/webhook-endpoints/{{id}}/deliveries/{{delivery_id}}/redeliver": _build_pair(
        lambda t, it: OwnershipRequest(
            "POST",
            f"{V1}/admin/webhook-endpoints/{t.webhook_endpoints[0]}/deliveries/{it}/redeliver",
        ),
        lambda t: t.delivery,
        ids.DELIVERY,
    ),
}


def _build_refund_pair(path: str) -> BuildRequestPair:
    """Build refunds by a processor that did not receive the payment."""
    return _build_pair(
        lambda t, it: OwnershipRequest(
            "POST",
            path,
            {"request_id": new_request_id(), "original_transaction_id": it, "reason": "returned"},
        ),
        lambda t: t.subscriber.transaction_id,
        ids.TRANSACTION,
    )


def _build_outcome_pair(
    fixtures: OwnershipFixtures,
) -> tuple[OwnershipRequest, OwnershipRequest]:
    """Build lookups for a payment that another processor requested, and for none."""
    path = f"{V1}/pos/payments"
    return (
        OwnershipRequest("GET", f"{path}/{fixtures.subscriber.payment_request_id}"),
        OwnershipRequest("GET", f"{path}/{new_request_id()}"),
    )


def _build_dispute_pair(part: str = "", body: dict[str, Any] | None = None) -> BuildRequestPair:
    method = "GET" if body is None else "POST"
    return _build_pair(
        lambda t, it: OwnershipRequest(method, f"{V1}/disputes/{it}{part}", body),
        lambda t: t.subscriber.dispute,
        ids.DISPUTE,
    )


PROCESSOR_REQUESTS: dict[str, BuildRequestPair] = {
    f"GET {V1}/disputes": _build_pair(
        lambda t, it: OwnershipRequest("GET", f"{V1}/disputes?processor_id={it}"),
        lambda t: t.processor_id,
        ids.PROCESSOR,
    ),
    f"GET {V1}/disputes/{{id}}": _build_dispute_pair(),
    f"POST {V1}/disputes/{{id}}/respond": _build_dispute_pair("/respond", {"text": "Sent"}),
    f"GET {V1}/pos/payments/{{request_id}}": _build_outcome_pair,
    f"POST {V1}/pos/refund": _build_refund_pair(f"{V1}/pos/refund"),
    f"POST {V1}/payment/refund": _build_refund_pair(f"{V1}/payment/refund"),
    "POST /payment/refund": _build_refund_pair("/payment/refund"),
    f"POST {V1}/pos/payment": _build_pair(
        lambda t, it: OwnershipRequest(
            "POST",
            f"{V1}/pos/payment",
            {
                "request_id": new_request_id(),
                "card_serial": t.subscriber.card,
                "amount": "1",
                "terminal_id": it,
            },
        ),
        lambda t: t.other_terminal,
        ids.TERMINAL,
    ),
}
