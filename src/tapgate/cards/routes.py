"""Card endpoints."""

from tapgate.api.endpoint import MEBIBYTE, Access, Endpoints
from tapgate.api.request_context import RequestContext
from tapgate.auth.disclosure import find_hidden_accounts
from tapgate.cards import operations, queries
from tapgate.cards.model import Card, to_disclosed_record, to_record
from tapgate.cards.operations import get_record_context
from tapgate.cards.upload import upload
from tapgate.cards.upload_parser import UPLOAD_MEDIA_TYPES
from tapgate.errors import Code
from tapgate.schemas.cards import (
    CardBlock,
    CardFilters,
    CardLink,
    CardRecord,
    CardResponse,
    DisclosedCardResponse,
    NewChildCard,
    UploadCardsResponse,
)
from tapgate.schemas.common import OptionalReason
from tapgate.schemas.pagination import Page, paginate
from tapgate.subscribers.restriction import require_subscriber_access

endpoints = Endpoints("Cards")

_READ_ACCESS = Access(scope="cards:read", roles="ACSF", service=True)
_BLOCK_ACCESS = Access(scope="cards:write", roles="ACS", service=True)

_LINK_ERRORS = (
    Code.SUBSCRIBER_NOT_FOUND,
    Code.CARD_NOT_FOUND,
    Code.OTP_REQUIRED,
    Code.INVALID_PIN,
    Code.ACCOUNT_LOCKED,
    Code.CARD_ALREADY_LINKED,
    Code.CARD_NOT_ACTIVE,
    Code.SUBSCRIBER_BLOCKED,
    Code.NOT_CLOSABLE,
)


def _to_response(request: RequestContext, message: str, card: Card) -> CardResponse:
    return CardResponse(message=message, card=to_record(card, get_record_context(request)))


@endpoints.post(
    "/api/v1/cards/link",
    access=Access(scope="cards:write", roles="AS", service=True),
    errors=_LINK_ERRORS,
)
async def link_card(request: RequestContext, body: CardLink) -> CardResponse:
    """Link a card to a subscriber.

    The card uses the subscriber's PIN.
    """
    return _to_response(request, "Card linked", await operations.link(request, body))


@endpoints.post(
    "/api/v1/cards/child",
    access=Access(scope="cards:write", roles="AS"),
    status=201,
    errors=(*_LINK_ERRORS, Code.MAX_CHILD_CARDS),
)
async def create_child_card(request: RequestContext, body: NewChildCard) -> CardResponse:
    """Create a child card.

    The card spends from the parent's wallet, up to its own daily limit and with its own PIN.
    """
    return _to_response(
        request, "Child card created", await operations.link_to_child(request, body)
    )


@endpoints.get("/api/v1/cards", access=_READ_ACCESS, heavy="search")
async def list_cards(request: RequestContext, query: CardFilters) -> Page[CardRecord]:
    """List cards, newest first.

    `search` is a list of words. Each word must occur, ignoring case, in the serial or the NFC UID.
    At least one word must have 3 or more characters, not counting separators. Cards of restricted
    subscribers are omitted if the caller may not access the subscriber.
    """
    services, context = request.services, get_record_context(request)
    rows = await queries.list_page(services.database, query, request.principal, context.now)
    return paginate(
        rows, query.limit, key=lambda row: row.id, to_record=lambda row: to_record(row, context)
    )


@endpoints.get(
    "/api/v1/cards/{serial}", access=_READ_ACCESS, errors=(Code.CARD_NOT_FOUND, Code.OTP_REQUIRED)
)
async def get_card(request: RequestContext, serial: str) -> CardRecord:
    """Get a card."""
    database = request.services.database
    card = await queries.get(database, serial)
    if card.subscriber_id is not None:
        await require_subscriber_access(
            database,
            request.caller,
            request.services.clock(),
            card.subscriber_id,
            restricted=card.restricted,
        )
    return to_record(card, get_record_context(request))


@endpoints.post(
    "/api/v1/cards/{serial}/block",
    access=_BLOCK_ACCESS,
    errors=(Code.CARD_NOT_FOUND, Code.CARD_NOT_LINKED, Code.ALREADY_BLOCKED),
)
async def block_card(
    request: RequestContext, serial: str, body: CardBlock
) -> DisclosedCardResponse:
    """Block a card.

    All later payments with the card are declined, and the subscriber is notified. With the reason
    `lost`, `stolen` or `damaged`, the status becomes `LOST`, which is permanent. These reasons are
    also accepted for a card that is already `BLOCKED`.

    A restricted subscriber's card can be blocked without a one-time code. If the caller may not
    access the subscriber, the response contains only `serial`, `status`, `status_reason`,
    `subscriber_id` and `restricted`.
    """
    card = await operations.block(request, serial, body.reason)
    hidden = await find_hidden_accounts(
        request.services.database, request.caller, request.services.clock(), [card.account_id]
    )
    return DisclosedCardResponse(
        card=to_disclosed_record(to_record(card, get_record_context(request)), hidden=bool(hidden))
    )


@endpoints.post(
    "/api/v1/cards/{serial}/unblock",
    access=_BLOCK_ACCESS,
    errors=(
        Code.CARD_NOT_FOUND,
        Code.OTP_REQUIRED,
        Code.NOT_CLOSABLE,
        Code.CARD_NOT_LINKED,
        Code.NOT_BLOCKED,
        Code.PERMANENT_BLOCK,
    ),
)
async def unblock_card(request: RequestContext, serial: str, body: OptionalReason) -> CardResponse:
    """Unblock a card.

    Lost and expired cards cannot be unblocked.
    """
    return _to_response(
        request, "Card unblocked", await operations.unblock(request, serial, body.reason)
    )


@endpoints.post(
    "/api/v1/cards/upload-csv",
    access=Access(roles="A"),
    body_limit=8 * MEBIBYTE,
    body_media=tuple(UPLOAD_MEDIA_TYPES),
    body_schema=UPLOAD_MEDIA_TYPES,
)
async def upload_cards(request: RequestContext, body: bytes) -> UploadCardsResponse:
    """Upload new cards as a CSV file.

    Send the file as the request body, or as `file` in a multipart form. The header is `Serial
    No.,MAC Address`, optionally followed by `,Expiry Date`. A file has at most 10,000 rows.

    Rows with the serial of an existing card are skipped, and valid rows are stored even if other
    rows fail. `row` is the number of the line on which the row begins; the header is line 1.
    """
    return await upload(request, request.get_header(b"content-type"), body)
