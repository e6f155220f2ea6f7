"""Agent commands: float and the day's figures, cash-in, cash-out, commission, float requests.

An agent authorizes each movement of money with the agent's PIN. A customer confirms a cash-out with
the customer's PIN in the customer's own chat (`cash_outs.py`).
"""

from typing import Any, Final

from tapgate.messenger.agent_requests import (
    AgentDay,
    FindAgent,
    FindFloatRequests,
    FloatRequestSummary,
)
from tapgate.messenger.conversation.commands.common_steps import AMOUNT_ERROR_CODES, PHONE_STEPS
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
    FindPayeeByCard,
    FindPayeeByPhone,
    FindSubscriber,
    GatewayRequest,
    Payee,
    client_request,
    is_phone_payee,
    money_request,
)
from tapgate.messenger.model import Agent, Command, RequestRejected, Subscriber
from tapgate.messenger.understanding.amounts import parse_amount
from tapgate.messenger.understanding.secret_detection import has_pin_after_transfer
from tapgate.messenger.understanding.transfers import parse_payee, parse_phone, parse_transfer
from tapgate_client.errors import Code
from tapgate_client.schemas.agents import AgentStatus, CashReceipt, PayoutReceipt
from tapgate_client.schemas.cash_out_requests import CashOutRequestRecord
from tapgate_client.schemas.float_requests import FloatRequestRecord
from tapgate_client.schemas.transactions import TransactionStatus

#: In menu order, most used first.
AGENT_MENU: Final[tuple[Command, ...]] = (
    "float",
    "cash_in",
    "cash_out",
    "commission",
    "request_float",
    "float_requests",
    "own_wallet",
    "reset_pin",
    "language",
    "help",
    "person",
)
_AFTER: Final[tuple[Command, ...]] = ("cash_in", "cash_out", "menu")


def handle_agent(turn: Turn, found: Agent | None) -> Next:
    """Store the agent, or end the command for a person who may not act as one."""
    turn.update(agent=found)
    if found is None:
        turn.update_person(role=None)
        return turn.finish("agent.unknown", "menu", "person")
    if not turn.person.trusted:
        # The number may have a new owner.
        return turn.finish("agent.untrusted", "person", "menu", yes="person")
    turn.update_person(role=turn.person.role or "agent")
    if found.status != AgentStatus.ACTIVE:
        return turn.finish("agent.not_active", "person", "menu")
    return "on"


#: For all agent commands: identify the agent by the person's phone number.
AGENT_STEPS: Final = (
    *PHONE_STEPS,
    RequestStep(
        name="agent",
        build_request=lambda turn: FindAgent(phone=turn.phone),
        on_success=handle_agent,
    ),
)


def reply_with_menu(turn: Turn) -> Next:
    return turn.suggest_commands(turn.translate("agent.menu", name=turn.agent.name), *AGENT_MENU)


def _show_menu(turn: Turn, found: Agent | None) -> Next:
    turn.update_person(role="agent")
    next_action = handle_agent(turn, found)
    return reply_with_menu(turn) if next_action == "on" else next_action


def _show_wallet(turn: Turn, found: Subscriber | None) -> Next:
    turn.update(subscriber=found)
    if found is None:
        return turn.finish("agent.no_wallet", "register", "agent_menu", yes="register")
    turn.update_person(role="wallet")
    return turn.finish("agent.wallet", "balance", "send", "history", "menu", "agent_menu")


def _reply_with_day(turn: Turn, day: AgentDay) -> Next:
    amounts = {
        name: turn.format_money(getattr(day, name), day.currency)
        for name in ("float_balance", "commission_balance", "cash_in_amount", "cash_out_amount")
    }
    text = turn.translate("agent.day", cash_ins=day.cash_ins, cash_outs=day.cash_outs, **amounts)
    return turn.suggest_commands(text, "cash_in", "cash_out", "commission", "request_float", "menu")


# Cash-in and cash-out


def _parse_facts(turn: Turn, text: str) -> dict[str, str]:
    """Return the customer and the amount in a text such as "Cash in 500 for 076123456"."""
    transfer = parse_transfer(text, turn.person.phone, turn.context.currency)
    facts = {} if transfer.amount is None else {"amount": transfer.amount}
    if transfer.phone is not None:
        facts["to"] = transfer.phone
    elif transfer.card_serial is not None:
        facts["to"] = transfer.card_serial
    elif text.startswith(("0", "+")) and (phone := parse_phone(text, turn.person.phone)):
        facts["to"] = phone
    return facts


def _begin_cash(turn: Turn, text: str) -> None:
    turn.set_facts(**_parse_facts(turn, text))


def _parse_customer(turn: Turn, text: str) -> ParsedAnswer:
    facts = _parse_facts(turn, text)
    if "to" in facts:
        return facts
    payee = parse_payee(text, turn.person.phone)
    found = None if payee is None else payee.phone or payee.card_serial
    return None if found is None else {"to": found}


def _build_customer_request(turn: Turn) -> GatewayRequest:
    to = turn.facts["to"]
    return FindPayeeByPhone(phone=to) if is_phone_payee(to) else FindPayeeByCard(card_serial=to)


def _handle_customer(turn: Turn, payee: Payee | None) -> Next:
    if payee is not None and payee.can_receive:
        turn.set_facts(customer_name=payee.name, customer_id=payee.subscriber_id, to=payee.payee)
        return "on"
    to = turn.facts["to"]
    if payee is None and not is_phone_payee(to) and to != to.upper():
        turn.set_facts(to=to.upper())  # people type serials in lower case
        return "back"
    turn.add_reply("error.receiver" if payee is not None else "agent.customer_unknown")
    turn.clear_facts("to")
    return "back"


def _handle_customer_rejected(turn: Turn, error: RequestRejected) -> Next | None:
    if error.code not in (Code.CARD_NOT_FOUND, Code.SUBSCRIBER_NOT_FOUND, Code.VALIDATION_FAILED):
        return None
    turn.add_reply("agent.customer_unknown")
    turn.clear_facts("to")
    return "back"


def _parse_amount(turn: Turn, text: str) -> ParsedAnswer:
    amount = parse_amount(text, turn.context.currency)
    return None if amount is None else {"amount": amount}


def _render(turn: Turn, key: str) -> str:
    """Render a text with the facts, and the amount as money."""
    facts = turn.facts | {"amount": turn.format_money(turn.facts["amount"])}
    return turn.translate(key, **facts)


def _get_operation(turn: Turn) -> str:
    assert turn.conversation.operation is not None
    return turn.conversation.operation


def _build_cash_request(turn: Turn, pins: PinInput, operation: str) -> GatewayRequest:
    to = turn.facts["to"]
    return money_request(
        operation,
        agent_id=turn.agent.id,
        subscriber_id=turn.facts["customer_id"] if is_phone_payee(to) else None,
        card_serial=None if is_phone_payee(to) else to,
        amount=turn.facts["amount"],
        agent_pin=pins.pin,
        request_id=_get_operation(turn),
    )


def _handle_cashed_in(turn: Turn, receipt: CashReceipt) -> Next:
    is_completed = receipt.status == TransactionStatus.COMPLETED
    text = turn.translate(
        "cash_in.completed" if is_completed else "cash_in.under_review",
        amount=turn.localize_money(receipt.amount),
        name=turn.facts["customer_name"],
        float_balance=turn.localize_money(receipt.agent_balance),
        commission=turn.localize_money(receipt.commission_earned),
        transaction=receipt.transaction_id,
    )
    return turn.suggest_commands(text, *_AFTER)


def _handle_asked(turn: Turn, item: CashOutRequestRecord) -> Next:
    return turn.suggest_commands(_render(turn, "cash_out.asked"), "float", "menu")


def _handle_declined(turn: Turn, error: RequestRejected) -> Next:
    """End the command: a decline consumes the operation ID."""
    reason = turn.render_rejection(error)
    first: Command = "reset_pin" if error.code == Code.ACCOUNT_LOCKED else "float"
    if turn.conversation.uncertain and error.code not in AMOUNT_ERROR_CODES:
        reason = f"{reason}\n\n{turn.translate('agent.outcome_unknown')}"
    return turn.suggest_commands(reason, first, "menu", "person")


def _build_cash_script(command: Command, operation: str, on_success: Any) -> Script:
    return Script(
        command=command,
        on_begin=_begin_cash,
        steps=(
            *AGENT_STEPS,
            AskStep(
                name="to",
                prompt=lambda turn: turn.translate(f"{command}.customer"),
                parse_text=_parse_customer,
                looks_like_pin=looks_like_pin_not_serial,
                not_understood_key="not_understood.recipient",
            ),
            RequestStep(
                name="customer",
                build_request=_build_customer_request,
                on_success=_handle_customer,
                on_rejection=_handle_customer_rejected,
            ),
            AskStep(
                name="amount",
                prompt=lambda turn: turn.translate(
                    f"{command}.amount", name=turn.facts["customer_name"]
                ),
                parse_text=_parse_amount,
                looks_like_pin=has_pin_after_transfer,
                not_understood_key="not_understood.amount",
            ),
            ConfirmStep(name="confirmed", prompt=lambda turn: _render(turn, f"{command}.confirm")),
            PinStep(
                name="done",
                prompt=lambda turn: _render(turn, f"{command}.pin"),
                build_request=lambda turn, pins: _build_cash_request(turn, pins, operation),
                on_success=on_success,
                on_rejection=_handle_declined,
                moves_money=True,
                uncertain_key="agent.uncertain",
            ),
        ),
    )


# Commission


def _check_commission(turn: Turn, day: AgentDay) -> Next:
    if not day.commission_balance.strip("0."):
        return turn.finish("commission.none", *_AFTER)
    turn.set_facts(amount=day.commission_balance)
    return "on"


def _handle_paid_out(turn: Turn, receipt: PayoutReceipt) -> Next:
    text = turn.translate(
        "commission.done",
        amount=turn.localize_money(receipt.amount),
        float_balance=turn.localize_money(receipt.float_balance),
    )
    return turn.suggest_commands(text, "float", "menu")


# Float requests


def _begin_float_request(turn: Turn, text: str) -> None:
    amount = parse_transfer(text, turn.person.phone, turn.context.currency).amount
    if amount is not None:
        turn.set_facts(amount=amount)


def _handle_float_requested(turn: Turn, item: FloatRequestRecord) -> Next:
    key = "request_float.super_agent" if item.waits_for == "super_agent" else "request_float.done"
    return turn.suggest_commands(_render(turn, key), "float_requests", "float", "menu")


def _store_float_requests(turn: Turn, items: list[FloatRequestSummary]) -> Next:
    if not items:
        return turn.finish("float_requests.none", "request_float", "menu")
    turn.set_facts(
        **{
            f"item.{item.id}": f"{'own' if item.is_own else 'sub'}:"
            f"{turn.format_money(item.amount, item.currency)}:{item.agent_name}"
            for item in items
        }
    )
    return "on"


def _list_items(turn: Turn) -> list[Choice]:
    choices = []
    for name, value in turn.facts.items():
        if name.startswith("item."):
            kind, amount, agent = value.split(":", 2)
            shown = turn.translate("float_requests.own") if kind == "own" else agent
            choices.append(Choice(name.removeprefix("item."), amount, shown))
    return choices


def _get_only_item(turn: Turn) -> str | None:
    choices = _list_items(turn)
    return choices[0].value if len(choices) == 1 else None


def _is_own(turn: Turn) -> bool:
    return turn.facts[f"item.{turn.facts['item']}"].startswith("own:")


def _render_item(turn: Turn, key: str) -> str:
    _, amount, agent = turn.facts[f"item.{turn.facts['item']}"].split(":", 2)
    return turn.translate(key, amount=amount, name=agent)


def _list_answers(turn: Turn) -> list[Choice]:
    names = ("withdraw_request", "leave") if _is_own(turn) else ("send_float", "pass_on", "leave")
    return [Choice(name, turn.translate(f"float_requests.{name}")) for name in names]


def _parse_answer(turn: Turn, value: str) -> ParsedAnswer:
    if value == "leave":
        return turn.finish("what_next", "menu", "help")
    return {"answer": value}


def _build_end_request(turn: Turn) -> GatewayRequest:
    operation = "cancel" if _is_own(turn) else "pass_on"
    return client_request(f"float_requests.{operation}", turn.facts["item"])


def _handle_ended(turn: Turn, item: FloatRequestRecord) -> Next:
    key = "float_requests.cancelled" if _is_own(turn) else "float_requests.passed_on"
    return turn.finish(key, "float", "menu")


SCRIPTS: Final = (
    Script(
        command="agent_menu",
        steps=(
            *PHONE_STEPS,
            RequestStep(
                name="agent",
                build_request=lambda turn: FindAgent(phone=turn.phone),
                on_success=_show_menu,
            ),
        ),
    ),
    Script(
        command="own_wallet",
        steps=(
            *AGENT_STEPS,
            RequestStep(
                name="subscriber",
                build_request=lambda turn: FindSubscriber(phone=turn.phone),
                on_success=_show_wallet,
            ),
        ),
    ),
    Script(
        command="float",
        steps=(
            *AGENT_STEPS,
            RequestStep(
                name="day",
                build_request=lambda turn: AgentDay.build_request(turn.phone, turn.context.now),
                on_success=_reply_with_day,
            ),
        ),
    ),
    _build_cash_script("cash_in", "agents.cash_in", _handle_cashed_in),
    _build_cash_script("cash_out", "cash_out_requests.request_cash_out", _handle_asked),
    Script(
        command="commission",
        steps=(
            *AGENT_STEPS,
            RequestStep(
                name="day",
                build_request=lambda turn: AgentDay.build_request(turn.phone, turn.context.now),
                on_success=_check_commission,
            ),
            ConfirmStep(name="confirmed", prompt=lambda turn: _render(turn, "commission.confirm")),
            PinStep(
                name="done",
                prompt=lambda turn: _render(turn, "commission.pin"),
                build_request=lambda turn, pins: money_request(
                    "agents.pay_out_commission",
                    turn.agent.id,
                    pin=pins.pin,
                    request_id=_get_operation(turn),
                ),
                on_success=_handle_paid_out,
                on_rejection=_handle_declined,
                moves_money=True,
                uncertain_key="agent.uncertain",
            ),
        ),
    ),
    Script(
        command="request_float",
        on_begin=_begin_float_request,
        steps=(
            *AGENT_STEPS,
            AskStep(
                name="amount",
                prompt=lambda turn: turn.translate("request_float.amount"),
                parse_text=_parse_amount,
                looks_like_pin=has_pin_after_transfer,
                not_understood_key="not_understood.amount",
            ),
            ConfirmStep(
                name="confirmed", prompt=lambda turn: _render(turn, "request_float.confirm")
            ),
            RequestStep(
                name="asked",
                build_request=lambda turn: client_request(
                    "float_requests.request_float",
                    turn.agent.id,
                    amount=turn.facts["amount"],
                    request_id=_get_operation(turn),
                ),
                on_success=_handle_float_requested,
            ),
        ),
    ),
    Script(
        command="float_requests",
        steps=(
            *AGENT_STEPS,
            RequestStep(
                name="items",
                build_request=lambda turn: FindFloatRequests(agent_id=turn.agent.id),
                on_success=_store_float_requests,
            ),
            AskStep(
                name="item",
                prompt=lambda turn: turn.translate("float_requests.which"),
                choices=_list_items,
                infer_answer=_get_only_item,
            ),
            AskStep(
                name="answer",
                prompt=lambda turn: _render_item(
                    turn, "float_requests.about_own" if _is_own(turn) else "float_requests.about"
                ),
                choices=_list_answers,
                parse_option=_parse_answer,
            ),
            PinStep(
                name="sent",
                is_needed=lambda turn: turn.facts.get("answer") == "send_float",
                prompt=lambda turn: _render_item(turn, "float_requests.pin"),
                build_request=lambda turn, pins: money_request(
                    "float_requests.fund_by_transfer",
                    turn.facts["item"],
                    pin=pins.pin,
                    request_id=_get_operation(turn),
                ),
                on_success=lambda turn, receipt: turn.finish(
                    "float_requests.sent",
                    "float",
                    "menu",
                    amount=turn.localize_money(receipt.amount),
                    float_balance=turn.localize_money(receipt.from_balance),
                ),
                on_rejection=_handle_declined,
                moves_money=True,
                uncertain_key="agent.uncertain",
            ),
            RequestStep(name="ended", build_request=_build_end_request, on_success=_handle_ended),
        ),
    ),
)
