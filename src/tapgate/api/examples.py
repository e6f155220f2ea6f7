"""OpenAPI examples of requests and path parameters, with consistent ids and names."""

from typing import Annotated, Any, Final, get_args, get_origin

import msgspec

from tapgate import ids
from tapgate.http.checks import get_rule_and_type, is_struct
from tapgate.schemas.fields import IdempotencyKeyRule, TextRule

#: Examples of text by field name, because a text rule has only a generic example.
_TEXT_EXAMPLES: Final = {
    "address": "12 Siaka Stevens Street, Freetown",
    "alert_type": "UNUSUAL_AMOUNT",
    "business_name": "Kamara Stores",
    "child_name": "Ibrahim Kamara",
    "child_relationship": "son",
    "description": "Float for the weekend",
    "first_name": "Aminata",
    "id_number": "SL-1234567",
    "last_name": "Kamara",
    "memo": "School fees",
    "name": "Kamara Stores",
    "note": "Called the customer",
    "password": "a long pass phrase",
    "reason": "Requested by the customer",
    "resolution_notes": "Confirmed by the customer",
    "agent_id": ids.encode(ids.AGENT, 1 << 58),
    "from_account_id": ids.encode(ids.ACCOUNT, 1 << 58),
    "from_agent_id": ids.encode(ids.AGENT, 1 << 58),
    "original_transaction_id": ids.encode(ids.TRANSACTION, 1 << 58),
    "parent_agent_id": ids.encode(ids.AGENT, 1 << 58),
    "parent_subscriber_id": ids.encode(ids.SUBSCRIBER, 1 << 58),
    "partner_id": ids.encode(ids.PARTNER, 1 << 58),
    "rule_id": ids.encode(ids.RULE, 1 << 58),
    "sender_id": ids.encode(ids.SUBSCRIBER, 1 << 58),
    "subscriber_id": ids.encode(ids.SUBSCRIBER, 1 << 58),
    "terminal_id": ids.encode(ids.TERMINAL, 1 << 58),
    "to_account_id": ids.encode(ids.ACCOUNT, (1 << 58) + 1),
    "to_agent_id": ids.encode(ids.AGENT, (1 << 58) + 1),
    "transaction_id": ids.encode(ids.TRANSACTION, 1 << 58),
    "actor_id": ids.encode(ids.ADMIN, 1 << 58),
    "card_identifier": "TAP-000001",
    "currency": "SLE",
    "event": "subscriber.blocked",
    "merchant_id": "M-204",
    "merchant_name": "Kamara Stores",
    "partner_reference": "A-17",
    "reference": "A-17",
    "refresh_token": "aB3kLm9QxT7vW2yZ",
    "requirements": "A verified identity document",
    "resource_id": ids.encode(ids.SUBSCRIBER, 1 << 58),
    "resource_type": "subscriber",
    "search": "Kamara",
    "transaction_ref": "ORDER-1188",
    "url": "https://shop.example/tapgate",
}

#: Examples of path parameters by the preceding path segment.
_PATH_EXAMPLES: Final = {
    "account-rules": "1",
    "agents": ids.encode(ids.AGENT, 1 << 58),
    "alerts": ids.encode(ids.ALERT, 1 << 58),
    "api-keys": ids.encode(ids.KEY, 1 << 58),
    "balance": ids.encode(ids.SUBSCRIBER, 1 << 58),
    "cards": "TAP-000001",
    "docs": "swagger-ui.css",
    "deliveries": ids.encode(ids.DELIVERY, 1 << 58),
    "keys": ids.encode(ids.KEY, 1 << 58),
    "kyc-documents": ids.encode(ids.DOCUMENT, 1 << 58),
    "partners": ids.encode(ids.PARTNER, 1 << 58),
    "processors": ids.encode(ids.PROCESSOR, 1 << 58),
    "rules": ids.encode(ids.RULE, 1 << 58),
    "subscribers": ids.encode(ids.SUBSCRIBER, 1 << 58),
    "terminals": ids.encode(ids.TERMINAL, 1 << 58),
    "transactions": ids.encode(ids.TRANSACTION, 1 << 58),
    "users": ids.encode(ids.ADMIN, 1 << 58),
    "webhook-endpoints": ids.encode(ids.WEBHOOK_ENDPOINT, 1 << 58),
}


def build_example(kind: Any, name: str = "") -> Any:
    """Return a valid example value of a request type."""
    declared = _get_declared_example(kind)
    rule, bare = get_rule_and_type(kind)
    if declared is not None:
        return declared
    if is_struct(bare):
        names = [(field.encode_name, field.type) for field in msgspec.structs.fields(bare)]
        omitted = getattr(bare, "OMITTED_IN_EXAMPLES", ())
        return {name: build_example(type_, name) for name, type_ in names if name not in omitted}
    if get_origin(bare) is list:
        return [build_example(get_args(bare)[0], name)]
    if isinstance(rule, TextRule) and not isinstance(rule, IdempotencyKeyRule):
        return _TEXT_EXAMPLES.get(name, rule.example)
    return True if bare is bool else 1.5 if rule is None else rule.example


def get_path_example(path: str, name: str) -> str:
    """Return an example of the path parameter `{name}`, or the name if there is none."""
    segment = path.partition(f"/{{{name}}}")[0].rpartition("/")[2]
    return _PATH_EXAMPLES.get(segment, name)


def _get_declared_example(kind: Any) -> Any:
    """Return the first example in a type's `msgspec.Meta(examples=[...])`, or None."""
    if get_origin(kind) is Annotated:
        notes = get_args(kind)[1:]
        metas = [note for note in notes if isinstance(note, msgspec.Meta) and note.examples]
        return metas[0].examples[0] if metas and metas[0].examples else None
    choices = [_get_declared_example(choice) for choice in get_args(kind)]
    return next((choice for choice in choices if choice is not None), None)


def get_text_example(name: str) -> str | None:
    """Return the example of a text field, or None for an unknown name."""
    return _TEXT_EXAMPLES.get(name)
