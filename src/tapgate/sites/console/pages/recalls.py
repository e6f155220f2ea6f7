"""Recalls: the queue, one recall, and decisions by staff."""

from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.case import load_case
from tapgate.sites.console.components.next_steps import tell_recall
from tapgate.sites.console.components.related import gather_by_name, get_admin_names, get_audit
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.recalls import RecallStatus, RecallVerdict

pages = Pages()

_RECALLS_PATH: Final = "/api/v1/recalls"
_RECALL_PATH: Final = f"{_RECALLS_PATH}/{{id}}"
_PAGE_SIZE: Final = 25

TABS: Final = {
    "open": "Open",
    "returned": "Returned",
    "kept": "Kept",
    "expired": "Expired",
    "decided": "Decided by staff",
    "all": "All",
}


def _build_decision(
    verdict: RecallVerdict, title: str, button: str, description: str, message: str
) -> Action:
    return Action(
        name=f"recall.{verdict}",
        endpoint=f"POST {_RECALL_PATH}/decide",
        title=title,
        button=button,
        description=description,
        fields=(
            Field("decision", kind="hidden", value=verdict),
            Field("reason", kind="long", hint="Saved in the audit log"),
        ),
        success_message=message,
        is_dangerous=verdict == RecallVerdict.RETURN,
        preview_path=_RECALL_PATH,
        preview_template="recalls/effect.html",
    )


ACTIONS: Final = (
    _build_decision(
        RecallVerdict.RELEASE,
        "Release the held money?",
        "Release to recipient",
        "Ends the recall. The recipient keeps the money, and the sender is told. This can't be"
        " undone.",
        "Recall ended. The recipient keeps the money.",
    ),
    _build_decision(
        RecallVerdict.RETURN,
        "Return the held money?",
        "Return to sender",
        "Ends the recall. The held money goes back to the sender, and both are told. The fee is not"
        " returned. This can't be undone.",
        "Recall ended. The money is back with the sender.",
    ),
)


@pages.get("/console/recalls")
async def list_recalls(request: PageRequest) -> Reply[bytes]:
    query = {**get_filters(request), **request.query.pick("cursor"), "limit": str(_PAGE_SIZE)}
    page = await request.get(_RECALLS_PATH, query)
    return request.render("recalls/list.html", page=page, tab=_get_tab(request), tabs=TABS)


def get_filters(request: PageRequest) -> dict[str, str]:
    """Return the API's filters for the list page's query."""
    tab = _get_tab(request)
    return {} if tab == "all" else {"status": tab}


def _get_tab(request: PageRequest) -> str:
    return request.query.get("status") or RecallStatus.OPEN


@pages.get("/console/recalls/{id}")
async def show_recall(request: PageRequest, id: str) -> Reply[bytes]:
    recall = await request.get(_RECALL_PATH, id=id)
    transfer = await request.get("/api/v1/transactions/{id}", id=recall["transaction_id"])
    parts = await gather_by_name(
        case=load_case(request, (transfer["to"] or {}).get("id")),
        audit=get_audit(request, id),
        admin_names=get_admin_names(request),
    )
    return request.render(
        "recalls/recall.html",
        recall=recall,
        transfer=transfer,
        next_step=tell_recall(request, recall, transfer),
        **parts,
    )
