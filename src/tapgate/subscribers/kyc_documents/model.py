"""KYC documents and the format in which they are uploaded."""

from datetime import datetime

import msgspec

from tapgate import clock, ids
from tapgate.errors import ApiError, Code
from tapgate.schemas.subscribers import DocumentRecord


class Document(msgspec.Struct, frozen=True):
    """KYC document without its image."""

    id: int
    document_type: str
    created_at: datetime


def to_record(document: Document) -> DocumentRecord:
    return DocumentRecord(
        document_id=encode_document_id(document.id),
        document_type=document.document_type,
        created_at=clock.format_rfc3339(document.created_at),
    )


def encode_document_id(document_id: int) -> str:
    return ids.encode(ids.DOCUMENT, document_id)


def decode_document_id(public_id: str) -> int:
    document_id = ids.decode(ids.DOCUMENT, public_id)
    if document_id is None:
        raise not_found()
    return document_id


def not_found() -> ApiError:
    return ApiError(Code.NOT_FOUND, "No such document.")


def build_seal_context(document_id: int) -> bytes:
    """Return the encryption context that binds a sealed image to its document."""
    return b"kyc document %d" % document_id
