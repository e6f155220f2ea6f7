"""Operations on subscribers, their PINs and KYC documents."""

from tapgate.client.encoding import DateLike, encode_image, encode_optional_date, omit_none
from tapgate.client.operation import (
    ListOperation,
    M,
    Operation,
    OperationGroup,
    build_get,
    build_post,
    build_put,
    operation,
)
from tapgate.client.pagination import build_list, list_operation
from tapgate.client.records.base import Confirmation, File
from tapgate.client.records.subscribers import (
    AddKycDocumentResponse,
    BlockSubscriberResponse,
    DisclosedSubscriber,
    KycDocument,
    Message,
    RegisterSubscriberResponse,
    RestrictedAccessGrant,
    Subscriber,
    SubscriberLimits,
    SubscriberResponse,
    VerifyPinResponse,
)

_COLLECTION_PATH = "/api/v1/subscribers"
_RESOURCE_PATH = f"{_COLLECTION_PATH}/{{id}}"
_DOCUMENTS_PATH = f"{_RESOURCE_PATH}/kyc-documents"


class Subscribers(OperationGroup[M]):
    @operation
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
    ) -> Operation[RegisterSubscriberResponse]:
        """Register a subscriber. The subscriber is active and has an empty wallet."""
        body = omit_none(
            phone_number=phone_number,
            first_name=first_name,
            last_name=last_name,
            pin=pin,
            email=email,
            date_of_birth=encode_optional_date(date_of_birth),
            address=address,
            id_type=id_type,
            id_number=id_number,
            category=category,
        )
        return build_post(_COLLECTION_PATH, RegisterSubscriberResponse, body)

    @list_operation
    def list(
        self,
        *,
        phone_number: str | None = None,
        status: str | None = None,
        kyc_level: int | None = None,
        search: str | None = None,
        limit: int | None = None,
    ) -> ListOperation[Subscriber]:
        """List subscribers, newest first. `limit` is the page size."""
        query = omit_none(
            phone_number=phone_number,
            status=status,
            kyc_level=kyc_level,
            search=search,
            limit=limit,
        )
        return build_list(_COLLECTION_PATH, Subscriber, query)

    @operation
    def get(self, id: str) -> Operation[Subscriber]:
        return build_get(_RESOURCE_PATH, Subscriber, id=id)

    @operation
    def get_limits(self, id: str) -> Operation[SubscriberLimits]:
        """Return the subscriber's transaction and balance limits, and their current usage."""
        return build_get(f"{_RESOURCE_PATH}/limits", SubscriberLimits, id=id)

    @operation
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
        kyc_level: int | None = None,
        kyc_status: str | None = None,
        restricted: bool | None = None,
    ) -> Operation[DisclosedSubscriber]:
        """Update the given fields of a subscriber."""
        body = omit_none(
            phone_number=phone_number,
            first_name=first_name,
            last_name=last_name,
            email=email,
            date_of_birth=encode_optional_date(date_of_birth),
            address=address,
            id_type=id_type,
            id_number=id_number,
            category=category,
            kyc_level=kyc_level,
            kyc_status=kyc_status,
            restricted=restricted,
        )
        return build_put(_RESOURCE_PATH, DisclosedSubscriber, body, id=id)

    @operation
    def block(self, id: str, *, reason: str) -> Operation[BlockSubscriberResponse]:
        """Block a subscriber. Transactions from and to the wallet are declined, except refunds."""
        return build_post(
            f"{_RESOURCE_PATH}/block", BlockSubscriberResponse, omit_none(reason=reason), id=id
        )

    @operation
    def unblock(self, id: str, *, reason: str | None = None) -> Operation[SubscriberResponse]:
        return build_post(
            f"{_RESOURCE_PATH}/unblock", SubscriberResponse, omit_none(reason=reason), id=id
        )

    @operation
    def close(self, id: str, *, reason: str) -> Operation[SubscriberResponse]:
        """Close a subscriber permanently. The wallet must be empty and have no funds on hold."""
        return build_post(
            f"{_RESOURCE_PATH}/close", SubscriberResponse, omit_none(reason=reason), id=id
        )

    @operation
    def verify_pin(self, id: str, *, pin: str) -> Operation[VerifyPinResponse]:
        """Verify the PIN. The third consecutive incorrect PIN locks the PIN for 30 minutes."""
        return build_post(
            f"{_RESOURCE_PATH}/verify-pin", VerifyPinResponse, omit_none(pin=pin), id=id
        )

    @operation
    def change_pin(self, id: str, *, old_pin: str, new_pin: str) -> Operation[Confirmation]:
        body = omit_none(old_pin=old_pin, new_pin=new_pin)
        return build_post(f"{_RESOURCE_PATH}/change-pin", Confirmation, body, id=id)

    @operation
    def request_pin_reset(self, id: str) -> Operation[Confirmation]:
        """Send a one-time code for a PIN reset to the subscriber's phone."""
        return build_post(f"{_RESOURCE_PATH}/reset-pin", Confirmation, id=id)

    @operation
    def reset_pin(self, id: str, *, otp: str, new_pin: str) -> Operation[Confirmation]:
        body = omit_none(otp=otp, new_pin=new_pin)
        return build_post(f"{_RESOURCE_PATH}/reset-pin/confirm", Confirmation, body, id=id)

    @operation
    def request_restricted_access(self, id: str) -> Operation[Confirmation]:
        """Send the subscriber's phone a one-time code that grants this admin access."""
        return build_post(f"{_RESOURCE_PATH}/restricted-access", Confirmation, id=id)

    @operation
    def verify_restricted_access(self, id: str, *, otp: str) -> Operation[RestrictedAccessGrant]:
        return build_post(
            f"{_RESOURCE_PATH}/restricted-access/verify",
            RestrictedAccessGrant,
            omit_none(otp=otp),
            id=id,
        )

    @operation
    def add_kyc_document(
        self, id: str, *, document_type: str, image: bytes
    ) -> Operation[AddKycDocumentResponse]:
        """Add a KYC document. `image` is the content of a JPEG or PNG file."""
        body = omit_none(document_type=document_type, image=encode_image(image))
        return build_post(_DOCUMENTS_PATH, AddKycDocumentResponse, body, id=id)

    @list_operation
    def list_kyc_documents(
        self, id: str, *, limit: int | None = None
    ) -> ListOperation[KycDocument]:
        """List KYC documents, without their images."""
        return build_list(_DOCUMENTS_PATH, KycDocument, omit_none(limit=limit), id=id)

    @list_operation
    def list_messages(
        self, id: str, *, template: str | None = None, limit: int | None = None
    ) -> ListOperation[Message]:
        """List messages sent to the subscriber's phone and their delivery status, newest first."""
        return build_list(
            f"{_RESOURCE_PATH}/messages", Message, omit_none(template=template, limit=limit), id=id
        )

    @operation
    def get_kyc_document(self, id: str, document_id: str) -> Operation[File]:
        """Return the image of a KYC document."""
        return build_get(f"{_DOCUMENTS_PATH}/{{document_id}}", File, id=id, document_id=document_id)
