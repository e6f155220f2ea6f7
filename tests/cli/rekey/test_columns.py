"""Every column that may contain sealed values or keyed hashes is known to `tapgate rekey`."""

from tapgate.cli.rekey.columns import HASH_COLUMNS, MAC_COLUMNS, SEALED_COLUMNS
from tapgate.runtime.store.database import Database

#: Columns whose content does not depend on the secret key.
UNKEYED_COLUMNS = {
    "archived_months.sums_digest": "SHA-256 of sums",
    "admin_passkeys.credential_id": "ID of a passkey",
    "admin_passkeys.public_key": "public key of a passkey",
    "approvals.fingerprint": "digest of a request",
    "audit_checkpoint.hash": "hash chain of the audit log",
    "audit_entries.hash": "hash chain of the audit log",
    "audit_entries.previous_hash": "hash chain of the audit log",
    "audit_head.hash": "hash chain of the audit log",
    "audit_repeats.kind": "digest of repeated rejections",
    "branding.logo": "image",
    "bank_line_requests.fingerprint": "digest of a request",
    "bank_statements.content_hash": "digest of a file",
    "bank_statements.fingerprint": "digest of a request",
    "batches.fingerprint": "digest of a request",
    "batches.lines_digest": "digest of lines",
    "batches.run_fingerprint": "digest of a request",
    "disputes.fingerprint": "digest of a request",
    "cash_out_requests.fingerprint": "digest of a request",
    "float_requests.fingerprint": "digest of a request",
    "payout_runs.fingerprint": "digest of a request",
    "recalls.fingerprint": "digest of a request",
    "closed_day_chunks.leaves": "SHA-256 of transactions",
    "closed_day_chunks.node": "hash tree of a day",
    "closed_days.merkle_root": "hash tree of a day",
    "closed_days.previous_root": "hash tree of a day",
    "closed_days.signature": "signature with a ledger key",
    "guarded_calls.fingerprint": "digest of a request",
    "ledger_keys.public_key": "public key that signs closed days",
    "messenger.forms.token_hash": "SHA-256 of a random token",
    "transactions.answer": "response for replays",
    "transactions.fingerprint": "digest of a request",
    "used_passkey_challenges.nonce": "random bytes",
    "verified_ranges.digest": "SHA-256 of entries",
}


async def list_binary_columns(database: Database) -> set[str]:
    rows = await database.fetch(
        """SELECT table_schema, table_name, column_name FROM information_schema.columns
           WHERE data_type = 'bytea' AND table_schema NOT IN ('pg_catalog', 'information_schema')
             AND table_name NOT IN (SELECT inhrelid::regclass::text FROM pg_inherits)"""
    )
    return {
        f"{table}.{column}" if schema == "public" else f"{schema}.{table}.{column}"
        for schema, table, column in rows
    }


async def test_every_binary_column_is_registered(database: Database) -> None:
    """A failure names a new column: register it, or state why it does not depend on the key."""
    keyed = [*(column.name for column in SEALED_COLUMNS), *HASH_COLUMNS, *MAC_COLUMNS]
    columns = await list_binary_columns(database)
    assert len({*keyed, *UNKEYED_COLUMNS}) == len(keyed) + len(UNKEYED_COLUMNS)
    assert columns - {*keyed, *UNKEYED_COLUMNS} == set()
    assert set(keyed) <= columns


async def test_keys_of_sealed_columns_are_primary_keys(database: Database) -> None:
    for column in SEALED_COLUMNS:
        primary_key = await database.fetch(
            """SELECT attname FROM pg_index
               JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
               WHERE indrelid = $1::text::regclass AND indisprimary ORDER BY attnum""",
            column.table,
        )
        assert tuple(row["attname"] for row in primary_key) == column.key, column.name
