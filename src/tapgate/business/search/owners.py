"""Search for agents, processors, partners and admins, and for accounts and keys by holder."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from tapgate.auth.disclosure import find_hidden_accounts
from tapgate.business.agents import queries as agent_queries
from tapgate.business.agents.model import PUBLIC_STATUSES
from tapgate.business.merchants.processors import queries as processor_queries
from tapgate.business.partners import queries as partner_queries
from tapgate.business.search.model import Match, Search, build_match
from tapgate.ledger.chart import PLATFORM_ACCOUNT_KINDS
from tapgate_client import ids
from tapgate_client.schemas.agents import AgentFilters
from tapgate_client.schemas.partners import PartnerFilters
from tapgate_client.schemas.processors import ProcessorFilters
from tapgate_client.schemas.search import RESTRICTED_SUBSCRIBER, SearchType

Finder: TypeAlias = Callable[[Search], Awaitable[list[Match]]]

_ID_PREFIXES: Final = {
    SearchType.SUBSCRIBER: ids.SUBSCRIBER,
    SearchType.AGENT: ids.AGENT,
    SearchType.PROCESSOR: ids.PROCESSOR,
    SearchType.PARTNER: ids.PARTNER,
}


async def find_agents(search: Search) -> list[Match]:
    """Find agents by ID, phone number, or parts of the name, business name or phone number."""
    text = search.phone_number or search.words
    if text is None:
        return []
    filters = AgentFilters(search=text, limit=search.limit)
    return [
        build_match(
            SearchType.AGENT,
            ids.encode(ids.AGENT, agent.id),
            agent.business_name or agent.name,
            agent.name if agent.business_name else None,
            agent.phone_number,
            status=PUBLIC_STATUSES[agent.status],
            is_exact=search.phone_number == agent.phone_number
            or search.decode_id(ids.AGENT) == agent.id,
        )
        for agent in (await agent_queries.list_page(search.database, filters))[: search.limit]
    ]


async def find_processors(search: Search) -> list[Match]:
    """Find processors by ID, phone number, or parts of the name, phone number or email."""
    text = search.phone_number or search.words
    if text is None:
        return []
    filters = ProcessorFilters(search=text, limit=search.limit)
    return [
        build_match(
            SearchType.PROCESSOR,
            ids.encode(ids.PROCESSOR, processor.id),
            processor.name,
            processor.phone_number,
            status=processor.status,
            is_exact=search.phone_number == processor.phone_number
            or search.decode_id(ids.PROCESSOR) == processor.id,
        )
        for processor in (await processor_queries.list_page(search.database, filters))[
            : search.limit
        ]
    ]


async def find_partners(search: Search) -> list[Match]:
    """Find partners by ID, or by parts of the name."""
    if search.words is None:
        return []
    filters = PartnerFilters(search=search.words, limit=search.limit)
    return [
        build_match(
            SearchType.PARTNER,
            ids.encode(ids.PARTNER, partner.id),
            partner.name,
            status=partner.status,
            is_exact=search.decode_id(ids.PARTNER) == partner.id,
        )
        for partner in (await partner_queries.list_page(search.database, filters))[: search.limit]
    ]


async def find_admins(search: Search) -> list[Match]:
    """Find admins by ID, or by the beginning of a name or the email. There are few of them."""
    admin_id = search.decode_id(ids.ADMIN)
    rows = await search.database.fetch(
        """SELECT id, name, email, role, status FROM admins
           WHERE id = $1
              OR ($1 IS NULL AND strpos(lower(' ' || name || ' ' || email), ' ' || $2) > 0)
           ORDER BY lower(name), id LIMIT $3""",
        admin_id,
        search.name_prefix,
        search.limit,
    )
    return [
        build_match(
            SearchType.ADMIN,
            ids.encode(ids.ADMIN, row["id"]),
            row["name"],
            row["email"],
            row["role"].replace("_", " "),
            status=row["status"],
            is_exact=row["id"] == admin_id or row["email"] == search.text.lower(),
        )
        for row in rows
    ]


async def find_accounts(search: Search, find_holders: Sequence[Finder]) -> list[Match]:
    """Find accounts by ID, by their holder, or the platform's accounts by their kind."""
    account_id = search.decode_id(ids.ACCOUNT)
    holders: list[Match] = []
    if account_id is None:
        for find in find_holders:
            holders += await find(search)
    exact_owners = {_decode_owner(holder): holder.is_exact for holder in holders}
    rows = await search.database.fetch(
        """SELECT id, kind, owner_id, holder_name, status FROM accounts
           WHERE id = $1 OR owner_id = ANY ($2::bigint[])
              OR (owner_id IS NULL AND kind = ANY ($3::text[]))""",
        account_id,
        list(exact_owners),
        [kind for kind in PLATFORM_ACCOUNT_KINDS if account_id is None and _matches(search, kind)],
    )
    hidden = await find_hidden_accounts(
        search.database, search.caller, search.now, [row["id"] for row in rows]
    )
    return [
        build_match(
            SearchType.ACCOUNT,
            ids.encode(ids.ACCOUNT, row["id"]),
            RESTRICTED_SUBSCRIBER if row["id"] in hidden else row["holder_name"],
            row["kind"].replace("_", " "),
            status=row["status"],
            is_exact=row["id"] == account_id or exact_owners.get(row["owner_id"], False),
        )
        for row in rows
    ][: search.limit]


async def find_keys(search: Search) -> list[Match]:
    """Find API keys by name, signing keys by their processor or partner, and both by ID."""
    key_id = search.decode_id(ids.KEY)
    owners = [] if key_id else [*await find_processors(search), *await find_partners(search)]
    rows = await search.database.fetch(
        """SELECT id, name, NULL AS terminal_name FROM api_keys
           WHERE id = $1 OR ($1 IS NULL AND deleted_at IS NULL
                             AND strpos(lower(' ' || name), ' ' || $2) > 0)
           UNION ALL
           SELECT key.id, account.holder_name, terminal.name FROM hmac_keys key
           JOIN accounts account ON account.owner_id IN (key.processor_id, key.partner_id)
           LEFT JOIN terminals terminal ON terminal.id = key.terminal_id
           WHERE key.id = $1 OR (key.deleted_at IS NULL AND (
               key.processor_id = ANY ($3::bigint[]) OR key.partner_id = ANY ($3::bigint[])))
           ORDER BY 2, 3 NULLS FIRST, 1 LIMIT $4""",
        key_id,
        search.name_prefix,
        [_decode_owner(owner) for owner in owners],
        search.limit,
    )
    return [
        build_match(
            SearchType.KEY,
            public_id := ids.encode(ids.KEY, row["id"]),
            " · ".join(filter(None, (row["name"], row["terminal_name"]))),
            public_id,
            status=None,
            is_exact=row["id"] == key_id,
        )
        for row in rows
    ]


def _decode_owner(holder: Match) -> int | None:
    return ids.decode(_ID_PREFIXES[SearchType(holder.result.type)], holder.result.id)


def _matches(search: Search, kind: str) -> bool:
    return search.name_prefix in f"platform {kind.replace('_', ' ')}"
