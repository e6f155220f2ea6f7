"""Actions that change a PIN, or send a person the one-time code for a new one."""

from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields


def build_pin_change_action(prefix: str, path: str, description: str) -> Action:
    return Action(
        name=f"{prefix}.change_pin",
        endpoint=f"POST {path}/change-pin",
        title="Change PIN",
        description=description,
        fields=fields.CHANGED_PINS,
        success_message="PIN changed.",
    )


def build_pin_reset_action(
    prefix: str, path: str, person: str, *, title: str = "Reset PIN?"
) -> Action:
    """Return the action for `POST {path}/reset-pin`.

    The person enters the code and the new PIN in chat, so that staff never learn either.
    """
    return Action(
        name=f"{prefix}.reset_pin",
        endpoint=f"POST {path}/reset-pin",
        title=title,
        description=f"Sends a one-time code to the {person}'s phone. The {person} enters the code "
        "and a new PIN in chat. The code is valid for 5 minutes. Never ask for it.",
        button="Send code",
        success_message=f"Code sent to the {person}'s phone. The {person} sets the new PIN in "
        "chat.",
    )
