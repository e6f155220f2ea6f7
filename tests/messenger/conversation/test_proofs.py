"""Proofs in the chat: links to the page that checks that a payment is part of a closed day."""

import pytest

from builders.conversation import NOW, ConversationDriver, build_payment
from tapgate.messenger.gateway_requests import GetProof, ListTransactions
from tapgate.messenger.model import RequestRejected, RequestSucceeded


@pytest.mark.parametrize(
    ("language", "text", "reply"),
    [
        ("en", "proof of payment", "check that the payment is in the books"),
        ("fr", "preuve de paiement", "vérifier que le paiement est comptabilisé"),
    ],
)
def test_proof_is_a_link_to_the_page_that_checks_it(language: str, text: str, reply: str) -> None:
    chat = ConversationDriver(language)
    chat(text)
    # The newest payment is of today, whose day is open.
    offered = [option.id.partition("#")[0] for option in chat.last_offer.options]
    assert offered == [f"txn_{number}" for number in range(1, 6)]
    sent = chat.choose_option("txn_2")
    assert reply in sent
    assert sent.endswith("/verify#packed-txn_2")


def test_history_offers_the_proof_only_below_payments_of_earlier_days() -> None:
    chat = ConversationDriver()
    chat("history")
    assert "cmd:proof" in [option.id for option in chat.last_offer.options]
    today = [build_payment("transfer_p2p")]
    assert today[0].at.date() == NOW.date()
    chat.gateway.overrides[ListTransactions] = [RequestSucceeded(result=today)] * 2
    chat("history")
    assert "cmd:proof" not in [option.id for option in chat.last_offer.options]
    assert "no payment of an earlier day" in chat("proof")


def test_proof_waits_for_the_close_of_the_day() -> None:
    chat = ConversationDriver()
    chat("proof")
    chat.gateway.overrides[GetProof] = [RequestRejected(code="DAY_NOT_CLOSED")]
    assert "not closed yet" in chat.choose_option("txn_1")
    assert chat.conversation.command is None
