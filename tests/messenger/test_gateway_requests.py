"""Engine requests performed against the real gateway."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from builders.books import configure_peer
from builders.card_proofs import create_signing_card, tap
from builders.participants import create_card
from cases import each
from drivers.gateway_requests import open_gateway
from drivers.in_process import AppTransport
from harness import PIN, WRONG_PIN, Harness
from tapgate.messenger import card_requests, gateway_requests
from tapgate.messenger.model import Card, GatewayUnreachable, RequestRejected, RequestSucceeded
from tapgate.server.gateway import create_app
from tapgate_client import AsyncTapgateClient
from tapgate_client.errors import Code
from tapgate_client.schemas.books import BookCustomer
from tapgate_client.schemas.cards import DisclosedCard


@pytest.fixture
async def gateway(harness: Harness) -> AsyncIterator[AsyncTapgateClient]:
    secret = harness.services.settings.service_secrets["messenger"]
    yield open_gateway(AppTransport(create_app(harness.services)), secret)


async def perform(gateway: AsyncTapgateClient, request: gateway_requests.GatewayRequest) -> Any:
    outcome = await gateway_requests.perform(gateway, request)
    assert isinstance(outcome, RequestSucceeded), outcome
    return outcome.result


async def perform_and_get_code(
    gateway: AsyncTapgateClient, request: gateway_requests.GatewayRequest
) -> str:
    outcome = await gateway_requests.perform(gateway, request)
    assert isinstance(outcome, RequestRejected), outcome
    return outcome.code


async def test_subscriber_is_found_by_phone_number(
    harness: Harness, gateway: AsyncTapgateClient
) -> None:
    record = await harness.create_subscriber()
    found = await perform(gateway, gateway_requests.FindSubscriber(phone=record["phone_number"]))
    assert (found.id, found.first_name, found.kyc_level) == (record["id"], "Aminata", 1)
    found = await perform(
        gateway, gateway_requests.FindSubscriber(phone=harness.new_phone_number())
    )
    assert found is None


async def test_card_is_linked_by_the_link_of_its_tap(
    harness: Harness, gateway: AsyncTapgateClient
) -> None:
    holder = await harness.create_subscriber()
    serial = await create_card(harness, uid="04:A2:B3:C4:D5:E6:F7")
    proof = tap(await create_signing_card(harness, serial))
    url = f"https://pay.example/t?picc_data={proof['picc_data']}&cmac="

    def build_request(mac: str) -> gateway_requests.ClientRequest:
        return gateway_requests.client_request(
            "cards.link", subscriber_id=holder["id"], card_proof=url + mac, pin=PIN
        )

    forged = await perform_and_get_code(gateway, build_request("0" * 16))
    assert forged == Code.CARD_NOT_GENUINE
    linked = await perform(gateway, build_request(proof["cmac"]))
    assert (linked.card.serial, linked.card.status) == (serial, "ACTIVE")


async def test_payee_name_matches_the_receipt(
    harness: Harness, gateway: AsyncTapgateClient
) -> None:
    sender = await harness.create_subscriber(balance="100.00")
    payee = await harness.create_subscriber(first_name="Mary Ann", last_name="Kamara Sesay")
    phone, serial = payee["phone_number"], await harness.create_card(payee["id"])
    for identifier, request in (
        (phone, gateway_requests.FindPayeeByPhone(phone=phone)),
        (serial, gateway_requests.FindPayeeByCard(card_serial=serial)),
    ):
        found = await perform(gateway, request)
        expected = gateway_requests.Payee(
            name="Mary Ann K.", can_receive=True, payee=identifier, subscriber_id=payee["id"]
        )
        assert found == expected
        receipt = await perform(
            gateway,
            gateway_requests.SendMoney(
                request_id=f"to-{identifier}",
                sender_id=sender["id"],
                payee=identifier,
                amount="10.00",
                pin=PIN,
            ),
        )
        assert receipt.recipient.name == found.name
    assert await perform(gateway, gateway_requests.FindPayeeByCard(card_serial="NO-SUCH-1")) is None


async def test_payee_in_another_book_is_named_with_the_book(
    harness: Harness, gateway: AsyncTapgateClient
) -> None:
    await configure_peer(harness, "south")
    sender, phone = await harness.create_subscriber(balance="100.00"), harness.new_phone_number()
    customer = BookCustomer(
        book="south", subscriber_id="sub_1", name="Fatu S.", can_receive=True, version=1
    )
    directory = harness.services.book_peers.directory
    for key in (("phone_number", phone), ("card_serial", "SOUTH-1")):
        directory.put(key, customer)
    for payee, request in (
        (phone, gateway_requests.FindPayeeByPhone(phone=phone)),
        ("SOUTH-1", gateway_requests.FindPayeeByCard(card_serial="SOUTH-1")),
    ):
        found = await perform(gateway, request)
        assert (found.name, found.book, found.payee) == ("Fatu S. (south)", "south", payee)
        send = gateway_requests.SendMoney(
            request_id=f"to-{payee}", sender_id=sender["id"], payee=payee, amount="10.00", pin=PIN
        )
        receipt = await perform(gateway, send)
        assert (receipt.recipient.name, receipt.recipient.book) == ("Fatu S.", "south")
    rows = await harness.database.fetch("SELECT book, recipient_id FROM book_transfers")
    assert [tuple(row) for row in rows] == [("south", "sub_1")] * 2


async def test_payee_who_moved_is_found_in_the_other_book(
    harness: Harness, gateway: AsyncTapgateClient
) -> None:
    await configure_peer(harness, "south")
    old = await harness.create_subscriber()
    phone, serial = old["phone_number"], await harness.create_card(old["id"])
    child = await harness.create_card(old["id"], type="CHILD", holder_name="Isatu Kamara")
    response = await harness.post(
        f"/api/v1/subscribers/{old['id']}/close",
        json={"reason": "Moves to the south"},
        auth=await harness.create_admin("A"),
    )
    assert response.status_code == 200, response.text
    customer = BookCustomer(
        book="south", subscriber_id="sub_1", name="Fatu S.", can_receive=True, version=1
    )
    directory = harness.services.book_peers.directory
    for key in (("phone_number", phone), ("card_serial", serial), ("card_serial", child)):
        directory.put(key, customer)
    for request in (
        gateway_requests.FindPayeeByPhone(phone=phone),
        gateway_requests.FindPayeeByCard(card_serial=serial),
        gateway_requests.FindPayeeByCard(card_serial=child),
    ):
        assert (await perform(gateway, request)).book == "south"


async def test_payee_cannot_receive_money_with_a_blocked_card(
    harness: Harness, gateway: AsyncTapgateClient
) -> None:
    payee = await harness.create_subscriber()
    blocked = await harness.create_card(payee["id"], status="BLOCKED")
    found = await perform(gateway, gateway_requests.FindPayeeByCard(card_serial=blocked))
    assert not found.can_receive


async def test_history_abbreviates_last_names_and_shows_the_fee_to_the_payer(
    harness: Harness, gateway: AsyncTapgateClient
) -> None:
    sender = await harness.create_subscriber(balance="100.00")
    payee = await harness.create_subscriber(first_name="Mary", last_name="Sesay")
    serial = await harness.create_card(payee["id"])
    send = gateway_requests.SendMoney(
        request_id="once", sender_id=sender["id"], payee=serial, amount="10.00", pin=PIN
    )
    await perform(gateway, send)
    (movement, *_) = await perform(
        gateway, gateway_requests.ListTransactions(subscriber_id=sender["id"], limit=5)
    )
    assert not movement.is_credit
    assert (movement.amount, movement.counterparty_name) == ("10.00", "Mary S.")
    assert movement.fee == "0.15"
    (movement, *_) = await perform(
        gateway, gateway_requests.ListTransactions(subscriber_id=payee["id"], limit=5)
    )
    assert (movement.is_credit, movement.counterparty_name) == (True, "Aminata K.")
    assert movement.fee == "0.00"


async def test_card_of_another_subscriber_is_not_found(
    harness: Harness, gateway: AsyncTapgateClient
) -> None:
    owner, eve = await harness.create_subscriber(), await harness.create_subscriber()
    serial = await harness.create_card(owner["id"])
    block = card_requests.BlockCard(subscriber_id=eve["id"], card_serial=serial, reason="lost")
    assert await perform_and_get_code(gateway, block) == Code.CARD_NOT_FOUND
    unblock = card_requests.UnblockCard(subscriber_id=eve["id"], card_serial=serial, pin=PIN)
    assert await perform_and_get_code(gateway, unblock) == Code.CARD_NOT_FOUND
    (card,) = await perform(gateway, card_requests.ListCards(subscriber_id=owner["id"]))
    assert card.status == "ACTIVE"


async def test_unblocking_a_card_requires_the_pin(
    harness: Harness, gateway: AsyncTapgateClient
) -> None:
    owner = await harness.create_subscriber()
    serial = await harness.create_card(owner["id"])
    mine = {"subscriber_id": owner["id"], "card_serial": serial}
    card = await perform(gateway, card_requests.BlockCard(**mine, reason="customer_request"))
    assert card.status == "BLOCKED"
    found = await perform_and_get_code(gateway, card_requests.UnblockCard(**mine, pin=WRONG_PIN))
    assert found == Code.INVALID_PIN
    card = await perform(gateway, card_requests.UnblockCard(**mine, pin=PIN))
    assert card.status == "ACTIVE"


async def test_support_request_contains_the_words_and_the_transcript(
    harness: Harness, gateway: AsyncTapgateClient
) -> None:
    record = await harness.create_subscriber()
    phone = record["phone_number"]
    contact = gateway_requests.ContactSupport(phone=phone, text="Help", transcript=("Chat: Hi",))
    await perform(gateway, contact)
    follow_up = gateway_requests.ContactSupport(phone=phone, text="x" * 5000, append_only=True)
    await perform(gateway, follow_up)
    listed = await harness.get("/api/v1/support/requests", auth=await harness.create_admin("S"))
    (request,) = listed.json()["data"]
    assert request["subscriber_id"] == record["id"]
    assert [message["text"] for message in request["messages"]] == [
        "Help\n\nLast messages in the chat:\nChat: Hi",
        "x" * 4096,
    ]


def test_card_of_a_restricted_subscriber_has_no_type_and_holder() -> None:
    hidden = DisclosedCard(
        serial="C-1", status="BLOCKED", status_reason="lost", subscriber_id="sub_1", restricted=True
    )
    expected = Card(serial="C-1", type=None, status="BLOCKED", holder_name=None)
    assert card_requests.to_card(hidden) == expected


class FailingTransport(httpx2.AsyncBaseTransport):
    def __init__(self, failure: Exception | httpx2.Response) -> None:
        self._failure = failure

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if isinstance(self._failure, Exception):
            raise self._failure
        return self._failure


SEND_MONEY = gateway_requests.SendMoney(
    request_id="r", sender_id="sub_1", payee="C-1", amount="1", pin=PIN
)


@each(
    "failure, uncertain",
    [
        (httpx2.ConnectError("refused"), False),
        (httpx2.ReadTimeout("timed out"), True),
        (httpx2.Response(503, json={"error": "x", "code": "SERVICE_UNAVAILABLE"}), True),
        (httpx2.Response(429, json={"error": "x", "code": "RATE_LIMITED"}), False),
        (httpx2.Response(500, json={"error": "x", "code": "INTERNAL_ERROR"}), True),
        (httpx2.Response(200, text="<html>a proxy</html>"), True),
        (httpx2.Response(403, json={"error": "x", "code": "FORBIDDEN"}), False),
    ],
)
async def test_failed_request_reports_whether_its_outcome_is_uncertain(
    failure: Exception | httpx2.Response, uncertain: bool
) -> None:
    outcome = await gateway_requests.perform(
        open_gateway(FailingTransport(failure), "secret"), SEND_MONEY
    )
    assert outcome == GatewayUnreachable(uncertain=uncertain)


def test_every_request_to_the_gateway_can_be_performed() -> None:
    base = gateway_requests.GatewayRequest
    not_performed = {kind for kind in base.__subclasses__() if kind.perform is base.perform}
    assert not_performed == {
        gateway_requests.SendOneTimeCode,
        gateway_requests.VerifyOneTimeCode,
        gateway_requests.AddKeptDocument,
        gateway_requests.CountKeptImages,
    }


async def test_support_contact_comes_from_the_branding(
    harness: Harness, gateway: AsyncTapgateClient
) -> None:
    request = gateway_requests.GetSupportContact()
    assert await perform(gateway, request) == harness.services.settings.support_contact
    response = await harness.put(
        "/api/v1/admin/branding",
        json={"support_contact": "help@example.com"},
        auth=await harness.create_admin("A"),
    )
    assert response.status_code == 200, response.text
    assert await perform(gateway, request) == "help@example.com"
    unavailable = open_gateway(httpx2.MockTransport(lambda _: httpx2.Response(503)), "secret" * 8)
    assert await perform(unavailable, request) is None
