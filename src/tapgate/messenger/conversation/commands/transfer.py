"""Transfer command: recipient, amount, quote, confirmation and PIN."""

from typing import Final

from tapgate.errors import Code
from tapgate.messenger.conversation import error_messages, rendering
from tapgate.messenger.conversation.commands.common_steps import SUBSCRIBER_STEPS
from tapgate.messenger.conversation.steps import (
    AskStep,
    Claimed,
    ConfirmStep,
    Next,
    PinInput,
    PinStep,
    RequestStep,
    Script,
    is_pin_not_serial,
)
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.model.events import RequestRejected
from tapgate.messenger.model.gateway_requests import (
    FindPayeeByCard,
    FindPayeeByPhone,
    GatewayRequest,
    Payee,
    QuoteTransfer,
    Receipt,
    SendMoney,
    TransferQuote,
)
from tapgate.messenger.model.people import Recipient
from tapgate.messenger.understanding import reading
from tapgate.messenger.understanding.secret_detection import has_pin_after_transfer

_MAX_NAME_LENGTH: Final = 24


def _begin_transfer(scene: Turn, said: str) -> None:
    """Take recipient and amount from the opening text, for example "Send 500 to 076123456"."""
    ordered = _parse_transfer_facts(scene, said)
    name = None if "to" in ordered else reading.parse_payee_name(said)
    if name is not None:
        ordered["unknown"] = rendering.truncate(name, _MAX_NAME_LENGTH)
    if "amount" not in ordered and reading.has_unsupported_amount(said, scene.context.currency):
        scene.add_reply("not_understood.amount", currency=scene.context.currency)
    scene.set_facts(**ordered)


def _parse_transfer_facts(scene: Turn, text: str) -> dict[str, str]:
    order = reading.parse_transfer(text, scene.person.phone, scene.context.currency)
    facts = {}
    if order.amount is not None:
        facts["amount"] = order.amount
    if order.phone is not None:
        facts["to"] = f"phone:{order.phone}"
    elif order.card_serial is not None:
        facts["to"] = f"card:{order.card_serial}"
    elif text.startswith(("0", "+")) and (phone := reading.parse_phone(text, scene.person.phone)):
        facts["to"] = f"phone:{phone}"
    elif (name := reading.parse_payee_name(text)) is not None:
        facts |= _find_recipient_by_name(scene, name) or {}
    return facts


def _list_recipient_choices(scene: Turn) -> list[Choice]:
    return [
        Choice(f"card:{kept.card_serial}", kept.name, kept.card_serial)
        for kept in scene.person.recipients
    ]


def _find_recipient_by_name(scene: Turn, text: str) -> dict[str, str] | None:
    """Return the saved recipient with this name, or None if none or several have it."""
    named = [kept for kept in scene.person.recipients if _has_name(kept, text)]
    return {"to": f"card:{named[0].card_serial}"} if len(named) == 1 else None


def _render_recipient_question(scene: Turn) -> str:
    if "unknown" in scene.facts:
        return scene.translate("send.recipient_unknown", name=scene.facts["unknown"])
    return scene.translate("send.recipient" if scene.person.recipients else "send.recipient_new")


def _parse_recipient(scene: Turn, text: str) -> Claimed:
    named = _find_recipient_by_name(scene, text)
    if named is not None:
        return named
    ordered = _parse_transfer_facts(scene, text)
    if "to" in ordered:
        return ordered
    phone = reading.parse_phone(text, scene.person.phone)
    if phone is not None:
        return {"to": f"phone:{phone}"}
    serial = reading.parse_card_serial(text)
    return None if serial is None else {"to": f"card:{serial}"}


def _has_name(kept: Recipient, text: str) -> bool:
    name, said = kept.name.casefold(), text.strip().casefold()
    return said in (name, name.split()[0] if name.split() else name)


def _build_payee_request(scene: Turn) -> GatewayRequest:
    kind, _, value = scene.facts["to"].partition(":")
    return FindPayeeByPhone(phone=value) if kind == "phone" else FindPayeeByCard(card_serial=value)


def _handle_payee(scene: Turn, payee: Payee | None) -> Next:
    if payee is None:
        return _handle_payee_not_found(scene)
    if payee.subscriber_id == scene.subscriber.id:
        scene.add_reply("send.recipient_self")
    elif payee.card_serial is None:
        scene.add_reply("send.no_card", name=payee.name)
    else:
        scene.set_facts(payee_name=payee.name, payee_card=payee.card_serial)
        return "on"
    scene.clear_facts("to", "unknown")
    return "back"


def _handle_payee_not_found(scene: Turn) -> Next:
    kind, _, value = scene.facts["to"].partition(":")
    is_kept = any(kept.card_serial == value for kept in scene.person.recipients)
    if kind == "card" and value != value.upper() and not is_kept:
        # Serial lookup is case-sensitive, but people type serials in lower case.
        scene.set_facts(to=f"card:{value.upper()}")
        return "back"
    if is_kept:
        scene.remove_recipient(value)
        scene.add_reply("send.recipient_removed")
    else:
        scene.add_reply(f"send.not_found.{kind}")
    scene.clear_facts("to", "unknown")
    return "back"


def _handle_payee_rejected(scene: Turn, refused: RequestRejected) -> Next | None:
    """Ask for another recipient if this card or phone number cannot be paid."""
    if refused.code in (Code.CARD_NOT_FOUND, Code.SUBSCRIBER_NOT_FOUND):
        return _handle_payee_not_found(scene)
    if refused.code in (Code.CARD_NOT_ACTIVE, Code.VALIDATION_FAILED):
        scene.add_reply("error.receiver")
        scene.clear_facts("to")
        return "back"
    return None


def _parse_amount(scene: Turn, text: str) -> Claimed:
    """Parse an amount, or a complete transfer that replaces the one in progress."""
    amount = reading.parse_amount(text, scene.context.currency)
    if amount is not None:
        return {"amount": amount}
    ordered = _parse_transfer_facts(scene, text)
    if "to" not in ordered:
        return None
    scene.clear_facts("payee", "payee_name", "payee_card", "no")
    return ordered


def _handle_quote(scene: Turn, quoted: TransferQuote) -> Next:
    if quoted.allowed:
        scene.set_facts(
            amount=quoted.amount,
            fee=quoted.fee_amount,
            total=quoted.total,
            currency=quoted.currency,
        )
        return "on"
    reasons = quoted.reasons or ("",)
    text = "\n".join(dict.fromkeys(error_messages.render_code(scene, reason) for reason in reasons))
    if Code.INSUFFICIENT_FUNDS in reasons:
        shown = (quoted.fee_amount, quoted.total)
        fee, total = (scene.format_money(part, quoted.currency) for part in shown)
        text = f"{text} {scene.translate('send.total_with_fee', fee=fee, total=total)}"
    return _handle_transfer_not_allowed(scene, text, reasons)


def _handle_transfer_not_allowed(scene: Turn, text: str, reasons: tuple[str, ...]) -> Next:
    if not error_messages.AMOUNT_ERROR_CODES.issuperset(reasons):
        scene.suggest_commands(text, "person", "menu")
        return "end"
    scene.clear_facts("amount")
    scene.set_facts(no=text)
    return "back"


def _render_amount_question(scene: Turn) -> str:
    """Ask for the amount. After a rejected amount, state the reason and ask for another."""
    question = scene.translate("send.amount", name=scene.facts["payee_name"])
    no = scene.facts.get("no")
    return question if no is None else f"{no}\n\n{scene.translate('send.other_amount')}"


def _handle_quote_rejected(scene: Turn, refused: RequestRejected) -> Next | None:
    if refused.code not in error_messages.AMOUNT_ERROR_CODES:
        return None
    return _handle_transfer_not_allowed(
        scene, error_messages.render_rejection(scene, refused), (refused.code,)
    )


def _get_summary_fields(scene: Turn) -> dict[str, str]:
    facts = scene.facts
    return {
        "name": facts["payee_name"],
        "card": facts["payee_card"],
        "amount": scene.format_money(facts["amount"], facts["currency"]),
        "fee": scene.format_money(facts["fee"], facts["currency"]),
        "total": scene.format_money(facts["total"], facts["currency"]),
    }


def _build_send_request(scene: Turn, pins: PinInput) -> SendMoney:
    assert scene.conversation.operation is not None
    return SendMoney(
        request_id=scene.conversation.operation,
        sender_id=scene.subscriber.id,
        card_serial=scene.facts["payee_card"],
        amount=scene.facts["amount"],
        pin=pins.pin,
    )


def _handle_sent(scene: Turn, receipt: Receipt) -> Next:
    text = scene.translate(
        f"send.{receipt.status}",
        amount=receipt.amount,
        fee=receipt.fee_amount,
        name=receipt.recipient_name,
        balance=receipt.new_balance,
        transaction=receipt.transaction_id,
    )
    met = Recipient(name=receipt.recipient_name, card_serial=scene.facts["payee_card"])
    if any(kept.card_serial == met.card_serial for kept in scene.person.recipients):
        scene.suggest_commands(text, "balance", "menu")
    else:
        scene.update(met=met)
        keep = Choice("keep", scene.translate("send.save_contact"))
        scene.ask(text, [keep, scene.build_command_choice("menu")])
    return "end"


def _handle_send_rejected(scene: Turn, refused: RequestRejected) -> Next:
    """End the command: the decline consumed the operation's id, so a retry needs a new one."""
    reason = error_messages.render_rejection(scene, refused)
    if _is_certainly_unpaid(scene, refused):
        text = scene.translate("send.declined", reason=reason)
    else:
        text = f"{reason}\n\n{scene.translate('send.outcome_unknown')}"
    scene.suggest_commands(text, "send", "history", "person")
    return "end"


def _is_certainly_unpaid(scene: Turn, refused: RequestRejected) -> bool:
    """Return whether it is certain that no money moved.

    Some rejections, such as a locked PIN, say nothing about an earlier attempt that got no
    response.
    """
    if refused.code == Code.DUPLICATE_REQUEST:
        return False
    is_recorded = refused.code in error_messages.AMOUNT_ERROR_CODES or "party" in refused.details
    return is_recorded or not scene.conversation.uncertain


def _get_cancel_key(scene: Turn) -> str:
    return "send.outcome_unknown" if scene.conversation.uncertain else "canceled"


SCRIPTS: Final = (
    Script(
        command="send",
        on_begin=_begin_transfer,
        get_cancel_key=_get_cancel_key,
        steps=(
            *SUBSCRIBER_STEPS,
            AskStep(
                name="to",
                prompt=_render_recipient_question,
                choices=_list_recipient_choices,
                parse_option=lambda scene, value: {"to": value},
                parse_text=_parse_recipient,
                looks_like_pin=is_pin_not_serial,
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
                build_request=lambda scene: QuoteTransfer(
                    sender_id=scene.subscriber.id, amount=scene.facts["amount"]
                ),
                on_success=_handle_quote,
                on_rejection=_handle_quote_rejected,
            ),
            ConfirmStep(
                name="confirmed",
                prompt=lambda scene: scene.translate("send.confirm", **_get_summary_fields(scene)),
            ),
            PinStep(
                name="sent",
                prompt=lambda scene: scene.translate("send.pin", **_get_summary_fields(scene)),
                build_request=_build_send_request,
                on_success=_handle_sent,
                on_rejection=_handle_send_rejected,
                moves_money=True,
                uncertain_key="send.uncertain",
            ),
        ),
    ),
)
