"""A valid signed request of every kind, split into parts, as raw bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import httpx2
import msgspec

from drivers.actors import new_request_id
from drivers.messenger import FlowClient, build_flow_key
from fuzz.callers import Caller
from fuzz.fixtures import FuzzFixtures
from harness import PIN

_UNSIGNED_HEADERS = ("host", "content-length")


@dataclass(frozen=True)
class SignedRequest:
    """Signed request; `parts` are what can be forged: method, target, body, and headers by name."""

    kind: str
    service: str
    parts: Mapping[str, bytes]
    #: Parts that the signature does not cover, so changing them proves nothing.
    unsigned_parts: tuple[str, ...] = field(default=())

    def with_part(self, name: str, value: bytes) -> "SignedRequest":
        return replace(self, parts={**self.parts, name: value})

    def encode(self) -> bytes:
        """Encode the request with a matching Content-Length, so the server never waits for data."""
        parts = dict(self.parts)
        method, target, body = parts.pop("method"), parts.pop("target"), parts.pop("body")
        lines = [b"%b %b HTTP/1.1" % (method, target), b"Host: tapgate"]
        lines += [b"%b: %b" % (name.encode(), value) for name, value in parts.items()]
        if body:
            lines.append(b"Content-Length: %d" % len(body))
        return b"\r\n".join([*lines, b"", body])


async def build_each_kind(fixtures: FuzzFixtures) -> list[SignedRequest]:
    customers = [await fixtures.create_customer() for _ in range(2)]
    customer, recipient = customers
    by_name = fixtures.callers.by_name
    payment = {"request_id": new_request_id(), "card_serial": customer.card, "amount": "2.00"}
    top_up = {"partner_reference": "forged", "subscriber_id": customer.id, "amount": "3.00"}
    webhook = {"reference": "forged too", "phone_number": customer.phone, "amount": "4.00"}
    partner = by_name["webhook"].values["partner_id"]
    code = {"to": customer.phone, "template": "one_time_code", "parameters": ["918273"]}
    search = f"/api/v1/subscribers?phone_number=%2B{customer.phone[1:]}&limit=1"
    transfer = {
        "request_id": new_request_id(),
        "sender_id": customer.id,
        "amount": "1.00",
        "pin": PIN,
    }
    ping = FlowClient(build_flow_key()[1]).encrypt({"version": "3.0", "action": "ping"})
    message = {
        "from": customer.phone[1:],
        "id": "wamid.forged",
        "type": "text",
        "text": {"body": "hi"},
    }
    delivery = {"entry": [{"changes": [{"value": {"messages": [message]}}]}]}
    return [
        _build_signed("pos", by_name["processor"], "/api/v1/pos/payment", payment | {"pin": PIN}),
        _build_signed("partner", by_name["partner"], "/api/v1/wallet/fund-from-partner", top_up),
        _build_signed(
            "partner webhook", by_name["webhook"], f"/api/v1/webhooks/partners/{partner}", webhook
        ),
        _build_signed("service, reading", by_name["service"], search, uncovered=("body",)),
        _build_signed(
            "service, writing",
            by_name["service"],
            "/api/v1/wallet/transfer-p2p",
            transfer | {"recipient_card_serial": recipient.card},
            uncovered=("body",),
        ),
        _build_signed(
            "service at the messenger",
            by_name["service"],
            "/api/v1/messages/template",
            code,
            uncovered=("body",),
        ),
        _build_signed("provider", by_name["channel"], "/api/v1/webhooks/messaging", delivery),
        _build_signed(
            "provider's form", by_name["channel"], "/api/v1/webhooks/messaging/flows", raw=ping
        ),
    ]


def _build_signed(
    kind: str,
    caller: Caller,
    target: str,
    body: Mapping[str, object] | None = None,
    *,
    raw: bytes = b"",
    uncovered: tuple[str, ...] = (),
) -> SignedRequest:
    content = raw if body is None else msgspec.json.encode(body)
    request = httpx2.Request(
        "POST" if content else "GET", f"http://tapgate{target}", content=content
    )
    caller.sign(request)
    headers = {
        name: value.encode()
        for name, value in request.headers.items()
        if name not in _UNSIGNED_HEADERS
    }
    parts = {"method": request.method.encode(), "target": target.encode(), "body": content}
    is_messenger = "/messag" in target
    return SignedRequest(
        kind, "messenger" if is_messenger else "gateway", parts | headers, uncovered
    )
