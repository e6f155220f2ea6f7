"""Record names in audit entries, as the caller may see them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tapgate.auth.disclosure import Subject
from tapgate.runtime.store.conditions import Conditions
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.schemas.audit import NamedRecord

_SELECT_HOLDERS: Final = "SELECT owner_id, holder_name FROM accounts WHERE owner_id = ANY ({})"
#: Queries for record IDs and names, by ID prefix.
_QUERIES: Final[Mapping[str, str]] = {
    ids.SUBSCRIBER: _SELECT_HOLDERS,
    ids.AGENT: _SELECT_HOLDERS,
    ids.PROCESSOR: _SELECT_HOLDERS,
    ids.PARTNER: _SELECT_HOLDERS,
    ids.ACCOUNT: "SELECT id, holder_name FROM accounts WHERE id = ANY ({})",
    ids.ADMIN: "SELECT id, name FROM admins WHERE id = ANY ({})",
    ids.TERMINAL: "SELECT id, name FROM terminals WHERE id = ANY ({})",
    ids.KEY: "SELECT id, name FROM api_keys WHERE id = ANY ({})",
    ids.RULE: "SELECT id, name FROM compliance_rules WHERE id = ANY ({})",
    ids.SAVED_REPLY: "SELECT id, label FROM saved_replies WHERE id = ANY ({})",
    ids.CARD_KEYSET: "SELECT id, name FROM card_keysets WHERE id = ANY ({})",
    ids.WEBHOOK_ENDPOINT: "SELECT id, url FROM webhook_endpoints WHERE id = ANY ({})",
    ids.SUPPORT_REQUEST: """
        SELECT request.id, holder_name FROM support_requests request
        JOIN accounts ON accounts.owner_id = coalesce(subscriber_id, request.owner_id)
        WHERE request.id = ANY ({})""",
}
#: Subject kinds that can belong to a restricted subscriber, by ID prefix.
_SUBJECT_KINDS: Final[Mapping[str, str]] = {
    ids.SUBSCRIBER: "subscriber",
    ids.ACCOUNT: "account",
    ids.SUPPORT_REQUEST: "support",
    ids.DISPUTE: "dispute",
}


def list_references(*values: Any) -> set[str]:
    """Return the IDs of named records in values such as an entry's changes."""
    return {
        text for text in _iter_texts(values) if ids.get_prefix(text) in _QUERIES and ids.is_id(text)
    }


def build_subject(public_id: str) -> Subject | None:
    """Return the subject that an ID identifies, or None if it belongs to no subscriber."""
    kind = _SUBJECT_KINDS.get(ids.get_prefix(public_id))
    return None if kind is None else Subject(kind, public_id)


async def load_names(database: Database, public_ids: Iterable[str]) -> list[NamedRecord]:
    """Return record names. Records that do not exist are absent."""
    decoded: dict[str, list[int | None]] = {}
    for public_id in public_ids:
        prefix = ids.get_prefix(public_id)
        decoded.setdefault(prefix, []).append(ids.decode(prefix, public_id))
    if not decoded:
        return []
    conditions = Conditions()
    parts = []
    for prefix, numbers in decoded.items():
        query = _QUERIES[prefix].format(f"{conditions.bind(numbers)}::bigint[]")
        parts.append(f"SELECT '{prefix}', named.* FROM ({query}) AS named")
    rows = await database.fetch(" UNION ".join(parts), *conditions.values)
    return [
        NamedRecord(id=ids.encode(prefix, record_id), name=name)
        for prefix, record_id, name in sorted(rows)
    ]


def _iter_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _iter_texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _iter_texts(item)
