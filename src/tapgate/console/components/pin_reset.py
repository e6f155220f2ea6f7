"""Action that sends a person the one-time code for a new PIN."""

from tapgate.console.actions import Action


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
