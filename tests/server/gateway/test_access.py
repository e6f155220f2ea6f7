"""Every endpoint with every kind of credential, scope and role.

Exactly the callers in the specification pass; all other callers get the specified error.
"""

import httpx2

from cases import run_cases
from server.gateway.fixtures import AccessFixtures, Caller, build_missing_path, get_status_and_code
from tapgate.http.api.access import ROLES_BY_LETTER, Access
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import list_endpoints

V1 = "/api/v1"

#: Access column in the API specification, copied line by line: methods and paths after /api/v1 ->
#: allowed callers.
CONTRACT_LINES = """
POST /subscribers -> subscribers:write · A S · svc
GET /subscribers, /subscribers/{id} -> subscribers:read · all · svc
PUT /subscribers/{id} -> subscribers:write · A S C · svc
POST /subscribers/{id}/block -> subscribers:write · A C S
POST /subscribers/{id}/unblock -> subscribers:write · A C
POST /subscribers/{id}/close -> A
POST /subscribers/{id}/verify-pin -> subscribers:write · A S · svc
POST /subscribers/{id}/change-pin -> subscribers:write · A S · svc
POST /subscribers/{id}/reset-pin, /subscribers/{id}/reset-pin/confirm -> A S · svc
POST, GET /subscribers/{id}/kyc-documents -> subscribers:write · A S C · svc
GET /subscribers/{id}/kyc-documents/{document_id} -> A C
POST /subscribers/{id}/kyc-decision -> A C
POST /subscribers/{id}/restricted-access, /subscribers/{id}/restricted-access/verify -> all
POST /cards/link -> cards:write · A S · svc
POST /cards/child -> cards:write · A S
GET /cards, /cards/{serial} -> cards:read · all · svc
PUT /cards/{serial} -> cards:write · A S
POST /cards/{serial}/change-pin -> A S · svc
POST /cards/{serial}/reset-pin, /cards/{serial}/reset-pin/confirm -> A S · svc
POST /cards/{serial}/block, /cards/{serial}/unblock -> cards:write · A S C · svc
POST /cards/upload-csv -> A
POST, GET /cards/keysets -> A
GET /cards/keysets/{id} -> A
POST /cards/keysets/{id}/retire -> A
POST /cards/{serial}/personalize, /cards/{serial}/personalize/confirm -> A
GET /cards/{serial}/taps -> cards:read · A S C
GET /balance/{user_id} -> balance:read · all · svc
GET /transactions, /transactions/{id} -> payments:read · all · svc
POST /transactions/{id}/reverse -> A F
POST /transactions/{id}/recall -> A S · svc
GET /recalls, /recalls/{id} -> A S C
POST /recalls/{id}/return, /recalls/{id}/keep -> svc
POST /recalls/{id}/decide -> A C
POST /wallet/transfer -> payments:write · A F
POST /wallet/transfer-p2p -> payments:write · A F · svc
POST /wallet/quote -> payments:write · A F · svc
POST /wallet/fund-from-partner -> payments:write · A F · partner
POST /books/lookup -> subscribers:read · svc · partner
POST /books/transfers, /books/transfers/cancel -> partner
GET /books/transfers, /books/transfers/{id} -> F A
POST /books/transfers/{id}/retry, /books/transfers/{id}/return -> F A
GET /books/position -> partner
GET /books/report, /books/number-conflicts -> F A
POST /wallet/account-statement -> payments:read · A F S · svc
POST /agents -> A
POST /agents/{id}/float-requests -> A S · svc
GET /float-requests -> F A S · svc
POST /float-requests/{id}/fund, /float-requests/{id}/decline -> F A
POST /float-requests/{id}/cancel -> A S · svc
GET /agents/{id} -> payments:read · all
PUT /agents/{id} -> A
GET /agents/{id}/balance -> balance:read · all
POST /agents/{id}/fund -> A F
POST /agents/{id}/suspend, /agents/{id}/activate, /agents/{id}/terminate -> A
POST /agents/{id}/change-pin -> A
POST /agents/{id}/reset-pin, /agents/{id}/reset-pin/confirm -> A S · svc
POST /agents/{id}/payout-commission -> A F · svc
POST /agents/cashin -> payments:write · A F · svc
POST /agents/cashout -> payments:write · A F
POST /agents/transfer -> payments:write · A F
POST /pos/payment, /pos/verify-card, /pos/lookup-card, /pos/refund -> pos
GET /pos/payments/{request_id} -> pos
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
POST /admin/login, /admin/login/passkey, /admin/login/passkey/options, /admin/refresh -> public
POST /admin/logout -> all
POST, DELETE /admin/me/totp -> all
POST /admin/me/totp/confirm -> all
POST /admin/me/password -> all
POST, GET /admin/me/passkeys -> all
POST /admin/me/passkeys/options -> all
DELETE /admin/me/passkeys/{id} -> all
GET, DELETE /admin/me/sessions -> all
DELETE /admin/me/sessions/{id} -> all
GET /admin/me -> all
POST, GET /admin/users -> A
PUT /admin/users/{id} -> A
POST /admin/users/{id}/reset-factors -> A
POST /admin/users/{id}/confirm -> A
POST /admin/users/{id}/disable, /admin/users/{id}/enable -> A
GET /admin/approval-rules -> all
PUT /admin/approval-rules -> A
GET /approvals, /approvals/{id} -> all
POST /approvals/{id}/approve, /approvals/{id}/reject, /approvals/{id}/cancel -> all
POST, GET /admin/api-keys -> A
PUT, DELETE /admin/api-keys/{id} -> A
POST /admin/api-keys/{id}/rotate -> A
POST /admin/partners -> A
GET /admin/partners -> A F
PUT /admin/partners/{id} -> A
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
POST /admin/webhook-endpoints/{id}/redeliver -> A
GET /audit/logs, /audit/verify -> A C
GET, PUT /ledger/gl-codes -> F A
GET /ledger/accounts, /ledger/trial-balance, /ledger/journal -> F A
POST /ledger/verify -> F A
POST /ledger/days/{date}/close -> F A
GET /ledger/days, /ledger/days/{date} -> F A
POST, GET /bank-accounts -> F A
GET /bank-accounts/{id} -> F A
POST /bank-accounts/{id}/verify, /bank-accounts/{id}/block -> F A
POST, GET /payouts -> F A
GET /payouts/{id} -> F A
POST /payouts/{id}/cancel, /payouts/{id}/paid, /payouts/{id}/returned -> F A
POST, GET /payout-runs -> F A
GET /payout-runs/{id}, /payout-runs/{id}/file -> F A
GET, PUT /processors/{id}/payout-schedule -> F A
POST, GET /bank-statements -> F A
GET /bank-statements/{id}, /bank-statements/lines, /bank-statements/lines/{id}/candidates -> F A
POST /bank-statements/lines/{id}/match, /bank-statements/lines/{id}/post -> F A
POST /bank-statements/lines/{id}/ignore, /bank-statements/lines/{id}/unmatch -> F A
GET, PUT /bank-accounts/{id}/csv-mapping -> F A
POST, GET /batches -> F A
GET /batches/{id} -> F A
GET, PUT /batches/{id}/lines -> F A
POST /batches/{id}/validate, /batches/{id}/run, /batches/{id}/cancel -> F A
GET /reports/income-statement, /reports/safeguarding, /reports/reconciliation -> F A
GET /ledger/trial-balance/file -> F A
GET /transactions/{id}/proof -> payments:read · all · svc
POST /support/requests -> svc
GET /support/requests, /support/requests/{id} -> A S
POST /support/requests/{id}/reply, /support/requests/{id}/close -> A S
POST /subscribers/{id}/dispute-phone-change -> svc
POST /disputes -> A S · svc
GET /disputes, /disputes/{id} -> S C F A · svc · pos
POST /disputes/{id}/respond -> S A · pos
POST /disputes/{id}/decide -> C A
POST /disputes/{id}/withdraw -> A S · svc
GET /search -> all
POST /statements -> A F S
POST /webhooks/partners/{partner_id} -> public
"""

#: Served outside /api/v1, or mentioned in the specification without a line of their own.
SYSTEM_ACCESS = {
    "GET /openapi.json": "public",
    "GET /.well-known/tapgate-keys": "public",
    "GET /metrics": "public",
    "GET /health": "public",
    "GET /live": "public",
    "GET /ready": "public",
    "GET /version": "public",
    "POST /payment": "pos",
    "POST /payment/verify-card": "pos",
    "POST /payment/lookup-card": "pos",
    "POST /payment/refund": "pos",
    "GET /api/v1/statements/{token}": "public",  # statement_url: the token is the credential
}

#: Additions that the specification does not list.
ADDED_ACCESS = {
    "GET /api/v1/me/owner": "owners",
    "POST /api/v1/support/owner-requests": "owners",
    "POST /api/v1/support/requests/{id}/messages": "owners",
    # The messenger finds the agent with a phone number, and agents near a place.
    "GET /api/v1/agents": "payments:read · all · svc",
    "GET /api/v1/admin/partners/{id}": "A F",  # as for other records
    "GET /api/v1/admin/api-keys/{id}": "A",
    "GET /api/v1/admin/users/{id}": "A",
    "GET /api/v1/admin/users/{id}/offboarding": "A",
    "POST /api/v1/admin/users/{id}/reset-password": "A",  # returns an invitation link
    "POST /api/v1/admin/invitations/accept": "public",  # the token is the credential
    "POST /api/v1/admin/login/oidc/start": "public",  # single sign-on
    "POST /api/v1/admin/login/oidc": "public",
    "GET /api/v1/admin/me/oidc-logout": "all",
    "GET /api/v1/admin/branding": "public",  # the sign-in page shows it
    "GET /api/v1/admin/branding/logo": "public",
    "PUT /api/v1/admin/branding": "A",
    "GET /api/v1/admin/me/preferences": "all",  # console theme and time zone
    "PUT /api/v1/admin/me/preferences": "all",
    "GET /api/v1/system/settings": "A",  # without secrets
    "POST /api/v1/admin/me/step-up": "all",  # verifies the second factor again
    "POST /api/v1/admin/me/step-up/oidc/start": "all",
    "POST /api/v1/admin/me/step-up/oidc": "all",
    "POST /api/v1/admin/me/recovery-codes": "all",
    "GET /api/v1/admin/request-logs": "A",  # for integrators
    "GET /api/v1/admin/request-logs/{id}": "A",
    "GET /api/v1/admin/webhook-endpoints/{id}": "A",
    "GET /api/v1/admin/webhook-endpoints/{id}/deliveries/{delivery_id}": "A",  # with its payload
    "POST /api/v1/admin/webhook-endpoints/{id}/test": "A",  # sends a test event
    "GET /api/v1/subscribers/{id}/limits": "all · svc",  # the limits that declines refer to
    "GET /api/v1/subscribers/{id}/messages": "all",  # message delivery status
    "GET /api/v1/subscribers/{id}/recalls": "svc",  # recalls that wait for the receiver
    "GET /api/v1/transactions/{id}/reversal-preview": "A F",
    "GET /api/v1/agents/{id}/messages": "all",
    # A customer confirms in the chat what an agent asked for there.
    "POST /api/v1/cash-out-requests": "svc",
    "GET /api/v1/cash-out-requests/{id}": "svc",
    "GET /api/v1/subscribers/{id}/cash-out-requests": "svc",
    "POST /api/v1/cash-out-requests/{id}/confirm": "svc",
    "POST /api/v1/cash-out-requests/{id}/decline": "svc",
    "GET /api/v1/float-requests/{id}": "F A S · svc",  # as the list
    "POST /api/v1/float-requests/{id}/transfer": "svc",  # a super-agent funds it in the chat
    "POST /api/v1/float-requests/{id}/pass-on": "svc",
    "GET /api/v1/support/summary": "A S",
    # Texts that support staff insert into replies.
    "GET /api/v1/support/saved-replies": "A S",
    "POST /api/v1/support/saved-replies": "A S",
    "GET /api/v1/support/saved-replies/{id}": "A S",
    "PUT /api/v1/support/saved-replies/{id}": "A S",
    "DELETE /api/v1/support/saved-replies/{id}": "A S",
    "GET /api/v1/work-items": "all",
    "GET /api/v1/work-queues": "all",  # numbers in the console's navigation
    "GET /api/v1/subscribers/{id}/timeline": "all",  # what happened to a customer
    # Console money views.
    "GET /api/v1/transactions/totals": "all · svc",  # an agent's day in the chat
    "GET /api/v1/processors/{id}/summary": "all",
    "GET /api/v1/agents/liquidity": "all",
    "GET /api/v1/agents/totals": "all",
    "GET /api/v1/processors/totals": "all",
    "GET /api/v1/admin/partners/totals": "A F",
    "GET /api/v1/kyc-reviews": "A C",  # the queue, with its assignees
    # Set `assignee` to the caller, or remove it.
    "POST /api/v1/support/requests/{id}/assign": "A S",
    "POST /api/v1/support/requests/{id}/unassign": "A S",
    "POST /api/v1/compliance/alerts/{id}/assign": "A C",
    "POST /api/v1/compliance/alerts/{id}/unassign": "A C",
    "POST /api/v1/subscribers/{id}/kyc-review/assign": "A C",
    "POST /api/v1/subscribers/{id}/kyc-review/unassign": "A C",
    "POST /api/v1/messages/statuses": "svc",  # messenger status reports
    "POST /api/v1/messages/provider-warnings": "svc",  # provider reports
    "GET /api/v1/messages/provider-warnings": "A S",
    "POST /api/v1/chat/turns": "svc",  # chat turns, from the messenger
    "GET /api/v1/compliance/rules/{id}": "A C",  # as for other records
    "PUT /api/v1/fee-rules/{type}": "A",  # changes one type and keeps the rest
    "GET /api/v1/transactions/export": "payments:read · all",  # the list as a file
    # For investigating a transaction.
    "GET /api/v1/transactions/{id}/entries": "all",
    "GET /api/v1/transactions/{id}/chain": "all",
    # Replacing a lost card with a code from the customer's phone.
    "POST /api/v1/cards/{serial}/replace": "A S",
    "POST /api/v1/cards/{serial}/replace/confirm": "A S",
    "POST /api/v1/transactions/{id}/refund": "F A S",  # support with an approval
    "POST /api/v1/transactions/{id}/send-receipt": "A S F",
    "GET /api/v1/overview": "all",  # platform dashboard
    # The steps of setting up a new installation.
    "GET /api/v1/admin/onboarding": "A",
    "POST /api/v1/admin/onboarding/dismiss": "A",
    "POST /api/v1/admin/onboarding/{step}/skip": "A",
    "GET /api/v1/system/nodes": "A S",  # nodes and replication
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
        owners="owners" in words,
    )


def is_same_access(declared: Access, specified: Access) -> bool:
    return (
        declared.public == specified.public
        and declared.scope == specified.scope
        and set(declared.roles) == set(specified.roles)
        and declared.service == specified.service
        and declared.hmac == specified.hmac
        and declared.owners == specified.owners
    )


ENDPOINTS = list_endpoints()
PROTECTED_ENDPOINTS = [endpoint for endpoint in ENDPOINTS if not endpoint.access.public]
PUBLIC_ENDPOINTS = [endpoint for endpoint in ENDPOINTS if endpoint.access.public]
LOGOUT_ENDPOINT = "POST /api/v1/admin/logout"


def test_declared_access_matches_the_specification() -> None:
    specified = parse_contract()
    declared = {endpoint.name: endpoint.access for endpoint in ENDPOINTS}
    assert declared.keys() == specified.keys()
    wrong = [name for name in declared if not is_same_access(declared[name], specified[name])]
    assert not wrong


def test_every_endpoint_declares_how_owners_reach_it() -> None:
    assert [endpoint.name for endpoint in ENDPOINTS if endpoint.owners is None] == []


def test_restricted_fields_are_limited_to_admin_and_compliance_roles() -> None:
    guarded = {
        f"{endpoint.name} {field}": set(access.roles)
        for endpoint in ENDPOINTS
        for field, access in endpoint.field_access.items()
        if not (access.scope or access.service or access.hmac)
    }
    put = "PUT /api/v1/subscribers/{id}"
    expected = {f"{put} {field}": {"A", "C"} for field in ("kyc_level", "kyc_status", "restricted")}
    assert guarded == expected


async def test_only_declared_callers_can_call_the_endpoint(access_fixtures: AccessFixtures) -> None:
    await run_cases(
        (item.name, check_callers(access_fixtures, item)) for item in PROTECTED_ENDPOINTS
    )


async def check_callers(access_fixtures: AccessFixtures, endpoint: Endpoint) -> None:
    path, access = build_missing_path(endpoint), endpoint.access
    denials, before = 0, await access_fixtures.count_denials()
    for caller in access_fixtures.list_callers(access):
        if endpoint.name == LOGOUT_ENDPOINT and caller.kind == "admin":
            continue  # would end a shared caller's session; tested below
        response = await access_fixtures.client.request(
            endpoint.method, path, content=b"{}", auth=caller.auth
        )
        if caller.is_allowed(access):
            reply = caller.name, response.status_code, response.text
            assert response.status_code in (200, 204, 400, 404, 409, 422), reply
            continue
        assert get_status_and_code(response) == caller.get_expected_error(access), (
            caller.name,
            response.text,
        )
        if response.status_code == 403:
            denials += 1
            expected = {"required": caller.get_expected_requirements(access)}
            assert response.json()["details"] == expected, caller.name
        else:
            assert response.headers["WWW-Authenticate"]
    # Every 403 FORBIDDEN is audited; a 401 is not.
    assert await access_fixtures.count_denials() == before + denials


async def test_every_admin_role_can_log_out(access_fixtures: AccessFixtures) -> None:
    for role in "ACSF":
        admin = await access_fixtures.harness.create_admin(role)
        response = await access_fixtures.client.post("/api/v1/admin/logout", auth=admin)
        assert response.status_code == 204
        status_and_code = get_status_and_code(
            await access_fixtures.client.get("/api/v1/admin/me", auth=admin)
        )
        assert status_and_code == (401, "UNAUTHORIZED")


async def test_protected_endpoints_reject_requests_without_credentials(
    access_fixtures: AccessFixtures,
) -> None:
    client = access_fixtures.client
    for endpoint in PROTECTED_ENDPOINTS:
        path = build_missing_path(endpoint)
        response = await client.request(endpoint.method, path, content=b"{}")
        assert get_status_and_code(response) == (401, "UNAUTHORIZED"), endpoint.name
        assert set(response.json()) <= {"error", "code", "message"}
        if endpoint.method == "GET":
            assert (await client.head(path)).status_code == 401, endpoint.name


def list_path_variants(path: str) -> list[str]:
    """Return alternative spellings that some servers and proxies treat as the same path."""
    letter = path.rindex("/") + 1
    encoded = f"{path[:letter]}%{ord(path[letter]):02x}{path[letter + 1 :]}"
    return [
        f"{path}/",
        f"/{path}",
        path.upper(),
        encoded,
        path.replace("/", "%2f").replace("%2f", "/", 1),
        f"{path};public",
        f"{path}%00",
        f"{path}%20",
        f"{path}.json",
        f"/guide/..{path}",
        f"/guide/%2e%2e{path}",
        f"/health/../{path}",
        path.replace("/api/v1", "/api/v1/."),
        path.replace("/api/v1", "/api//v1"),
        "/" + path[1:].replace("/", "\\"),
    ]


async def test_alternative_path_spellings_do_not_bypass_authentication(
    access_fixtures: AccessFixtures,
) -> None:
    for endpoint in PROTECTED_ENDPOINTS:
        for path in list_path_variants(build_missing_path(endpoint)):
            url = httpx2.URL(scheme="http", host="gateway", raw_path=path.encode())
            response = await access_fixtures.client.request(endpoint.method, url, content=b"{}")
            assert response.status_code in (401, 404, 405), (endpoint.name, path, response.text)


async def test_override_headers_do_not_bypass_authentication(
    access_fixtures: AccessFixtures,
) -> None:
    headers = {
        "X-HTTP-Method-Override": "GET",
        "X-Original-URL": "/health",
        "X-Rewrite-URL": "/health",
        "X-Forwarded-For": "127.0.0.1",
    }
    for endpoint in PROTECTED_ENDPOINTS:
        response = await access_fixtures.client.request(
            endpoint.method, build_missing_path(endpoint), content=b"{}", headers=headers
        )
        assert get_status_and_code(response) == (401, "UNAUTHORIZED"), endpoint.name


async def test_undeclared_methods_return_405(access_fixtures: AccessFixtures) -> None:
    declared_methods: dict[str, set[str]] = {}
    for endpoint in ENDPOINTS:
        declared_methods.setdefault(endpoint.path, set()).add(endpoint.method)
    admin = await access_fixtures.harness.create_admin()
    for endpoint in PROTECTED_ENDPOINTS:
        methods = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "HEAD"}
        others = methods - declared_methods[endpoint.path]
        for method in others - ({"HEAD"} if "GET" in declared_methods[endpoint.path] else set()):
            response = await access_fixtures.client.request(
                method, build_missing_path(endpoint), auth=admin
            )
            assert response.status_code == 405, (method, endpoint.path)


async def test_public_endpoint_ignores_credentials(access_fixtures: AccessFixtures) -> None:
    """An invalid credential does not cause a rejection either."""
    await run_cases(
        (endpoint.name, check_public(access_fixtures, endpoint)) for endpoint in PUBLIC_ENDPOINTS
    )


async def check_public(access_fixtures: AccessFixtures, endpoint: Endpoint) -> None:
    request = endpoint.method, build_missing_path(endpoint)
    expected = get_status_and_code(await access_fixtures.client.request(*request, content=b"{}"))
    assert expected[0] in (200, 400, 401, 404)
    for caller in access_fixtures.list_callers(endpoint.access):
        response = await access_fixtures.client.request(*request, content=b"{}", auth=caller.auth)
        assert get_status_and_code(response) == expected, caller.name
    for headers in ({"Authorization": "Bearer x"}, {"X-Signature": "x"}, {"X-Service-Name": "x"}):
        response = await access_fixtures.client.request(*request, content=b"{}", headers=headers)
        assert get_status_and_code(response) == expected


async def test_field_without_permission_is_rejected_and_audited(
    access_fixtures: AccessFixtures,
) -> None:
    subscriber = await access_fixtures.harness.create_subscriber()
    path = f"/api/v1/subscribers/{subscriber['id']}"
    for caller in access_fixtures.callers:
        if not caller.is_allowed(_find_endpoint("PUT /api/v1/subscribers/{id}").access):
            continue
        before = await access_fixtures.count_denials()
        for field, value in (("kyc_level", 1), ("kyc_status", "NONE"), ("restricted", False)):
            response = await access_fixtures.client.put(path, json={field: value}, auth=caller.auth)
            if _is_compliance(caller):
                assert response.status_code == 200, (caller.name, response.text)
                continue
            assert get_status_and_code(response) == (403, "FORBIDDEN"), caller.name
            required = ["compliance_user", "system_admin"]
            assert response.json()["details"] == {"required": required}
            assert field in response.json()["message"]
        count = await access_fixtures.count_denials()
        expected = before + (0 if _is_compliance(caller) else 3)
        assert count == expected


def _find_endpoint(name: str) -> Endpoint:
    (endpoint,) = (endpoint for endpoint in ENDPOINTS if endpoint.name == name)
    return endpoint


def _is_compliance(caller: Caller) -> bool:
    return caller.role in ("A", "C") and caller.kind == "admin"
