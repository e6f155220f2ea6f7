"""Object-level access: which objects of other parties an authorized caller can reach.

The table covers every operation. The tests fail for an operation that is missing from it, and
try each kind of access with objects of another party.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final


class ObjectAccess(Enum):
    """Check that applies in addition to the credential: its title and its description."""

    NO_OBJECT = ("no object", "The operation names no object, or creates a new one.")
    ANY = (
        "any",
        "The objects belong to the platform. Every allowed caller can access all of them.",
    )
    UNRESTRICTED = (
        "unrestricted subscribers",
        "Subscribers that are not restricted. API keys cannot access a restricted subscriber, and"
        " admins only after they verify a code from the subscriber's phone. Otherwise the response"
        " is 403 `OTP_REQUIRED`, and lists omit the subscriber. Transactions are an exception:"
        " admins get them with `masked: true` and without personal data. Services and terminals"
        " have full access. Partners can fund a restricted subscriber, but get no balance.",
    )
    PIN = (
        "PIN",
        "The request must contain the PIN of the subscriber, card or agent. A wrong PIN gets 400"
        " `INVALID_PIN` and counts as a failed attempt.",
    )
    OTP = (
        "one-time code",
        "The request must contain the code sent to the phone of the subscriber, the card's parent"
        " or the agent. A wrong code gets 400"
        " `INVALID_OTP`.",
    )
    SUBSCRIBER_WALLETS = (
        "subscribers' wallets",
        "An API key can transfer only between subscribers. Other accounts get 403 `FORBIDDEN`.",
    )
    SUB_AGENTS = (
        "own sub-agents",
        "An agent can transfer only to its own sub-agents. Other agents get 403 `FORBIDDEN`.",
    )
    PROCESSOR = (
        "own processor",
        "The signing key identifies the processor. Terminals and payments of another processor get"
        " 404, as if they did not exist.",
    )
    PARTNER = (
        "own partner",
        "The signature identifies the partner. Another partner gets the same response as one that"
        " does not exist: 422 for `partner_id`, 401 on a webhook.",
    )
    OWN = (
        "own account",
        "The operation applies to the admin or session that the token belongs to.",
    )
    APPROVABLE = (
        "own or approvable requests",
        "Requests that the admin made or whose approval rule names the admin's role; a"
        " system_admin sees all. Others get 404. Deciding on one's own request gets 403"
        " `FORBIDDEN`.",
    )
    LINK = (
        "link",
        "The link is the credential, valid for 24 hours. An unknown or expired link gets 404.",
    )
    PARENT_IN_PATH = (
        "parent in path",
        "An object of another parent than the one in the path gets 404, as if it did not exist.",
    )

    def __init__(self, title: str, description: str) -> None:
        self.title = title
        self.description = description


_V1: Final = "/api/v1"
_SUBSCRIBER: Final = f"{_V1}/subscribers/{{id}}"
_PROCESSOR: Final = f"{_V1}/processors/{{id}}"
_AGENT: Final = f"{_V1}/agents/{{id}}"
_PARTNER: Final = f"{_V1}/admin/partners/{{id}}"
_ALERT: Final = f"{_V1}/compliance/alerts/{{id}}"
_APPROVAL: Final = f"{_V1}/approvals/{{id}}"
_SUPPORT_REQUEST: Final = f"{_V1}/support/requests/{{id}}"
_WEBHOOK_ENDPOINTS: Final = f"{_V1}/admin/webhook-endpoints"

_IN_APP: Final[dict[str, tuple[ObjectAccess, ...]]] = {
    f"POST {prefix}{path}": rules
    for prefix in (f"{_V1}/payment", "/payment")
    for path, rules in {
        "": (ObjectAccess.ANY,),  # any card can pay, within the limits for payments without a PIN
        "/verify-card": (ObjectAccess.ANY,),
        "/lookup-card": (ObjectAccess.ANY,),
        "/refund": (ObjectAccess.PROCESSOR,),
    }.items()
}

OBJECT_ACCESS: Final[Mapping[str, tuple[ObjectAccess, ...]]] = {
    f"POST {_V1}/subscribers": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/subscribers": (ObjectAccess.UNRESTRICTED,),
    f"GET {_SUBSCRIBER}": (ObjectAccess.UNRESTRICTED,),
    f"GET {_SUBSCRIBER}/limits": (ObjectAccess.UNRESTRICTED,),
    f"PUT {_SUBSCRIBER}": (ObjectAccess.UNRESTRICTED,),
    f"POST {_SUBSCRIBER}/block": (
        ObjectAccess.ANY,
    ),  # blocking protects the subscriber, so restricted subscribers can be blocked too
    f"POST {_SUBSCRIBER}/unblock": (ObjectAccess.UNRESTRICTED,),
    f"POST {_SUBSCRIBER}/close": (ObjectAccess.UNRESTRICTED,),
    f"POST {_SUBSCRIBER}/verify-pin": (ObjectAccess.UNRESTRICTED, ObjectAccess.PIN),
    f"POST {_SUBSCRIBER}/change-pin": (ObjectAccess.UNRESTRICTED, ObjectAccess.PIN),
    f"POST {_SUBSCRIBER}/reset-pin": (ObjectAccess.UNRESTRICTED,),
    f"POST {_SUBSCRIBER}/reset-pin/confirm": (ObjectAccess.UNRESTRICTED, ObjectAccess.OTP),
    f"POST {_SUBSCRIBER}/restricted-access": (
        ObjectAccess.ANY,
    ),  # requests access to a restricted subscriber
    f"POST {_SUBSCRIBER}/restricted-access/verify": (ObjectAccess.OTP,),
    f"POST {_SUBSCRIBER}/kyc-documents": (ObjectAccess.UNRESTRICTED,),
    f"GET {_SUBSCRIBER}/kyc-documents": (ObjectAccess.UNRESTRICTED,),
    f"POST {_SUBSCRIBER}/kyc-decision": (ObjectAccess.UNRESTRICTED,),
    f"GET {_SUBSCRIBER}/timeline": (ObjectAccess.UNRESTRICTED,),
    f"GET {_V1}/kyc-reviews": (ObjectAccess.UNRESTRICTED,),
    f"POST {_SUBSCRIBER}/kyc-review/assign": (ObjectAccess.UNRESTRICTED,),
    f"POST {_SUBSCRIBER}/kyc-review/unassign": (ObjectAccess.UNRESTRICTED,),
    f"GET {_SUBSCRIBER}/kyc-documents/{{document_id}}": (
        ObjectAccess.UNRESTRICTED,
        ObjectAccess.PARENT_IN_PATH,
    ),
    f"GET {_SUBSCRIBER}/messages": (ObjectAccess.ANY,),  # if restricted, one-time codes only
    f"POST {_V1}/cards/link": (ObjectAccess.UNRESTRICTED, ObjectAccess.PIN),
    f"POST {_V1}/cards/child": (ObjectAccess.UNRESTRICTED, ObjectAccess.PIN),
    f"GET {_V1}/cards": (ObjectAccess.UNRESTRICTED,),
    f"GET {_V1}/cards/{{serial}}": (ObjectAccess.UNRESTRICTED,),
    f"POST {_V1}/cards/{{serial}}/block": (ObjectAccess.ANY,),  # blocking protects the holder
    f"POST {_V1}/cards/{{serial}}/unblock": (ObjectAccess.UNRESTRICTED,),
    f"PUT {_V1}/cards/{{serial}}": (ObjectAccess.UNRESTRICTED,),
    f"POST {_V1}/cards/{{serial}}/change-pin": (ObjectAccess.UNRESTRICTED, ObjectAccess.PIN),
    f"POST {_V1}/cards/{{serial}}/reset-pin": (ObjectAccess.UNRESTRICTED,),
    f"POST {_V1}/cards/{{serial}}/reset-pin/confirm": (ObjectAccess.UNRESTRICTED, ObjectAccess.OTP),
    f"POST {_V1}/cards/{{serial}}/personalize": (ObjectAccess.UNRESTRICTED,),
    f"POST {_V1}/cards/{{serial}}/personalize/confirm": (ObjectAccess.UNRESTRICTED,),
    f"GET {_V1}/cards/{{serial}}/taps": (ObjectAccess.UNRESTRICTED,),
    f"POST {_V1}/cards/upload-csv": (ObjectAccess.NO_OBJECT,),
    f"POST {_V1}/cards/keysets": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/cards/keysets": (ObjectAccess.ANY,),
    f"GET {_V1}/cards/keysets/{{id}}": (ObjectAccess.ANY,),
    f"POST {_V1}/cards/keysets/{{id}}/retire": (ObjectAccess.ANY,),
    f"POST {_V1}/wallet/transfer-p2p": (ObjectAccess.PIN,),
    f"POST {_V1}/wallet/transfer": (
        ObjectAccess.UNRESTRICTED,
        ObjectAccess.PIN,
        ObjectAccess.SUBSCRIBER_WALLETS,
    ),
    f"POST {_V1}/pos/payment": (ObjectAccess.PROCESSOR, ObjectAccess.PIN),
    f"GET {_V1}/pos/payments/{{request_id}}": (ObjectAccess.PROCESSOR,),
    f"POST {_V1}/pos/verify-card": (ObjectAccess.PIN,),
    f"POST {_V1}/pos/lookup-card": (ObjectAccess.ANY,),
    f"POST {_V1}/pos/refund": (ObjectAccess.PROCESSOR,),
    **_IN_APP,
    f"POST {_V1}/processors": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/processors": (ObjectAccess.ANY,),
    f"GET {_PROCESSOR}": (ObjectAccess.ANY,),
    f"POST {_PROCESSOR}/suspend": (ObjectAccess.ANY,),
    f"POST {_PROCESSOR}/activate": (ObjectAccess.ANY,),
    f"POST {_PROCESSOR}/transfer": (ObjectAccess.UNRESTRICTED,),
    f"POST {_PROCESSOR}/terminals": (ObjectAccess.ANY,),
    f"GET {_PROCESSOR}/terminals": (ObjectAccess.ANY,),
    f"POST {_PROCESSOR}/terminals/{{terminal_id}}/block": (ObjectAccess.PARENT_IN_PATH,),
    f"POST {_PROCESSOR}/terminals/{{terminal_id}}/unblock": (ObjectAccess.PARENT_IN_PATH,),
    f"POST {_PROCESSOR}/keys": (ObjectAccess.PARENT_IN_PATH,),
    f"GET {_PROCESSOR}/keys": (ObjectAccess.ANY,),
    f"DELETE {_PROCESSOR}/keys/{{api_key_id}}": (ObjectAccess.PARENT_IN_PATH,),
    f"GET {_PROCESSOR}/transactions": (ObjectAccess.UNRESTRICTED,),
    f"POST {_V1}/admin/partners": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/admin/partners": (ObjectAccess.ANY,),
    f"GET {_PARTNER}": (ObjectAccess.ANY,),
    f"PUT {_PARTNER}": (ObjectAccess.ANY,),
    f"POST {_PARTNER}/fund": (ObjectAccess.ANY,),
    f"POST {_PARTNER}/suspend": (ObjectAccess.ANY,),
    f"POST {_PARTNER}/activate": (ObjectAccess.ANY,),
    f"POST {_PARTNER}/rotate-webhook-secret": (ObjectAccess.ANY,),
    f"POST {_PARTNER}/keys": (ObjectAccess.ANY,),
    f"GET {_PARTNER}/keys": (ObjectAccess.ANY,),
    f"DELETE {_PARTNER}/keys/{{api_key_id}}": (ObjectAccess.PARENT_IN_PATH,),
    f"POST {_V1}/wallet/fund-from-partner": (ObjectAccess.PARTNER, ObjectAccess.UNRESTRICTED),
    f"POST {_V1}/webhooks/partners/{{partner_id}}": (ObjectAccess.PARTNER,),
    f"POST {_V1}/agents": (ObjectAccess.ANY,),
    f"GET {_V1}/agents": (ObjectAccess.ANY,),
    f"GET {_AGENT}": (ObjectAccess.ANY,),
    f"GET {_AGENT}/messages": (ObjectAccess.ANY,),
    f"GET {_AGENT}/balance": (ObjectAccess.ANY,),
    f"PUT {_AGENT}": (ObjectAccess.ANY,),
    f"POST {_AGENT}/suspend": (ObjectAccess.ANY,),
    f"POST {_AGENT}/activate": (ObjectAccess.ANY,),
    f"POST {_AGENT}/terminate": (ObjectAccess.ANY,),
    f"POST {_AGENT}/change-pin": (ObjectAccess.PIN,),
    f"POST {_AGENT}/reset-pin": (ObjectAccess.ANY,),
    f"POST {_AGENT}/reset-pin/confirm": (ObjectAccess.OTP,),
    f"POST {_AGENT}/fund": (ObjectAccess.ANY,),
    f"POST {_AGENT}/payout-commission": (ObjectAccess.ANY,),
    f"POST {_V1}/agents/cashin": (ObjectAccess.UNRESTRICTED, ObjectAccess.PIN),
    f"POST {_V1}/agents/cashout": (ObjectAccess.PIN,),
    f"POST {_V1}/agents/transfer": (ObjectAccess.SUB_AGENTS, ObjectAccess.PIN),
    f"POST {_V1}/wallet/quote": (ObjectAccess.UNRESTRICTED,),
    f"GET {_V1}/balance/{{user_id}}": (ObjectAccess.UNRESTRICTED,),
    f"POST {_V1}/wallet/account-statement": (ObjectAccess.UNRESTRICTED, ObjectAccess.PIN),
    f"GET {_V1}/statements/{{token}}": (ObjectAccess.LINK,),
    f"GET {_V1}/transactions": (ObjectAccess.UNRESTRICTED,),
    f"GET {_V1}/transactions/export": (ObjectAccess.UNRESTRICTED,),
    f"GET {_V1}/transactions/totals": (ObjectAccess.UNRESTRICTED,),
    f"GET {_V1}/transactions/{{id}}": (ObjectAccess.UNRESTRICTED,),
    f"GET {_V1}/transactions/{{id}}/entries": (ObjectAccess.UNRESTRICTED,),
    f"GET {_V1}/transactions/{{id}}/chain": (ObjectAccess.UNRESTRICTED,),
    f"GET {_V1}/fee-rules": (ObjectAccess.ANY,),
    f"PUT {_V1}/fee-rules": (ObjectAccess.ANY,),
    f"PUT {_V1}/fee-rules/{{type}}": (ObjectAccess.ANY,),
    f"GET {_V1}/commission-rules": (ObjectAccess.ANY,),
    f"PUT {_V1}/commission-rules": (ObjectAccess.ANY,),
    f"POST {_V1}/messages/statuses": (ObjectAccess.ANY,),
    f"POST {_V1}/chat/turns": (ObjectAccess.ANY,),
    f"POST {_V1}/messages/provider-warnings": (ObjectAccess.ANY,),
    f"GET {_V1}/messages/provider-warnings": (ObjectAccess.ANY,),
    f"POST {_V1}/compliance/check": (ObjectAccess.UNRESTRICTED,),
    f"POST {_V1}/compliance/alerts": (ObjectAccess.ANY,),  # alerts are not subscriber data
    f"GET {_V1}/compliance/alerts": (ObjectAccess.ANY,),
    f"GET {_ALERT}": (ObjectAccess.ANY,),
    f"POST {_ALERT}/assign": (ObjectAccess.ANY,),
    f"POST {_ALERT}/unassign": (ObjectAccess.ANY,),
    f"POST {_ALERT}/investigate": (ObjectAccess.ANY,),
    f"POST {_ALERT}/resolve": (ObjectAccess.ANY,),
    f"POST {_V1}/support/requests": (ObjectAccess.ANY,),
    f"GET {_V1}/support/summary": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/support/requests": (ObjectAccess.ANY,),  # if restricted, without personal data
    f"GET {_SUPPORT_REQUEST}": (ObjectAccess.ANY,),
    f"POST {_SUPPORT_REQUEST}/reply": (ObjectAccess.UNRESTRICTED,),
    f"POST {_SUPPORT_REQUEST}/assign": (ObjectAccess.ANY,),
    f"POST {_SUPPORT_REQUEST}/unassign": (ObjectAccess.ANY,),
    f"GET {_V1}/work-queues": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/agents/liquidity": (ObjectAccess.ANY,),
    f"GET {_V1}/agents/totals": (ObjectAccess.ANY,),
    f"GET {_V1}/processors/totals": (ObjectAccess.ANY,),
    f"GET {_V1}/admin/partners/totals": (ObjectAccess.ANY,),
    f"GET {_PROCESSOR}/summary": (ObjectAccess.ANY,),
    f"POST {_SUPPORT_REQUEST}/close": (ObjectAccess.ANY,),
    f"GET {_V1}/admin/approval-rules": (ObjectAccess.ANY,),
    f"PUT {_V1}/admin/approval-rules": (ObjectAccess.ANY,),
    f"GET {_V1}/approvals": (ObjectAccess.APPROVABLE,),
    f"GET {_APPROVAL}": (ObjectAccess.APPROVABLE,),
    f"POST {_APPROVAL}/approve": (ObjectAccess.APPROVABLE,),
    f"POST {_APPROVAL}/reject": (ObjectAccess.APPROVABLE,),
    f"POST {_APPROVAL}/cancel": (ObjectAccess.APPROVABLE,),
    f"GET {_V1}/compliance/rules": (ObjectAccess.ANY,),
    f"GET {_V1}/compliance/rules/{{id}}": (ObjectAccess.ANY,),
    f"POST {_V1}/compliance/rules": (ObjectAccess.ANY,),
    f"PUT {_V1}/compliance/rules/{{id}}": (ObjectAccess.ANY,),
    f"DELETE {_V1}/compliance/rules/{{id}}": (ObjectAccess.ANY,),
    f"GET {_V1}/account-rules/{{kyc_level}}": (ObjectAccess.ANY,),
    f"PUT {_V1}/account-rules/{{kyc_level}}": (ObjectAccess.ANY,),
    f"POST {_V1}/admin/login": (ObjectAccess.NO_OBJECT,),
    f"POST {_V1}/admin/login/oidc/start": (ObjectAccess.NO_OBJECT,),
    f"POST {_V1}/admin/login/oidc": (ObjectAccess.NO_OBJECT,),
    f"POST {_V1}/admin/login/passkey/options": (ObjectAccess.NO_OBJECT,),
    f"POST {_V1}/admin/login/passkey": (ObjectAccess.NO_OBJECT,),
    f"POST {_V1}/admin/refresh": (ObjectAccess.OWN,),
    f"POST {_V1}/admin/logout": (ObjectAccess.OWN,),
    f"GET {_V1}/admin/me": (ObjectAccess.OWN,),
    f"GET {_V1}/admin/me/oidc-logout": (ObjectAccess.OWN,),
    f"POST {_V1}/admin/me/totp": (ObjectAccess.OWN,),
    f"POST {_V1}/admin/me/totp/confirm": (ObjectAccess.OWN,),
    f"DELETE {_V1}/admin/me/totp": (ObjectAccess.OWN,),
    f"GET {_V1}/admin/branding": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/admin/branding/logo": (ObjectAccess.NO_OBJECT,),
    f"PUT {_V1}/admin/branding": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/admin/me/preferences": (ObjectAccess.OWN,),
    f"PUT {_V1}/admin/me/preferences": (ObjectAccess.OWN,),
    f"POST {_V1}/admin/me/step-up": (ObjectAccess.OWN,),
    f"POST {_V1}/admin/me/step-up/oidc/start": (ObjectAccess.OWN,),
    f"POST {_V1}/admin/me/step-up/oidc": (ObjectAccess.OWN,),
    f"POST {_V1}/admin/me/recovery-codes": (ObjectAccess.OWN,),
    f"POST {_V1}/admin/me/password": (ObjectAccess.OWN,),
    f"POST {_V1}/admin/me/passkeys/options": (ObjectAccess.OWN,),
    f"POST {_V1}/admin/me/passkeys": (ObjectAccess.OWN,),
    f"GET {_V1}/admin/me/passkeys": (ObjectAccess.OWN,),
    f"DELETE {_V1}/admin/me/passkeys/{{id}}": (ObjectAccess.OWN,),
    f"GET {_V1}/admin/me/sessions": (ObjectAccess.OWN,),
    f"DELETE {_V1}/admin/me/sessions/{{id}}": (ObjectAccess.OWN,),
    f"POST {_V1}/admin/users": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/admin/users": (ObjectAccess.ANY,),
    f"PUT {_V1}/admin/users/{{id}}": (ObjectAccess.ANY,),
    f"POST {_V1}/admin/users/{{id}}/reset-factors": (ObjectAccess.ANY,),
    f"POST {_V1}/admin/users/{{id}}/confirm": (ObjectAccess.ANY,),
    f"POST {_V1}/admin/users/{{id}}/reset-password": (ObjectAccess.ANY,),
    f"POST {_V1}/admin/invitations/accept": (ObjectAccess.LINK,),
    f"GET {_V1}/admin/users/{{id}}/offboarding": (ObjectAccess.ANY,),
    f"POST {_V1}/admin/users/{{id}}/disable": (ObjectAccess.ANY,),
    f"POST {_V1}/admin/users/{{id}}/enable": (ObjectAccess.ANY,),
    f"POST {_V1}/admin/api-keys": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/admin/api-keys": (ObjectAccess.ANY,),
    f"GET {_V1}/admin/api-keys/{{id}}": (ObjectAccess.ANY,),
    f"PUT {_V1}/admin/api-keys/{{id}}": (ObjectAccess.ANY,),
    f"POST {_V1}/admin/api-keys/{{id}}/rotate": (ObjectAccess.ANY,),
    f"DELETE {_V1}/admin/api-keys/{{id}}": (ObjectAccess.ANY,),
    f"GET {_V1}/admin/request-logs": (ObjectAccess.ANY,),
    f"GET {_V1}/admin/request-logs/{{id}}": (ObjectAccess.ANY,),
    f"GET {_V1}/audit/logs": (ObjectAccess.ANY,),
    f"GET {_V1}/audit/verify": (ObjectAccess.ANY,),
    f"GET {_V1}/overview": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/admin/onboarding": (ObjectAccess.NO_OBJECT,),
    f"POST {_V1}/admin/onboarding/dismiss": (ObjectAccess.NO_OBJECT,),
    f"POST {_V1}/admin/onboarding/{{step}}/skip": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/search": (ObjectAccess.UNRESTRICTED,),
    f"POST {_V1}/ledger/verify": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/ledger/gl-codes": (ObjectAccess.ANY,),
    f"PUT {_V1}/ledger/gl-codes": (ObjectAccess.ANY,),
    f"GET {_V1}/ledger/accounts": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/ledger/trial-balance": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/ledger/journal": (ObjectAccess.NO_OBJECT,),
    f"POST {_WEBHOOK_ENDPOINTS}": (ObjectAccess.NO_OBJECT,),
    f"GET {_WEBHOOK_ENDPOINTS}": (ObjectAccess.ANY,),
    f"GET {_WEBHOOK_ENDPOINTS}/{{id}}": (ObjectAccess.ANY,),
    f"PUT {_WEBHOOK_ENDPOINTS}/{{id}}": (ObjectAccess.ANY,),
    f"POST {_WEBHOOK_ENDPOINTS}/{{id}}/rotate-secret": (ObjectAccess.ANY,),
    f"POST {_WEBHOOK_ENDPOINTS}/{{id}}/test": (ObjectAccess.ANY,),
    f"DELETE {_WEBHOOK_ENDPOINTS}/{{id}}": (ObjectAccess.ANY,),
    f"GET {_WEBHOOK_ENDPOINTS}/{{id}}/deliveries": (ObjectAccess.ANY,),
    f"GET {_WEBHOOK_ENDPOINTS}/{{id}}/deliveries/{{delivery_id}}": (ObjectAccess.PARENT_IN_PATH,),
    f"POST {_WEBHOOK_ENDPOINTS}/{{id}}/deliveries/{{delivery_id}}/redeliver": (
        ObjectAccess.PARENT_IN_PATH,
    ),
    "GET /live": (ObjectAccess.NO_OBJECT,),
    "GET /ready": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/system/settings": (ObjectAccess.NO_OBJECT,),
    f"GET {_V1}/system/nodes": (ObjectAccess.NO_OBJECT,),
    "GET /health": (ObjectAccess.NO_OBJECT,),
    "GET /openapi.json": (ObjectAccess.NO_OBJECT,),
    "GET /docs": (ObjectAccess.NO_OBJECT,),
    "GET /docs/{file}": (ObjectAccess.NO_OBJECT,),
    "GET /metrics": (ObjectAccess.NO_OBJECT,),
}
