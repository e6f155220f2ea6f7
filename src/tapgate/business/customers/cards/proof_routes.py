"""Endpoints for keysets, card personalization and card taps."""

from tapgate.business.customers.cards import keysets, personalization, queries, tap_history
from tapgate.business.customers.cards.keysets import to_record
from tapgate.business.customers.cards.model import to_record as to_card_record
from tapgate.core.message_templates import Notice
from tapgate.core.pagination import paginate
from tapgate.core.records import CardKeysetId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.ledger.card_proofs.proof_verifier import DecryptedProof
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.card_proofs import (
    CardTapRecord,
    KeysetRecord,
    KeysetRetirement,
    NewKeyset,
    NewPersonalization,
    Personalization,
    PersonalizationConfirmation,
)
from tapgate_client.schemas.cards import CardRecord
from tapgate_client.schemas.pagination import Page, PageQuery

endpoints = Endpoints("Cards", "/api/v1/cards", owners=NEVER)

_ADMIN_ACCESS = Access(roles="A")


async def _describe_keyset_creation(request: GuardedRequest, body: NewKeyset) -> Proposal:
    return Proposal(operations=(Operation.KEYSETS,), summary=f"Create keyset {body.name}")


async def _describe_keyset_retirement(
    request: GuardedRequest, id: int, body: KeysetRetirement
) -> Proposal:
    keyset = to_record(await keysets.get(request.services.database, id))
    return Proposal(
        operations=(Operation.KEYSETS,),
        summary=f"Retire keyset {keyset.name}, version {keyset.version}",
        resource_id=keyset.id,
    )


async def _describe_personalization(
    request: GuardedRequest, serial: str, body: NewPersonalization
) -> Proposal | None:
    """With the keys of a linked card, its money can be spent without the card."""
    services = request.services
    card = await queries.get_visible(services.database, serial, request.caller, services.clock())
    if card.subscriber_id is None:
        return None
    return Proposal(
        operations=(Operation.KEYSETS,),
        summary=f"Issue new keys for card {card.serial}, which is linked to a customer",
        resource_id=ids.encode(ids.SUBSCRIBER, card.subscriber_id),
    )


@endpoints.post(
    "/keysets",
    access=_ADMIN_ACCESS,
    status=201,
    step_up=True,
    guard=Guard(_describe_keyset_creation, Operation.KEYSETS),
    objects=ObjectAccess.NO_OBJECT,
    unnoticed=Unnoticed.STOCK,
)
async def create_keyset(request: GuardedRequest, tx: Transaction, body: NewKeyset) -> KeysetRecord:
    """Create a keyset.

    A keyset has two AES-128 issuer keys for cards with an NTAG 424 DNA chip. The meta read key
    decrypts `picc_data`. The file read key is diversified for each card (NXP AN10922, with the UID
    and one byte of key version as input) and signs its taps. A key that is absent is generated. The
    keys are sealed and never returned: compare them with another party by `kcv`.

    A keyset with the same name as an existing one is its next `version`. To rotate keys, create the
    next version, personalize the cards again and retire the previous version.
    """
    services = request.services
    keyset = await keysets.create(
        tx, request.actor, body, vault=services.vault, signals=services.signals
    )
    return to_record(keyset)


@endpoints.get("/keysets", access=_ADMIN_ACCESS, objects=ObjectAccess.ANY)
async def list_keysets(request: RequestContext, query: PageQuery) -> Page[KeysetRecord]:
    """List keysets, newest first."""
    database = request.services.database
    rows = await keysets.list_page(database, query)
    cards = await keysets.count_cards(database, [keyset.id for keyset in rows])
    return paginate(rows, query, lambda keyset: to_record(keyset, cards[keyset.id]))


@endpoints.get("/keysets/{id}", access=_ADMIN_ACCESS, objects=ObjectAccess.ANY)
async def get_keyset(request: RequestContext, id: CardKeysetId) -> KeysetRecord:
    """Get a keyset, with the number of cards that have its keys."""
    database = request.services.database
    keyset = await keysets.get(database, id)
    return to_record(keyset, (await keysets.count_cards(database, [id]))[id])


@endpoints.post(
    "/keysets/{id}/retire",
    access=_ADMIN_ACCESS,
    step_up=True,
    guard=Guard(_describe_keyset_retirement, Operation.KEYSETS),
    errors=(Code.KEYSET_RETIRED,),
    objects=ObjectAccess.ANY,
    unnoticed=Unnoticed.STOCK,
)
async def retire_keyset(
    request: GuardedRequest, tx: Transaction, id: CardKeysetId, body: KeysetRetirement
) -> KeysetRecord:
    """Retire a keyset.

    This is permanent. Every process rejects its cards' proofs with 403 `CARD_NOT_GENUINE`, normally
    before the response is sent, so its cards cannot pay until they are personalized again. Send the
    number of its cards in `cards` to make sure that you know how many stop working: any other
    number fails with 422.
    """
    return await keysets.retire(
        tx, request.actor, id, confirmed_cards=body.cards, signals=request.services.signals
    )


@endpoints.post(
    "/{serial}/personalize",
    access=_ADMIN_ACCESS,
    errors=(
        Code.CARD_NOT_FOUND,
        Code.OTP_REQUIRED,
        Code.KEYSET_NOT_FOUND,
        Code.KEYSET_RETIRED,
        Code.VALIDATION_FAILED,
    ),
    step_up=True,
    guard=Guard(_describe_personalization, Operation.KEYSETS),
    objects=ObjectAccess.UNRESTRICTED,
    notices=(Notice.CARD_CHANGED,),
)
async def personalize_card(
    request: GuardedRequest, tx: Transaction, serial: str, body: NewPersonalization
) -> Personalization:
    """Issue a card's keys.

    The response contains what an encoder writes to the chip: the keys `k0` to `k4`, the URL, and
    the SDM setting offsets, in bytes from the start of the NDEF file. `k1` is the file read key,
    `k2` the meta read key, and the others are the card's own. The MAC input is empty.

    The card works as before until a tap confirms the keys. Until then, the same request returns the
    same keys again, so that an interrupted encoding can be repeated. A tap must confirm the keys
    within 24 hours of the last such request. For a card that signs its taps
    already, the keys have the next version: its present keys stay valid until the confirmation.

    The holder of a linked card gets a notice, and approval rules for `keysets` apply: the admin who
    made the request then reads the keys once, in the approval's `result`.
    """
    services = request.services
    return await personalization.personalize(
        tx,
        request.actor,
        serial,
        body.keyset_id,
        vault=services.vault,
        settings=services.settings,
    )


async def _decrypt_proof(
    request: RequestContext, serial: str, body: PersonalizationConfirmation
) -> DecryptedProof:
    return await request.services.proof_verifier.decrypt(body.card_proof)


@endpoints.post(
    "/{serial}/personalize/confirm",
    access=_ADMIN_ACCESS,
    prepare=_decrypt_proof,
    errors=(
        Code.CARD_NOT_FOUND,
        Code.OTP_REQUIRED,
        Code.CARD_NOT_GENUINE,
        Code.CARD_PROOF_USED,
        Code.VALIDATION_FAILED,
    ),
    step_up=True,
    unguarded=Unguarded.NO_MONEY,
    objects=ObjectAccess.UNRESTRICTED,
    notices=(Notice.CARD_CHANGED,),
)
async def confirm_personalization(
    request: RequestContext,
    tx: Transaction,
    serial: str,
    body: PersonalizationConfirmation,
    prepared: DecryptedProof,
) -> CardRecord:
    """Confirm a card's keys by a tap.

    From then on, the card pays only with a proof, and taps with earlier keys are rejected. The tap
    is consumed, and the counter starts again with it. The holder of a linked card gets a notice.
    Keys that were issued before the card was linked are issued again first.
    """
    services = request.services
    card = await personalization.confirm(
        tx, request.actor, serial, prepared, settings=services.settings
    )
    return to_card_record(card, tx.now(), services.settings)


@endpoints.get(
    "/{serial}/taps",
    access=Access(scope="cards:read", roles="ASC"),
    errors=(Code.CARD_NOT_FOUND, Code.OTP_REQUIRED),
    heavy=True,
    objects=ObjectAccess.UNRESTRICTED,
)
async def list_card_taps(request: RequestContext, serial: str) -> Page[CardTapRecord]:
    """List a card's last 100 proofs.

    Newest first. `accepted` taps were consumed by a payment, a recorded decline or the confirmation
    of keys. `used` and `not_genuine` taps were rejected.
    """
    services = request.services
    now = services.clock()
    card = await queries.get_visible(services.database, serial, request.caller, now)
    return Page(
        data=await tap_history.list_taps(services.database, card, now),
        has_more=False,
        next_cursor=None,
    )
