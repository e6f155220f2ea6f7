"""Payouts to the owner's bank accounts, and the payout schedule."""

from decimal import Decimal
from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.components.next_steps import tell_payout
from tapgate.sites.console.components.related import gather_by_name
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.pages import bank_accounts, payouts
from tapgate.sites.console.pages.payouts import LIST_PATH, SCHEDULE_PATH
from tapgate.sites.console.site import Pages
from tapgate.sites.portal.components import find_action, get_owner_id, is_merchant
from tapgate.sites.portal.stages import list_payout_stages
from tapgate_client.schemas.bank_accounts import BankAccountStatus
from tapgate_client.schemas.payouts import PayoutStatus

pages = Pages()

_ACCOUNTS_PATH: Final = "/api/v1/bank-accounts"
_FILTERS: Final = ("status", "cursor")
_MAX_ACCOUNTS: Final = 100
MAX_REQUESTED: Final = 100
_OWNER: Final = Field("owner_id", kind="hidden")

ACTIONS: Final = (
    Action(
        name="payout.create",
        endpoint=f"POST {LIST_PATH}",
        title="Request a payout",
        description="Moves money from your balance to your bank account. The next payout run sends "
        "the payout to the bank.",
        button="Request payout",
        fields=(
            fields.AMOUNT._replace(
                required=False, hint="Empty: everything available above the reserve"
            ),
            Field("bank_account_id", "Bank account", "hidden", required=False),
            _OWNER,
        ),
        success_message="Payout requested.",
        moves_money=True,
        redirect_path="/console/payouts/{payout_id}",
    ),
    Action(
        name="bank_account.create",
        endpoint=f"POST {_ACCOUNTS_PATH}",
        title="Add a bank account",
        description="The platform verifies the account before payouts can use it.",
        button="Add bank account",
        fields=(*bank_accounts.BANK_FIELDS, _OWNER),
        success_message="Bank account added.",
    ),
    find_action(payouts.ACTIONS, "payout_schedule.update"),
)


@pages.get(f"{PORTAL}/payouts")
async def list_payouts(request: PageRequest) -> Reply[bytes]:
    parts = await gather_by_name(
        page=request.get(LIST_PATH, request.query.pick(*_FILTERS)),
        owner=request.get("/api/v1/me/owner"),
        requested=request.get(
            LIST_PATH, {"status": PayoutStatus.REQUESTED.value, "limit": MAX_REQUESTED}
        ),
        accounts=request.get_if_allowed(_ACCOUNTS_PATH, {"limit": _MAX_ACCOUNTS}),
        schedule=request.get_if_allowed(SCHEDULE_PATH, id=get_owner_id(request))
        if is_merchant(request)
        else _get_nothing(),
    )
    accounts = (parts["accounts"] or {"data": []})["data"]
    return request.render(
        "portal/payouts.html",
        owner_id=get_owner_id(request),
        destinations={account["id"]: account for account in accounts},
        destination=next(
            (item for item in accounts if item["status"] == BankAccountStatus.VERIFIED), None
        ),
        pending=add_up_payouts(parts.pop("requested")["data"]),
        statuses=tuple(PayoutStatus),
        **parts,
    )


def add_up_payouts(payouts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "count": len(payouts),
        "amount": f"{sum((Decimal(payout['amount']) for payout in payouts), Decimal(0)):f}",
    }


async def _get_nothing() -> None:
    """Stand in for a part that only merchants have."""


@pages.get(f"{PORTAL}/payouts/{{id}}")
async def show_payout(request: PageRequest, id: str) -> Reply[bytes]:
    payout = await request.get(f"{LIST_PATH}/{{id}}", id=id)
    account = await request.get(f"{_ACCOUNTS_PATH}/{{id}}", id=payout["bank_account_id"])
    return request.render(
        "portal/payout.html",
        payout=payout,
        account=account,
        next_step=tell_payout(request, payout, account),
        stages=list_payout_stages(payout),
    )
