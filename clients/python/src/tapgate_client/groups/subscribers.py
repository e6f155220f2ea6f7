"""Operations on subscribers, their PINs and KYC documents."""

from tapgate_client.declaration import M, OperationGroup, acts, lists, reads, sets
from tapgate_client.encoding import DateLike, Image
from tapgate_client.responses import File
from tapgate_client.schemas.common import SuccessResponse
from tapgate_client.schemas.kyc_reviews import KycReviewRecord
from tapgate_client.schemas.messages import MessageRecord
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.subscribers import (
    AccessGranted,
    DisclosedSubscriber,
    DisclosedSubscriberResponse,
    DocumentAdded,
    DocumentRecord,
    Limits,
    PinVerified,
    SubscriberRecord,
    SubscriberRegistered,
    SubscriberResponse,
)
from tapgate_client.schemas.timeline import TimelineItem


class Subscribers(OperationGroup[M]):
    @acts("POST /api/v1/subscribers")
    def register(
        self,
        *,
        phone_number: str,
        first_name: str,
        last_name: str,
        pin: str,
        email: str | None = None,
        date_of_birth: DateLike | None = None,
        address: str | None = None,
        id_type: str | None = None,
        id_number: str | None = None,
        category: str | None = None,
        language: str | None = None,
    ) -> SubscriberRegistered:
        """Register a subscriber. The subscriber is active and has an empty wallet."""

    @lists("GET /api/v1/subscribers")
    def list(
        self,
        *,
        phone_number: str | None = None,
        status: str | None = None,
        kyc_level: int | None = None,
        kyc_status: str | None = None,
        search: str | None = None,
        order: str | None = None,
        limit: int | None = None,
    ) -> Page[SubscriberRecord]:
        """List subscribers, newest first. `limit` is the page size.

        `order` is `newest` or `name`. With `kyc_status="PENDING"`, the subscriber who has waited
        longest for a decision is first.
        """

    @reads("GET /api/v1/subscribers/{id}")
    def get(self, id: str) -> SubscriberRecord: ...

    @reads("GET /api/v1/subscribers/{id}/limits")
    def get_limits(self, id: str) -> Limits:
        """Return the subscriber's transaction and balance limits, and their current usage."""

    @sets("PUT /api/v1/subscribers/{id}")
    def update(
        self,
        id: str,
        *,
        phone_number: str | None = None,
        first_name: str | None = None,
        last_name: str | None = None,
        email: str | None = None,
        date_of_birth: DateLike | None = None,
        address: str | None = None,
        id_type: str | None = None,
        id_number: str | None = None,
        category: str | None = None,
        language: str | None = None,
        kyc_level: int | None = None,
        kyc_status: str | None = None,
        restricted: bool | None = None,
    ) -> DisclosedSubscriber:
        """Update the given fields of a subscriber."""

    @acts("POST /api/v1/subscribers/{id}/block")
    def block(self, id: str, *, reason: str) -> DisclosedSubscriberResponse:
        """Block a subscriber. Transactions from and to the wallet are declined, except refunds."""

    @acts("POST /api/v1/subscribers/{id}/unblock")
    def unblock(self, id: str, *, reason: str | None = None) -> SubscriberResponse: ...

    @acts("POST /api/v1/subscribers/{id}/close")
    def close(self, id: str, *, reason: str) -> SubscriberResponse:
        """Close a subscriber permanently. The wallet must be empty and have no funds on hold."""

    @acts("POST /api/v1/subscribers/{id}/verify-pin")
    def verify_pin(self, id: str, *, pin: str) -> PinVerified:
        """Verify the PIN. The third consecutive incorrect PIN locks the PIN for 30 minutes."""

    @acts("POST /api/v1/subscribers/{id}/change-pin")
    def change_pin(self, id: str, *, old_pin: str, new_pin: str) -> SuccessResponse: ...

    @acts("POST /api/v1/subscribers/{id}/reset-pin")
    def request_pin_reset(self, id: str) -> SuccessResponse:
        """Send a one-time code for a PIN reset to the subscriber's phone."""

    @acts("POST /api/v1/subscribers/{id}/reset-pin/confirm")
    def reset_pin(self, id: str, *, otp: str, new_pin: str) -> SuccessResponse: ...

    @acts("POST /api/v1/subscribers/{id}/restricted-access")
    def request_restricted_access(self, id: str) -> SuccessResponse:
        """Send the subscriber's phone a one-time code that grants this admin access."""

    @acts("POST /api/v1/subscribers/{id}/restricted-access/verify")
    def verify_restricted_access(self, id: str, *, otp: str) -> AccessGranted: ...

    @acts("POST /api/v1/subscribers/{id}/kyc-documents")
    def add_kyc_document(self, id: str, *, document_type: str, image: Image) -> DocumentAdded:
        """Add a KYC document. `image` is the content of a JPEG or PNG file."""

    @lists("GET /api/v1/subscribers/{id}/kyc-documents")
    def list_kyc_documents(self, id: str, *, limit: int | None = None) -> Page[DocumentRecord]:
        """List KYC documents, without their images."""

    @acts("POST /api/v1/subscribers/{id}/kyc-decision")
    def decide_kyc(
        self, id: str, *, decision: str, kyc_level: int | None = None, reason: str | None = None
    ) -> SubscriberResponse:
        """Approve a KYC level, reject the documents or ask for more, and notify the subscriber."""

    @lists("GET /api/v1/subscribers/{id}/messages")
    def list_messages(
        self, id: str, *, template: str | None = None, limit: int | None = None
    ) -> Page[MessageRecord]:
        """List messages sent to the subscriber's phone and their delivery status, newest first."""

    @lists("GET /api/v1/subscribers/{id}/timeline")
    def list_timeline(
        self, id: str, *, kind: str | None = None, limit: int | None = None
    ) -> Page[TimelineItem]:
        """List what happened to a subscriber, newest first. Admins only."""

    @lists("GET /api/v1/kyc-reviews")
    def list_kyc_reviews(
        self,
        *,
        assignee: str | None = None,
        subscriber_id: str | None = None,
        limit: int | None = None,
    ) -> Page[KycReviewRecord]:
        """List the subscribers who wait for a KYC decision, longest wait first.

        `assignee` is an admin's ID or `none`.
        """

    @sets("POST /api/v1/subscribers/{id}/kyc-review/assign")
    def assign_kyc_review(self, id: str) -> KycReviewRecord:
        """Assign a KYC review to the calling admin."""

    @sets("POST /api/v1/subscribers/{id}/kyc-review/unassign")
    def unassign_kyc_review(self, id: str) -> KycReviewRecord:
        """Remove the assignee of a KYC review."""

    @reads("GET /api/v1/subscribers/{id}/kyc-documents/{document_id}")
    def get_kyc_document(self, id: str, document_id: str) -> File:
        """Return the image of a KYC document."""
