"""Requests about the subscriber, the PIN and the phone number."""

import msgspec

from tapgate.messenger.gateway_requests.base import GatewayRequest
from tapgate.messenger.model import Language, SecretStruct, Subscriber
from tapgate_client import AsyncTapgateClient
from tapgate_client.names import clean_person_name
from tapgate_client.schemas.subscribers import SubscriberLanguage, SubscriberRecord


class FindSubscriber(GatewayRequest, frozen=True, kw_only=True):
    """Find a subscriber by the person's own phone number."""

    phone: str

    async def perform(self, gateway: AsyncTapgateClient) -> Subscriber | None:
        found = await find_subscriber(gateway, self.phone)
        return None if found is None else to_subscriber(found)


class FindLanguage(GatewayRequest, frozen=True, kw_only=True):
    """Find the language that is stored for a phone number's subscriber.

    The result is None for the default language: nobody may have chosen it, so the first recognized
    words decide.
    """

    phone: str

    async def perform(self, gateway: AsyncTapgateClient) -> Language | None:
        found = await find_subscriber(gateway, self.phone)
        if found is None or found.language == SubscriberLanguage.EN:
            return None
        language: Language = msgspec.convert(found.language, Language)
        return language


class RegisterSubscriber(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    phone: str
    first_name: str
    last_name: str
    pin: str
    language: Language

    async def perform(self, gateway: AsyncTapgateClient) -> Subscriber:
        registered = await gateway.subscribers.register(
            phone_number=self.phone,
            first_name=self.first_name,
            last_name=self.last_name,
            pin=self.pin,
            language=self.language,
        )
        return to_subscriber(registered.subscriber)


class VerifyPin(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    subscriber_id: str
    pin: str

    async def perform(self, gateway: AsyncTapgateClient) -> None:
        await gateway.subscribers.verify_pin(self.subscriber_id, pin=self.pin)


class ChangePin(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    subscriber_id: str
    old_pin: str
    new_pin: str

    async def perform(self, gateway: AsyncTapgateClient) -> None:
        await gateway.subscribers.change_pin(
            self.subscriber_id, old_pin=self.old_pin, new_pin=self.new_pin
        )


class SendOneTimeCode(GatewayRequest, frozen=True, kw_only=True):
    """Send a one-time code to the phone number that a person has entered.

    The messenger handles this request itself, in `one_time_codes.py`. The request also succeeds if
    no code is sent because of a limit.
    """

    phone: str


class VerifyOneTimeCode(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    """Verify a one-time code. The result is whether it is correct.

    The messenger handles this request itself, in `one_time_codes.py`. The request is rejected with
    INVALID_OTP if no valid code or no further attempt is left.
    """

    phone: str
    code: str


async def find_subscriber(gateway: AsyncTapgateClient, phone: str) -> SubscriberRecord | None:
    page = await gateway.subscribers.list(phone_number=phone, limit=1).get_page()
    return page.data[0] if page.data else None


def to_subscriber(record: SubscriberRecord) -> Subscriber:
    subscriber = msgspec.convert(record, Subscriber, from_attributes=True)
    return msgspec.structs.replace(subscriber, first_name=clean_person_name(record.first_name))
