"""JSON Schema of what endpoints take and give: the types from msgspec, the values from the rules,
and an example of everything that can be sent."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, get_args, get_origin

import msgspec

from tapgate import ids
from tapgate.edge.checks import is_struct, rule_and_type
from tapgate.edge.fields import TextRule

Schema = dict[str, Any]

_REF = "#/components/schemas/{name}"

#: Plain text has no rule that could show what a field is about; these names do.
_TEXT_EXAMPLES = {
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
    "reason": "Asked for by the customer",
    "request_id": "7d4f1c1e-3d0b-4f5e-9a53-0f6f3a1c2b4d",
    "resolution_notes": "Confirmed by the customer",
    "agent_id": ids.show(ids.AGENT, 1 << 58),
    "from_account_id": ids.show(ids.ACCOUNT, 1 << 58),
    "from_agent_id": ids.show(ids.AGENT, 1 << 58),
    "original_transaction_id": ids.show(ids.TRANSACTION, 1 << 58),
    "parent_agent_id": ids.show(ids.AGENT, 1 << 58),
    "parent_subscriber_id": ids.show(ids.SUBSCRIBER, 1 << 58),
    "partner_id": ids.show(ids.PARTNER, 1 << 58),
    "rule_id": ids.show(ids.RULE, 1 << 58),
    "sender_id": ids.show(ids.SUBSCRIBER, 1 << 58),
    "subscriber_id": ids.show(ids.SUBSCRIBER, 1 << 58),
    "terminal_id": ids.show(ids.TERMINAL, 1 << 58),
    "to_account_id": ids.show(ids.ACCOUNT, (1 << 58) + 1),
    "to_agent_id": ids.show(ids.AGENT, (1 << 58) + 1),
    "transaction_id": ids.show(ids.TRANSACTION, 1 << 58),
    "actor_id": ids.show(ids.ADMIN, 1 << 58),
    "card_identifier": "TAP-000001",
    "currency": "SLE",
    "event": "subscriber.blocked",
    "merchant_id": "M-204",
    "merchant_name": "Kamara Stores",
    "partner_reference": "A-17",
    "reference": "A-17",
    "refresh_token": "the one of the login",
    "requirements": "A verified identity document",
    "resource_id": ids.show(ids.SUBSCRIBER, 1 << 58),
    "resource_type": "subscriber",
    "search": "Kamara",
    "transaction_ref": "ORDER-1188",
    "url": "https://shop.example/tapgate",
}

#: What stands in a path behind these words.
_PATH_EXAMPLES = {
    "account-rules": "1",
    "agents": ids.show(ids.AGENT, 1 << 58),
    "alerts": ids.show(ids.ALERT, 1 << 58),
    "api-keys": ids.show(ids.KEY, 1 << 58),
    "balance": ids.show(ids.SUBSCRIBER, 1 << 58),
    "cards": "TAP-000001",
    "docs": "swagger-ui.css",
    "deliveries": ids.show(ids.DELIVERY, 1 << 58),
    "keys": ids.show(ids.KEY, 1 << 58),
    "kyc-documents": ids.show(ids.DOCUMENT, 1 << 58),
    "partners": ids.show(ids.PARTNER, 1 << 58),
    "processors": ids.show(ids.PROCESSOR, 1 << 58),
    "rules": ids.show(ids.RULE, 1 << 58),
    "subscribers": ids.show(ids.SUBSCRIBER, 1 << 58),
    "terminals": ids.show(ids.TERMINAL, 1 << 58),
    "transactions": ids.show(ids.TRANSACTION, 1 << 58),
    "users": ids.show(ids.ADMIN, 1 << 58),
    "webhook-endpoints": ids.show(ids.WEBHOOK_ENDPOINT, 1 << 58),
}


class Schemas:
    """The schemas of all types that endpoints take (`taken`) and give (`given`)."""

    def __init__(self, taken: Iterable[Any], given: Iterable[Any], currency: str) -> None:
        self._currency = currency
        inputs = list(dict.fromkeys(struct for kind in taken for struct in _structs(kind)))
        kinds = [*inputs, *(kind for kind in dict.fromkeys(given) if kind not in inputs)]
        shown, self.components = msgspec.json.schema_components(kinds, ref_template=_REF)
        self._of: dict[Any, Schema] = dict(zip(kinds, shown, strict=True))
        for struct in inputs:
            self._describe(struct)

    def of(self, kind: Any) -> Schema:
        return self._of[kind]

    def taken_apart(self, struct: type[msgspec.Struct]) -> dict[str, Schema]:
        """The members of a struct that is never sent as one, such as a query."""
        name = self.of(struct)["$ref"].rpartition("/")[2]
        properties: dict[str, Schema] = self.components.pop(name)["properties"]
        return properties

    def _describe(self, struct: type[msgspec.Struct]) -> None:
        name = self.of(struct)["$ref"].rpartition("/")[2]
        properties = self.components[name]["properties"]
        for field in msgspec.structs.fields(struct):
            self._add_rule(properties[field.encode_name], field.type, field.encode_name)

    def _add_rule(self, schema: Schema, kind: Any, name: str) -> None:
        rule, bare = rule_and_type(kind)
        if is_struct(bare):
            return
        for choice in schema.get("anyOf", [schema]):
            if choice.get("type") == "null":
                continue
            if get_origin(bare) is list:
                self._add_rule(choice["items"], get_args(bare)[0], name)
            if rule is not None:
                choice.update(rule.for_currency(self._currency).schema())
        schema.setdefault("examples", [example(kind, name)])


def example(kind: Any, name: str = "") -> Any:
    """Something that could be sent as a value of this type."""
    given = _given_example(kind)
    rule, bare = rule_and_type(kind)
    if given is not None:
        return given
    if is_struct(bare):
        names = [(field.encode_name, field.type) for field in msgspec.structs.fields(bare)]
        omitted = getattr(bare, "OMITTED_IN_EXAMPLES", ())
        return {name: example(type_, name) for name, type_ in names if name not in omitted}
    if get_origin(bare) is list:
        return [example(get_args(bare)[0], name)]
    if isinstance(rule, TextRule):
        return _TEXT_EXAMPLES.get(name, rule.example)
    return True if bare is bool else 1.5 if rule is None else rule.example


def path_example(path: str, name: str) -> str:
    """Something that could stand in a path for `{name}`."""
    before = path.partition(f"/{{{name}}}")[0].rpartition("/")[2]
    return _PATH_EXAMPLES.get(before, name)


def _given_example(kind: Any) -> Any:
    """The example that a declaration itself gives, by `msgspec.Meta(examples=[...])`."""
    if get_origin(kind) is Annotated:
        notes = get_args(kind)[1:]
        metas = [note for note in notes if isinstance(note, msgspec.Meta) and note.examples]
        return metas[0].examples[0] if metas and metas[0].examples else None
    choices = [_given_example(choice) for choice in get_args(kind)]
    return next((choice for choice in choices if choice is not None), None)


def _structs(kind: Any) -> Iterator[type[msgspec.Struct]]:
    """A struct and all those inside it."""
    _, bare = rule_and_type(kind)
    if is_struct(bare):
        yield bare
        for field in msgspec.structs.fields(bare):
            yield from _structs(field.type)
    elif get_origin(bare) is list:
        yield from _structs(get_args(bare)[0])
