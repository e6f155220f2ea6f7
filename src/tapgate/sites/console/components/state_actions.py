"""Actions that change a record's state, such as suspending an agent."""

from typing import Final

from tapgate.sites.console.actions import Action
from tapgate.sites.console.form_fields import Field

_DELETING_VERBS: Final = frozenset({"delete", "revoke"})
_DANGEROUS_VERBS: Final = _DELETING_VERBS | {"block", "disable", "retire", "suspend", "terminate"}


def build_status_field(status: str) -> Field:
    return Field("status", kind="hidden", value=status)


def build_state_action(
    prefix: str,
    item_path: str,
    noun: str,
    verb: str,
    description: str,
    *fields: Field,
    status: str | None = None,
    redirect_path: str | None = None,
    preview_path: str | None = None,
    preview_template: str | None = None,
) -> Action:
    """Return the action `prefix.verb`, whose texts consist of the noun and the verb.

    With `status`, the action updates the field `status` of the record.
    """
    if status is not None:
        endpoint, fields = f"PUT {item_path}", (build_status_field(status),)
    elif verb in _DELETING_VERBS:
        endpoint = f"DELETE {item_path}"
    else:
        endpoint = f"POST {item_path}/{verb}"
    return Action(
        name=f"{prefix}.{verb}",
        endpoint=endpoint,
        title=f"{verb.capitalize()} this {noun}?",
        description=description,
        button=verb.capitalize(),
        fields=fields,
        success_message=f"{noun.capitalize()} {verb.removesuffix('e')}ed.",
        is_dangerous=verb in _DANGEROUS_VERBS,
        redirect_path=redirect_path,
        preview_path=preview_path,
        preview_template=preview_template,
    )
