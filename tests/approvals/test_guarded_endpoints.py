"""Every endpoint by which an admin changes something is guardable, or listed with a reason."""

import msgspec
import pytest

from tapgate.approvals.model import NEVER_STORED_FIELDS
from tapgate.gateway import list_endpoints
from tapgate.http.endpoint import Endpoint

V1 = "/api/v1"

#: Endpoints that change something and accept admins or API keys, without a guard.
UNGUARDED_ENDPOINTS = {
    "A customer or an agent authorizes it with the PIN": [
        "POST /wallet/transfer-p2p", "POST /agents/cashin", "POST /agents/cashout",
        "POST /agents/transfer", "POST /subscribers/{id}/verify-pin",
        "POST /subscribers/{id}/change-pin", "POST /cards/{serial}/change-pin",
        "POST /agents/{id}/change-pin", "POST /cards/link", "POST /cards/child",
    ],
    "The owner of the phone authorizes it with a one-time code": [
        "POST /subscribers/{id}/reset-pin", "POST /subscribers/{id}/reset-pin/confirm",
        "POST /cards/{serial}/reset-pin", "POST /cards/{serial}/reset-pin/confirm",
        "POST /agents/{id}/reset-pin", "POST /agents/{id}/reset-pin/confirm",
        "POST /subscribers/{id}/restricted-access",
        "POST /subscribers/{id}/restricted-access/verify",
    ],
    "It moves money that the party already has; rules guard how it gets there": [
        "POST /agents/{id}/payout-commission",
    ],
    "It takes rights away, which must not wait": [
        "POST /admin/users/{id}/disable", "DELETE /admin/api-keys/{id}",
        "DELETE /admin/partners/{id}/keys/{api_key_id}",
        "DELETE /processors/{id}/keys/{api_key_id}", "POST /subscribers/{id}/block",
        "POST /subscribers/{id}/close", "POST /cards/{serial}/block",
        "POST /processors/{id}/suspend", "POST /processors/{id}/terminals/{terminal_id}/block",
        "POST /admin/partners/{id}/suspend", "POST /agents/{id}/suspend",
        "POST /agents/{id}/terminate",
    ],
    "It concerns records that cannot move money without the guarded operations": [
        "POST /subscribers", "POST /subscribers/{id}/unblock",
        "POST /subscribers/{id}/kyc-documents",
        "PUT /cards/{serial}", "POST /cards/{serial}/unblock", "POST /cards/upload-csv",
        "POST /cards/{serial}/personalize", "POST /cards/{serial}/personalize/confirm",
        "POST /processors/{id}/activate", "POST /processors/{id}/terminals/{terminal_id}/unblock",
        "POST /admin/partners/{id}/activate", "POST /agents",
        "POST /agents/{id}/activate",
    ],
    "It changes no money, rule or right": [
        "POST /wallet/quote", "POST /wallet/account-statement", "POST /compliance/check",
        "POST /compliance/alerts", "POST /compliance/alerts/{id}/investigate",
        "POST /compliance/alerts/{id}/assign", "POST /compliance/alerts/{id}/unassign",
        "POST /subscribers/{id}/kyc-review/assign", "POST /subscribers/{id}/kyc-review/unassign",
        "POST /support/requests/{id}/unassign",
        "POST /support/requests/{id}/reply", "POST /support/requests/{id}/assign",
        "POST /support/requests/{id}/close",
        "POST /admin/webhook-endpoints/{id}/test", "DELETE /admin/webhook-endpoints/{id}",
        "POST /admin/webhook-endpoints/{id}/deliveries/{delivery_id}/redeliver",
        "POST /ledger/verify", "PUT /ledger/gl-codes",
        "POST /admin/onboarding/dismiss", "POST /admin/onboarding/{step}/skip",
    ],
    "It concerns the admin's own account": ["POST /admin/logout"],
    "It decides on a held request, and who may decide": [
        "POST /admin/users/{id}/confirm",
        "POST /approvals/{id}/approve", "POST /approvals/{id}/reject",
        "POST /approvals/{id}/cancel",
    ],
}  # fmt: skip
#: Paths of the admin's own account.
OWN_ACCOUNT_PREFIX = f"{V1}/admin/me/"


def list_changing_endpoints() -> list[Endpoint]:
    return [
        endpoint
        for endpoint in list_endpoints()
        if endpoint.method != "GET" and (endpoint.access.roles or endpoint.access.scope)
    ]


def test_every_endpoint_is_guardable_or_has_a_reason() -> None:
    unguarded = {
        endpoint.name.replace(V1, "")
        for endpoint in list_changing_endpoints()
        if endpoint.guard is None and not endpoint.path.startswith(OWN_ACCOUNT_PREFIX)
    }
    listed = [name for names in UNGUARDED_ENDPOINTS.values() for name in names]
    assert sorted(unguarded) == sorted(listed)


GUARDED_ENDPOINTS = [endpoint for endpoint in list_changing_endpoints() if endpoint.guard]


@pytest.mark.parametrize("endpoint", GUARDED_ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_no_pin_or_password_is_stored(endpoint: Endpoint) -> None:
    if endpoint.body_type is None:
        return
    names = {field.encode_name for field in msgspec.structs.fields(endpoint.body_type)}
    secrets = {name for name in names if {"pin", "password", "otp"} & set(name.split("_"))}
    secrets -= {"no_pin_limit"}
    assert secrets <= NEVER_STORED_FIELDS
    assert not (NEVER_STORED_FIELDS & names) - secrets
