"""Transfer command: recipient, amount, quote, confirmation and PIN."""

from typing import Final

from tapgate.messenger import texts
from tapgate.messenger.conversation.commands.common_steps import (
    AMOUNT_ERROR_CODES,
    SUBSCRIBER_STEPS,
)
from tapgate.messenger.conversation.steps import (
    AskStep,
    ConfirmStep,
    Next,
    ParsedAnswer,
    PinInput,
    PinStep,
    RequestStep,
    Script,
    looks_like_pin_not_serial,
)
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.gateway_requests import (
    ClientRequest,
    FindPayeeByCard,
    FindPayeeByPhone,
    GatewayRequest,
    Payee,
    SendMoney,
    client_request,
    is_phone_payee,
)
from tapgate.messenger.model import Command, Recipient, RequestRejected
from tapgate.messenger.understanding.amounts import parse_amount
from tapgate.messenger.understanding.corrections import parse_correction
from tapgate.messenger.understanding.secret_detection import has_pin_after_transfer
from tapgate.messenger.understanding.transfers import (
    ParsedTransfer,
    has_unsupported_amount,
    parse_payee,
    parse_payee_name,
    parse_phone,
    parse_transfer,
)
from tapgate_client.errors import Code
from tapgate_client.schemas.transactions import TransactionStatus, TransactionType
from tapgate_client.schemas.wallets import P2pReceipt, Quote

_MAX_NAME_LENGTH: Final = 24


def _begin_transfer(turn: Turn, text: str) -> None:
    """Take recipient and amount from the opening text, for example "Send 500 to 076123456"."""
    facts = _parse_transfer_facts(turn, text)
    name = None if "to" in facts else parse_payee_name(text)
    if name is not None:
        facts["unknown"] = texts.truncate(name, _MAX_NAME_LENGTH)
    if "amount" not in facts and has_unsupported_amount(text, turn.context.currency):
        turn.add_reply("not_understood.amount", currency=turn.context.currency)
    turn.set_facts(**facts)


def _parse_transfer_facts(turn: Turn, text: str) -> dict[str, str]:
    transfer = parse_transfer(text, turn.person.phone, turn.context.currency)
    facts = _build_recipient_fact(transfer)
    if transfer.amount is not None:
        facts["amount"] = transfer.amount
    if "to" in facts:
        return facts
    if text.startswith(("0", "+")) and (phone := parse_phone(text, turn.person.phone)):
        facts["to"] = f"phone:{phone}"
    elif (name := parse_payee_name(text)) is not None:
        facts |= _find_recipient_by_name(turn, name) or {}
    return facts


def _build_recipient_fact(payee: ParsedTransfer) -> dict[str, str]:
    if payee.phone is not None:
        return {"to": f"phone:{payee.phone}"}
    return {} if payee.card_serial is None else {"to": f"card:{payee.card_serial}"}


def _list_recipient_choices(turn: Turn) -> list[Choice]:
    return [
        Choice(_build_payee_fact(recipient.payee), recipient.name, recipient.payee)
        for recipient in turn.person.recipients
    ]


def _build_payee_fact(payee: str) -> str:
    return f"{'phone' if is_phone_payee(payee) else 'card'}:{payee}"


def _find_recipient_by_name(turn: Turn, text: str) -> dict[str, str] | None:
    """Return the `to` fact for the only saved recipient with this name, or None."""
    matches = [recipient for recipient in turn.person.recipients if _has_name(recipient, text)]
    return {"to": _build_payee_fact(matches[0].payee)} if len(matches) == 1 else None


def _render_recipient_question(turn: Turn) -> str:
    if "unknown" in turn.facts:
        return turn.translate("send.recipient_unknown", name=turn.facts["unknown"])
    return turn.translate("send.recipient" if turn.person.recipients else "send.recipient_new")


def _parse_recipient(turn: Turn, text: str) -> ParsedAnswer:
    saved = _find_recipient_by_name(turn, text)
    if saved is not None:
        return saved
    facts = _parse_transfer_facts(turn, text)
    if "to" in facts:
        return facts
    payee = parse_payee(text, turn.person.phone)
    return None if payee is None else _build_recipient_fact(payee)


def _has_name(recipient: Recipient, text: str) -> bool:
    name, query = recipient.name.casefold(), text.strip().casefold()
    return query in (name, name.split()[0] if name.split() else name)


def _build_payee_request(turn: Turn) -> GatewayRequest:
    kind, _, value = turn.facts["to"].partition(":")
    return FindPayeeByPhone(phone=value) if kind == "phone" else FindPayeeByCard(card_serial=value)


def _handle_payee(turn: Turn, payee: Payee | None) -> Next:
    if payee is None:
        return _handle_payee_not_found(turn)
    if payee.subscriber_id == turn.subscriber.id:
        turn.add_reply("send.recipient_self")
    elif not payee.can_receive:
        turn.add_reply("send.card_inactive", name=payee.name)
    else:
        # The fact holds a card serial or a phone number. Its name is that of stored conversations.
        turn.set_facts(payee_name=payee.name, payee_card=payee.payee)
        if payee.book is not None:
            turn.set_facts(payee_book=payee.book)
        return "on"
    return _ask_recipient_again(turn)


def _handle_payee_not_found(turn: Turn) -> Next:
    kind, _, value = turn.facts["to"].partition(":")
    is_saved = any(recipient.payee == value for recipient in turn.person.recipients)
    if kind == "card" and value != value.upper() and not is_saved:
        # Serial lookup is case-sensitive, but people type serials in lower case.
        turn.set_facts(to=f"card:{value.upper()}")
        return "back"
    if is_saved:
        turn.remove_recipient(value)
        turn.add_reply("send.recipient_removed")
    else:
        turn.add_reply(f"send.not_found.{kind}")
    return _ask_recipient_again(turn)


def _ask_recipient_again(turn: Turn) -> Next:
    turn.clear_facts("to", "unknown")
    return "back"


def _handle_payee_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    """Ask for another recipient if this card or phone number cannot be paid."""
    if error.code in (Code.CARD_NOT_FOUND, Code.SUBSCRIBER_NOT_FOUND):
        return _handle_payee_not_found(turn)
    if error.code in (Code.CARD_NOT_ACTIVE, Code.VALIDATION_FAILED):
        turn.add_reply("error.receiver")
        turn.clear_facts("to")
        return "back"
    return None


def _parse_amount(turn: Turn, text: str) -> ParsedAnswer:
    """Parse an amount, or a text with a recipient, who replaces the current recipient."""
    amount = parse_amount(text, turn.context.currency)
    if amount is not None:
        return {"amount": amount}
    facts = _parse_transfer_facts(turn, text)
    if "to" not in facts:
        return None
    turn.clear_facts("payee", "payee_name", "payee_card", "payee_book", "no")
    return facts


# Corrections


#: Facts about the recipient, and facts that follow from recipient and amount.
_RECIPIENT_FACTS: Final = ("to", "unknown", "payee", "payee_name", "payee_card", "payee_book")
_QUOTE_FACTS: Final = ("quote", "fee", "total", "currency", "confirmed")


def _correct_transfer(turn: Turn, text: str) -> bool:
    """Change the amount or the recipient, or answer a question about the recipient."""
    correction = parse_correction(text, turn.context.currency)
    if correction is None or "payee_name" not in turn.facts:
        return False
    facts = _parse_transfer_facts(turn, text)
    match correction.kind:
        case "recipient":
            turn.clear_facts(*_RECIPIENT_FACTS, *_QUOTE_FACTS)
            turn.set_facts(**{name: fact for name, fact in facts.items() if name == "to"})
        case "amount" | "new_amount":
            turn.clear_facts("amount", "no", *_QUOTE_FACTS)
            if correction.amount is not None:
                turn.set_facts(amount=correction.amount)
        case "who":
            turn.add_reply(
                "send.who", name=turn.facts["payee_name"], payee=turn.facts["payee_card"]
            )
        case "wait":
            turn.add_reply("send.wait")
    return True


def _build_quote_request(turn: Turn) -> ClientRequest:
    payee = turn.facts["payee_card"]
    return client_request(
        "wallet.create_quote",
        type=TransactionType.TRANSFER_P2P,
        amount=turn.facts["amount"],
        sender_id=turn.subscriber.id,
        # This book has no card of another book.
        recipient_card_serial=(
            None if is_phone_payee(payee) or "payee_book" in turn.facts else payee
        ),
    )


def _handle_quote(turn: Turn, quote: Quote) -> Next:
    if quote.allowed:
        turn.set_facts(
            amount=quote.amount, fee=quote.fee_amount, total=quote.total, currency=quote.currency
        )
        return "on"
    reasons = quote.reasons or [""]
    if Code.COMPLIANCE_REJECTED in reasons:
        # Other reasons would advise how to change the payment.
        reasons = [Code.COMPLIANCE_REJECTED]
    messages = [turn.translate_or(f"error.{reason}", "error.general") for reason in reasons]
    text = "\n".join(dict.fromkeys(messages))
    if Code.INSUFFICIENT_FUNDS in reasons:
        amounts = (quote.fee_amount, quote.total)
        fee, total = (turn.format_money(amount, quote.currency) for amount in amounts)
        text = f"{text} {turn.translate('send.total_with_fee', fee=fee, total=total)}"
    return _handle_transfer_not_allowed(turn, text, reasons)


def _handle_transfer_not_allowed(turn: Turn, text: str, reasons: list[str]) -> Next:
    if not AMOUNT_ERROR_CODES.issuperset(reasons):
        return turn.suggest_commands(text, "person", "menu")
    turn.clear_facts("amount")
    turn.set_facts(no=text)
    return "back"


def _render_amount_question(turn: Turn) -> str:
    """Ask for the amount. After a rejected amount, state the reason and ask for another."""
    question = turn.translate("send.amount", name=turn.facts["payee_name"])
    reason = turn.facts.get("no")
    return question if reason is None else f"{reason}\n\n{turn.translate('send.other_amount')}"


def _handle_quote_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    if error.code not in AMOUNT_ERROR_CODES:
        return None
    return _handle_transfer_not_allowed(turn, turn.render_rejection(error), [error.code])


def _render_summary(turn: Turn, key: str) -> str:
    facts = turn.facts
    amounts = {
        name: turn.format_money(facts[name], facts["currency"])
        for name in ("amount", "fee", "total")
    }
    payee = facts["payee_card"]
    kind = "phone" if is_phone_payee(payee) else "card"
    recipient = turn.translate(f"send.payee.{kind}", payee=payee)
    return turn.translate(key, name=facts["payee_name"], recipient=recipient, **amounts)


def _build_send_request(turn: Turn, pins: PinInput) -> SendMoney:
    assert turn.conversation.operation is not None
    return SendMoney(
        request_id=turn.conversation.operation,
        sender_id=turn.subscriber.id,
        payee=turn.facts["payee_card"],
        amount=turn.facts["amount"],
        pin=pins.pin,
    )


def _handle_sent(turn: Turn, receipt: P2pReceipt) -> Next:
    is_completed = receipt.status == TransactionStatus.COMPLETED
    name = receipt.recipient.name or ""
    text = turn.translate(
        "send.completed" if is_completed else "send.under_review",
        amount=turn.localize_money(receipt.amount),
        fee=turn.localize_money(receipt.fee_amount),
        name=name,
        balance=turn.localize_money(receipt.sender_new_balance),
        transaction=receipt.transaction_id,
    )
    if not is_completed:
        return turn.suggest_commands(text, "history", "menu")
    recipient = Recipient(name=name, payee=turn.facts["payee_card"])
    if any(saved.payee == recipient.payee for saved in turn.person.recipients):
        return turn.suggest_commands(text, "balance", "menu")
    turn.update(met=recipient)
    save_option = Choice("keep", turn.translate("send.save_contact"))
    turn.ask(text, [save_option, turn.build_command_choice("menu")])
    return "end"


def _handle_send_rejected(turn: Turn, error: RequestRejected) -> Next:
    """End the command: a decline consumes the operation ID, so a new transfer needs a new one."""
    reason = turn.render_rejection(error)
    commands: list[Command] = ["send", "history", "person"]
    if error.code == Code.COMPLIANCE_REJECTED:
        commands.remove("send")  # another attempt would be declined too
    elif error.code == Code.ACCOUNT_LOCKED:
        commands[0] = "reset_pin"
    if _is_certainly_unpaid(turn, error):
        return turn.finish("send.declined", *commands, reason=reason)
    text = f"{reason}\n\n{turn.translate('send.outcome_unknown')}"
    return turn.suggest_commands(text, *commands)


def _is_certainly_unpaid(turn: Turn, error: RequestRejected) -> bool:
    """Return whether it is certain that no money moved.

    Some rejections, such as a locked PIN, say nothing about an earlier attempt that got no
    response.
    """
    if error.code == Code.DUPLICATE_REQUEST:
        return False
    is_recorded = (
        error.code in {*AMOUNT_ERROR_CODES, Code.COMPLIANCE_REJECTED} or "party" in error.details
    )
    return is_recorded or not turn.conversation.uncertain


SCRIPTS: Final = (
    Script(
        command="send",
        on_begin=_begin_transfer,
        correct=_correct_transfer,
        get_cancel_key=lambda turn: (
            "send.outcome_unknown" if turn.conversation.uncertain else "canceled"
        ),
        steps=(
            *SUBSCRIBER_STEPS,
            AskStep(
                name="to",
                prompt=_render_recipient_question,
                choices=_list_recipient_choices,
                parse_text=_parse_recipient,
                asks_for="person",
                looks_like_pin=looks_like_pin_not_serial,
                not_understood_key="not_understood.recipient",
            ),
            RequestStep(
                name="payee",
                build_request=_build_payee_request,
                on_success=_handle_payee,
                on_rejection=_handle_payee_rejected,
            ),
            AskStep(
                name="amount",
                prompt=_render_amount_question,
                parse_text=_parse_amount,
                looks_like_pin=has_pin_after_transfer,
                not_understood_key="not_understood.amount",
            ),
            RequestStep(
                name="quote",
                build_request=_build_quote_request,
                on_success=_handle_quote,
                on_rejection=_handle_quote_rejected,
            ),
            ConfirmStep(
                name="confirmed", prompt=lambda turn: _render_summary(turn, "send.confirm")
            ),
            PinStep(
                name="sent",
                prompt=lambda turn: _render_summary(turn, "send.pin"),
                build_request=_build_send_request,
                on_success=_handle_sent,
                on_rejection=_handle_send_rejected,
                moves_money=True,
                uncertain_key="send.uncertain",
            ),
        ),
    ),
)
