"""Sending money: to whom, how much, what it costs, yes, PIN."""

from typing import Final

from tapgate.errors import Code
from tapgate.messenger.conversation import refusals, showing
from tapgate.messenger.conversation.commands.who import SUBSCRIBER
from tapgate.messenger.conversation.pieces import (
    Ask,
    Confirm,
    Fetch,
    Go,
    Pin,
    Pins,
    Script,
    Taken,
    is_pin_no_serial,
)
from tapgate.messenger.conversation.scene import Choice, Scene
from tapgate.messenger.model.calls import (
    Call,
    FindCard,
    FindPayee,
    Payee,
    Quote,
    Quoted,
    Receipt,
    SendMoney,
)
from tapgate.messenger.model.events import Refused
from tapgate.messenger.model.people import Recipient
from tapgate.messenger.understanding import reading
from tapgate.messenger.understanding.secrets_in_text import has_one_behind_an_order

_NAME_SHOWN: Final = 24


def _take_over(scene: Scene, said: str) -> None:
    """ "Send 500 to 076123456" has said it all."""
    ordered = _ordered(scene, said)
    name = None if "to" in ordered else reading.payee_name(said)
    if name is not None:
        ordered["unknown"] = showing.cut(name, _NAME_SHOWN)
    if "amount" not in ordered and reading.has_odd_amount(said, scene.setting.currency):
        scene.say("unread.amount", currency=scene.setting.currency)
    scene.know(**ordered)


def _ordered(scene: Scene, text: str) -> dict[str, str]:
    order = reading.order(text, scene.person.phone, scene.setting.currency)
    facts = {}
    if order.amount is not None:
        facts["amount"] = order.amount
    if order.phone is not None:
        facts["to"] = f"phone:{order.phone}"
    elif order.card_serial is not None:
        facts["to"] = f"card:{order.card_serial}"
    elif text.startswith(("0", "+")) and (phone := reading.phone(text, scene.person.phone)):
        facts["to"] = f"phone:{phone}"
    elif (name := reading.payee_name(text)) is not None:
        facts |= _by_name(scene, name) or {}
    return facts


def _recipients(scene: Scene) -> list[Choice]:
    return [
        Choice(f"card:{kept.card_serial}", kept.name, kept.card_serial)
        for kept in scene.person.recipients
    ]


def _by_name(scene: Scene, text: str) -> dict[str, str] | None:
    """The only recipient who is called so."""
    named = [kept for kept in scene.person.recipients if _is_named(kept, text)]
    return {"to": f"card:{named[0].card_serial}"} if len(named) == 1 else None


def _ask_recipient(scene: Scene) -> str:
    if "unknown" in scene.facts:
        return scene.text("send.to_unknown", name=scene.facts["unknown"])
    return scene.text("send.to" if scene.person.recipients else "send.to_new")


def _read_recipient(scene: Scene, text: str) -> Taken:
    named = _by_name(scene, text)
    if named is not None:
        return named
    ordered = _ordered(scene, text)
    if "to" in ordered:
        return ordered
    phone = reading.phone(text, scene.person.phone)
    if phone is not None:
        return {"to": f"phone:{phone}"}
    serial = reading.card_serial(text)
    return None if serial is None else {"to": f"card:{serial}"}


def _is_named(kept: Recipient, text: str) -> bool:
    name, said = kept.name.casefold(), text.strip().casefold()
    return said in (name, name.split()[0] if name.split() else name)


def _find_payee(scene: Scene) -> Call:
    kind, _, value = scene.facts["to"].partition(":")
    return FindPayee(phone=value) if kind == "phone" else FindCard(card_serial=value)


def _payee_found(scene: Scene, payee: Payee | None) -> Go:
    if payee is None:
        return _nobody(scene)
    if payee.subscriber_id == scene.subscriber.id:
        scene.say("send.to_self")
    elif payee.card_serial is None:
        scene.say("send.no_card", name=payee.name)
    else:
        scene.know(payee_name=payee.name, payee_card=payee.card_serial)
        return "on"
    scene.forget("to", "unknown")
    return "back"


def _nobody(scene: Scene) -> Go:
    kind, _, value = scene.facts["to"].partition(":")
    is_kept = any(kept.card_serial == value for kept in scene.person.recipients)
    if kind == "card" and value != value.upper() and not is_kept:
        # Serials are compared as they are, and people do not write them so.
        scene.know(to=f"card:{value.upper()}")
        return "back"
    if is_kept:
        scene.forget_recipient(value)
        scene.say("send.recipient_gone")
    else:
        scene.say(f"send.nobody.{kind}")
    scene.forget("to", "unknown")
    return "back"


def _payee_refused(scene: Scene, refused: Refused) -> Go | None:
    """A card or phone that cannot be paid; another one may be."""
    if refused.code in (Code.CARD_NOT_FOUND, Code.SUBSCRIBER_NOT_FOUND):
        return _nobody(scene)
    if refused.code in (Code.CARD_NOT_ACTIVE, Code.VALIDATION_FAILED):
        scene.say("error.receiver")
        scene.forget("to")
        return "back"
    return None


def _read_amount(scene: Scene, text: str) -> Taken:
    """Or a whole order, instead of the one at work."""
    amount = reading.amount(text, scene.setting.currency)
    if amount is not None:
        return {"amount": amount}
    ordered = _ordered(scene, text)
    if "to" not in ordered:
        return None
    scene.forget("payee", "payee_name", "payee_card", "no")
    return ordered


def _quoted(scene: Scene, quoted: Quoted) -> Go:
    if quoted.allowed:
        scene.know(
            amount=quoted.amount,
            fee=quoted.fee_amount,
            total=quoted.total,
            currency=quoted.currency,
        )
        return "on"
    reasons = quoted.reasons or ("",)
    text = "\n".join(dict.fromkeys(refusals.of_code(scene, reason) for reason in reasons))
    if Code.INSUFFICIENT_FUNDS in reasons:
        shown = (quoted.amount, quoted.fee_amount, quoted.total)
        amount, fee, total = (scene.money(part, quoted.currency) for part in shown)
        text = f"{text} {scene.text('send.would_cost', amount=amount, fee=fee, total=total)}"
    return _not_allowed(scene, text, reasons)


def _not_allowed(scene: Scene, text: str, reasons: tuple[str, ...]) -> Go:
    if not refusals.OF_THE_AMOUNT.issuperset(reasons):
        scene.suggest(text, "person", "menu")
        return "end"
    scene.forget("amount")
    scene.know(no=text)
    return "back"


def _ask_amount(scene: Scene) -> str:
    """After a refusal: why, and how much instead."""
    question = scene.text("send.amount", name=scene.facts["payee_name"])
    no = scene.facts.get("no")
    return question if no is None else f"{no}\n\n{scene.text('send.other_amount')}"


def _quote_refused(scene: Scene, refused: Refused) -> Go | None:
    if refused.code not in refusals.OF_THE_AMOUNT:
        return None
    return _not_allowed(scene, refusals.sentence(scene, refused), (refused.code,))


def _what(scene: Scene) -> dict[str, str]:
    facts = scene.facts
    return {
        "name": facts["payee_name"],
        "card": facts["payee_card"],
        "amount": scene.money(facts["amount"], facts["currency"]),
        "fee": scene.money(facts["fee"], facts["currency"]),
        "total": scene.money(facts["total"], facts["currency"]),
    }


def _send(scene: Scene, pins: Pins) -> SendMoney:
    assert scene.conversation.operation is not None
    return SendMoney(
        request_id=scene.conversation.operation,
        sender_id=scene.subscriber.id,
        card_serial=scene.facts["payee_card"],
        amount=scene.facts["amount"],
        pin=pins.pin,
    )


def _sent(scene: Scene, receipt: Receipt) -> Go:
    text = scene.text(
        f"send.{receipt.status}",
        amount=receipt.amount,
        fee=receipt.fee_amount,
        name=receipt.recipient_name,
        balance=receipt.new_balance,
        transaction=receipt.transaction_id,
    )
    met = Recipient(name=receipt.recipient_name, card_serial=scene.facts["payee_card"])
    if any(kept.card_serial == met.card_serial for kept in scene.person.recipients):
        scene.suggest(text, "balance", "menu")
    else:
        scene.change(met=met)
        keep = Choice("keep", scene.text("send.keep"))
        scene.ask(text, [keep, scene.command("menu")])
    return "end"


def _send_refused(scene: Scene, refused: Refused) -> Go:
    """The decline is recorded under the operation's id: another try is another operation."""
    why = refusals.sentence(scene, refused)
    if _is_verdict(scene, refused):
        text = scene.text("send.refused", why=why)
    else:
        text = f"{why}\n\n{scene.text('send.left_uncertain')}"
    scene.suggest(text, "send", "history", "person")
    return "end"


def _is_verdict(scene: Scene, refused: Refused) -> bool:
    """Whether it is certain that nothing was paid. A locked PIN, for one, says nothing about an
    earlier try that was not answered."""
    if refused.code == Code.DUPLICATE_REQUEST:
        return False
    is_recorded = refused.code in refusals.OF_THE_AMOUNT or "party" in refused.details
    return is_recorded or not scene.conversation.uncertain


def _left(scene: Scene) -> str:
    return "send.left_uncertain" if scene.conversation.uncertain else "cancelled"


SCRIPTS: Final = (
    Script(
        command="send",
        begin=_take_over,
        left=_left,
        pieces=(
            *SUBSCRIBER,
            Ask(
                name="to",
                prompt=_ask_recipient,
                choices=_recipients,
                chose=lambda scene, value: {"to": value},
                read=_read_recipient,
                sounds_like_pin=is_pin_no_serial,
                unread="unread.recipient",
            ),
            Fetch(name="payee", call=_find_payee, told=_payee_found, refused=_payee_refused),
            Ask(
                name="amount",
                prompt=_ask_amount,
                read=_read_amount,
                sounds_like_pin=has_one_behind_an_order,
                unread="unread.amount",
            ),
            Fetch(
                name="quote",
                call=lambda scene: Quote(
                    sender_id=scene.subscriber.id, amount=scene.facts["amount"]
                ),
                told=_quoted,
                refused=_quote_refused,
            ),
            Confirm(
                name="confirmed", prompt=lambda scene: scene.text("send.confirm", **_what(scene))
            ),
            Pin(
                name="sent",
                prompt=lambda scene: scene.text("send.pin", **_what(scene)),
                call=_send,
                told=_sent,
                refused=_send_refused,
                moves_money=True,
                uncertain="send.uncertain",
            ),
        ),
    ),
)
