"""Fields in which people select a record: they see its name, and the form submits its ID.

Without a script, people type an ID, a phone number or a name, and the server finds the record.
"""

from typing import Any, Final

from tapgate.ledger.card_proofs.rejected_taps import CLONE_ALERT_TYPE
from tapgate.sites.console.labels import humanize
from tapgate.sites.console.page_request import PageRequest
from tapgate_client import ids
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.compliance import RuleType, Severity
from tapgate_client.schemas.general_ledger import AccountKind
from tapgate_client.schemas.search import RESTRICTED_SUBSCRIBER
from tapgate_client.schemas.transactions import TransactionType

SEARCH_PATH: Final = "/api/v1/search"
_MAX_TEXT_LENGTH: Final = 100
_SEPARATOR: Final = " · "
#: Values of the API in titles and subtitles, where some have spaces instead of underscores.
_VALUES: Final = {
    **{
        value.replace("_", " "): str(value)
        for value in (*TransactionType, *AdminRole, *AccountKind)
    },
    **{str(value): str(value) for value in (*RuleType, *Severity, CLONE_ALERT_TYPE)},
    "Unassigned": "UNASSIGNED",
    "Support request": "support_request",
}


async def find_records(request: PageRequest, text: str, **query: str | int) -> list[Any]:
    found: list[Any] = (await request.get(SEARCH_PATH, {"q": text[:_MAX_TEXT_LENGTH], **query}))[
        "data"
    ]
    for record in found:
        for name in ("title", "subtitle"):
            if record[name] is not None:
                parts = record[name].split(_SEPARATOR)
                record[name] = _SEPARATOR.join(_describe(request, part) for part in parts)
    return found


def _describe(request: PageRequest, part: str) -> str:
    """Return the label for a part of a title or subtitle, which may be an API value."""
    if part == RESTRICTED_SUBSCRIBER:
        return request.translate("Restricted customer")
    value = _VALUES.get(part)
    return part if value is None else request.translator.translate_label(humanize(value))


def get_chosen_name(name: str) -> str:
    """Return the name of the hidden field with the chosen record's ID."""
    return f"{name}.id"


async def resolve(
    request: PageRequest,
    text: str,
    chosen: str | None,
    types: str,
    *,
    allows_text: bool = False,
) -> tuple[str | None, str | None]:
    """Return the ID for the record that the input names, or else an error message.

    With `allows_text`, an input that matches no record is returned unchanged.
    """
    if chosen is not None or ids.is_id(text):
        return chosen or text, None
    found = await find_records(request, text, types=types, limit=2)
    if len(found) == 1:
        return found[0]["id"], None
    if not found and allows_text:
        return text, None
    translate = request.translate
    *others, last = (translate(humanize(name)).lower() for name in types.split(","))
    noun = translate("{first} or {last}", first=", ".join(others), last=last)
    problem = (
        "More than one {noun} matches. Select one from the list"
        if found
        else "No {noun} matches. Enter a name, phone number or ID"
    )
    return None, translate(problem, noun=noun if others else last)


async def load_record(request: PageRequest, public_id: str, types: str | None = None) -> Any:
    """Return the `id` and `title` of a record. Without a record, the title is the ID."""
    query = {} if types is None else {"types": types}
    can_search = request.can_access(f"GET {SEARCH_PATH}")
    found = await find_records(request, public_id, **query, limit=1) if can_search else []
    return found[0] if found else {"id": public_id, "title": public_id}
