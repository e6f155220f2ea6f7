"""Whose things an operation works on: what a caller who may call it gets of other clients' things.

Every operation is in this table. The tests go through it, so that none is added without an answer,
and try each kind with somebody else's things.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Whose(Enum):
    """What is looked at beside the credential. The value: what is said of it, and to others."""

    NOBODY = (
        "no object",
        "It names no object, or makes a new one.",
    )
    ANY = (
        "any",
        "These belong to the platform. Whoever may call may name every one of them.",
    )
    OPEN = (
        "open subscribers",
        "Every subscriber who is not restricted. A restricted one is closed to API keys, and to an"
        " admin until that admin has verified a code from the subscriber's phone: 403"
        " `OTP_REQUIRED`, and left out of lists. Transactions are the exception: an admin gets them"
        " with `masked: true` and without personal data. Services and terminals get everything;"
        " partners may fund, and get no balance.",
    )
    PIN = (
        "who knows the PIN",
        "The subscriber's, card's or agent's PIN is asked for; another one: 400 `INVALID_PIN`, and"
        " it counts.",
    )
    CODE = (
        "who has the code",
        "A one-time code that was sent to the subscriber's phone; another one: 400 `INVALID_OTP`.",
    )
    WALLETS = (
        "subscribers' money",
        "An API key moves money between subscribers only; another account: 403 `FORBIDDEN`.",
    )
    SUB_AGENTS = (
        "one's own sub-agents",
        "Another agent's: 403 `FORBIDDEN`.",
    )
    PROCESSOR = (
        "the processor's own",
        "The processor is that of the signing key. Another processor's terminal or payment is"
        " answered like one that does not exist: 404.",
    )
    PARTNER = (
        "the partner's own",
        "The partner is the one who signs. Another partner is answered like one that does not"
        " exist: 422 where `partner_id` names it, 401 on a webhook.",
    )
    OWN = (
        "one's own",
        "The admin, or the session, that the token belongs to: no other can be named.",
    )
    LINK = (
        "who has the link",
        "The link is the credential, for 24 hours; another one: 404.",
    )
    INSIDE = (
        "of the one in the path",
        "What belongs to another than the path names is answered like what does not exist: 404.",
    )

    def __init__(self, title: str, sentence: str) -> None:
        self.title = title
        self.sentence = sentence


_V1: Final = "/api/v1"
_SUBSCRIBER: Final = f"{_V1}/subscribers/{{id}}"
_PROCESSOR: Final = f"{_V1}/processors/{{id}}"
_AGENT: Final = f"{_V1}/agents/{{id}}"
_PARTNER: Final = f"{_V1}/admin/partners/{{id}}"
_ALERT: Final = f"{_V1}/compliance/alerts/{{id}}"
_HOOK: Final = f"{_V1}/admin/webhook-endpoints"

_IN_APP: Final[dict[str, tuple[Whose, ...]]] = {
    f"POST {prefix}{path}": whose
    for prefix in (f"{_V1}/payment", "/payment")
    for path, whose in {
        "": (Whose.ANY,),  # any card pays, within the limits without a PIN
        "/verify-card": (Whose.ANY,),
        "/lookup-card": (Whose.ANY,),
        "/refund": (Whose.PROCESSOR,),
    }.items()
}

OBJECTS: Final[Mapping[str, tuple[Whose, ...]]] = {
    f"POST {_V1}/subscribers": (Whose.NOBODY,),
    f"GET {_V1}/subscribers": (Whose.OPEN,),
    f"GET {_SUBSCRIBER}": (Whose.OPEN,),
    f"GET {_SUBSCRIBER}/limits": (Whose.OPEN,),
    f"PUT {_SUBSCRIBER}": (Whose.OPEN,),
    f"POST {_SUBSCRIBER}/block": (Whose.ANY,),  # it protects, so it is open for restricted ones too
    f"POST {_SUBSCRIBER}/unblock": (Whose.OPEN,),
    f"POST {_SUBSCRIBER}/close": (Whose.OPEN,),
    f"POST {_SUBSCRIBER}/verify-pin": (Whose.OPEN, Whose.PIN),
    f"POST {_SUBSCRIBER}/change-pin": (Whose.OPEN, Whose.PIN),
    f"POST {_SUBSCRIBER}/reset-pin": (Whose.OPEN,),
    f"POST {_SUBSCRIBER}/reset-pin/confirm": (Whose.OPEN, Whose.CODE),
    f"POST {_SUBSCRIBER}/restricted-access": (Whose.ANY,),  # the way to open a restricted one
    f"POST {_SUBSCRIBER}/restricted-access/verify": (Whose.CODE,),
    f"POST {_SUBSCRIBER}/kyc-documents": (Whose.OPEN,),
    f"GET {_SUBSCRIBER}/kyc-documents": (Whose.OPEN,),
    f"GET {_SUBSCRIBER}/kyc-documents/{{document_id}}": (Whose.OPEN, Whose.INSIDE),
    f"GET {_SUBSCRIBER}/messages": (Whose.ANY,),  # of a restricted subscriber only codes
    f"POST {_V1}/cards/link": (Whose.OPEN, Whose.PIN),
    f"POST {_V1}/cards/child": (Whose.OPEN, Whose.PIN),
    f"GET {_V1}/cards": (Whose.OPEN,),
    f"GET {_V1}/cards/{{serial}}": (Whose.OPEN,),
    f"POST {_V1}/cards/{{serial}}/block": (Whose.ANY,),  # it protects
    f"POST {_V1}/cards/{{serial}}/unblock": (Whose.OPEN,),
    f"POST {_V1}/cards/upload-csv": (Whose.NOBODY,),
    f"POST {_V1}/wallet/transfer-p2p": (Whose.PIN,),
    f"POST {_V1}/wallet/transfer": (Whose.OPEN, Whose.PIN, Whose.WALLETS),
    f"POST {_V1}/pos/payment": (Whose.PROCESSOR, Whose.PIN),
    f"POST {_V1}/pos/verify-card": (Whose.PIN,),
    f"POST {_V1}/pos/lookup-card": (Whose.ANY,),
    f"POST {_V1}/pos/refund": (Whose.PROCESSOR,),
    **_IN_APP,
    f"POST {_V1}/processors": (Whose.NOBODY,),
    f"GET {_V1}/processors": (Whose.ANY,),
    f"GET {_PROCESSOR}": (Whose.ANY,),
    f"POST {_PROCESSOR}/suspend": (Whose.ANY,),
    f"POST {_PROCESSOR}/activate": (Whose.ANY,),
    f"POST {_PROCESSOR}/transfer": (Whose.OPEN,),
    f"POST {_PROCESSOR}/terminals": (Whose.ANY,),
    f"GET {_PROCESSOR}/terminals": (Whose.ANY,),
    f"POST {_PROCESSOR}/terminals/{{terminal_id}}/block": (Whose.INSIDE,),
    f"POST {_PROCESSOR}/terminals/{{terminal_id}}/unblock": (Whose.INSIDE,),
    f"POST {_PROCESSOR}/keys": (Whose.INSIDE,),
    f"GET {_PROCESSOR}/keys": (Whose.ANY,),
    f"DELETE {_PROCESSOR}/keys/{{api_key_id}}": (Whose.INSIDE,),
    f"GET {_PROCESSOR}/transactions": (Whose.OPEN,),
    f"POST {_V1}/admin/partners": (Whose.NOBODY,),
    f"GET {_V1}/admin/partners": (Whose.ANY,),
    f"GET {_PARTNER}": (Whose.ANY,),
    f"POST {_PARTNER}/fund": (Whose.ANY,),
    f"POST {_PARTNER}/suspend": (Whose.ANY,),
    f"POST {_PARTNER}/activate": (Whose.ANY,),
    f"POST {_PARTNER}/rotate-webhook-secret": (Whose.ANY,),
    f"POST {_PARTNER}/keys": (Whose.ANY,),
    f"GET {_PARTNER}/keys": (Whose.ANY,),
    f"DELETE {_PARTNER}/keys/{{api_key_id}}": (Whose.INSIDE,),
    f"POST {_V1}/wallet/fund-from-partner": (Whose.PARTNER, Whose.OPEN),
    f"POST {_V1}/webhooks/partners/{{partner_id}}": (Whose.PARTNER,),
    f"POST {_V1}/agents": (Whose.ANY,),
    f"GET {_V1}/agents": (Whose.ANY,),
    f"GET {_AGENT}": (Whose.ANY,),
    f"GET {_AGENT}/balance": (Whose.ANY,),
    f"POST {_AGENT}/suspend": (Whose.ANY,),
    f"POST {_AGENT}/activate": (Whose.ANY,),
    f"POST {_AGENT}/terminate": (Whose.ANY,),
    f"POST {_AGENT}/change-pin": (Whose.PIN,),
    f"POST {_AGENT}/fund": (Whose.ANY,),
    f"POST {_AGENT}/payout-commission": (Whose.ANY,),
    f"POST {_V1}/agents/cashin": (Whose.OPEN, Whose.PIN),
    f"POST {_V1}/agents/cashout": (Whose.PIN,),
    f"POST {_V1}/agents/transfer": (Whose.SUB_AGENTS, Whose.PIN),
    f"POST {_V1}/wallet/quote": (Whose.OPEN,),
    f"GET {_V1}/balance/{{user_id}}": (Whose.OPEN,),
    f"POST {_V1}/wallet/account-statement": (Whose.OPEN, Whose.PIN),
    f"GET {_V1}/statements/{{token}}": (Whose.LINK,),
    f"GET {_V1}/transactions": (Whose.OPEN,),
    f"GET {_V1}/transactions/export": (Whose.OPEN,),
    f"GET {_V1}/transactions/{{id}}": (Whose.OPEN,),
    f"GET {_V1}/transactions/{{id}}/entries": (Whose.OPEN,),
    f"GET {_V1}/transactions/{{id}}/chain": (Whose.OPEN,),
    f"GET {_V1}/fee-rules": (Whose.ANY,),
    f"PUT {_V1}/fee-rules": (Whose.ANY,),
    f"PUT {_V1}/fee-rules/{{type}}": (Whose.ANY,),
    f"GET {_V1}/commission-rules": (Whose.ANY,),
    f"PUT {_V1}/commission-rules": (Whose.ANY,),
    f"POST {_V1}/messages/statuses": (Whose.ANY,),
    f"POST {_V1}/compliance/check": (Whose.OPEN,),
    f"POST {_V1}/compliance/alerts": (Whose.ANY,),  # an alert is not the subscriber's record
    f"GET {_V1}/compliance/alerts": (Whose.ANY,),
    f"GET {_ALERT}": (Whose.ANY,),
    f"POST {_ALERT}/investigate": (Whose.ANY,),
    f"POST {_ALERT}/resolve": (Whose.ANY,),
    f"GET {_V1}/compliance/rules": (Whose.ANY,),
    f"GET {_V1}/compliance/rules/{{id}}": (Whose.ANY,),
    f"POST {_V1}/compliance/rules": (Whose.ANY,),
    f"PUT {_V1}/compliance/rules/{{id}}": (Whose.ANY,),
    f"DELETE {_V1}/compliance/rules/{{id}}": (Whose.ANY,),
    f"GET {_V1}/account-rules/{{kyc_level}}": (Whose.ANY,),
    f"PUT {_V1}/account-rules/{{kyc_level}}": (Whose.ANY,),
    f"POST {_V1}/admin/login": (Whose.NOBODY,),
    f"POST {_V1}/admin/refresh": (Whose.OWN,),
    f"POST {_V1}/admin/logout": (Whose.OWN,),
    f"GET {_V1}/admin/me": (Whose.OWN,),
    f"POST {_V1}/admin/users": (Whose.NOBODY,),
    f"GET {_V1}/admin/users": (Whose.ANY,),
    f"POST {_V1}/admin/users/{{id}}/disable": (Whose.ANY,),
    f"POST {_V1}/admin/users/{{id}}/enable": (Whose.ANY,),
    f"POST {_V1}/admin/api-keys": (Whose.NOBODY,),
    f"GET {_V1}/admin/api-keys": (Whose.ANY,),
    f"GET {_V1}/admin/api-keys/{{id}}": (Whose.ANY,),
    f"PUT {_V1}/admin/api-keys/{{id}}": (Whose.ANY,),
    f"POST {_V1}/admin/api-keys/{{id}}/rotate": (Whose.ANY,),
    f"DELETE {_V1}/admin/api-keys/{{id}}": (Whose.ANY,),
    f"GET {_V1}/audit/logs": (Whose.ANY,),
    f"GET {_V1}/audit/verify": (Whose.ANY,),
    f"GET {_V1}/overview": (Whose.NOBODY,),
    f"POST {_V1}/ledger/verify": (Whose.NOBODY,),
    f"POST {_HOOK}": (Whose.NOBODY,),
    f"GET {_HOOK}": (Whose.ANY,),
    f"GET {_HOOK}/{{id}}": (Whose.ANY,),
    f"PUT {_HOOK}/{{id}}": (Whose.ANY,),
    f"POST {_HOOK}/{{id}}/rotate-secret": (Whose.ANY,),
    f"POST {_HOOK}/{{id}}/test": (Whose.ANY,),
    f"DELETE {_HOOK}/{{id}}": (Whose.ANY,),
    f"GET {_HOOK}/{{id}}/deliveries": (Whose.ANY,),
    f"POST {_HOOK}/{{id}}/deliveries/{{delivery_id}}/redeliver": (Whose.INSIDE,),
    "GET /health": (Whose.NOBODY,),
    "GET /openapi.json": (Whose.NOBODY,),
    "GET /docs": (Whose.NOBODY,),
    "GET /docs/{file}": (Whose.NOBODY,),
    "GET /metrics": (Whose.NOBODY,),
}
