"""Search endpoint. Each kind of record is found by the callers of that record's own endpoint."""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from tapgate.auth.principals import Principal
from tapgate.business.agents import routes as agents
from tapgate.business.compliance.alerts import routes as alerts
from tapgate.business.customers.cards import routes as cards
from tapgate.business.customers.subscribers import routes as subscribers
from tapgate.business.merchants.processors import routes as processors
from tapgate.business.partners import routes as partners
from tapgate.business.payments.transactions import routes as transactions
from tapgate.business.payments.wallets import routes as wallets
from tapgate.business.search.model import Search
from tapgate.business.search.owners import (
    Finder,
    find_accounts,
    find_admins,
    find_agents,
    find_keys,
    find_partners,
    find_processors,
)
from tapgate.business.search.people import find_cards, find_subscribers
from tapgate.business.search.requests import find_alert, find_api_requests, find_support_request
from tapgate.business.search.transactions import find_transactions
from tapgate.business.staff import routes as admin
from tapgate.business.staff.api_keys import routes as api_keys
from tapgate.business.staff.request_logs import routes as request_logs
from tapgate.business.support import routes as support
from tapgate.http.api.access import Access, map_access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate_client import ids
from tapgate_client.schemas.search import SearchQuery, SearchResults, SearchType

endpoints = Endpoints("Search", objects=ObjectAccess.UNRESTRICTED, owners=NEVER)

#: The endpoint whose callers find a kind of record.
_ENDPOINTS: Final[Mapping[SearchType, str]] = {
    SearchType.SUBSCRIBER: "GET /api/v1/subscribers",
    SearchType.CARD: "GET /api/v1/cards",
    SearchType.TRANSACTION: "GET /api/v1/transactions/{id}",
    SearchType.PROCESSOR: "GET /api/v1/processors",
    SearchType.AGENT: "GET /api/v1/agents",
    SearchType.PARTNER: "GET /api/v1/admin/partners",
    SearchType.ALERT: "GET /api/v1/compliance/alerts/{id}",
    SearchType.SUPPORT_REQUEST: "GET /api/v1/support/requests/{id}",
    SearchType.ADMIN: "GET /api/v1/admin/users",
    SearchType.ACCOUNT: "POST /api/v1/wallet/transfer",
    SearchType.KEY: "GET /api/v1/admin/api-keys",
    SearchType.API_REQUEST: "GET /api/v1/admin/request-logs",
}
_ACCESS: Final = map_access(
    subscribers.endpoints,
    cards.endpoints,
    transactions.endpoints,
    processors.endpoints,
    agents.endpoints,
    partners.endpoints,
    alerts.endpoints,
    support.endpoints,
    admin.endpoints,
    api_keys.endpoints,
    request_logs.endpoints,
    wallets.endpoints,
)
_FINDERS: Final[Mapping[SearchType, Finder]] = {
    SearchType.SUBSCRIBER: find_subscribers,
    SearchType.CARD: find_cards,
    SearchType.TRANSACTION: find_transactions,
    SearchType.PROCESSOR: find_processors,
    SearchType.AGENT: find_agents,
    SearchType.PARTNER: find_partners,
    SearchType.ALERT: find_alert,
    SearchType.SUPPORT_REQUEST: find_support_request,
    SearchType.ADMIN: find_admins,
    SearchType.API_REQUEST: find_api_requests,
}
_HOLDER_TYPES: Final = (
    SearchType.SUBSCRIBER,
    SearchType.AGENT,
    SearchType.PROCESSOR,
    SearchType.PARTNER,
)
#: An ID is looked up only among the records that it can belong to.
_TYPES_BY_PREFIX: Final[Mapping[str, SearchType]] = {
    ids.SUBSCRIBER: SearchType.SUBSCRIBER,
    ids.TRANSACTION: SearchType.TRANSACTION,
    ids.PROCESSOR: SearchType.PROCESSOR,
    ids.AGENT: SearchType.AGENT,
    ids.PARTNER: SearchType.PARTNER,
    ids.ALERT: SearchType.ALERT,
    ids.SUPPORT_REQUEST: SearchType.SUPPORT_REQUEST,
    ids.ADMIN: SearchType.ADMIN,
    ids.ACCOUNT: SearchType.ACCOUNT,
    ids.KEY: SearchType.KEY,
    ids.REQUEST_LOG: SearchType.API_REQUEST,
}


@endpoints.get("/api/v1/search", access=Access(roles="ACSF"), heavy=True)
async def search_records(request: RequestContext, query: SearchQuery) -> SearchResults:
    """Search records of all kinds.

    `q` is one of these:

    - an ID, or a card's serial or UID in any notation
    - a phone number, complete or its beginning, international or local to `TAPGATE_COUNTRY`
    - a transaction's approval code, idempotency key (`request_id`), or a processor's or partner's
      reference
    - the `X-Request-ID` or the idempotency key of a logged API request
    - an amount with a decimal point, such as `16.50`, among the newest 20,000 transactions
    - the beginning of a subscriber's first or last name, or parts of the name of a subscriber,
      processor, agent, partner or admin

    Results that match exactly (an ID, phone number, code or reference) are first. A record kind is
    found only by callers that may use its endpoint, and restricted subscribers are hidden as in the
    lists; by its ID, a restricted subscriber is found without personal data. Accounts and keys are
    found if `types` names them or `q` is their ID: API keys by name, signing keys by the name of
    their processor or partner. There are at most `limit` results.
    """
    services, text = request.services, query.q.strip()
    parameters = Search(
        database=services.database,
        caller=request.principal,
        now=services.clock(),
        zone=services.settings.timezone,
        country=services.settings.country,
        logged_since=services.clock() - timedelta(days=services.settings.request_log_days),
        currency=services.settings.currency,
        text=text,
        limit=query.limit,
    )
    matches = [
        match
        for finder in _list_finders(request.principal, text, query.types)
        for match in await finder(parameters)
    ]
    matches.sort(key=lambda match: not match.is_exact)
    return SearchResults(data=[match.result for match in matches[: query.limit]])


def _list_finders(caller: Principal, text: str, types: str | None) -> list[Finder]:
    """Return the finders for the requested record kinds that the caller may see."""
    prefix_type = _TYPES_BY_PREFIX.get(ids.get_prefix(text)) if ids.is_id(text) else None
    if types is not None:
        requested = [SearchType(name) for name in types.split(",")]
    elif prefix_type is not None:
        requested = [prefix_type]
    else:
        requested = list(_FINDERS)
    visible = {kind for kind, name in _ENDPOINTS.items() if not _ACCESS[name].get_rejection(caller)}
    finders = [finder for kind, finder in _FINDERS.items() if kind in requested and kind in visible]
    if SearchType.ACCOUNT in requested and SearchType.ACCOUNT in visible:
        holders = [_FINDERS[kind] for kind in _HOLDER_TYPES if kind in visible]
        finders.append(partial(find_accounts, find_holders=holders))
    if SearchType.KEY in requested and SearchType.KEY in visible:
        finders.append(find_keys)
    return finders
