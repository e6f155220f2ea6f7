"""Operations on cards."""

from tapgate_client.declaration import M, OperationGroup, acts, lists, operation, reads, sets
from tapgate_client.encoding import CardProofLike, Money
from tapgate_client.operation import Operation, build_operation
from tapgate_client.schemas.card_proofs import CardTapRecord, KeysetRecord, Personalization
from tapgate_client.schemas.cards import (
    CardRecord,
    CardResponse,
    DisclosedCardResponse,
    UploadCardsResponse,
)
from tapgate_client.schemas.common import SuccessResponse
from tapgate_client.schemas.pagination import Page


class Cards(OperationGroup[M]):
    @acts("POST /api/v1/cards/link")
    def link(
        self,
        *,
        subscriber_id: str,
        card_serial: str | None = None,
        card_proof: CardProofLike | None = None,
        pin: str,
    ) -> CardResponse:
        """Link a card to a subscriber. The card uses the subscriber's PIN.

        `card_proof`, the proof of a tap, can replace `card_serial`.
        """

    @acts("POST /api/v1/cards/child")
    def link_child(
        self,
        *,
        parent_subscriber_id: str,
        card_serial: str | None = None,
        card_proof: CardProofLike | None = None,
        parent_pin: str,
        child_pin: str,
        daily_limit: Money,
        child_name: str,
        child_relationship: str | None = None,
    ) -> CardResponse:
        """Link a child card.

        A child card has its own PIN and spends from the parent's wallet, up to a daily limit.
        """

    @lists("GET /api/v1/cards")
    def list(
        self,
        *,
        subscriber_id: str | None = None,
        status: str | None = None,
        type: str | None = None,
        search: str | None = None,
        limit: int | None = None,
    ) -> Page[CardRecord]:
        """List cards, newest first. `limit` is the page size."""

    @reads("GET /api/v1/cards/{serial}")
    def get(self, serial: str) -> CardRecord: ...

    @sets("PUT /api/v1/cards/{serial}")
    def update(
        self,
        serial: str,
        *,
        daily_limit: Money | None = None,
        child_name: str | None = None,
        child_relationship: str | None = None,
    ) -> CardRecord:
        """Update the given fields of a child card."""

    @acts("POST /api/v1/cards/{serial}/block")
    def block(self, serial: str, *, reason: str) -> DisclosedCardResponse:
        """Block a card.

        The reasons `lost`, `stolen` and `damaged` block it permanently. The reasons `fraud`,
        `customer_request` and `compliance` can be reversed with `unblock`.
        """

    @acts("POST /api/v1/cards/{serial}/unblock")
    def unblock(self, serial: str, *, reason: str | None = None) -> CardResponse: ...

    @acts("POST /api/v1/cards/{serial}/change-pin")
    def change_pin(self, serial: str, *, old_pin: str, new_pin: str) -> SuccessResponse:
        """Change the PIN of a child card."""

    @acts("POST /api/v1/cards/{serial}/reset-pin")
    def request_pin_reset(self, serial: str) -> SuccessResponse:
        """Send a one-time code for a reset of a child card's PIN to the parent's phone."""

    @acts("POST /api/v1/cards/{serial}/reset-pin/confirm")
    def reset_pin(self, serial: str, *, otp: str, new_pin: str) -> SuccessResponse: ...

    @acts("POST /api/v1/cards/keysets")
    def create_keyset(
        self, *, name: str, meta_read_key: str | None = None, file_read_key: str | None = None
    ) -> KeysetRecord:
        """Create a keyset. Keys that are not given, as 32 hex digits, are generated."""

    @lists("GET /api/v1/cards/keysets")
    def list_keysets(self, *, limit: int | None = None) -> Page[KeysetRecord]:
        """List keysets, newest first. `limit` is the page size."""

    @reads("GET /api/v1/cards/keysets/{id}")
    def get_keyset(self, id: str) -> KeysetRecord: ...

    @acts("POST /api/v1/cards/keysets/{id}/retire")
    def retire_keyset(self, id: str, *, cards: int | None = None) -> KeysetRecord:
        """Retire a keyset permanently. Proofs of its cards are rejected.

        `cards` confirms the number of its cards.
        """

    @acts("POST /api/v1/cards/{serial}/personalize")
    def personalize(self, serial: str, *, keyset_id: str) -> Personalization:
        """Issue the keys that an encoder writes to a card's chip."""

    @acts("POST /api/v1/cards/{serial}/personalize/confirm")
    def confirm_personalization(self, serial: str, *, card_proof: CardProofLike) -> CardRecord:
        """Confirm a card's new keys by a tap."""

    @reads("GET /api/v1/cards/{serial}/taps")
    def list_taps(self, serial: str) -> Page[CardTapRecord]:
        """Return the last 100 proofs of a card, newest first."""

    @operation
    def upload(self, file: bytes) -> Operation[UploadCardsResponse]:
        """Create cards from a CSV file. Existing cards are skipped."""
        return build_operation(
            "sets",
            "POST /api/v1/cards/upload-csv",
            UploadCardsResponse,
            body=file,
            headers={"Content-Type": "text/csv"},
        )
