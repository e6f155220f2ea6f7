"""The gateway and the messenger accept the same phone numbers."""

import json

import phonenumbers
from hypothesis import given
from hypothesis import strategies as st

from builders.messenger import build_delivery
from drivers.messenger import ServicesDriver
from harness import Harness
from tapgate.http.field_checks import compile_check
from tapgate.messenger import web
from tapgate.messenger.channel.delivery_parser import parse_delivery
from tapgate.messenger.understanding.transfers import parse_phone
from tapgate_client.errors import ApiError
from tapgate_client.schemas.fields import InvalidValueError, Phone

CODES = st.sampled_from(sorted(phonenumbers.COUNTRY_CODE_TO_REGION_CODE)).map(str)
DIGITS = st.text("0123456789", max_size=15)
NUMBERS = st.builds("+{}{}".format, CODES, DIGITS) | st.builds("+{}".format, DIGITS)
#: Numbers whose length is unusual for their country.
UNUSUAL_NUMBERS = ("+2327612345", "+232761234567", "+1234567890", "+22501020304", "+1234567")


def check_phone(text: str) -> str:
    check = compile_check(Phone, "SLE")
    assert check is not None
    return str(check(text))


def is_registrable(text: str) -> bool:
    try:
        check_phone(text)
    except InvalidValueError:
        return False
    return True


@given(NUMBERS)
def test_messenger_refuses_exactly_the_numbers_that_cannot_be_registered(text: str) -> None:
    try:
        accepted = web.parse_phone(text, "phoneE164")
    except ApiError:
        assert not is_registrable(text)
    else:
        assert check_phone(text) == accepted


@given(NUMBERS.filter(is_registrable))
def test_registered_number_is_the_same_in_every_parser(text: str) -> None:
    number = check_phone(text)
    assert check_phone(number) == number
    assert web.parse_phone(number, "to") == number
    assert parse_phone(number, None) == number
    delivered = parse_delivery(json.dumps(build_delivery("m1", phone=number)).encode())
    assert [message.address for message in delivered.messages] == [number]


async def test_every_registered_number_can_use_the_chat(
    harness: Harness, database_url: str
) -> None:
    async with ServicesDriver(harness, database_url).run_messenger() as messenger:
        for number in UNUSUAL_NUMBERS:
            await harness.create_subscriber(phone_number=number)
            assert "Aminata" in await messenger.create_phone(number).send_by_bridge("menu")
