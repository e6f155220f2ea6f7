"""The folder "First payment" of the Postman collection: requests that build on each other."""

import copy
import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Step(NamedTuple):
    operation_id: str
    body: Any
    #: Variables that later requests use, and the paths of their values in the response.
    saves: Mapping[str, str] = {}
    #: JavaScript conditions on the response `body`.
    expects: tuple[str, ...] = ()
    path: Mapping[str, str] = {}


_STEPS = (
    Step("upload_cards", "Serial No.,MAC Address\nPM-{{run}},\n", expects=("body.created === 1",)),
    Step(
        "register_subscriber",
        {
            "phone_number": "+23278{{run}}",
            "first_name": "Isatu",
            "last_name": "Bangura",
            "pin": "4071",
        },
        saves={"subscriber_id": "subscriber.id"},
    ),
    Step(
        "link_card",
        {"subscriber_id": "{{subscriber_id}}", "card_serial": "PM-{{run}}", "pin": "4071"},
    ),
    Step(
        "register_agent",
        {
            "agent_type": "super_agent",
            "name": "Ibrahim",
            "phone_number": "+23277{{run}}",
            "pin": "6083",
        },
        saves={"agent_id": "agent_id"},
    ),
    Step(
        "fund_agent",
        {"amount": "5000.00", "request_id": "fund-{{run}}"},
        path={"id": "{{agent_id}}"},
    ),
    Step(
        "cash_in",
        {
            "agent_id": "{{agent_id}}",
            "agent_pin": "6083",
            "card_serial": "PM-{{run}}",
            "amount": "200.00",
            "request_id": "cash-in-{{run}}",
        },
        expects=('body.status === "completed"',),
    ),
    Step(
        "create_processor",
        {
            "name": "Corner shop {{run}}",
            "phone_number": "+23276{{run}}",
            "email": "shop-{{run}}@example.com",
        },
        saves={"pos_key_id": "api_key_id", "pos_secret": "hmac_secret"},
    ),
    Step(
        "pay_at_terminal",
        {
            "request_id": "order-{{run}}",
            "card_serial": "PM-{{run}}",
            "amount": "35.00",
            "pin": "4071",
        },
        saves={"transaction_id": "transaction_id"},
        expects=('body.status === "completed"', 'body.amount.startsWith("35.00")'),
    ),
    Step(
        "get_payment_outcome",
        None,
        path={"request_id": "order-{{run}}"},
        expects=('body.transaction_id === pm.collectionVariables.get("transaction_id")',),
    ),
    Step(
        "refund_terminal_payment",
        {
            "request_id": "refund-{{run}}",
            "original_transaction_id": "{{transaction_id}}",
            "amount": "10.00",
            "reason": "One item was broken",
        },
        expects=('body.refundable_amount.startsWith("25.00")',),
    ),
    Step(
        "get_transaction",
        None,
        path={"id": "{{transaction_id}}"},
        expects=('body.amount === "35.00"',),
    ),
)

#: The folder's first request chooses a number, so that the folder can run repeatedly.
_CHOOSE_RUN = 'pm.collectionVariables.set("run", String(Date.now()).slice(-6));'


def build_first_payment(items: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the folder, built from the items for the operations that it uses."""
    built = [_build_step(step, items[step.operation_id]) for step in _STEPS]
    script = {"type": "text/javascript", "exec": [_CHOOSE_RUN]}
    built[0]["event"].insert(0, {"listen": "prerequest", "script": script})
    return {
        "name": "First payment",
        "description": "From an empty installation to a payment and its refund. Run it in order.",
        "item": built,
    }


def _build_step(step: Step, item: dict[str, Any]) -> dict[str, Any]:
    built = copy.deepcopy(item)
    request = built["request"]
    if step.body is not None:
        raw = step.body if isinstance(step.body, str) else json.dumps(step.body, indent=2)
        request["body"] = {"mode": "raw", "raw": raw}
    for variable in request["url"].get("variable", ()):
        variable["value"] = step.path.get(variable["key"], variable["value"])
    lines = [
        'pm.test("The request succeeds", () => pm.response.to.be.success);',
        "const body = pm.response.json();",
        *(
            f'pm.collectionVariables.set("{name}", body.{path});'
            for name, path in step.saves.items()
        ),
        *(
            f"pm.test({json.dumps(condition)}, () => pm.expect({condition}).to.be.true);"
            for condition in step.expects
        ),
    ]
    tests = next(event for event in built["event"] if event["listen"] == "test")
    tests["script"]["exec"] = lines
    return built
