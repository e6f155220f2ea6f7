"""Search for transactions by what receipts and logs show."""

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


async def find_transactions(search: Search) -> list[Match]:
    """Find transactions by ID, approval code, request ID, or the merchant's or partner's reference.

    All of them are exact. Archived transactions are not found.
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
    if not found:
        return []
    reader = TransactionReader(search.database, search.caller, search.now, search.zone)
    newest = sorted(set(found), reverse=True)[: search.limit]
    return [_build_match(record) for record in await reader.list_records(newest)]


def _build_match(record: TransactionRecord) -> Match:
    return build_match(
        SearchType.TRANSACTION,
        record.id,
        f"{record.amount} {record.currency}",
        record.type.replace("_", " "),
        f"{_describe_party(record.from_)} to {_describe_party(record.to)}",
        record.approval_code,
        f"{record.created_at[:16].replace('T', ' ')} UTC",
        status=record.status,
        is_exact=True,
    )


def _describe_party(party: PartyRecord | None) -> str:
    return "unknown" if party is None else party.name or party.type
