"""Inclusion proofs: a transaction's leaf and its path to the signed root of its day."""

from typing import Any

from tapgate.business.finance.day_close import model, queries
from tapgate.business.finance.day_close.hash_tree import build_path
from tapgate.business.finance.day_close.queries import PostedTransaction
from tapgate.ledger.archive.archived import load_archive
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.day_close import InclusionProof, PathStep


async def load_posted(reader: Any, transaction_id: int) -> PostedTransaction:
    """Return a transaction with its entries, from the ledger or the archive."""
    row = await reader.fetchrow(
        """SELECT from_account, to_account, completed_at, currency FROM transactions
           WHERE id = $1""",
        transaction_id,
    )
    if row is not None:
        entries = await queries.list_entries(reader, [transaction_id])
        return PostedTransaction(transaction_id, tuple(row[:2]), row[2], row[3], entries)
    archive = await load_archive(reader)
    archived = await queries.find_archived(reader, archive, transaction_id)
    if archived is None:
        message = None
        if transaction_id < archive.end_id:
            message = "The transactions of that month are archived."
        raise ApiError(Code.TRANSACTION_NOT_FOUND, message)
    return archived


async def build_proof(
    reader: Any, transaction: PostedTransaction, *, with_totals: bool
) -> InclusionProof:
    """Return the proof. A transaction without entries is never part of a day."""
    moment = transaction.completed_at
    day = None if moment is None else await queries.find_day_at(reader, moment)
    chunk = None if day is None else await queries.find_chunk(reader, day.day, transaction.id)
    if day is None or chunk is None or transaction.id not in chunk.transaction_ids:
        raise ApiError(Code.DAY_NOT_CLOSED)
    leaves = queries.split_leaves(chunk.leaves)
    nodes = await queries.list_nodes(reader, day.day)
    path = [
        *build_path(leaves, list(chunk.transaction_ids).index(transaction.id)),
        *build_path(nodes, chunk.number),
    ]
    return InclusionProof(
        transaction_id=ids.encode(ids.TRANSACTION, transaction.id),
        leaf=model.build_leaf(transaction.id, transaction.entries, transaction.currency),
        path=[PathStep(side=step.side, hash=step.hash.hex()) for step in path],
        day=model.to_record(day, with_totals=with_totals),
    )
