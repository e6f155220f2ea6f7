"""Everyday questions: cash, agents, fees, declined payments, wrong recipients, support hours."""

from datetime import timedelta

import msgspec

from builders.conversation import NOW, PIN, ConversationDriver, resolve_text_message
from cases import each
from tapgate.messenger import gateway_requests
from tapgate.messenger.gateway_requests import client_request
from tapgate.messenger.model import RequestSucceeded
from tapgate_client.schemas.wallets import Quote, QuoteLimits


def ask(text: str, language: str = "en", **settings: object) -> ConversationDriver:
    chat = ConversationDriver(language, **settings)
    chat(resolve_text_message(text))
    return chat


def list_offered(chat: ConversationDriver) -> list[str]:
    assert chat.last_offer is not None
    return [option.id.removeprefix("cmd:") for option in chat.last_offer.options]


# Cash and agents


@each(
    "text, language, reply, command",
    [
        ("how do i add money", "en", "To add money, go to an agent", "add_money"),
        ("comment ajouter de l'argent", "fr", "Pour ajouter de l'argent", "add_money"),
        ("how do i withdraw cash", "en", "To withdraw cash, go to an agent", "withdraw"),
        ("comment retirer de l'argent", "fr", "Pour retirer des espèces", "withdraw"),
    ],
)
def test_cash_question_is_answered_and_offers_agents(text, language, reply, command):
    chat = ask(text, language)
    assert reply in chat.reply_text
    assert list_offered(chat)[0] == "nearest_agent"
    assert command not in list_offered(chat)
    assert chat.gateway.requests == []


@each(
    "text, language, title",
    [
        ("where is an agent in Bo?", "en", "Agents in Bo:"),
        ("où trouver un agent à Bo ?", "fr", "Agents à Bo :"),
        ("usay ejɛnt de na Bo?", "en", "Agents in Bo:"),
    ],
)
def test_agents_of_the_named_place_are_listed(text, language, title):
    chat = ask(text, language)
    assert title in chat.reply_text
    assert "• *Kargbo Shop* · 5 Main St, Bo" in chat.reply_text
    assert list_offered(chat) == ["add_money", "withdraw", "menu"]


def test_place_is_requested_and_can_be_corrected():
    chat = ask("where is the nearest agent?")
    assert chat.conversation.step == "place"
    assert "found no agent" in chat("Kailahun")
    assert chat.conversation.step == "place"
    assert "Kargbo Shop" in chat("in Bo")
    assert chat.conversation.stage == "idle"


# Fees


@each(
    "text, language, reply",
    [
        (
            "how much does it cost to send 500?",
            "en",
            "Sending *500.00 SLE* costs a fee of *7.50 SLE*. The total is *507.50 SLE*.",
        ),
        (
            "combien ça coûte d'envoyer 500 ?",
            "fr",
            "Envoyer *500,00\xa0SLE* coûte *7,50\xa0SLE* de frais. "
            "Le total est de *507,50\xa0SLE*.",
        ),
        (
            "omɔs fɔ sɛn 500?",
            "en",
            "Sending *500.00 SLE* costs a fee of *7.50 SLE*. The total is *507.50 SLE*.",
        ),
    ],
)
def test_fee_question_is_answered_with_a_quote(text, language, reply):
    chat = ask(text, language)
    assert reply in chat.reply_text
    assert list_offered(chat) == ["send", "limits", "menu"]
    assert chat.gateway.payments == []


def test_quote_tells_whether_a_pin_is_required_and_what_is_left():
    quote = Quote(
        amount="500.00",
        fee_amount="7.50",
        total="507.50",
        currency="SLE",
        allowed=True,
        reasons=[],
        pin_required=True,
        limits=QuoteLimits(
            transaction="5000.00", daily_remaining="8500.00", monthly_remaining="90000.00"
        ),
    )
    chat = ConversationDriver()
    chat.gateway.overrides = {"wallet.create_quote": [RequestSucceeded(result=quote)]}
    chat(resolve_text_message("how much does it cost to send 500?"))
    assert "You'll need your PIN" in chat.reply_text
    assert "*8,500.00 SLE* today and *90,000.00 SLE* this month" in chat.reply_text


def test_person_without_a_wallet_gets_the_fee_and_can_register():
    chat = ConversationDriver()
    chat.gateway.subscriber = None
    chat(resolve_text_message("how much does it cost to send 500?"))
    assert "*7.50 SLE*" in chat.reply_text
    assert chat.list_requests("wallet.create_quote")[0].fields["sender_id"] is None
    assert list_offered(chat) == ["register", "menu"]


def test_untrusted_person_gets_a_quote_without_limits():
    chat = ConversationDriver()
    chat.person = msgspec.structs.replace(chat.person, trusted=False)
    chat(resolve_text_message("how much does it cost to send 500?"))
    assert chat.list_requests("wallet.create_quote")[0].fields["sender_id"] is None


def test_fee_question_does_not_take_four_bare_digits_as_an_amount():
    chat = ask("what are the fees?")
    assert "looks like a PIN" in chat(PIN)
    assert chat.conversation.step == "amount"
    assert PIN not in str(chat.conversation)
    assert chat.list_requests("wallet.create_quote") == []
    assert "*5,000.00 SLE*" in chat("5000 SLE")


def test_another_fee_question_answers_the_question_for_the_amount():
    chat = ask("what are the fees?")
    assert "*7.50 SLE*" in chat("what is the fee for 500?")


# Declined payments


@each(
    "code, reason, command",
    [
        ("INSUFFICIENT_FUNDS", "wasn't enough money", "balance"),
        ("DAILY_LIMIT_EXCEEDED", "over your daily limit", "limits"),
        ("CARD_NOT_ACTIVE", "card wasn't active", "cards"),
        ("COMPLIANCE_REJECTED", "couldn't be completed", "history"),
        ("SOMETHING_NEW", "No money was taken", "history"),
    ],
)
def test_last_decline_is_explained(code, reason, command):
    decline = gateway_requests.TransactionSummary(
        type="pos_payment",
        status="failed",
        is_credit=False,
        amount="75.00",
        fee="0.00",
        currency="SLE",
        counterparty_name="Kamara Stores",
        at=NOW - timedelta(hours=1),
        failure_code=code,
    )
    chat = ConversationDriver()
    chat.gateway.overrides = {gateway_requests.GetLastDecline: [RequestSucceeded(result=decline)]}
    chat(resolve_text_message("why was my payment declined?"))
    assert "*75.00 SLE* to Kamara Stores on 14 Mar 2026, 08:30 was declined" in chat.reply_text
    assert reason in chat.reply_text
    assert list_offered(chat) == [command, "person", "menu"]


@each(
    "text, language, reply",
    [
        ("why was my payment declined?", "en", "None of your recent payments was declined"),
        ("pourquoi mon paiement a été refusé ?", "fr", "Aucun de vos derniers paiements"),
    ],
)
def test_question_without_a_declined_payment_offers_support(text, language, reply):
    chat = ask(text, language)
    assert reply in chat.reply_text
    assert "person" in list_offered(chat)


# Wrong recipient and support


@each(
    "text, language, reply",
    [
        ("i sent money to the wrong number", "en", "can't be taken back"),
        ("j'ai envoyé l'argent au mauvais numéro", "fr", "ne peut pas être repris"),
        ("a sɛn di mɔni to di rɔng nɔmba", "en", "can't be taken back"),
    ],
)
def test_wrong_recipient_reads_what_to_do(text, language, reply):
    chat = ask(text, language)
    assert reply in chat.reply_text
    assert list_offered(chat) == ["person", "history", "menu"]
    assert chat.conversation.stage == "idle"
    assert chat.gateway.payments == []


def test_contact_shows_the_hours_and_address_that_are_set():
    chat = ask("when are you open?", support_hours="Mon-Sat 8:00-18:00", support_contact="+232 25")
    assert "Opening hours: Mon-Sat 8:00-18:00" in chat.reply_text
    assert "Contact: +232 25" in chat.reply_text
    assert list_offered(chat)[0] == "person"
    text = ask("when are you open?").reply_text
    assert "Opening hours" not in text
    assert "Contact:" not in text
    assert "Talk to a person" in text


def test_branding_contact_replaces_the_setting():
    chat = ConversationDriver(support_contact="+232 25")
    branded = RequestSucceeded(result="help@example.com")
    chat.gateway.overrides = {gateway_requests.GetSupportContact: [branded]}
    chat(resolve_text_message("when are you open?"))
    assert "Contact: help@example.com" in chat.reply_text
    assert "+232 25" not in chat.reply_text
    assert chat.conversation.stage == "idle"


def test_fee_question_about_an_unsendable_amount_names_the_obstacle():
    chat = ask("how much does it cost to send 5000?")
    assert "*75.00 SLE*" in chat.reply_text
    assert "You don't have enough money in your wallet for this." in chat.reply_text
    assert "PIN" not in chat.reply_text
    assert list_offered(chat) == ["balance", "limits", "menu"]


def test_fee_of_an_amount_that_compliance_rejects_gets_no_advice():
    chat = ConversationDriver()
    request = client_request(
        "wallet.create_quote", type="transfer_p2p", sender_id="sub_me", amount="5000"
    )
    quote = chat.gateway.handle(request)
    rejected = msgspec.structs.replace(
        quote.result, reasons=["COMPLIANCE_REJECTED", "INSUFFICIENT_FUNDS"]
    )
    chat.gateway.overrides = {"wallet.create_quote": [RequestSucceeded(result=rejected)]}
    chat(resolve_text_message("how much does it cost to send 5000?"))
    assert "enough money" not in chat.reply_text


# Limits and language


def test_limits_show_what_is_used_and_left():
    text = ask("how much more can i send today").reply_text
    assert "Today: 1,500.00 SLE of 10,000.00 SLE used, *8,500.00 SLE* left" in text


def test_clear_sentence_in_the_other_language_switches_the_language():
    chat = ask("what is my balance?")
    assert "Your balance" in chat.reply_text
    chat(resolve_text_message("combien ça coûte d'envoyer 500 ?"))
    assert "de frais" in chat.reply_text
    assert chat.person.language == "fr"
    chat(resolve_text_message("How much do I have in my wallet?"))
    assert "Your balance" in chat.reply_text
    assert chat.person.language == "en"


@each(
    "language, text",
    [
        ("fr", "send 5 to AM-1001"),
        ("fr", "send money to AM-1001"),
        ("fr", "check my balance"),
        ("fr", "block my card"),
        ("fr", "talk to a person"),
        ("fr", "sen moni to AM-1001"),
        ("en", "envoyer 5 à AM-1001"),
        ("en", "bloquer ma carte"),
    ],
)
def test_short_command_in_the_other_language_keeps_the_language(language, text):
    chat = ConversationDriver(language)
    chat(resolve_text_message(text))
    assert chat.person.language == language


@each(
    "language, text",
    [
        ("fr", "I want to send 5 to my brother"),
        ("fr", "please show me my balance"),
        ("fr", "where is the nearest agent"),
        ("fr", "omos moni a get na mi wallet"),
        ("en", "je veux bloquer ma carte"),
        ("en", "où est mon argent"),
    ],
)
def test_sentence_in_the_other_language_switches_the_language(language, text):
    chat = ConversationDriver(language)
    chat(resolve_text_message(text))
    assert chat.person.language != language


# Money that has not arrived, PIN safety, number changes, services that are not offered


def test_last_incoming_and_outgoing_transfers_are_shown_with_their_state():
    chat = ConversationDriver()
    chat(resolve_text_message("the money has not arrived"))
    assert "Incoming: + 1,234.50 SLE" in chat.reply_text
    assert "under review" in chat.reply_text
    assert "Outgoing: − 1,234.50 SLE" in chat.reply_text
    assert "completed" in chat.reply_text
    assert "What" in chat("yes")  # support asks what it can help with


def test_person_without_transfers_reads_that_there_are_none():
    chat = ConversationDriver()
    chat.gateway.overrides[gateway_requests.GetLastTransfers] = [
        RequestSucceeded(result=gateway_requests.LastTransfers(incoming=None, outgoing=None))
    ]
    assert "No transfer has reached" in chat(resolve_text_message("money not received"))


@each(
    "language, text, reply",
    [
        ("en", "Is it safe to give my PIN to the agent?", "*No. Never give your PIN"),
        ("en", "di ejɛnt de aks mi fɔ mi pin, a fɔ tɛl am?", "*No. Never give your PIN"),
        ("fr", "je peux donner mon code pin à l'agent ?", "*Non. Ne donnez jamais"),
        ("en", "buy airtime", "don't offer airtime or data yet"),
        ("en", "can i pay my light bill", "don't offer bill payments yet"),
        ("fr", "j'ai besoin d'un prêt", "proposons pas encore de prêts"),
    ],
)
def test_general_question_is_answered_clearly(language, text, reply):
    chat = ConversationDriver(language)
    assert reply in chat(resolve_text_message(text))
    assert not chat.gateway.requests


def test_airtime_for_a_number_is_not_a_transfer():
    chat = ConversationDriver()
    chat(resolve_text_message("top up my phone 076222222 with 50"))
    assert chat.outputs[-1].command == "airtime"


@each(
    "answer, reason", [("1", "SIM lost or broken"), ("i change my network", "i change my network")]
)
def test_number_change_goes_to_support_with_its_reason(answer, reason):
    chat = ConversationDriver()
    chat(resolve_text_message("i want to change my phone number"))
    assert "only our support team can change it" in chat.reply_text
    chat(resolve_text_message(answer))
    (request,) = chat.list_requests(gateway_requests.ContactSupport)
    assert request.text == f"Change of phone number. Reason: {reason}"
