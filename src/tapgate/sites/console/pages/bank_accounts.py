"""Bank accounts of merchants, partners, agents and the platform."""

from functools import partial
from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.components.lists import add_list_page
from tapgate.sites.console.components.related import (
    gather_by_name,
    get_account_names,
    get_audit,
    name_account,
)
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.pages.payouts import LIST_PATH as PAYOUTS_PATH
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.bank_accounts import BankAccountOwner

pages = Pages()

_LIST_PATH: Final = "/api/v1/bank-accounts"
_ITEM_PATH: Final = f"{_LIST_PATH}/{{id}}"
_RECENT_STATEMENTS: Final = 5
_RECENT_PAYOUTS: Final = 10

_build_state_action = partial(build_state_action, "bank_account", _ITEM_PATH, "bank account")

BANK_FIELDS: Final = (
    Field("holder_name", "Account holder", hint="As the bank writes it"),
    Field("bank_code", hint="BIC or national bank code"),
    Field("bank_name", required=False),
    Field("number", "Account number", hint="IBAN or another account number"),
)
_DESCRIPTION: Final = "Another administrator must verify the account before payouts can use it."

ACTIONS: Final = (
    Action(
        name="bank_account.create",
        endpoint=f"POST {_LIST_PATH}",
        title="Add a bank account",
        description=_DESCRIPTION,
        button="Add bank account",
        fields=(
            Field(
                "owner_id",
                "Merchant, partner or agent",
                "picker",
                picks="processor,partner,agent",
            ),
            *BANK_FIELDS,
        ),
        success_message="Bank account added.",
        redirect_path="/console/bank-accounts/{id}",
    ),
    Action(
        name="bank_account.create_own",
        endpoint=f"POST {_LIST_PATH}",
        title="Add the platform's bank account",
        description=_DESCRIPTION,
        button="Add the platform's account",
        fields=(
            Field("owner_type", kind="hidden", value=BankAccountOwner.PLATFORM.value),
            *BANK_FIELDS,
        ),
        success_message="Bank account added.",
        redirect_path="/console/bank-accounts/{id}",
    ),
    Action(
        name="bank_account.verify",
        endpoint=f"POST {_ITEM_PATH}/verify",
        title="Verify this bank account?",
        description="Compare the number with a document from the bank first. Payouts can use the "
        "account after a waiting period.",
        button="Verify",
        success_message="Bank account verified.",
    ),
    _build_state_action(
        "block",
        "Payouts to this account stop, and requested ones stay requested. This can't be undone.",
        fields.REASON,
    ),
)

add_list_page(
    pages,
    "/console/bank-accounts",
    _LIST_PATH,
    "bank_accounts/list.html",
    ("status", "owner_type", "owner_id"),
)


@pages.get("/console/bank-accounts/{id}")
async def show_bank_account(request: PageRequest, id: str) -> Reply[bytes]:
    account = await request.get(_ITEM_PATH, id=id)
    owner_id = account["owner_id"]
    parts = await gather_by_name(
        payouts=request.get(
            PAYOUTS_PATH, {"limit": _RECENT_PAYOUTS, **({"owner_id": owner_id} if owner_id else {})}
        ),
        statements=request.get(
            "/api/v1/bank-statements", {"bank_account_id": id, "limit": _RECENT_STATEMENTS}
        ),
        account_names=get_account_names(request, **({"owner_id": owner_id} if owner_id else {})),
        audit=get_audit(request, id),
    )
    return request.render(
        "bank_accounts/bank_account.html",
        account=account,
        account_name=name_account(account),
        **parts,
    )
