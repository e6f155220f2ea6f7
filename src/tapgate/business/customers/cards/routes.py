"""Card endpoints."""

from tapgate.auth.disclosure import find_hidden_accounts
from tapgate.business.customers.cards import operations, queries, replacement
from tapgate.business.customers.cards.model import Card, to_disclosed_record, to_record
from tapgate.business.customers.cards.pins import pin_operations
from tapgate.business.customers.cards.upload import upload
from tapgate.business.customers.cards.upload_parser import UPLOAD_MEDIA_TYPES
from tapgate.business.pins import routes as pin_routes
from tapgate.core.message_templates import Notice
from tapgate.core.pagination import paginate
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import MEBIBYTE, Endpoints
from tapgate.ledger.card_proofs.proof_verifier import ProofResult
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids, money
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.cards import (
    CardBlock,
    CardFilters,
    CardLink,
    CardRecord,
    CardReplacement,
    CardReplacementConfirmation,
    CardResponse,
    ChildCardUpdate,
    DisclosedCardResponse,
    NewChildCard,
    UploadCardsResponse,
)
from tapgate_client.schemas.common import OptionalReason, SuccessResponse
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.subscribers import PinChange, PinReset

endpoints = Endpoints("Cards", "/api/v1/cards", objects=ObjectAccess.UNRESTRICTED, owners=NEVER)

_READ_ACCESS = Access(scope="cards:read", roles="ACSF", service=True)
_BLOCK_ACCESS = Access(scope="cards:write", roles="ACS", service=True)
_PIN_ACCESS = Access(roles="AS", service=True)

_CHILD_CARD_ERRORS = (
    Code.CARD_NOT_FOUND,
    Code.OTP_REQUIRED,
    Code.NOT_CLOSABLE,
    Code.CARD_NOT_LINKED,
    Code.VALIDATION_FAILED,
    Code.PERMANENT_BLOCK,
)
_LINK_ERRORS = (
    Code.SUBSCRIBER_NOT_FOUND,
    Code.CARD_NOT_FOUND,
    Code.OTP_REQUIRED,
    Code.INVALID_PIN,
    Code.ACCOUNT_LOCKED,
    Code.CARD_ALREADY_LINKED,
    Code.CARD_NOT_ACTIVE,
    Code.CARD_NOT_GENUINE,
    Code.CARD_PROOF_USED,
    Code.SUBSCRIBER_BLOCKED,
    Code.NOT_CLOSABLE,
    Code.VALIDATION_FAILED,
)


_REPLACE_ERRORS = (
    Code.CARD_NOT_FOUND,
    Code.CARD_NOT_LINKED,
    Code.OTP_REQUIRED,
    Code.NOT_CLOSABLE,
    Code.RATE_LIMITED,
)


async def _verify_proof(
    request: RequestContext, body: CardLink | NewChildCard
) -> ProofResult | None:
    proof = body.card_proof
    return None if proof is None else await request.services.proof_verifier.verify(proof)


def _to_record(request: GuardedRequest, card: Card) -> CardRecord:
    return to_record(card, request.services.clock(), request.services.settings)


async def _describe_update(
    request: GuardedRequest, serial: str, body: ChildCardUpdate
) -> Proposal | None:
    """The parent set the limit with the PIN, so raising it takes more than one employee."""
    services = request.services
    card = await queries.get_visible(services.database, serial, request.caller, services.clock())
    if body.daily_limit is None or card.daily_limit is None or card.subscriber_id is None:
        return None
    new_limit = money.parse(body.daily_limit, services.settings.currency)
    if new_limit <= card.daily_limit:
        return None
    return Proposal(
        operations=(Operation.CARD_LIMITS,),
        summary=f"Raise the daily limit of child card {card.serial}",
        resource_id=ids.encode(ids.SUBSCRIBER, card.subscriber_id),
        before={
            "daily_limit": _to_record(request, card).daily_limit,
            "child_name": card.child_name,
            "child_relationship": card.child_relationship,
        },
        amount=new_limit,
    )


@endpoints.post(
    "/link",
    access=Access(scope="cards:write", roles="AS", service=True),
    errors=_LINK_ERRORS,
    prepare=_verify_proof,
    unguarded=Unguarded.PIN,
    objects=ObjectAccess.UNRESTRICTED | ObjectAccess.PIN,
    notices=(Notice.CARD_CHANGED,),
)
async def link_card(
    request: RequestContext, tx: Transaction, body: CardLink, prepared: ProofResult | None
) -> CardResponse:
    """Link a card to a subscriber.

    The card uses the subscriber's PIN. A card that signs its taps can be named by `card_proof`
    instead of `card_serial`. The proof is checked before the PIN, and its tap is not consumed.
    """
    services = request.services
    card = await operations.link(
        tx,
        request.actor,
        body,
        pin_verifier=services.pin_verifier,
        settings=services.settings,
        proof=prepared,
    )
    return CardResponse(message="Card linked", card=_to_record(request, card))


@endpoints.post(
    "/child",
    access=Access(scope="cards:write", roles="AS"),
    status=201,
    errors=(*_LINK_ERRORS, Code.MAX_CHILD_CARDS),
    prepare=_verify_proof,
    unguarded=Unguarded.PIN,
    objects=ObjectAccess.UNRESTRICTED | ObjectAccess.PIN,
    notices=(Notice.CARD_CHANGED,),
)
async def create_child_card(
    request: RequestContext, tx: Transaction, body: NewChildCard, prepared: ProofResult | None
) -> CardResponse:
    """Create a child card.

    The card spends from the parent's wallet, up to its own daily limit and with its own PIN. A card
    that signs its taps can be named by `card_proof` instead of `card_serial`.
    """
    services = request.services
    card = await operations.link_to_child(
        tx,
        request.actor,
        body,
        pin_verifier=services.pin_verifier,
        settings=services.settings,
        proof=prepared,
    )
    return CardResponse(message="Child card created", card=_to_record(request, card))


@endpoints.get("", access=_READ_ACCESS, heavy="search")
async def list_cards(request: RequestContext, query: CardFilters) -> Page[CardRecord]:
    """List cards, newest first.

    `search` is a list of words. Each word must occur, ignoring case, in the serial or the NFC UID.
    At least one word must have 3 or more characters, not counting separators. Cards of restricted
    subscribers are omitted if the caller may not access the subscriber.
    """
    services = request.services
    rows = await queries.list_page(services.database, query, request.principal, services.clock())
    return paginate(rows, query, lambda row: _to_record(request, row))


@endpoints.get("/{serial}", access=_READ_ACCESS, errors=(Code.CARD_NOT_FOUND, Code.OTP_REQUIRED))
async def get_card(request: RequestContext, serial: str) -> CardRecord:
    """Get a card."""
    services = request.services
    card = await queries.get_visible(services.database, serial, request.caller, services.clock())
    return _to_record(request, card)


@endpoints.put(
    "/{serial}",
    access=Access(scope="cards:write", roles="AS"),
    errors=_CHILD_CARD_ERRORS,
    step_up=("daily_limit",),
    guard=Guard(_describe_update, Operation.CARD_LIMITS),
    notices=(Notice.CARD_CHANGED,),
)
async def update_card(
    request: GuardedRequest, tx: Transaction, serial: str, body: ChildCardUpdate
) -> CardRecord:
    """Update a child card.

    Fields that are absent or null keep their values. A new `daily_limit` applies from the next
    payment and counts what the card has already spent today. The parent gets a notice of it, and
    approval rules for `card_limits` apply to a higher limit. Only child cards have these fields.
    Lost and expired cards cannot be changed.
    """
    card = await operations.update_child_card(
        tx, request.actor, serial, body, settings=request.services.settings
    )
    return _to_record(request, card)


@endpoints.post(
    "/{serial}/replace",
    access=Access(roles="AS"),
    errors=_REPLACE_ERRORS,
    unguarded=Unguarded.TAKES_RIGHTS,
    notices=(Notice.CARD_CHANGED,),
)
async def replace_card(
    request: RequestContext, tx: Transaction, serial: str, body: CardReplacement
) -> CardResponse:
    """Begin to replace a subscriber's card.

    Blocks the card permanently, if it is not yet, and sends a one-time code to the subscriber's
    phone, which only this caller can use. Repeat the request for a new code. A child card is
    blocked and created again instead.
    """
    services = request.services
    card = await replacement.begin(
        tx, request.actor, serial, body.reason, vault=services.vault, settings=services.settings
    )
    return CardResponse(
        message="Card blocked. A one-time code was sent to the subscriber's phone",
        card=_to_record(request, card),
    )


@endpoints.post(
    "/{serial}/replace/confirm",
    access=Access(roles="AS"),
    errors=(*_REPLACE_ERRORS, Code.INVALID_OTP, Code.CARD_ALREADY_LINKED, Code.NOT_BLOCKED),
    unguarded=Unguarded.ONE_TIME_CODE,
    objects=ObjectAccess.UNRESTRICTED | ObjectAccess.OTP,
    notices=(Notice.CARD_CHANGED,),
)
async def confirm_card_replacement(
    request: RequestContext, tx: Transaction, serial: str, body: CardReplacementConfirmation
) -> CardResponse:
    """Link a new card in place of a lost one, with the code from the subscriber's phone.

    The new card uses the subscriber's PIN. Returns the new card.
    """
    services = request.services
    card = await replacement.confirm(
        tx,
        request.actor,
        serial,
        body.card_serial,
        body.otp,
        vault=services.vault,
        settings=services.settings,
    )
    return CardResponse(message="Card replaced", card=_to_record(request, card))


@endpoints.post(
    "/{serial}/block",
    access=_BLOCK_ACCESS,
    errors=(Code.CARD_NOT_FOUND, Code.CARD_NOT_LINKED, Code.ALREADY_BLOCKED),
    unguarded=Unguarded.TAKES_RIGHTS,
    objects=ObjectAccess.ANY,  # blocking protects the holder
    notices=(Notice.CARD_CHANGED,),
)
async def block_card(
    request: RequestContext, tx: Transaction, serial: str, body: CardBlock
) -> DisclosedCardResponse:
    """Block a card.

    All later payments with the card are declined, and the subscriber is notified. With the reason
    `lost`, `stolen` or `damaged`, the status becomes `LOST`, which is permanent. These reasons are
    also accepted for a card that is already `BLOCKED`.

    A restricted subscriber's card can be blocked without a one-time code. If the caller may not
    access the subscriber, the response contains only `serial`, `status`, `status_reason`,
    `subscriber_id` and `restricted`.
    """
    services = request.services
    card = await operations.block(
        tx, request.actor, serial, body.reason, settings=services.settings
    )
    hidden = await find_hidden_accounts(tx, request.caller, tx.now(), [card.account_id])
    return DisclosedCardResponse(
        card=to_disclosed_record(_to_record(request, card), hidden=bool(hidden))
    )


@endpoints.post(
    "/{serial}/unblock",
    access=_BLOCK_ACCESS,
    errors=(
        Code.CARD_NOT_FOUND,
        Code.OTP_REQUIRED,
        Code.NOT_CLOSABLE,
        Code.CARD_NOT_LINKED,
        Code.NOT_BLOCKED,
        Code.PERMANENT_BLOCK,
    ),
    unguarded=Unguarded.CUSTOMER,
    notices=(Notice.CARD_CHANGED,),
)
async def unblock_card(
    request: RequestContext, tx: Transaction, serial: str, body: OptionalReason
) -> CardResponse:
    """Unblock a card.

    Lost and expired cards cannot be unblocked.
    """
    card = await operations.unblock(
        tx, request.actor, serial, body.reason, settings=request.services.settings
    )
    return CardResponse(message="Card unblocked", card=_to_record(request, card))


@endpoints.post(
    "/{serial}/change-pin",
    access=_PIN_ACCESS,
    errors=(*_CHILD_CARD_ERRORS, Code.INVALID_PIN, Code.SAME_PIN, Code.ACCOUNT_LOCKED),
    invalid_is_400=True,
    unguarded=Unguarded.PIN,
    objects=ObjectAccess.UNRESTRICTED | ObjectAccess.PIN,
    notices=(Notice.PIN_CHANGED,),
)
async def change_card_pin(
    request: RequestContext, tx: Transaction, serial: str, body: PinChange
) -> SuccessResponse:
    """Change a child card's PIN.

    A wrong old PIN counts as a wrong PIN attempt for the card. Other cards use the PIN of their
    subscriber, and so have no PIN to change.
    """
    return await pin_routes.change_pin(request, tx, pin_operations, serial, body)


@endpoints.post(
    "/{serial}/reset-pin",
    access=_PIN_ACCESS,
    errors=_CHILD_CARD_ERRORS,
    unguarded=Unguarded.ONE_TIME_CODE,
    unnoticed=Unnoticed.CODE,
)
async def request_card_pin_reset(
    request: RequestContext, tx: Transaction, serial: str
) -> SuccessResponse:
    """Request a child card PIN reset.

    Sends a 6-digit one-time code to the parent's phone. The code is valid for 5 minutes and 3
    attempts, only for this card, and replaces its previous code. A phone number receives at most 1
    code per minute and 5 per hour across all endpoints. After 15 wrong codes within 24 hours, no
    code is sent until this period ends. Requests over a limit get 429 with `Retry-After`.
    """
    return await pin_routes.request_pin_reset(request, tx, pin_operations, serial, "parent")


@endpoints.post(
    "/{serial}/reset-pin/confirm",
    access=_PIN_ACCESS,
    errors=(*_CHILD_CARD_ERRORS, Code.INVALID_OTP),
    unguarded=Unguarded.ONE_TIME_CODE,
    objects=ObjectAccess.UNRESTRICTED | ObjectAccess.OTP,
    notices=(Notice.PIN_CHANGED,),
)
async def reset_card_pin(
    request: RequestContext, tx: Transaction, serial: str, body: PinReset
) -> SuccessResponse:
    """Set a child card's new PIN with the one-time code.

    The old PIN is not required, and a locked PIN is unlocked. A code becomes invalid after three
    wrong attempts, when it expires, when it is used, or when a new code is requested.
    """
    return await pin_routes.reset_pin(request, tx, pin_operations, serial, body)


@endpoints.post(
    "/upload-csv",
    access=Access(roles="A"),
    body_limit=8 * MEBIBYTE,
    body_media=tuple(UPLOAD_MEDIA_TYPES),
    body_schema=UPLOAD_MEDIA_TYPES,
    unguarded=Unguarded.NO_MONEY,
    objects=ObjectAccess.NO_OBJECT,
    effect="sets",
    unnoticed=Unnoticed.STOCK,
)
async def upload_cards(request: RequestContext, body: bytes) -> UploadCardsResponse:
    """Upload new cards as a CSV file.

    Send the file as the request body, or as `file` in a multipart form. The header is `Serial
    No.,MAC Address`, optionally followed by `,Expiry Date` and `,Keyset`. A file has at most 10,000
    rows. A card with an active keyset's ID or name was personalized by a bureau with key version 1:
    it has the authenticity `sun`. A name refers to the newest active version.

    Rows with an existing card's serial are skipped, and valid rows are stored even if other rows
    fail. `row` is the number of the line on which the row begins; the header is line 1.
    """
    services = request.services
    return await upload(
        services.transaction,
        request.actor,
        request.get_header(b"content-type"),
        body,
        now=services.clock(),
        zone=services.settings.timezone,
    )
