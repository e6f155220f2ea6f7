"""An internal service's operations against the real gateway, and the exceptions they raise."""

import asyncio
import inspect
import pickle
import re
from decimal import Decimal
from pathlib import Path

import pytest

from cases import each
from drivers.in_process import ClientFactory
from harness import PIN, WRONG_PIN
from tapgate_client import ValidationError, exceptions
from tapgate_client.errors import TABLE, Code
from tapgate_client.exceptions import ApiError, DeclinedError, TapgateError, build_api_error
from tapgate_client.schemas.common import ErrorBody


async def test_subscriber_is_registered_found_and_verified_by_pin(
    client_factory: ClientFactory,
) -> None:
    gateway = client_factory.create_for_service()
    phone = client_factory.harness.new_phone_number()
    created = await gateway.subscribers.register(
        phone_number=phone, first_name="Aminata", last_name="Kamara", pin=PIN
    )
    found = [item async for item in gateway.subscribers.list(phone_number=phone)]
    assert found == [created.subscriber] == [await gateway.subscribers.get(created.subscriber_id)]
    assert (await gateway.subscribers.verify_pin(created.subscriber_id, pin=PIN)).verified
    with pytest.raises(ValidationError) as raised:
        await gateway.subscribers.verify_pin(created.subscriber_id, pin=WRONG_PIN)
    assert raised.value.code == "INVALID_PIN"
    assert raised.value.details["attempts_remaining"] == 2
    await gateway.subscribers.change_pin(created.subscriber_id, old_pin=PIN, new_pin="8352")
    assert (await gateway.account_rules.get(1)).kyc_level == 1


async def test_service_can_transfer_replay_block_a_card_and_create_a_statement(
    client_factory: ClientFactory,
) -> None:
    gateway, harness = client_factory.create_for_service(), client_factory.harness
    sender = await harness.create_subscriber(balance="1000")
    serial = await harness.create_card((await harness.create_subscriber())["id"])
    quote = await gateway.wallet.create_quote(
        type="transfer_p2p", amount=Decimal("100.50"), sender_id=sender["id"]
    )
    assert quote.allowed
    receipt = await gateway.wallet.transfer_p2p(
        sender_id=sender["id"],
        recipient_card_serial=serial,
        amount=Decimal("100.50"),
        pin=PIN,
        request_id="first",
    )
    replayed_receipt = await gateway.wallet.transfer_p2p(
        sender_id=sender["id"],
        recipient_card_serial=serial,
        amount="100.50",
        pin=PIN,
        request_id="first",
    )
    assert (receipt.replayed, replayed_receipt.replayed) == (False, True)
    assert receipt.request_id == replayed_receipt.request_id == "first"
    assert replayed_receipt.transaction_id == receipt.transaction_id
    assert receipt.recipient.card_serial == serial
    balance = await gateway.wallet.get_balance(sender["id"])
    assert Decimal(balance.available) == 1000 - Decimal(quote.total)
    (newest,) = (await gateway.transactions.list(user_id=sender["id"], limit=1).get_page()).data
    assert newest.id == receipt.transaction_id
    assert (await gateway.cards.get(serial)).status == "ACTIVE"
    assert (await gateway.cards.block(serial, reason="customer_request")).card.status == "BLOCKED"
    assert (await gateway.cards.unblock(serial)).card.status == "ACTIVE"
    statement = await gateway.wallet.create_statement(
        subscriber_id=sender["id"], from_date="2026-01-01", to_date="2026-01-31"
    )
    assert statement.subscriber.id == sender["id"]


async def test_sync_and_async_clients_return_the_same_records(
    client_factory: ClientFactory,
) -> None:
    record = await client_factory.harness.create_subscriber()
    gateway = client_factory.create_sync(client_factory.secret)
    from_sync = await asyncio.to_thread(gateway.subscribers.get, record["id"])
    assert from_sync == await client_factory.create_for_service().subscribers.get(record["id"])
    listed = await asyncio.to_thread(list, gateway.subscribers.list())
    assert listed == [from_sync]


async def test_decline_raises_an_exception_with_the_amounts(client_factory: ClientFactory) -> None:
    sender = await client_factory.harness.create_subscriber(balance="10")
    serial = await client_factory.harness.create_card(
        (await client_factory.harness.create_subscriber())["id"]
    )
    with pytest.raises(DeclinedError) as declined:
        await client_factory.create_for_service().wallet.transfer_p2p(
            sender_id=sender["id"], recipient_card_serial=serial, amount="500", pin=PIN
        )
    error = declined.value
    assert error.details["available"] == 10
    assert error.details["required"] > 500
    assert (error.code, error.status) == ("INSUFFICIENT_FUNDS", 402)


DOCUMENT = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
#: Codes recorded as a failed transaction, according to the documentation of each code.
DECLINES = set(re.findall(r"### (\w+)\n\n\*\*\d+\*\* · `request_id`: consumed", DOCUMENT))

CLASS_BY_STATUS = {
    400: exceptions.ValidationError,
    401: exceptions.AuthenticationError,
    402: exceptions.DeclinedError,
    403: exceptions.PermissionDeniedError,
    404: exceptions.NotFoundError,
    405: exceptions.ValidationError,
    409: exceptions.ConflictError,
    413: exceptions.ValidationError,
    415: exceptions.ValidationError,
    418: exceptions.ValidationError,
    422: exceptions.ValidationError,
    429: exceptions.RateLimitedError,
    500: exceptions.ServerError,
    503: exceptions.UnavailableError,
}


def build_error(code: str, status: int = 400, **details: object) -> ApiError:
    body = ErrorBody(error="Request failed", code=code, details=details)
    return build_api_error(body, status, "r-1", 2.0)


@each("code", TABLE)
def test_every_error_code_raises_the_class_for_declines_or_for_its_status(code: Code) -> None:
    status, _ = TABLE[code]
    error = build_error(code, status)
    assert type(error) is (DeclinedError if code in DECLINES else CLASS_BY_STATUS[status])
    assert (error.code, error.status, error.request_id) == (code, status, "r-1")


def test_documentation_marks_declines_as_consuming_the_request_id() -> None:
    assert {"INSUFFICIENT_FUNDS", "DAILY_LIMIT_EXCEEDED", "CARD_NOT_ACTIVE"} < DECLINES


@each("status", CLASS_BY_STATUS)
def test_unknown_code_gets_the_class_of_its_status(status: int) -> None:
    error = build_error("FROM_THE_FUTURE", status)
    assert type(error) is CLASS_BY_STATUS[status]
    assert error.code == "FROM_THE_FUTURE"


def test_error_has_the_fields_of_the_response() -> None:
    body = ErrorBody(error="Invalid PIN", code="INVALID_PIN", message="Wrong", details={"a": 1})
    error = build_api_error(body, 400, "r-1", 2.0)
    assert (error.error, error.message, error.details) == ("Invalid PIN", "Wrong", {"a": 1})
    assert (error.code, error.retry_after) == (Code.INVALID_PIN, 2.0)
    assert str(error) == "INVALID_PIN (400) Invalid PIN: Wrong [r-1]"
    assert build_api_error(ErrorBody(error="x", code="X"), 400, "r-1").details == {}


@each("fields", [{"amount": "is too much"}, None, [], "4071"])
def test_validation_errors_are_available_by_field(fields: object) -> None:
    error = build_error("VALIDATION_FAILED", 422, fields=fields)
    assert isinstance(error, exceptions.ValidationError)
    assert error.fields == (fields if isinstance(fields, dict) else {})


def test_exceptions_can_be_pickled() -> None:
    declined = build_error("INSUFFICIENT_FUNDS", 402, available=1)
    for error in (
        declined,
        exceptions.OutcomeUnknownError("r-1"),
        exceptions.UnexpectedResponseError("r-1", 302),
        exceptions.SignatureError("no signature matches"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_all_exceptions_derive_from_tapgate_error_and_have_a_code() -> None:
    classes = [
        member
        for _, member in inspect.getmembers(exceptions, inspect.isclass)
        if issubclass(member, Exception)
    ]
    assert len(classes) == 16
    for error_class in classes:
        assert issubclass(error_class, TapgateError)
    assert exceptions.OutcomeUnknownError("r-1").code is None


async def test_replayed_decline_is_marked(client_factory: ClientFactory) -> None:
    harness = client_factory.harness
    sender, receiver = [await harness.create_subscriber() for _ in range(2)]
    gateway = await client_factory.create_for_admin("F")
    replayed = []
    for _ in range(2):
        with pytest.raises(DeclinedError) as raised:
            await gateway.wallet.transfer_funds(
                from_account_id=sender["account_id"],
                to_account_id=receiver["account_id"],
                amount="1000000.00",
                request_id="too much",
            )
        replayed.append(raised.value.replayed)
    assert replayed == [False, True]
    assert pickle.loads(pickle.dumps(raised.value)).replayed
