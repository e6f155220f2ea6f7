"""SQL queries for KYC documents."""

from datetime import datetime

import asyncpg

from tapgate.auth.disclosure import Reader
from tapgate.business.customers.subscribers.kyc_documents.model import Document, require_document
from tapgate.core.images import EncodedImage
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_row
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.subscribers import KycDocumentType


async def add(
    tx: Transaction, document: Document, subscriber_id: int, sealed: EncodedImage
) -> None:
    await insert_row(
        tx,
        "kyc_documents",
        document,
        ("id", "document_type", "created_at"),
        subscriber_id=subscriber_id,
        media_type=sealed.media_type,
        image=sealed.content,
    )


async def count_undecided(reader: Reader, subscriber_id: int, document_type: str) -> int:
    count: int = await reader.fetchval(
        """SELECT count(*) FROM kyc_documents
           WHERE subscriber_id = $1 AND document_type = $2 AND decided_at IS NULL""",
        subscriber_id,
        document_type,
    )
    return count


async def get_nth_newest_upload_time(
    reader: Reader, subscriber_id: int, number: int
) -> datetime | None:
    """Return the nth newest document's upload time, or None if there are fewer."""
    moment: datetime | None = await reader.fetchval(
        """SELECT created_at FROM kyc_documents WHERE subscriber_id = $1
           ORDER BY id DESC OFFSET $2 LIMIT 1""",
        subscriber_id,
        number - 1,
    )
    return moment


async def mark_decided(
    tx: asyncpg.Connection, subscriber_id: int, now: datetime, *, rejected: bool
) -> None:
    """Mark all documents as decided, which also ends the assignment to a reviewer."""
    await tx.execute(
        """UPDATE kyc_documents SET decided_at = $2, rejected = $3
           WHERE subscriber_id = $1 AND decided_at IS NULL""",
        subscriber_id,
        now,
        rejected,
    )
    await tx.execute("DELETE FROM kyc_assignments WHERE subscriber_id = $1", subscriber_id)


async def list_missing_types(
    tx: asyncpg.Connection, subscriber_id: int, kyc_level: int
) -> list[str]:
    """Return the document types that a KYC level requires and the subscriber lacks.

    Rejected documents do not count. Requirements that name no document type are not checked.
    """
    rows = await tx.fetch(
        """SELECT required.name
           FROM account_rules, unnest(requirements) WITH ORDINALITY AS required (name, position)
           WHERE kyc_level = $2 AND required.name = ANY ($3) AND NOT EXISTS (
               SELECT FROM kyc_documents
               WHERE subscriber_id = $1 AND document_type = required.name AND NOT rejected)
           ORDER BY required.position""",
        subscriber_id,
        kyc_level,
        list(KycDocumentType),
    )
    return list(dict.fromkeys(row["name"] for row in rows))


async def list_page(database: Database, subscriber_id: int, query: PageQuery) -> list[Document]:
    conditions = PageConditions(query)
    conditions.where("subscriber_id = {}", subscriber_id)
    rows = await conditions.fetch(
        database, f"SELECT {', '.join(Document.__struct_fields__)} FROM kyc_documents"
    )
    return [Document(*row) for row in rows]


async def get_sealed_image(
    tx: asyncpg.Connection, subscriber_id: int, document_id: int
) -> EncodedImage:
    row = await tx.fetchrow(
        "SELECT media_type, image FROM kyc_documents WHERE id = $1 AND subscriber_id = $2",
        document_id,
        subscriber_id,
    )
    return EncodedImage(*require_document(row))
