"""Actions on a merchant's or partner's signing keys."""

from tapgate.sites.console.actions import Action
from tapgate.sites.console.form_fields import Field

_REPLACE_HINT = (
    "Existing keys keep working until you delete them. To replace a key, create a new one, switch"
    " over, then delete the old one."
)


def build_create_key_action(
    name: str,
    keys_path: str,
    *,
    title: str = "Create a signing key",
    introduction: str = "",
    fields: tuple[Field, ...] = (),
    success_message: str = "Key created",
) -> Action:
    return Action(
        name=name,
        endpoint=f"POST {keys_path}",
        title=title,
        description=introduction + _REPLACE_HINT,
        button="Create key",
        fields=fields,
        success_message=success_message,
        result_template="processors/key_created.html",
    )


def build_delete_key_action(name: str, keys_path: str) -> Action:
    return Action(
        name=name,
        endpoint=f"DELETE {keys_path}/{{api_key_id}}",
        title="Delete this key?",
        description="Requests signed with this key are rejected immediately, even if it is the "
        "last key. This can't be undone, but you can create a new key.",
        button="Delete",
        success_message="Key deleted.",
        is_dangerous=True,
    )
