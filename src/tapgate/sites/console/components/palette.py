"""Command palette: pages, actions and recent records beside the records that a search finds.

Every entry is a link. The fragment `#do=card.block` presses that action's button on the page.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.pickers import find_records
from tapgate.sites.console.rendering import get_result_path
from tapgate.sites.console.translation.translator import source_text

_MAX_COMMANDS: Final = 6
_MAX_RECENT: Final = 5
_MAX_RECORDS: Final = 6


class Command(NamedTuple):
    """Page, or an action's page if `action` is set. `words` are further words that find it."""

    label: str
    path: str
    endpoint: str
    action: str = ""
    words: str = ""
    #: Record kinds to which the action applies, or empty if it needs no record.
    types: str = ""

    @property
    def address(self) -> str:
        return f"{self.path}#do={self.action}" if self.action else self.path


PAGES: Final = (
    Command(source_text("Home"), "/console", "GET /api/v1/overview", words="overview dashboard"),
    Command(source_text("My work"), "/console/work", "GET /api/v1/work-items", words="queues"),
    Command(source_text("Reports"), "/console/reports", "GET /api/v1/overview", words="figures"),
    Command(source_text("Customers"), "/console/subscribers", "GET /api/v1/subscribers"),
    Command(source_text("Cards"), "/console/cards", "GET /api/v1/cards"),
    Command(source_text("Card keys"), "/console/keysets", "GET /api/v1/cards/keysets"),
    Command(source_text("Agents"), "/console/agents", "GET /api/v1/agents", words="float"),
    Command(source_text("Support"), "/console/support", "GET /api/v1/support/requests"),
    Command(
        source_text("Saved replies"),
        "/console/saved-replies",
        "GET /api/v1/support/saved-replies",
        words="support texts",
    ),
    Command(source_text("Transactions"), "/console/transactions", "GET /api/v1/transactions"),
    Command(source_text("Merchants"), "/console/processors", "GET /api/v1/processors"),
    Command(source_text("Partners"), "/console/partners", "GET /api/v1/admin/partners"),
    Command(
        source_text("General ledger"),
        "/console/ledger",
        "GET /api/v1/ledger/accounts",
        words="trial balance journal income",
    ),
    Command(source_text("Compliance"), "/console/compliance", "GET /api/v1/compliance/alerts"),
    Command(source_text("KYC review"), "/console/kyc", "GET /api/v1/kyc-reviews"),
    Command(source_text("Approvals"), "/console/approvals", "GET /api/v1/approvals"),
    Command(
        source_text("Limits and fees"), "/console/limits", "GET /api/v1/account-rules/{kyc_level}"
    ),
    Command(source_text("Webhooks"), "/console/webhooks", "GET /api/v1/admin/webhook-endpoints"),
    Command(source_text("API keys"), "/console/api-keys", "GET /api/v1/admin/api-keys"),
    Command(source_text("API requests"), "/console/request-logs", "GET /api/v1/admin/request-logs"),
    Command(source_text("Administrators"), "/console/administrators", "GET /api/v1/admin/users"),
    Command(source_text("Audit log"), "/console/audit", "GET /api/v1/audit/logs"),
    Command(source_text("Nodes"), "/console/nodes", "GET /api/v1/system/nodes"),
    Command(source_text("Settings"), "/console/settings", "GET /api/v1/system/settings"),
    Command(source_text("My account"), "/console/account", "GET /api/v1/admin/me"),
)
#: Actions that need no record, on the page that has their button.
ACTIONS: Final = (
    Command(
        source_text("Register customer"),
        "/console/subscribers",
        "POST /api/v1/subscribers",
        "subscriber.register",
    ),
    Command(source_text("Link card"), "/console/cards", "POST /api/v1/cards/link", "card.link"),
    Command(
        source_text("Register agent"), "/console/agents", "POST /api/v1/agents", "agent.register"
    ),
    Command(
        source_text("Create merchant"),
        "/console/processors",
        "POST /api/v1/processors",
        "processor.create",
    ),
    Command(
        source_text("Invite administrator"),
        "/console/administrators",
        "POST /api/v1/admin/users",
        "administrator.create",
        "admin person",
    ),
    Command(
        source_text("Create API key"),
        "/console/api-keys",
        "POST /api/v1/admin/api-keys",
        "api_key.create",
    ),
    Command(
        source_text("Create webhook"),
        "/console/webhooks",
        "POST /api/v1/admin/webhook-endpoints",
        "webhook.create",
    ),
    Command(
        source_text("Create saved reply"),
        "/console/saved-replies",
        "POST /api/v1/support/saved-replies",
        "saved_reply.create",
    ),
    Command(
        source_text("Verify the ledger"),
        "/console/ledger",
        "POST /api/v1/ledger/verify",
        "ledger.verify",
    ),
)
#: Actions on a record that the rest of the text finds: "block card DEMO-000010".
RECORD_ACTIONS: Final = (
    Command(
        source_text("Refund payment"), "", "POST /api/v1/transactions/{id}/refund",
        "transaction.refund", types="transaction",
    ),
    Command(
        source_text("Block card"), "", "POST /api/v1/cards/{serial}/block", "card.block",
        types="card",
    ),
    Command(
        source_text("Replace card"), "", "POST /api/v1/cards/{serial}/replace", "card.replace",
        "lost stolen", types="card",
    ),
    Command(
        source_text("Unblock card"), "", "POST /api/v1/cards/{serial}/unblock", "card.unblock",
        types="card",
    ),
    Command(
        source_text("Block customer"), "", "POST /api/v1/subscribers/{id}/block",
        "subscriber.block", types="subscriber",
    ),
    Command(
        source_text("Top up float"), "", "POST /api/v1/agents/{id}/fund", "agent.fund",
        "fund agent", types="agent",
    ),
    Command(
        source_text("Suspend merchant"), "", "POST /api/v1/processors/{id}/suspend",
        "processor.suspend", types="processor",
    ),
)  # fmt: skip


async def list_groups(request: PageRequest, text: str, recent: str) -> list[tuple[str, list[Any]]]:
    """Return the palette's groups: a heading and entries with title, subtitle and path."""
    if not text:
        return [
            (request.translate("Recent"), await load_recent(request, recent)),
            (request.translate("Actions"), _find_commands(request, ACTIONS, "")),
            (request.translate("Pages"), _find_commands(request, PAGES, "")),
        ]
    found = await find_records(request, text, limit=_MAX_RECORDS)
    return [
        (
            request.translate("Actions"),
            [
                *await _find_record_actions(request, text),
                *_find_commands(request, ACTIONS, text),
            ],
        ),
        (request.translate("Pages"), _find_commands(request, PAGES, text)),
        (request.translate("Records"), _add_paths(found)),
    ]


def list_commands(request: PageRequest, text: str) -> list[Any]:
    """Return the pages and actions that a text finds, with title and path."""
    return _find_commands(request, PAGES, text) + _find_commands(request, ACTIONS, text)


def _find_commands(request: PageRequest, commands: Iterable[Command], text: str) -> list[Any]:
    found = []
    for command in commands:
        label = request.translate(command.label)
        words = f"{label} {command.label} {command.words}".lower().split()
        if request.can_access(command.endpoint) and _matches(words, text.lower().split()):
            found.append({"title": label, "path": command.address})
    return found[:_MAX_COMMANDS]


def _matches(words: list[str], typed: list[str]) -> bool:
    return all(any(word.startswith(part) for word in words) for part in typed)


async def _find_record_actions(request: PageRequest, text: str) -> list[Any]:
    """Return entries for records that the words after an action's name find."""
    entries = []
    for command in RECORD_ACTIONS:
        label = request.translate(command.label)
        if not request.can_access(command.endpoint):
            continue
        rest = _strip_label(label, text) or _strip_label(command.label, text)
        if rest is None:
            if _matches(f"{label} {command.label} {command.words}".lower().split(), text.split()):
                entries.append({"title": f"{label} …", "fill": f"{label} "})
            continue
        for record in _add_paths(
            await find_records(request, rest, types=command.types, limit=_MAX_RECORDS)
        ):
            path = f"{record['path']}#do={command.action}"
            entries.append({**record, "title": f"{label}: {record['title']}", "path": path})
    return entries[:_MAX_RECORDS]


def _strip_label(label: str, text: str) -> str | None:
    """Return the text after an action's name or its first word, or None."""
    lowered = text.lower()
    for start in (label.lower(), label.lower().partition(" ")[0]):
        rest = text[len(start) :].strip()
        if lowered.startswith(f"{start} ") and rest and rest.lower() not in label.lower():
            return rest
    return None


async def load_recent(request: PageRequest, recent: str) -> list[Any]:
    """Return the records with these IDs, separated by commas, with their pages."""
    records = []
    for public_id in [part for part in recent.split(",") if part][:_MAX_RECENT]:
        records += await find_records(request, public_id, limit=1)
    return _add_paths(records)


def _add_paths(records: list[Any]) -> list[Any]:
    paths = [(record, get_result_path(record["type"], record["id"])) for record in records]
    return [{**record, "path": path} for record, path in paths if path is not None]
