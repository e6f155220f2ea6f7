"""KYC documents and the format in which they are uploaded."""

from datetime import datetime
from typing import TypeVar

import msgspec

from tapgate.core.records import build_record
from tapgate_client import ids
from tapgate_client.errors import Code, require_found
from tapgate_client.schemas.subscribers import DocumentRecord, KycDocumentStatus, KycDocumentType

T = TypeVar("T")


class Document(msgspec.Struct, frozen=True):
    """KYC document without its image."""

    id: int
    document_type: KycDocumentType
    created_at: datetime
    decided_at: datetime | None = None
    #: Whether the decision was a rejection.
    rejected: bool = False

    @property
    def status(self) -> KycDocumentStatus:
        if self.decided_at is None:
            return KycDocumentStatus.PENDING
        return KycDocumentStatus.REJECTED if self.rejected else KycDocumentStatus.REVIEWED


def to_record(document: Document) -> DocumentRecord:
    return build_record(
        DocumentRecord,
        document,
        document_id=encode_document_id(document.id),
        status=document.status,
    )


def encode_document_id(document_id: int) -> str:
    return ids.encode(ids.DOCUMENT, document_id)


def decode_document_id(public_id: str) -> int:
    return require_document(ids.decode(ids.DOCUMENT, public_id))


def require_document(value: T | None) -> T:
    return require_found(value, Code.NOT_FOUND, "No such document.")


def build_seal_context(document_id: int) -> bytes:
    """Return the encryption context that binds a sealed image to its document."""
    return b"kyc document %d" % document_id
