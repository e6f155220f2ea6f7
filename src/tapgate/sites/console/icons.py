"""Action icons. The symbols are in `assets/icons.svg`."""

from collections.abc import Mapping
from typing import Final

#: Action verbs by icon. The verb is the last part of an action's name.
_VERBS: Final[Mapping[str, str]] = {
    "plus": "create register register_sub add new_amount new_total new_count new_wrong_pins",
    "upload": "document",
    "link": "link replace_confirm",
    "credit-card": "child",
    "key-round": "key",
    "pencil": "update edit amount total count wrong_pins level_1 level_2 level_3",
    "user-check": "level assign",
    "send": "send test more_needed send_receipt",
    "rotate-ccw": "recall refund return reverse redeliver reset_pin reset_password reset_factors",
    "arrow-left-right": "transfer",
    "wallet": "fund top_up",
    "banknote-arrow-down": "cash_in",
    "banknote-arrow-up": "cash_out pay_out",
    "calculator": "quote",
    "file-text": "statement",
    "shield-check": "verify verify_pin check step_up",
    "lock-keyhole": "change_pin password enter_code",
    "smartphone": "ask_code start_totp start_first_totp",
    "refresh-cw": "replace rotate rotate_secret rotate_webhook_secret",
    "shield-alert": "alert",
    "eye": "investigate",
    "check": "approve release resolve confirm",
    "circle-check": "activate enable unblock",
    "play": "resume",
    "pause": "pause",
    "circle-minus": "close terminate",
    "trash": "delete delete_key remove_totp revoke",
    "log-out": "end_session end_other_sessions",
}
_ICONS: Final = {verb: icon for icon, verbs in _VERBS.items() for verb in verbs.split()}
_DANGER_ICON: Final = "ban"


def get_action_icon(name: str, is_dangerous: bool) -> str | None:
    """Return an action's icon, such as `subscriber.block`, or None if it has none."""
    default = _DANGER_ICON if is_dangerous else None
    return _ICONS.get(name.rpartition(".")[2], default)
