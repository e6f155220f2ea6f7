"""KYC documents and the format in which they are uploaded."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from tapgate import clock, ids
from tapgate.errors import ApiError, Code
from tapgate.images import DATA_URI_MEDIA_TYPES
from tapgate.schemas.fields import Choice, InvalidValueError, Rule

DocumentType = Annotated[
    str, Choice("id_front", "id_back", "selfie", "proof_of_address", name="KycDocumentType")
]


class ImageRule(Rule):
    """Data URI of a JPEG or PNG image.

    Only the media type is checked here. The image is decoded later, in a thread pool, because
    decoding would block the event loop.
    """

    example = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="  # noqa: E501

    def check(self, value: str) -> str:
        header, comma, _ = value[:64].partition(",")
        if not comma or header.lower() not in DATA_URI_MEDIA_TYPES:
            raise InvalidValueError(
                "must be a data URI with a JPEG or PNG: data:image/jpeg;base64,..."
            )
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": "^data:image/(jpeg|png);base64,"}


class NewDocument(msgspec.Struct, kw_only=True):
    document_type: DocumentType
    image: Annotated[str, ImageRule()]


class Document(msgspec.Struct, frozen=True):
    """KYC document without its image."""

    id: int
    document_type: str
    created_at: datetime


class DocumentRecord(msgspec.Struct, frozen=True, kw_only=True):
    document_id: str
    document_type: DocumentType
    created_at: str


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
