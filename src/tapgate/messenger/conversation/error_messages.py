"""User-facing messages for gateway rejections."""

from datetime import datetime
from typing import Final

from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.model import RequestRejected
from tapgate_client.errors import Code

#: Error codes that a different amount may resolve.
AMOUNT_ERROR_CODES: Final = frozenset(
    {
        Code.INSUFFICIENT_FUNDS,
        Code.TRANSACTION_LIMIT_EXCEEDED,
        Code.CARD_LIMIT_EXCEEDED,
        Code.DAILY_LIMIT_EXCEEDED,
        Code.MONTHLY_LIMIT_EXCEEDED,
        Code.MAX_BALANCE_EXCEEDED,
        Code.VALIDATION_FAILED,
    }
)


def render_rejection(turn: Turn, error: RequestRejected) -> str:
    if error.code == Code.ACCOUNT_LOCKED:
        return _render_locked(turn, error.details.get("locked_until"))
    if error.details.get("party") == "receiver":
        return turn.translate("error.receiver")
    return turn.translate_or(f"error.{error.code}", "error.general")


def _render_locked(turn: Turn, until: object) -> str:
    try:
        moment = datetime.fromisoformat(str(until))
        return turn.translate("pin.locked_until", until=turn.format_datetime(moment))
    except ValueError:
        return turn.translate("error.ACCOUNT_LOCKED")
