"""Steps that a new merchant takes until it is paid out, in the console and in the portal."""

from collections.abc import Sequence
from typing import Any, NamedTuple


class MerchantStep(NamedTuple):
    name: str
    title: str
    text: str
    is_done: bool


def list_steps(
    *,
    terminals: Sequence[Any],
    keys: Sequence[Any],
    payments: Sequence[Any],
    bank_accounts: Sequence[Any],
    users: Sequence[Any] | None = None,
) -> list[MerchantStep]:
    """Return the steps, or none once the merchant takes payments and can be paid out.

    `users` is None in the portal, whose viewer has signed in.
    """
    is_connected = bool(terminals) or any(key["last_used_at"] for key in keys)
    steps = [
        MerchantStep(
            "connect",
            "Add a terminal or connect a server",
            "Each terminal and each server signs its requests with its own key.",
            is_connected or bool(payments),
        ),
        MerchantStep(
            "payment",
            "Take a test payment",
            "With a card at the terminal. Refund it afterwards.",
            bool(payments),
        ),
        MerchantStep(
            "bank_account",
            "Add the bank account",
            "Payouts go there, once the platform has verified it.",
            bool(bank_accounts),
        ),
    ]
    if all(step.is_done for step in steps):
        return []
    return steps if users is None else [*_list_user_steps(users), *steps]


def _list_user_steps(users: Sequence[Any]) -> list[MerchantStep]:
    return [
        MerchantStep(
            "invite",
            "Invite the manager",
            "The manager gets a link to the portal and invites the cashiers.",
            bool(users),
        ),
        MerchantStep(
            "sign_in",
            "The manager signs in",
            "The link works for 3 days. Reset the password to get another one.",
            any(user["last_login_at"] for user in users),
        ),
    ]
