"""OpenAPI document text: the introduction and the tag descriptions."""

from collections.abc import Mapping
from typing import Final

INTRODUCTION: Final = """\
JSON over HTTP. Request and response bodies are JSON objects unless stated otherwise. \
Unknown request fields are ignored, and null means the same as an absent field.

## Authentication

Each operation names the credentials it accepts.

| Caller | Credential |
| --- | --- |
| Third party | `Authorization: Bearer svc_live_...`, an API key with scopes (`svc_test_...` \
outside production) |
| Admin | `Authorization: Bearer ...`, the token from `POST /api/v1/admin/login` |
| Processor or terminal | a signed request: `X-API-Key-ID`, `X-Timestamp`, `X-Signature` |
| Partner | a signed request with `X-Partner-ID` in addition |
| Internal service | `X-Service-Name`, `X-Service-Timestamp`, `X-Service-Signature` |

**Signing.** `X-Signature` is the lowercase hex HMAC-SHA-256, keyed with the secret, of the \
method, the path as called without the query, the value of `X-Timestamp` and the raw body, joined \
by newlines. `X-Timestamp` is RFC 3339 in UTC. `X-Service-Signature` is the hex HMAC-SHA-256 of \
`METHOD|PATH|QUERY|TIMESTAMP`, and its timestamp is in Unix seconds. A timestamp may differ from \
the server's clock by at most 5 minutes.

A missing or invalid credential returns 401 `UNAUTHORIZED`. A valid credential without the \
required scope or role returns 403 `FORBIDDEN`, with `details.required`.

## Money

Send amounts as decimal strings in major units: `"500.00"`. JSON numbers are rejected. Receipts, \
the responses of operations that move money, contain formatted amounts (`"1,234.50 SLE"`). Records \
and lists contain decimal strings (`"1234.50"`) and a `currency` field.

## Idempotency

Operations that move money accept an idempotency key of 1 to 64 characters, as `request_id` in \
the body or in the `Idempotency-Key` header. If both are sent, they must be equal. A request with \
the key, path and values of an earlier one returns the original response with \
`Idempotent-Replayed: true`, and no money moves. The same key with another path or other values \
returns 409 `DUPLICATE_REQUEST`. After a timeout, send the same request again.

## Pagination

Paginated lists are sorted newest first. `limit` is the page size (1 to 100, default 50). While \
`has_more` is true, send `next_cursor` as `cursor` to get the next page.

## CSV files

CSV files are in UTF-8 and start with a byte-order mark, so that spreadsheets show accents. A \
program must skip the mark: in Python, decode with `utf-8-sig`. A cell that a spreadsheet could \
evaluate as a formula starts with `'`.

## Errors

All errors have the same format: `{"error": ..., "code": ..., "message": ..., "details": ...}`. \
`code` is stable: branch on it. `error` and `message` are for people. In a body, malformed JSON, a \
missing field or a wrong type returns 400, and an invalid value 422 unless the operation states \
400. An invalid query parameter returns 422. `details.fields` has a message per field. Errors \
never repeat submitted values.

## Rate limits

Responses have `X-RateLimit-Limit` (requests per second), `X-RateLimit-Remaining` and \
`X-RateLimit-Reset` (Unix time in seconds), unless the request is rejected before its rate limit \
is checked, as with 404, 405 and 413. Requests over the limit get 429 `RATE_LIMITED` with \
`Retry-After` in seconds. An overloaded gateway responds with 503 and `Retry-After`.

## Request IDs

`X-Request-ID` (1 to 128 letters, digits, `.`, `_` or `-`) is returned in the response and \
written to the logs and the audit log. The gateway generates one if it is absent or invalid. It is \
for tracing only and is not the idempotency key.
"""

TAG_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "Subscribers": "Subscriber registration, KYC, PINs and status.",
    "Cards": "Upload cards, link them to subscribers, block and unblock them.",
    "Wallet": "Transfers, fee quotes, balances and account statements.",
    "POS": "Card payments and refunds at terminals, signed by a processor or terminal.",
    "Cash-out requests": "Cash-outs that customers confirm in the chat.",
    "Float requests": "Agents that ask their super-agent or the platform for float.",
    "Disputes": "Card payments that cardholders contest, with merchant responses and decisions.",
    "In-app payments": "Card payments and refunds in apps, without a PIN.",
    "Books": "Several books: in which one a customer lives, and transfers between them.",
    "Processors": "Processors, their terminals, signing keys and settlement transfers.",
    "Partners": "Funding partners, their signing keys, and top-ups from their accounts.",
    "Owners": "The processor, partner or agent that a user or an API key belongs to.",
    "Agents": "Agents, their float, cash-in, cash-out and commissions.",
    "Transactions": "Search, export and inspect transactions and their ledger entries.",
    "Fee rules": "Fees per transaction type and amount.",
    "Commission rules": "Agent commissions per transaction type and tier.",
    "Compliance": "Compliance checks, alerts and rules.",
    "Support": "Customer requests to talk to a person, and replies from support staff.",
    "Account rules": "Balance and transaction limits per KYC level.",
    "Approvals": "Rules that require other admins to approve an admin's requests, and approvals.",
    "Search": "Search records of all kinds by ID, name, phone number, code or reference.",
    "Account": "The authenticated admin's account: second factors, sessions, password.",
    "Admin": "Admin sessions, admin users and API keys.",
    "Audit": "The audit log and its hash chain verification.",
    "Webhooks": "Webhook endpoints, their secrets and deliveries.",
    "Messages": "Delivery status reports for messages to subscribers.",
    "Recalls": "Transfers to the wrong person that their senders ask back.",
    "Branding": "The operator's name, logo, color and contact, as customers and staff see them.",
    "Work queues": "What waits for staff: counts and items of each role's queues.",
    "Overview": "Transaction volumes, platform status and ledger verification.",
    "General ledger": "GL codes, balances by account kind, trial balance and journal.",
    "Day close": "Closed days, the keys that sign them, and inclusion proofs.",
    "Bank accounts": "Bank accounts of merchants, partners, agents and the platform.",
    "Reconciliation": "Bank statements, and what their lines are matched with.",
    "Batches": "Batches: credits to many wallets, such as salaries and grants.",
    "Finance reports": "Income statement, safeguarding and reconciliation reports.",
    "Payouts": "Payouts to bank accounts, payout runs with bank files, and payout schedules.",
    "System": "Health, metrics and the OpenAPI document.",
}

#: Query and path parameters by name, or by struct and name where the meaning differs. Other
#: parameters are described by their field's rule or, if they are IDs, by their kind.
PARAMETER_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "actor_id": "Only entries by this actor",
    "address": "Only agents whose address contains this text",
    "admin_id": "Only keys that this admin created or was the last to rotate",
    "agent_type": "Only agents of this type",
    "api_key_id": "API key ID",
    "as_of": "Include entries up to this time or date. Default: now",
    "assignee": "Only items that are assigned to this admin, or `none` for unassigned items",
    "bank_account_id": "Only statements of this bank account",
    "BankStatementQuery.bank_account_id": "The platform's bank account, for a CSV file",
    "BankStatementQuery.format": "Format of the file. Default: detected",
    "statement_id": "Only lines of this statement",
    "card_serial": "Only records for the card with this serial",
    "date": "Day of the platform's calendar",
    "day": "Entry day, in the platform's time zone",
    "SafeguardingQuery.day": "Day whose end the report shows. Default: today",
    "endpoint": "Only requests to this path template",
    "error_code": "Only requests that failed with this error code",
    "event": "Only entries for this event",
    "failing": "Only endpoints that are disabled or whose last attempt failed, or only the others",
    "failure_code": "Only failed transactions with this error code",
    "file": "File name",
    "flow": "Only transactions in this money flow",
    "format": "Response format",
    "fresh": "Count now, instead of returning counts that may be a few seconds old",
    "from": "Start of the period, inclusive",
    "full": "Verify from the first entry, instead of from the last checkpoint",
    "held": "Only alerts that hold a transaction, or only the others",
    "kind": "Only items of this kind",
    "kyc_level": "KYC level",
    "kyc_status": "Only subscribers with this KYC status",
    "limit": "Maximum number of items",
    "low_float": "Only active agents with a low float, or only the others",
    "terminals": "Also the sums by terminal and day. The period then has at most 31 days",
    "maker": "Only requests from this admin",
    "method": "Only requests with this HTTP method",
    "operation": "Only requests for this operation",
    "order": "Sort order",
    "agent_id": "Only the float requests of this agent",
    "waits_for": "Only open requests that wait for the super-agent, or for finance",
    "overdue": "Only open disputes that the merchant has not answered in time, or only the others",
    "owner_id": "Only records of this processor, partner or agent",
    "owner_type": "Only records of this owner type",
    "parent_agent_id": "Only this agent's sub-agents",
    "period": "Report period",
    "phone_number": "Only records with this phone number",
    "processor_id": "Only records for this processor",
    "q": "Text to search for",
    "request_id": "The request's idempotency key",
    "RequestLogQuery.api_key_id": "Only requests with this API key",
    "RequestLogQuery.idempotency_key": "Only requests with this idempotency key",
    "RequestLogQuery.request_id": "Only the request with this request ID",
    "RequestLogQuery.transaction_id": "Only requests that this transaction resulted from",
    "WorkItemsQuery.fresh": "Read now, instead of returning items that may be a few seconds old",
    "RequestLogQuery.status": "Only requests with this HTTP status",
    "resource_id": "Only entries about the record with this ID",
    "resource_type": "Only entries about records of this type",
    "result": "Only entries with this result",
    "search": "ID or words to search for",
    "serial": "Card serial",
    "severity": "Only alerts with this severity",
    "status": "Only records with this status",
    "step": "Onboarding step name",
    "run_id": "Only payouts of this run",
    "unmatched": "Only statements with unmatched lines, or only the others",
    "SubscriberFilters.kyc_level": "Only subscribers with this KYC level",
    "subscriber_id": "Only records for this subscriber",
    "template": "Only messages from this template",
    "terminal_id": "Terminal ID",
    "to": "End of the period, inclusive",
    "token": "Statement link token",
    "transaction_id": "Only records about this transaction",
    "type": "Only records of this type",
    "user_id": "Subscriber, agent, processor or partner ID",
}
