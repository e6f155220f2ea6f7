"""Two-step flows: what a second step is bound to, how old it may be, and what protects it.

The tests fail for an operation that completes a flow and is missing from the table, and for a
second step with less protection than the first.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final, NamedTuple

from tapgate.auth.invitations import INVITATION_LIFETIME
from tapgate.auth.oidc.logins import LOGIN_LIFETIME
from tapgate.auth.passkey_challenges import CHALLENGE_LIFETIME
from tapgate.auth.second_factors import PENDING_TOTP_LIFETIME
from tapgate.business.agents.cash_out_requests.model import LIFETIME as CASH_OUT_LIFETIME
from tapgate.business.customers.cards.personalization import ISSUED_KEYS_LIFETIME
from tapgate.ledger.one_time_codes.codes import CODE_LIFETIME
from tapgate_client.schemas.approvals import MAX_EXPIRY_SECONDS

_V1: Final = "/api/v1"
_ADMIN: Final = f"{_V1}/admin"
_SUBSCRIBER: Final = f"{_V1}/subscribers/{{id}}"
_PIN_HOLDERS: Final = (_SUBSCRIBER, f"{_V1}/cards/{{serial}}", f"{_V1}/agents/{{id}}")
_RECENT_FACTOR: Final = (
    "a factor verified in the last 15 minutes (single sign-on without a factor: a sign-in of the "
    "last 15 minutes)"
)
_CODE_ENDS: Final = "use, three wrong codes, a new code, a new phone number"


class TwoStepFlow(NamedTuple):
    """Flow in which one request starts what another one completes."""

    title: str
    #: Empty if every operation with a guard can be the first step.
    first_steps: tuple[str, ...]
    second_steps: tuple[str, ...]
    bound_to: str
    lifetime: timedelta
    protection: str
    ended_by: str


TWO_STEP_FLOWS: Final = (
    TwoStepFlow(
        "Authenticator app",
        (f"POST {_ADMIN}/me/totp",),
        (f"POST {_ADMIN}/me/totp/confirm",),
        "the session",
        PENDING_TOTP_LIFETIME,
        f"{_RECENT_FACTOR}; first factor: `current_password`, or a login of the last 15 minutes; a "
        "code of the new app",
        "use, a new secret, another factor, the end of the session",
    ),
    TwoStepFlow(
        "New passkey",
        (f"POST {_ADMIN}/me/passkeys/options",),
        (f"POST {_ADMIN}/me/passkeys",),
        "the session",
        CHALLENGE_LIFETIME,
        f"{_RECENT_FACTOR}; first factor: `current_password`; the challenge, signed",
        "use, the end of the session",
    ),
    TwoStepFlow(
        "Passkey login and step-up",
        (f"POST {_ADMIN}/login/passkey/options",),
        (f"POST {_ADMIN}/login/passkey", f"POST {_ADMIN}/me/step-up"),
        "the origin of the site; step-up: the admin of the session",
        CHALLENGE_LIFETIME,
        "the challenge, signed by a passkey that verified its user",
        "use",
    ),
    TwoStepFlow(
        "Single sign-on, and linking of an account with a password",
        (f"POST {_ADMIN}/login/oidc/start",),
        (f"POST {_ADMIN}/login/oidc",),
        "the browser that has the sealed `login_token`",
        LOGIN_LIFETIME,
        "state, nonce and PKCE; the enrolled factor; linking: the password and the enrolled "
        "factor, or a passkey",
        "use",
    ),
    TwoStepFlow(
        "Step-up with single sign-on",
        (f"POST {_ADMIN}/me/step-up/oidc/start",),
        (f"POST {_ADMIN}/me/step-up/oidc",),
        "the session, and the browser that has the sealed `login_token`",
        LOGIN_LIFETIME,
        "state, nonce and PKCE; the same person; an `auth_time` after the first step",
        "use, the first factor, the end of the session",
    ),
    TwoStepFlow(
        "Invitation and password reset",
        (f"POST {_ADMIN}/users", f"POST {_ADMIN}/users/{{id}}/reset-password"),
        (f"POST {_ADMIN}/invitations/accept",),
        "the account",
        INVITATION_LIFETIME,
        "the link; a login then needs the enrolled factor",
        "use, a new link, disabling the admin",
    ),
    TwoStepFlow(
        "Approval",
        (),
        (f"POST {_V1}/approvals/{{id}}/approve",),
        "the request, with the values that the approvers saw",
        timedelta(seconds=MAX_EXPIRY_SECONDS),
        "another person with a role of the rule; a factor verified in the last 15 minutes; all "
        "checks of the request again",
        "execution, rejection, cancellation, the `expires_in` of the rule",
    ),
    TwoStepFlow(
        "Personalization of a card",
        (f"POST {_V1}/cards/{{serial}}/personalize",),
        (f"POST {_V1}/cards/{{serial}}/personalize/confirm",),
        "the card",
        ISSUED_KEYS_LIFETIME,
        "a factor verified in the last 15 minutes; a tap that only the issued keys can sign; "
        "linked cards: approval rules for the first step, and notices to the holder",
        "use, retiring the keyset, linking the card",
    ),
    TwoStepFlow(
        "PIN reset",
        tuple(f"POST {holder}/reset-pin" for holder in _PIN_HOLDERS),
        tuple(f"POST {holder}/reset-pin/confirm" for holder in _PIN_HOLDERS),
        "the caller (API key, service or admin) and the phone number",
        CODE_LIFETIME,
        "the code sent to the phone; no phone number changed in the last 24 hours",
        _CODE_ENDS,
    ),
    TwoStepFlow(
        "Card replacement",
        (f"POST {_V1}/cards/{{serial}}/replace",),
        (f"POST {_V1}/cards/{{serial}}/replace/confirm",),
        "the caller (API key, service or admin) and the phone number",
        CODE_LIFETIME,
        "the code sent to the phone; no phone number changed in the last 24 hours",
        _CODE_ENDS,
    ),
    TwoStepFlow(
        "Access to a restricted subscriber",
        (f"POST {_SUBSCRIBER}/restricted-access",),
        (f"POST {_SUBSCRIBER}/restricted-access/verify",),
        "the admin and the phone number",
        CODE_LIFETIME,
        "the code sent to the phone",
        _CODE_ENDS,
    ),
    TwoStepFlow(
        "Cash-out that an agent asks for",
        (f"POST {_V1}/cash-out-requests",),
        (f"POST {_V1}/cash-out-requests/{{id}}/confirm",),
        "the agent, the customer or card, and the amount",
        CASH_OUT_LIFETIME,
        "the PIN of the agent, then the PIN of the customer",
        "use, a refusal by the customer",
    ),
)

#: Operations that look like a second step, and why they are none.
SINGLE_STEPS: Final[Mapping[str, str]] = {
    f"POST {_ADMIN}/login": "The password and the code are in one request.",
    f"POST {_ADMIN}/refresh": "A refresh token continues a session.",
    f"DELETE {_ADMIN}/me/totp": "The code comes from the app that is enrolled.",
    f"POST {_SUBSCRIBER}/verify-pin": "The PIN is in one request.",
    f"POST {_V1}/pos/verify-card": "The card and its proof are in one request.",
    f"POST {_V1}/payment/verify-card": "The card and its proof are in one request.",
    "POST /payment/verify-card": "The card and its proof are in one request.",
    f"POST {_V1}/ledger/verify": "It verifies the ledger.",
    f"POST {_V1}/bank-accounts/{{id}}/verify": "Another admin verifies, and repeats no code.",
    f"POST {_ADMIN}/users/{{id}}/confirm": "It confirms an account, and repeats no code.",
}
