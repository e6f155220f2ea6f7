"""Access column of the API specification, copied line by line.

Declarations that deviate from the specification fail the comparison in test_access.py.
"""

from tapgate.api.endpoint import ROLES_BY_LETTER, Access

V1 = "/api/v1"

#: Methods and paths after /api/v1 -> allowed callers.
CONTRACT_LINES = """
POST /subscribers -> subscribers:write · A S · svc
GET /subscribers, /subscribers/{id} -> subscribers:read · all · svc
PUT /subscribers/{id} -> subscribers:write · A S C
POST /subscribers/{id}/block -> subscribers:write · A C S
POST /subscribers/{id}/unblock -> subscribers:write · A C
POST /subscribers/{id}/close -> A
POST /subscribers/{id}/verify-pin -> subscribers:write · A S · svc
POST /subscribers/{id}/change-pin -> subscribers:write · A S · svc
POST /subscribers/{id}/reset-pin, /subscribers/{id}/reset-pin/confirm -> A S · svc
POST, GET /subscribers/{id}/kyc-documents -> subscribers:write · A S C · svc
GET /subscribers/{id}/kyc-documents/{document_id} -> A C
POST /subscribers/{id}/restricted-access, /subscribers/{id}/restricted-access/verify -> all
POST /cards/link -> cards:write · A S · svc
POST /cards/child -> cards:write · A S
GET /cards, /cards/{serial} -> cards:read · all · svc
POST /cards/{serial}/block, /cards/{serial}/unblock -> cards:write · A S C · svc
POST /cards/upload-csv -> A
GET /balance/{user_id} -> balance:read · all · svc
GET /transactions, /transactions/{id} -> payments:read · all · svc
POST /wallet/transfer -> payments:write · A F
POST /wallet/transfer-p2p -> payments:write · A F · svc
POST /wallet/quote -> payments:write · A F · svc
POST /wallet/fund-from-partner -> payments:write · A F · partner
POST /wallet/account-statement -> payments:read · A F S · svc
POST /agents -> A
GET /agents, /agents/{id} -> payments:read · all
GET /agents/{id}/balance -> balance:read · all
POST /agents/{id}/fund -> A F
POST /agents/{id}/suspend, /agents/{id}/activate, /agents/{id}/terminate -> A
POST /agents/{id}/change-pin -> A
POST /agents/{id}/payout-commission -> A F
POST /agents/cashin -> payments:write · A F
POST /agents/cashout -> payments:write · A F
POST /agents/transfer -> payments:write · A F
POST /pos/payment, /pos/verify-card, /pos/lookup-card, /pos/refund -> pos
POST /payment, /payment/verify-card, /payment/lookup-card, /payment/refund -> pos
POST /processors -> A
GET /processors, /processors/{id}, /processors/{id}/transactions -> payments:read · all
POST /processors/{id}/suspend, /processors/{id}/activate -> A C
POST /processors/{id}/transfer -> A F
POST, GET /processors/{id}/terminals -> A
POST /processors/{id}/terminals/{terminal_id}/block -> A
POST /processors/{id}/terminals/{terminal_id}/unblock -> A
POST, GET /processors/{id}/keys -> A
DELETE /processors/{id}/keys/{api_key_id} -> A
POST /compliance/check -> A C · svc
GET /compliance/alerts, /compliance/alerts/{id} -> A C
POST /compliance/alerts -> A C · svc
POST /compliance/alerts/{id}/investigate, /compliance/alerts/{id}/resolve -> A C
GET /compliance/rules -> A C
PUT /compliance/rules/{id} -> A C
GET /account-rules/{kyc_level} -> subscribers:read · all · svc
PUT /account-rules/{kyc_level} -> A
POST /compliance/rules -> A C
DELETE /compliance/rules/{id} -> A C
GET /commission-rules -> F A
PUT /commission-rules -> A
GET /fee-rules -> F A
PUT /fee-rules -> A
POST /admin/login, /admin/refresh -> public
POST /admin/logout -> all
GET /admin/me -> all
POST, GET /admin/users -> A
POST /admin/users/{id}/disable, /admin/users/{id}/enable -> A
POST, GET /admin/api-keys -> A
PUT, DELETE /admin/api-keys/{id} -> A
POST /admin/api-keys/{id}/rotate -> A
POST, GET /admin/partners -> A
POST /admin/partners/{id}/fund -> A F
POST /admin/partners/{id}/suspend, /admin/partners/{id}/activate -> A
POST, GET /admin/partners/{id}/keys -> A
DELETE /admin/partners/{id}/keys/{api_key_id} -> A
POST /admin/partners/{id}/rotate-webhook-secret -> A
POST, GET /admin/webhook-endpoints -> A
PUT, DELETE /admin/webhook-endpoints/{id} -> A
POST /admin/webhook-endpoints/{id}/rotate-secret -> A
GET /admin/webhook-endpoints/{id}/deliveries -> A
POST /admin/webhook-endpoints/{id}/deliveries/{delivery_id}/redeliver -> A
GET /audit/logs, /audit/verify -> A C
POST /webhooks/partners/{partner_id} -> public
"""

#: Served outside /api/v1, or mentioned in the specification without a line of their own.
SYSTEM_ACCESS = {
    "GET /openapi.json": "public",
    "GET /docs": "public",
    "GET /metrics": "public",
    "GET /health": "public",
    "POST /payment": "pos",
    "POST /payment/verify-card": "pos",
    "POST /payment/lookup-card": "pos",
    "POST /payment/refund": "pos",
    "GET /api/v1/statements/{token}": "public",  # statement_url: the token is the credential
}

#: Additions that the specification does not list.
ADDED_ACCESS = {
    "GET /docs/{file}": "public",  # assets of the /docs page
    "GET /api/v1/admin/partners/{id}": "A",  # as for other records
    "GET /api/v1/admin/api-keys/{id}": "A",
    "GET /api/v1/admin/webhook-endpoints/{id}": "A",
    "POST /api/v1/admin/webhook-endpoints/{id}/test": "A",  # sends a test event
    "GET /api/v1/subscribers/{id}/limits": "all · svc",  # the limits that declines refer to
    "GET /api/v1/subscribers/{id}/messages": "all",  # delivery status of messages
    "POST /api/v1/messages/statuses": "svc",  # status reports of the messenger
    "GET /api/v1/compliance/rules/{id}": "A C",  # as for other records
    "PUT /api/v1/fee-rules/{type}": "A",  # changes one type and keeps the rest
    "GET /api/v1/transactions/export": "payments:read · all",  # the list as a file
    # For investigating a transaction.
    "GET /api/v1/transactions/{id}/entries": "all",
    "GET /api/v1/transactions/{id}/chain": "all",
    "GET /api/v1/overview": "all",  # platform dashboard
    "POST /api/v1/ledger/verify": "A",  # `tapgate verify` without a shell
}


def parse_contract() -> dict[str, Access]:
    callers_by_operation = {**SYSTEM_ACCESS, **ADDED_ACCESS}
    for line in CONTRACT_LINES.strip().splitlines():
        operations, _, callers = line.partition(" -> ")
        methods, _, paths = operations.partition(" /")
        for method in methods.split(", "):
            for path in f"/{paths}".split(", "):
                callers_by_operation[f"{method} {V1}{path}"] = callers
    return {name: _parse_access(callers) for name, callers in callers_by_operation.items()}


def _parse_access(callers: str) -> Access:
    words = callers.replace("·", "").split()
    scopes = [word for word in words if ":" in word]
    return Access(
        public="public" in words,
        scope=scopes[0] if scopes else None,
        roles="".join(ROLES_BY_LETTER)
        if "all" in words
        else "".join(w for w in ROLES_BY_LETTER if w in words),
        service="svc" in words,
        hmac="pos" if "pos" in words else "partner" if "partner" in words else None,
    )


def is_same_access(declared: Access, specified: Access) -> bool:
    return (
        declared.public == specified.public
        and declared.scope == specified.scope
        and set(declared.roles) == set(specified.roles)
        and declared.service == specified.service
        and declared.hmac == specified.hmac
    )
