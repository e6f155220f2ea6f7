"""Payouts to bank accounts, payout runs and their bank files."""

from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.components.lists import pick_filters
from tapgate.sites.console.components.next_steps import tell_payout, tell_payout_run
from tapgate.sites.console.components.related import (
    gather_by_name,
    get_account_names,
    get_admin_names,
    get_audit,
)
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import SECURITY_HEADERS, PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.bank_accounts import BankAccountOwner
from tapgate_client.schemas.payouts import PayoutInterval, PayoutOwner, PayoutStatus

pages = Pages()

LIST_PATH: Final = "/api/v1/payouts"
_ITEM_PATH: Final = f"{LIST_PATH}/{{id}}"
_RUNS_PATH: Final = "/api/v1/payout-runs"
_RUN_PATH: Final = f"{_RUNS_PATH}/{{id}}"
SCHEDULE_PATH: Final = "/api/v1/processors/{id}/payout-schedule"
_PAGE_SIZE: Final = 25
_MAX_PAYOUTS: Final = 100

TABS: Final = {
    PayoutStatus.REQUESTED.value: "Requested",
    PayoutStatus.SUBMITTED.value: "Submitted",
    PayoutStatus.PAID.value: "Paid",
    PayoutStatus.RETURNED.value: "Returned",
    PayoutStatus.CANCELLED.value: "Cancelled",
    "all": "All",
}

ACTIONS: Final = (
    Action(
        name="payout.create",
        endpoint=f"POST {LIST_PATH}",
        title="Request a payout",
        description="Moves money from the owner's account to the bank account. The next payout run "
        "sends the payout to the bank. If the owner has several bank accounts, request the payout "
        "on the page of one of them.",
        button="Request payout",
        fields=(
            Field(
                "owner_id",
                "Merchant, partner or agent",
                "picker",
                picks="processor,partner,agent",
            ),
            fields.AMOUNT._replace(
                required=False, hint="Empty: everything available above the reserve"
            ),
            Field("bank_account_id", "Bank account", "hidden", required=False),
        ),
        success_message="Payout requested.",
        moves_money=True,
        redirect_path="/console/payouts/{payout_id}",
    ),
    Action(
        name="payout.paid",
        endpoint=f"POST {_ITEM_PATH}/paid",
        title="Mark this payout as paid?",
        description="Use this when the bank statement shows the payout. The money leaves the "
        "platform's books. If the bank sends it back later, mark the payout as returned.",
        button="Mark as paid",
        fields=(Field("bank_reference", required=False, hint="The bank's own reference, if any"),),
        success_message="Payout paid.",
        moves_money=True,
    ),
    Action(
        name="payout.returned",
        endpoint=f"POST {_ITEM_PATH}/returned",
        title="Mark this payout as returned?",
        description="Use this when the bank sent the money back. The amount and the fee go back to "
        "the owner. Check the bank's own statement first.",
        button="Mark as returned",
        fields=(Field("reason", kind="long", hint="What the bank says. The owner reads it"),),
        success_message="Payout returned.",
        moves_money=True,
        is_dangerous=True,
    ),
    Action(
        name="payout.cancel",
        endpoint=f"POST {_ITEM_PATH}/cancel",
        title="Cancel this payout?",
        description="The amount and the fee go back to the owner.",
        button="Cancel payout",
        success_message="Payout cancelled.",
        moves_money=True,
        is_dangerous=True,
    ),
    Action(
        name="payout_run.create",
        endpoint=f"POST {_RUNS_PATH}",
        title="Run payouts",
        description="Submits all requested payouts. Then download the bank file and upload it to "
        "your bank. Payouts to blocked bank accounts are left out.",
        button="Run payouts",
        fields=(
            Field(
                "owner_type",
                "Only payouts to",
                "choice",
                choices=tuple(PayoutOwner),
                required=False,
            ),
        ),
        success_message="Payouts submitted.",
        moves_money=True,
        redirect_path="/console/payout-runs/{id}",
    ),
    Action(
        name="payout_schedule.update",
        endpoint=f"PUT {SCHEDULE_PATH}",
        title="Edit payout schedule",
        description="Due payouts are requested after the day is closed, or for weekly payouts "
        "after Sunday.",
        button="Save",
        fields=(
            Field("interval", kind="choice", choices=tuple(PayoutInterval)),
            Field("minimum", "Minimum payout", "money", hint="Less than this is not paid out"),
            Field("reserve_percent", "Reserve (%)", "number", hint="Part of the balance to keep"),
        ),
        prefill_path=SCHEDULE_PATH,
        success_message="Payout schedule updated.",
    ),
)


@pages.get("/console/payouts")
async def list_payouts(request: PageRequest) -> Reply[bytes]:
    query = {**get_filters(request), **request.query.pick("cursor"), "limit": str(_PAGE_SIZE)}
    parts = await gather_by_name(
        page=request.get(LIST_PATH, query),
        account_names=get_account_names(request, **request.query.pick("owner_id")),
    )
    return request.render("payouts/list.html", **parts, tab=_get_tab(request), tabs=TABS)


def get_filters(request: PageRequest) -> dict[str, str]:
    """Return the API's filters for the list page's query."""
    tab, filters = _get_tab(request), request.query.pick("owner_id")
    return filters if tab == "all" else {**filters, "status": tab}


def _get_tab(request: PageRequest) -> str:
    return request.query.get("status") or PayoutStatus.REQUESTED


@pages.get("/console/payouts/{id}")
async def show_payout(request: PageRequest, id: str) -> Reply[bytes]:
    payout = await request.get(_ITEM_PATH, id=id)
    parts = await gather_by_name(
        account=request.get("/api/v1/bank-accounts/{id}", id=payout["bank_account_id"]),
        audit=get_audit(request, id),
    )
    return request.render(
        "payouts/payout.html",
        payout=payout,
        next_step=tell_payout(request, payout, parts["account"]),
        **parts,
    )


@pages.get("/console/payout-runs")
async def list_runs(request: PageRequest) -> Reply[bytes]:
    parts = await gather_by_name(
        page=request.get(_RUNS_PATH, {**pick_filters(request, "cursor"), "limit": str(_PAGE_SIZE)}),
        account_names=get_account_names(request, owner_type=BankAccountOwner.PLATFORM),
        admin_names=get_admin_names(request),
    )
    return request.render("payouts/runs.html", **parts)


@pages.get("/console/payout-runs/{id}")
async def show_run(request: PageRequest, id: str) -> Reply[bytes]:
    run = await request.get(_RUN_PATH, id=id)
    parts = await gather_by_name(
        account=request.get("/api/v1/bank-accounts/{id}", id=run["bank_account_id"]),
        account_names=get_account_names(request),
        payouts=request.get(LIST_PATH, {"run_id": id, "limit": _MAX_PAYOUTS}),
        audit=get_audit(request, id),
        admin_names=get_admin_names(request),
    )
    has_submitted = run["submitted"] > 0
    return request.render(
        "payouts/run.html",
        run=run,
        has_submitted=has_submitted,
        next_step=tell_payout_run(request, has_submitted=has_submitted),
        **parts,
    )


@pages.get("/console/payout-runs/{id}/file")
async def download_file(request: PageRequest, id: str) -> Reply[bytes]:
    file: Reply[bytes] = await request.get(f"{_RUN_PATH}/file", request.query.pick("format"), id=id)
    return Reply(
        file.body,
        headers={**SECURITY_HEADERS, **file.headers},
        content_type=file.content_type,
    )
