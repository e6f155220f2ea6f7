"""Subscribers, their PINs and their KYC documents."""

from tapgate.client.operation import Group, Listing, M, Operation, act, operation, put, read
from tapgate.client.pages import listed, listing
from tapgate.client.records.base import Confirmation, File
from tapgate.client.records.subscribers import (
    AccessGranted,
    DisclosedSubscriber,
    Document,
    DocumentAdded,
    Limits,
    Message,
    PinVerified,
    Registered,
    Subscriber,
    SubscriberBlocked,
    SubscriberMoved,
)
from tapgate.client.values import Day, day_or_none, given, picture

_ALL = "/api/v1/subscribers"
_ONE = f"{_ALL}/{{id}}"
_DOCUMENTS = f"{_ONE}/kyc-documents"


class Subscribers(Group[M]):
    @operation
    def register(
        self,
        *,
        phone_number: str,
        first_name: str,
        last_name: str,
        pin: str,
        email: str | None = None,
        date_of_birth: Day | None = None,
        address: str | None = None,
        id_type: str | None = None,
        id_number: str | None = None,
        category: str | None = None,
    ) -> Operation[Registered]:
        """A new subscriber, active and with an empty wallet."""
        body = given(
            phone_number=phone_number,
            first_name=first_name,
            last_name=last_name,
            pin=pin,
            email=email,
            date_of_birth=day_or_none(date_of_birth),
            address=address,
            id_type=id_type,
            id_number=id_number,
            category=category,
        )
        return act(_ALL, Registered, body)

    @listing
    def list(
        self,
        *,
        phone_number: str | None = None,
        status: str | None = None,
        kyc_level: int | None = None,
        search: str | None = None,
        limit: int | None = None,
    ) -> Listing[Subscriber]:
        """Newest first; `limit` is how many on a page."""
        query = given(
            phone_number=phone_number,
            status=status,
            kyc_level=kyc_level,
            search=search,
            limit=limit,
        )
        return listed(_ALL, Subscriber, query)

    @operation
    def get(self, id: str) -> Operation[Subscriber]:
        return read(_ONE, Subscriber, id=id)

    @operation
    def limits(self, id: str) -> Operation[Limits]:
        """What the subscriber may send and hold, and how much of it is used."""
        return read(f"{_ONE}/limits", Limits, id=id)

    @operation
    def update(
        self,
        id: str,
        *,
        phone_number: str | None = None,
        first_name: str | None = None,
        last_name: str | None = None,
        email: str | None = None,
        date_of_birth: Day | None = None,
        address: str | None = None,
        id_type: str | None = None,
        id_number: str | None = None,
        category: str | None = None,
        kyc_level: int | None = None,
        kyc_status: str | None = None,
        restricted: bool | None = None,
    ) -> Operation[DisclosedSubscriber]:
        """Absent fields keep their value."""
        body = given(
            phone_number=phone_number,
            first_name=first_name,
            last_name=last_name,
            email=email,
            date_of_birth=day_or_none(date_of_birth),
            address=address,
            id_type=id_type,
            id_number=id_number,
            category=category,
            kyc_level=kyc_level,
            kyc_status=kyc_status,
            restricted=restricted,
        )
        return put(_ONE, DisclosedSubscriber, body, id=id)

    @operation
    def block(self, id: str, *, reason: str) -> Operation[SubscriberBlocked]:
        """Every payment from and to the wallet is refused at once."""
        return act(f"{_ONE}/block", SubscriberBlocked, given(reason=reason), id=id)

    @operation
    def unblock(self, id: str, *, reason: str | None = None) -> Operation[SubscriberMoved]:
        return act(f"{_ONE}/unblock", SubscriberMoved, given(reason=reason), id=id)

    @operation
    def close(self, id: str, *, reason: str) -> Operation[SubscriberMoved]:
        """For good; the wallet must be empty."""
        return act(f"{_ONE}/close", SubscriberMoved, given(reason=reason), id=id)

    @operation
    def verify_pin(self, id: str, *, pin: str) -> Operation[PinVerified]:
        """The third wrong one in a row locks it."""
        return act(f"{_ONE}/verify-pin", PinVerified, given(pin=pin), id=id)

    @operation
    def change_pin(self, id: str, *, old_pin: str, new_pin: str) -> Operation[Confirmation]:
        body = given(old_pin=old_pin, new_pin=new_pin)
        return act(f"{_ONE}/change-pin", Confirmation, body, id=id)

    @operation
    def request_pin_reset(self, id: str) -> Operation[Confirmation]:
        """Sends a one-time code to the subscriber's phone."""
        return act(f"{_ONE}/reset-pin", Confirmation, id=id)

    @operation
    def reset_pin(self, id: str, *, otp: str, new_pin: str) -> Operation[Confirmation]:
        body = given(otp=otp, new_pin=new_pin)
        return act(f"{_ONE}/reset-pin/confirm", Confirmation, body, id=id)

    @operation
    def request_restricted_access(self, id: str) -> Operation[Confirmation]:
        """Sends a one-time code to the subscriber's phone, for this admin."""
        return act(f"{_ONE}/restricted-access", Confirmation, id=id)

    @operation
    def verify_restricted_access(self, id: str, *, otp: str) -> Operation[AccessGranted]:
        return act(f"{_ONE}/restricted-access/verify", AccessGranted, given(otp=otp), id=id)

    @operation
    def add_kyc_document(
        self, id: str, *, document_type: str, image: bytes
    ) -> Operation[DocumentAdded]:
        """The image is the content of a JPEG or PNG file."""
        body = given(document_type=document_type, image=picture(image))
        return act(_DOCUMENTS, DocumentAdded, body, id=id)

    @listing
    def list_kyc_documents(self, id: str, *, limit: int | None = None) -> Listing[Document]:
        """Without their pictures."""
        return listed(_DOCUMENTS, Document, given(limit=limit), id=id)

    @listing
    def list_messages(
        self, id: str, *, template: str | None = None, limit: int | None = None
    ) -> Listing[Message]:
        """What was sent to the subscriber's phone and whether it arrived, newest first."""
        return listed(f"{_ONE}/messages", Message, given(template=template, limit=limit), id=id)

    @operation
    def get_kyc_document(self, id: str, document_id: str) -> Operation[File]:
        """Its picture."""
        return read(f"{_DOCUMENTS}/{{document_id}}", File, id=id, document_id=document_id)
