"""Search for transactions by what receipts and logs show."""

from typing import Final

from tapgate.business.payments.transactions import queries
from tapgate.business.payments.transactions.reader import TransactionReader
from tapgate.business.search.model import Match, Search, build_match
from tapgate.ledger.idempotency.idempotency_keys import (
    find_by_partner_references,
    find_by_request_id,
)
from tapgate_client import ids
from tapgate_client.schemas.search import SearchType
from tapgate_client.schemas.transactions import PartyRecord, TransactionRecord

#: There is no index by amount, so the search reads a bounded number of transactions.
_FIND_BY_AMOUNT: Final = """
    SELECT id FROM (SELECT id, amount FROM transactions ORDER BY id DESC LIMIT 20000) AS newest
    WHERE amount = $1 ORDER BY id DESC LIMIT $2"""


async def find_transactions(search: Search) -> list[Match]:
    """Find transactions by ID, approval code, request ID, reference or amount.

    All of them are exact, except amounts, which are searched only among new transactions. Archived
    transactions are not found.
    """
    transaction_id = search.decode_id(ids.TRANSACTION)
    if transaction_id is not None:
        found = [transaction_id]
    else:
        partners = await search.database.fetch("SELECT id FROM partners")
        # A request ID is looked up for each of its possible owners, and a name is not one.
        has_digit = any(character.isdigit() for character in search.text)
        references = [(partner["id"], search.text) for partner in partners]
        found = [
            *await queries.find_ids_by_receipt(search.database, search.text, search.now),
            *(await find_by_request_id(search.database, search.text) if has_digit else ()),
            *await find_by_partner_references(search.database, references),
        ]
    is_exact = bool(found)
    if not found and search.amount is not None:
        rows = await search.database.fetch(_FIND_BY_AMOUNT, search.amount, search.limit)
        found = [row["id"] for row in rows]
    if not found:
        return []
    reader = TransactionReader(search.database, search.caller, search.now, search.zone)
    newest = sorted(set(found), reverse=True)[: search.limit]
    records = await reader.list_records(newest)
    return [_build_match(record, is_exact=is_exact) for record in records]


def _build_match(record: TransactionRecord, *, is_exact: bool) -> Match:
    return build_match(
        SearchType.TRANSACTION,
        record.id,
        f"{record.amount} {record.currency}",
        record.type.replace("_", " "),
        f"{_describe_party(record.from_)} to {_describe_party(record.to)}",
        record.approval_code,
        f"{record.created_at[:16].replace('T', ' ')} UTC",
        status=record.status,
        is_exact=is_exact,
    )


def _describe_party(party: PartyRecord | None) -> str:
    return "unknown" if party is None else party.name or party.type
