"""Requests for another client's objects, for every operation with an ownership check."""

from collections.abc import Callable
from typing import Any

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
from tapgate_client import ids

# Requests about a subscriber. Lists omit a restricted subscriber; other requests are rejected.
BuildSubscriberRequest = Callable[[OwnershipFixtures, SubscriberFixture, str], OwnershipRequest]
LIST_REQUESTS: dict[str, Callable[[OwnershipFixtures, SubscriberFixture], list[str]]] = {
    f"GET {V1}/subscribers": lambda t, p: [
        f"{V1}/subscribers",
        f"{V1}/subscribers?phone_number=%2B{p.phone[1:]}",
        f"{V1}/subscribers?search={p.phone[-6:]}",
        f"{V1}/subscribers?kyc_status=PENDING",
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

# In these lists, admins see the transactions of a restricted subscriber masked.
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


def _about_subscriber(method: str, path: str, body: Any = None) -> BuildSubscriberRequest:
    return lambda t, p, card: OwnershipRequest(method, f"{V1}/subscribers/{p.id}{path}", body)


def _post_about_subscriber(
    path: str, body: Callable[[OwnershipFixtures, SubscriberFixture, str], Any]
) -> BuildSubscriberRequest:
    return lambda t, p, card: OwnershipRequest("POST", f"{V1}{path}", body(t, p, card))


def _about_transaction(part: str) -> BuildSubscriberRequest:
    return lambda t, p, card: OwnershipRequest("GET", f"{V1}/transactions/{p.transaction_id}{part}")


RESTRICTED_REQUESTS: dict[str, BuildSubscriberRequest] = {
    f"GET {SUBSCRIBER_PATH}": _about_subscriber("GET", ""),
    f"GET {SUBSCRIBER_PATH}/timeline": _about_subscriber("GET", "/timeline"),
    f"GET {SUBSCRIBER_PATH}/limits": _about_subscriber("GET", "/limits"),
    f"PUT {SUBSCRIBER_PATH}": _about_subscriber("PUT", "", {"language": "fr"}),
    f"POST {SUBSCRIBER_PATH}/unblock": _about_subscriber("POST", "/unblock", {}),
    f"POST {SUBSCRIBER_PATH}/close": _about_subscriber("POST", "/close", {"reason": "asked"}),
    f"POST {SUBSCRIBER_PATH}/verify-pin": _about_subscriber("POST", "/verify-pin", {"pin": PIN}),
    f"POST {SUBSCRIBER_PATH}/change-pin": _about_subscriber(
        "POST", "/change-pin", {"old_pin": PIN, "new_pin": NEW_PIN}
    ),
    f"POST {SUBSCRIBER_PATH}/reset-pin": _about_subscriber("POST", "/reset-pin"),
    f"POST {SUBSCRIBER_PATH}/reset-pin/confirm": _about_subscriber(
        "POST", "/reset-pin/confirm", {"otp": "000000", "new_pin": NEW_PIN}
    ),
    f"POST {SUBSCRIBER_PATH}/kyc-documents": _about_subscriber(
        "POST", "/kyc-documents", {"document_type": "id_front", "image": IMAGE_DATA_URI}
    ),
    f"GET {SUBSCRIBER_PATH}/kyc-documents": _about_subscriber("GET", "/kyc-documents"),
    f"GET {SUBSCRIBER_PATH}/kyc-documents/{{document_id}}": lambda t, p, card: OwnershipRequest(
        "GET", f"{V1}/subscribers/{p.id}/kyc-documents/{p.document_id}"
    ),
    f"POST {SUBSCRIBER_PATH}/kyc-decision": _about_subscriber(
        "POST", "/kyc-decision", {"decision": "reject", "reason": "unreadable"}
    ),
    **{
        f"POST {SUBSCRIBER_PATH}/kyc-review/{verb}": _about_subscriber(
            "POST", f"/kyc-review/{verb}"
        )
        for verb in ("assign", "unassign")
    },
    f"GET {V1}/transactions/totals": lambda t, p, card: OwnershipRequest(
        "GET", f"{V1}/transactions/totals?user_id={p.id}"
    ),
    f"POST {V1}/cards/link": _post_about_subscriber(
        "/cards/link",
        lambda t, p, card: {"subscriber_id": p.id, "card_serial": card, "pin": PIN},
    ),
    f"POST {V1}/cards/child": _post_about_subscriber(
        "/cards/child",
        lambda t, p, card: {
            "parent_subscriber_id": p.id,
            "card_serial": card,
            "parent_pin": PIN,
            "child_pin": NEW_PIN,
            "daily_limit": "5",
            "child_name": "Sia",
        },
    ),
    f"GET {V1}/cards/{{serial}}": lambda t, p, card: OwnershipRequest(
        "GET", f"{V1}/cards/{p.card}"
    ),
    f"GET {V1}/cards/{{serial}}/taps": lambda t, p, card: OwnershipRequest(
        "GET", f"{V1}/cards/{p.card}/taps"
    ),
    f"POST {V1}/cards/{{serial}}/personalize": lambda t, p, card: OwnershipRequest(
        "POST",
        f"{V1}/cards/{p.card}/personalize",
        {"keyset_id": build_missing_id(ids.CARD_KEYSET)},
    ),
    f"POST {V1}/cards/{{serial}}/personalize/confirm": lambda t, p, card: OwnershipRequest(
        "POST",
        f"{V1}/cards/{p.card}/personalize/confirm",
        {"card_proof": {"picc_data": "0" * 32, "cmac": "0" * 16}},
    ),
    f"POST {V1}/cards/{{serial}}/unblock": lambda t, p, card: OwnershipRequest(
        "POST", f"{V1}/cards/{p.blocked_card}/unblock", {}
    ),
    f"PUT {V1}/cards/{{serial}}": lambda t, p, card: OwnershipRequest(
        "PUT", f"{V1}/cards/{p.child_card}", {"child_name": "Eve"}
    ),
    f"POST {V1}/cards/{{serial}}/change-pin": lambda t, p, card: OwnershipRequest(
        "POST",
        f"{V1}/cards/{p.child_card}/change-pin",
        {"old_pin": PIN, "new_pin": NEW_PIN},
    ),
    f"POST {V1}/cards/{{serial}}/reset-pin": lambda t, p, card: OwnershipRequest(
        "POST", f"{V1}/cards/{p.child_card}/reset-pin"
    ),
    f"POST {V1}/cards/{{serial}}/reset-pin/confirm": lambda t, p, card: OwnershipRequest(
        "POST",
        f"{V1}/cards/{p.child_card}/reset-pin/confirm",
        {"otp": "000000", "new_pin": NEW_PIN},
    ),
    f"POST {V1}/wallet/transfer": _post_about_subscriber(
        "/wallet/transfer",
        lambda t, p, card: {
            "from_account_id": t.subscriber.account_id,
            "to_account_id": p.account_id,
            "amount": "1",
            "pin": PIN,
        },
    ),
    f"POST {V1}/processors/{{id}}/transfer": lambda t, p, card: OwnershipRequest(
        "POST",
        f"{V1}/processors/{t.processor_id}/transfer",
        {"subscriber_id": p.id, "amount": "1"},
    ),
    f"POST {V1}/wallet/fund-from-partner": _post_about_subscriber(
        "/wallet/fund-from-partner",
        lambda t, p, card: {
            "partner_id": t.partner_record["partner"]["id"],
            "card_serial": p.card,
            "partner_reference": new_request_id(),
            "amount": "1",
        },
    ),
    f"POST {V1}/agents/cashin": _post_about_subscriber(
        "/agents/cashin",
        lambda t, p, card: {
            "agent_id": t.agents[1]["id"],
            "subscriber_id": p.id,
            "amount": "1",
            "agent_pin": AGENT_PIN,
        },
    ),
    f"POST {V1}/wallet/quote": _post_about_subscriber(
        "/wallet/quote",
        lambda t, p, card: {"type": "transfer_p2p", "amount": "1", "sender_id": p.id},
    ),
    f"GET {V1}/balance/{{user_id}}": lambda t, p, card: OwnershipRequest(
        "GET", f"{V1}/balance/{p.id}"
    ),
    f"POST {V1}/wallet/account-statement": _post_about_subscriber(
        "/wallet/account-statement", lambda t, p, card: {"subscriber_id": p.id, **PERIOD}
    ),
    f"POST {V1}/support/requests/{{id}}/reply": lambda t, p, card: OwnershipRequest(
        "POST", f"{V1}/support/requests/{p.support_request}/reply", {"text": "Hello"}
    ),
    f"POST {V1}/compliance/check": _post_about_subscriber(
        "/compliance/check",
        lambda t, p, card: {
            "subscriber_id": p.id,
            "amount": "1",
            "transaction_type": "transfer_p2p",
        },
    ),
}

# Rejected for API keys, masked for admins.
MASKED_REQUESTS: dict[str, BuildSubscriberRequest] = {
    f"GET {V1}/transactions/{{id}}{part}": _about_transaction(part)
    for part in ("", "/entries", "/chain")
}

# Requests on behalf of a subscriber or agent whose PIN the caller does not know.
PIN_REQUESTS: dict[
    str, Callable[[OwnershipFixtures, SubscriberFixture, str, str], OwnershipRequest]
] = {
    f"POST {SUBSCRIBER_PATH}/verify-pin": lambda t, p, card, pin: OwnershipRequest(
        "POST", f"{V1}/subscribers/{p.id}/verify-pin", {"pin": pin}
    ),
    f"POST {SUBSCRIBER_PATH}/change-pin": lambda t, p, card, pin: OwnershipRequest(
        "POST", f"{V1}/subscribers/{p.id}/change-pin", {"old_pin": pin, "new_pin": NEW_PIN}
    ),
    f"POST {V1}/cards/link": lambda t, p, card, pin: OwnershipRequest(
        "POST", f"{V1}/cards/link", {"subscriber_id": p.id, "card_serial": card, "pin": pin}
    ),
    f"POST {V1}/cards/child": lambda t, p, card, pin: OwnershipRequest(
        "POST",
        f"{V1}/cards/child",
        {
            "parent_subscriber_id": p.id,
            "card_serial": card,
            "parent_pin": pin,
            "child_pin": NEW_PIN,
            "daily_limit": "5",
            "child_name": "Sia",
        },
    ),
    f"POST {V1}/cards/{{serial}}/change-pin": lambda t, p, card, pin: OwnershipRequest(
        "POST",
        f"{V1}/cards/{p.child_card}/change-pin",
        {"old_pin": pin, "new_pin": NEW_PIN},
    ),
    f"POST {V1}/wallet/transfer-p2p": lambda t, p, card, pin: OwnershipRequest(
        "POST",
        f"{V1}/wallet/transfer-p2p",
        {
            "sender_id": p.id,
            "recipient_card_serial": t.other_subscriber.card,
            "amount": "1",
            "pin": pin,
        },
    ),
    f"POST {V1}/wallet/transfer": lambda t, p, card, pin: OwnershipRequest(
        "POST",
        f"{V1}/wallet/transfer",
        {
            "from_account_id": p.account_id,
            "to_account_id": t.other_subscriber.account_id,
            "amount": "1",
            "pin": pin,
        },
    ),
    f"POST {V1}/pos/payment": lambda t, p, card, pin: OwnershipRequest(
        "POST",
        f"{V1}/pos/payment",
        {"request_id": new_request_id(), "card_serial": p.card, "amount": "1", "pin": pin},
    ),
    f"POST {V1}/pos/verify-card": lambda t, p, card, pin: OwnershipRequest(
        "POST", f"{V1}/pos/verify-card", {"card_serial": p.card, "pin": pin}
    ),
    f"POST {V1}/wallet/account-statement": lambda t, p, card, pin: OwnershipRequest(
        "POST", f"{V1}/wallet/account-statement", {"subscriber_id": p.id, "pin": pin, **PERIOD}
    ),
    f"POST {V1}/agents/{{id}}/change-pin": lambda t, p, card, pin: OwnershipRequest(
        "POST",
        f"{V1}/agents/{t.agents[0]['id']}/change-pin",
        {"old_pin": pin, "new_pin": NEW_PIN},
    ),
    f"POST {V1}/agents/cashin": lambda t, p, card, pin: OwnershipRequest(
        "POST",
        f"{V1}/agents/cashin",
        {"agent_id": t.agents[1]["id"], "subscriber_id": p.id, "amount": "1", "agent_pin": pin},
    ),
    f"POST {V1}/agents/cashout": lambda t, p, card, pin: OwnershipRequest(
        "POST",
        f"{V1}/agents/cashout",
        {
            "agent_id": t.agents[1]["id"],
            "subscriber_id": p.id,
            "amount": "1",
            "agent_pin": AGENT_PIN,
            "pin": pin,
        },
    ),
    f"POST {V1}/agents/transfer": lambda t, p, card, pin: OwnershipRequest(
        "POST",
        f"{V1}/agents/transfer",
        {
            "from_agent_id": t.agents[1]["id"],
            "to_agent_id": t.sub_agents[1]["id"],
            "amount": "1",
            "pin": pin,
        },
    ),
}

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
    """Build lookups of a payment that another processor requested, and of none."""
    path = f"{V1}/pos/payments"
    return (
        OwnershipRequest("GET", f"{path}/{fixtures.subscriber.payment_request_id}"),
        OwnershipRequest("GET", f"{path}/{new_request_id()}"),
    )


PROCESSOR_REQUESTS: dict[str, BuildRequestPair] = {
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
