"""Notices: everyone affected by a change gets one, always and in the same transaction."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import httpx2
import pytest

from builders import participants as builders
from builders.card_proofs import confirm, create_keyset, encode_card, personalize, tap
from builders.float_requests import create_float_request
from builders.payments import PosDriver
from cases import each
from harness import PIN, Harness, parse_error
from tapgate.core.message_templates import TEMPLATES, Notice, TemplatePurpose
from tapgate.core.phone_numbers import mask_phone_number
from tapgate.core.settings import Settings
from tapgate.events.notifications.notification_messages import list_pending
from tapgate.events.notifications.receipts import ReceiptWorker
from tapgate.http.api.notice_declarations import Unnoticed, requires_notice_declaration
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import list_endpoints
from tapgate_client import ids

NEW_PIN = "7294"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Return settings without receipts: notices do not depend on them."""
    return settings.replace(receipts="off")


@pytest.mark.parametrize("endpoint", list_endpoints(), ids=lambda endpoint: endpoint.name)
def test_every_endpoint_that_affects_people_declares_its_notice_or_a_reason(
    endpoint: Endpoint,
) -> None:
    declarations = [bool(endpoint.notices), endpoint.unnoticed is not None]
    expected = int(requires_notice_declaration(endpoint))
    assert sum(declarations) == expected, "declare `notices` or `unnoticed`"
    assert set(endpoint.notices) <= set(Notice)
    assert endpoint.unnoticed is None or endpoint.unnoticed in tuple(Unnoticed)


@pytest.mark.parametrize("endpoint", list_endpoints(), ids=lambda endpoint: endpoint.name)
def test_secrets_of_somebody_else_are_guarded_and_nobodys_card_is_stock(endpoint: Endpoint) -> None:
    fields = getattr(endpoint.response_type, "__struct_fields__", ())
    returned = {"key", "keys", "secret", "hmac_secret", "webhook_secret"}.intersection(fields)
    if endpoint.method != "GET" and returned and not endpoint.objects & ObjectAccess.OWN:
        assert endpoint.guard is not None, f"{returned} without an approval"
    if endpoint.unnoticed is Unnoticed.STOCK:
        assert not endpoint.objects & ObjectAccess.UNRESTRICTED, "the card can be a customer's"


def test_every_notice_has_a_template() -> None:
    declared = {name for name, item in TEMPLATES.items() if item.purpose is TemplatePurpose.NOTICE}
    assert declared == set(Notice)
    assert all(TEMPLATES[notice].can_be_sms for notice in Notice)
    assert all(TEMPLATES[notice].is_essential for notice in Notice)


@each("name", sorted(TEMPLATES))
def test_template_has_the_same_parameters_in_every_language(name: str) -> None:
    template = TEMPLATES[name]
    assert template.texts.keys() == {"en", "fr"}
    assert {text.count("{}") for text in template.texts.values()} == {template.parameter_count}


class NoticeCase(NamedTuple):
    """People affected by the tested requests."""

    harness: Harness
    customer: dict[str, Any]
    agent: dict[str, Any]
    serial: str

    async def request(
        self, method: str, path: str, body: dict[str, Any] | None = None, auth: Any = None
    ) -> httpx2.Response:
        auth = auth or await self.harness.create_admin()
        return await self.harness.client.request(method, f"/api/v1{path}", json=body, auth=auth)

    async def redeem_code(self, request_path: str, path: str, body: dict[str, Any]) -> Any:
        """Request a code, read it from the outbox and redeem it."""
        admin = await self.harness.create_admin()
        assert (await self.request("POST", request_path, auth=admin)).status_code == 200
        phone = self.agent if "/agents/" in path else self.customer
        code = await self.harness.get_pending_code(phone["phone_number"])
        return await self.request("POST", path, {"otp": code, **body}, admin)


async def create_case(harness: Harness) -> NoticeCase:
    customer = await harness.create_subscriber(language="fr", balance="500")
    agent = await builders.create_agent(harness)
    serial = await harness.create_card(customer["id"])
    return NoticeCase(harness, customer, agent, serial)


async def change_phone(case: NoticeCase) -> httpx2.Response:
    body = {"phone_number": case.harness.new_phone_number()}
    return await case.request("PUT", f"/subscribers/{case.customer['id']}", body)


async def change_agent_phone(case: NoticeCase) -> httpx2.Response:
    body = {"phone_number": case.harness.new_phone_number()}
    return await case.request("PUT", f"/agents/{case.agent['id']}", body)


def post_to_customer(verb: str, body: dict[str, Any] | None = None, before: str = "") -> Any:
    async def act(case: NoticeCase) -> httpx2.Response:
        path = f"/subscribers/{case.customer['id']}"
        if before:
            await case.request("POST", f"{path}/{before}", {"reason": "check"})
        return await case.request("POST", f"{path}/{verb}", body)

    return act


def post_to_agent(verb: str, body: dict[str, Any] | None = None, before: str = "") -> Any:
    async def act(case: NoticeCase) -> httpx2.Response:
        path = f"/agents/{case.agent['id']}"
        if before:
            await case.request("POST", f"{path}/{before}", {"reason": "check"})
        return await case.request("POST", f"{path}/{verb}", body)

    return act


async def close_wallet(case: NoticeCase) -> httpx2.Response:
    await case.harness.database.execute("UPDATE accounts SET balance = 0 WHERE kind = 'wallet'")
    return await post_to_customer("close", {"reason": "left"})(case)  # type: ignore[no-any-return]


async def reset_pin(case: NoticeCase) -> httpx2.Response:
    path = f"/subscribers/{case.customer['id']}/reset-pin"
    return await case.redeem_code(path, f"{path}/confirm", {"new_pin": NEW_PIN})  # type: ignore[no-any-return]


async def reset_agent_pin(case: NoticeCase) -> httpx2.Response:
    path = f"/agents/{case.agent['id']}/reset-pin"
    return await case.redeem_code(path, f"{path}/confirm", {"new_pin": NEW_PIN})  # type: ignore[no-any-return]


async def open_record(case: NoticeCase) -> httpx2.Response:
    path = f"/subscribers/{case.customer['id']}/restricted-access"
    return await case.redeem_code(path, f"{path}/verify", {})  # type: ignore[no-any-return]


async def link(case: NoticeCase) -> httpx2.Response:
    serial = await builders.create_card(case.harness)
    return await builders.link_card(case.harness, serial, case.customer["id"])


async def link_child(case: NoticeCase) -> httpx2.Response:
    serial = await builders.create_card(case.harness)
    return await builders.link_child_card(case.harness, serial, case.customer["id"])


async def link_child_serial(case: NoticeCase) -> str:
    serial = await builders.create_card(case.harness)
    await builders.link_child_card(case.harness, serial, case.customer["id"])
    return serial


async def change_child_limit(case: NoticeCase) -> httpx2.Response:
    path = f"/cards/{await link_child_serial(case)}"
    await case.harness.database.execute("DELETE FROM messages")
    return await case.request("PUT", path, {"daily_limit": "50"})


async def change_child_pin(case: NoticeCase) -> httpx2.Response:
    body = {"old_pin": builders.CHILD_PIN, "new_pin": NEW_PIN}
    return await case.request("POST", f"/cards/{await link_child_serial(case)}/change-pin", body)


async def reset_child_pin(case: NoticeCase) -> httpx2.Response:
    path = f"/cards/{await link_child_serial(case)}/reset-pin"
    return await case.redeem_code(path, f"{path}/confirm", {"new_pin": NEW_PIN})  # type: ignore[no-any-return]


async def block(case: NoticeCase) -> httpx2.Response:
    return await builders.block_card(case.harness, case.serial, "stolen")


async def unblock(case: NoticeCase) -> httpx2.Response:
    serial = await case.harness.create_card(case.customer["id"], status="BLOCKED")
    return await builders.unblock_card(case.harness, serial)


async def replace_card(case: NoticeCase) -> httpx2.Response:
    return await case.request("POST", f"/cards/{case.serial}/replace", {"reason": "lost"})


async def issue_keys(case: NoticeCase) -> httpx2.Response:
    return await personalize(case.harness, case.serial, await create_keyset(case.harness))


async def confirm_keys(case: NoticeCase) -> httpx2.Response:
    chip = await encode_card(case.harness, case.serial, await create_keyset(case.harness))
    return await confirm(case.harness, case.serial, tap(chip))


async def confirm_replacement(case: NoticeCase) -> httpx2.Response:
    admin, path = await case.harness.create_admin(), f"/cards/{case.serial}/replace"
    await case.request("POST", path, {"reason": "lost"}, admin)
    body = {
        "card_serial": await builders.create_card(case.harness),
        "otp": await case.harness.get_pending_code(case.customer["phone_number"]),
    }
    return await case.request("POST", f"{path}/confirm", body, admin)


async def transfer(case: NoticeCase) -> httpx2.Response:
    other = await case.harness.create_subscriber()
    account = "SELECT account_id FROM subscribers WHERE id = $1"
    sender, receiver = [
        ids.encode(
            ids.ACCOUNT,
            await case.harness.database.fetchval(account, ids.decode(ids.SUBSCRIBER, item["id"])),
        )
        for item in (case.customer, other)
    ]
    body = {"from_account_id": sender, "to_account_id": receiver, "amount": "50.00"}
    return await case.request("POST", "/wallet/transfer", body)


async def pay_out_commission(case: NoticeCase) -> httpx2.Response:
    await builders.fund_agent(case.harness, case.agent, "1000.00")
    await builders.cash_in(case.harness, case.agent, case.customer, "200.00")
    return await builders.pay_out_commission(case.harness, case.agent)


async def transfer_from_processor(case: NoticeCase) -> httpx2.Response:
    processor = (await builders.create_processor(case.harness))["processor"]["id"]
    await builders.deposit_to_processor(case.harness, processor, "100.00")
    body = {"subscriber_id": case.customer["id"], "amount": "10.00"}
    return await case.request("POST", f"/processors/{processor}/transfer", body)


async def fund_from_partner(case: NoticeCase) -> httpx2.Response:
    partner = await builders.create_partner(case.harness)
    path = f"/admin/partners/{partner['partner']['id']}/fund"
    await case.request("POST", path, {"amount": "100.00"})
    body = {
        "subscriber_id": case.customer["id"],
        "partner_id": partner["partner"]["id"],
        "partner_reference": "ref-1",
        "amount": "10.00",
    }
    return await case.request("POST", "/wallet/fund-from-partner", body)


async def refund(case: NoticeCase) -> httpx2.Response:
    pos = PosDriver(case.harness, await case.harness.create_processor(), case.customer)
    pos.card = case.serial
    paid = (await pos.pay("10.00")).json()["transaction_id"]
    body = {"reason": "broken", "request_id": "refund-1"}
    return await case.request("POST", f"/transactions/{paid}/refund", body)


async def reverse(case: NoticeCase) -> httpx2.Response:
    funded = (await fund_from_partner(case)).json()["transaction_id"]
    body = {"reason": "wrong customer", "request_id": "reversal-1"}
    return await case.request("POST", f"/transactions/{funded}/reverse", body)


async def fund_float_request(case: NoticeCase) -> httpx2.Response:
    item = await create_float_request(case.harness, case.agent)
    return await case.request("POST", f"/float-requests/{item['id']}/fund", {})


async def object_to_phone_change(case: NoticeCase) -> httpx2.Response:
    await change_phone(case)
    body = {"phone_number": case.customer["phone_number"]}
    path = f"/subscribers/{case.customer['id']}/dispute-phone-change"
    return await case.request("POST", path, body, case.harness.get_service_auth())


PINS = {"old_pin": PIN, "new_pin": NEW_PIN}
REASON = {"reason": "check"}
#: One request per endpoint that declares a notice.
ACTS: dict[str, Callable[[NoticeCase], Awaitable[httpx2.Response]]] = {
    "PUT /api/v1/subscribers/{id}": change_phone,
    "POST /api/v1/subscribers/{id}/dispute-phone-change": object_to_phone_change,
    "POST /api/v1/subscribers/{id}/block": post_to_customer("block", REASON),
    "POST /api/v1/subscribers/{id}/unblock": post_to_customer("unblock", REASON, before="block"),
    "POST /api/v1/subscribers/{id}/close": close_wallet,
    "POST /api/v1/subscribers/{id}/change-pin": post_to_customer("change-pin", PINS),
    "POST /api/v1/subscribers/{id}/reset-pin/confirm": reset_pin,
    "POST /api/v1/subscribers/{id}/restricted-access/verify": open_record,
    "POST /api/v1/cards/link": link,
    "POST /api/v1/cards/child": link_child,
    "PUT /api/v1/cards/{serial}": change_child_limit,
    "POST /api/v1/cards/{serial}/block": block,
    "POST /api/v1/cards/{serial}/unblock": unblock,
    "POST /api/v1/cards/{serial}/replace": replace_card,
    "POST /api/v1/cards/{serial}/replace/confirm": confirm_replacement,
    "POST /api/v1/cards/{serial}/personalize": issue_keys,
    "POST /api/v1/cards/{serial}/personalize/confirm": confirm_keys,
    "POST /api/v1/cards/{serial}/change-pin": change_child_pin,
    "POST /api/v1/cards/{serial}/reset-pin/confirm": reset_child_pin,
    "POST /api/v1/wallet/transfer": transfer,
    "POST /api/v1/processors/{id}/transfer": transfer_from_processor,
    "POST /api/v1/wallet/fund-from-partner": fund_from_partner,
    "POST /api/v1/transactions/{id}/refund": refund,
    "POST /api/v1/transactions/{id}/reverse": reverse,
    "PUT /api/v1/agents/{id}": change_agent_phone,
    "POST /api/v1/agents/{id}/suspend": post_to_agent("suspend", REASON),
    "POST /api/v1/agents/{id}/activate": post_to_agent("activate", REASON, before="suspend"),
    "POST /api/v1/agents/{id}/terminate": post_to_agent("terminate", REASON),
    "POST /api/v1/agents/{id}/change-pin": post_to_agent(
        "change-pin", {"old_pin": builders.AGENT_PIN, "new_pin": NEW_PIN}
    ),
    "POST /api/v1/agents/{id}/reset-pin/confirm": reset_agent_pin,
    "POST /api/v1/agents/{id}/fund": post_to_agent("fund", {"amount": "100.00"}),
    "POST /api/v1/agents/{id}/payout-commission": pay_out_commission,
    "POST /api/v1/float-requests/{id}/fund": fund_float_request,
}
NOTIFYING = [endpoint for endpoint in list_endpoints() if endpoint.notices]


@pytest.mark.parametrize("endpoint", NOTIFYING, ids=lambda endpoint: endpoint.name)
async def test_affected_person_gets_the_declared_notice(
    harness: Harness, endpoint: Endpoint
) -> None:
    case = await create_case(harness)
    response = await ACTS[endpoint.name](case)
    assert response.status_code in (200, 201), response.text
    await ReceiptWorker(harness.services).enqueue_due()
    is_agent = "/agents/" in endpoint.path or "/float-requests/" in endpoint.path
    person = case.agent if is_agent else case.customer
    pending = await list_pending(harness.database, harness.services.vault, person["phone_number"])
    sent = [message for message in pending if message.template in endpoint.notices]
    assert sent, f"no {endpoint.notices}"
    message = sent[0]
    assert message.language == ("en" if is_agent else "fr")
    text = TEMPLATES[message.template].render(message.language, message.parameters)
    assert "appelez" in text or "call support" in text
    for secret in (PIN, NEW_PIN, case.serial, person["phone_number"], "Kamara"):
        assert secret not in text


async def test_old_and_new_number_learn_about_a_phone_change(harness: Harness) -> None:
    case = await create_case(harness)
    old = case.customer["phone_number"]
    new = (await change_phone(case)).json()["phone_number"]
    masked = [mask_phone_number(number) for number in (old, new)]
    ((name, *numbers, action),) = await harness.list_pending_messages(old, "phone_changed")
    assert (name, numbers) == ("Aminata K.", masked)
    assert "24 heures" in action
    ((_, *numbers, action),) = await harness.list_pending_messages(new, "phone_changed")
    assert numbers == masked
    assert "24 heures" not in action
    buttons = await harness.database.fetch(
        "SELECT recipient, button FROM messages WHERE template = 'phone_changed'"
    )
    assert {row["recipient"]: row["button"] for row in buttons} == {old: "veto", new: None}


async def test_both_parties_learn_about_money_that_an_admin_moves(harness: Harness) -> None:
    case = await create_case(harness)
    body = (await transfer(case)).json()
    await ReceiptWorker(harness.services).enqueue_due()
    sent = await harness.list_pending_messages(case.customer["phone_number"], "money_corrected")
    text = "a prélevé 50,00\u00a0SLE sur votre portefeuille"
    assert sent == [["Aminata K.", text, body["transaction_id"]]]
    recipients = await harness.database.fetchval(
        "SELECT count(*) FROM messages WHERE template = 'money_corrected'"
    )
    assert recipients == 2


async def test_transaction_that_the_customer_authorizes_sends_no_notice(harness: Harness) -> None:
    case = await create_case(harness)
    other = await harness.create_subscriber()
    body = {
        "sender_id": case.customer["id"],
        "recipient_phone_number": other["phone_number"],
        "amount": "10.00",
        "pin": PIN,
    }
    response = await case.request("POST", "/wallet/transfer-p2p", body, harness.get_service_auth())
    assert response.status_code == 200, response.text
    await ReceiptWorker(harness.services).enqueue_due()
    assert await harness.database.fetchval("SELECT count(*) FROM messages") == 0


async def test_agent_who_is_also_a_subscriber_gets_notices_in_the_agent_language(
    harness: Harness,
) -> None:
    agent = await builders.create_agent(harness)
    await harness.create_subscriber(phone_number=agent["phone_number"], language="fr")
    await builders.change_status(harness, agent, "suspend")
    ((_, text),) = await harness.list_pending_messages(agent["phone_number"], "wallet_changed")
    assert text == "votre compte d'agent a été suspendu"


async def test_rejected_or_unchanged_request_sends_no_notice(harness: Harness) -> None:
    case = await create_case(harness)
    path = f"/subscribers/{case.customer['id']}"
    response = await case.request("PUT", path, {"phone_number": case.customer["phone_number"]})
    assert response.status_code == 200
    assert parse_error(await case.request("POST", f"{path}/unblock")) == (409, "NOT_BLOCKED")
    wrong = {"old_pin": "9999", "new_pin": NEW_PIN}
    response = await case.request("POST", f"{path}/change-pin", wrong)
    assert parse_error(response) == (400, "INVALID_PIN")
    assert await harness.database.fetchval("SELECT count(*) FROM messages") == 0
