"""User-facing messages for gateway rejections."""

from datetime import datetime
from typing import Final

from tapgate.errors import Code
from tapgate.messenger.conversation import texts
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.model.events import RequestRejected

#: Error codes that a different amount may resolve.
AMOUNT_ERROR_CODES: Final = frozenset(
    {
        Code.INSUFFICIENT_FUNDS,
        Code.TRANSACTION_LIMIT_EXCEEDED,
        Code.CARD_LIMIT_EXCEEDED,
        Code.DAILY_LIMIT_EXCEEDED,
        Code.MONTHLY_LIMIT_EXCEEDED,
        Code.MAX_BALANCE_EXCEEDED,
        Code.COMPLIANCE_REJECTED,
        Code.VALIDATION_FAILED,
    }
)


def render_rejection(scene: Turn, refused: RequestRejected) -> str:
    if refused.code == Code.ACCOUNT_LOCKED:
        return _render_locked(scene, refused.details.get("locked_until"))
    if refused.details.get("party") == "receiver":
        return scene.translate("error.receiver")
    return render_code(scene, refused.code)


def render_code(scene: Turn, code: str) -> str:
    """Return the text for an error code, or a general one for codes not expected in a chat."""
    key = f"error.{code}"
    return scene.translate(key if texts.has_text(key) else "error.general")


def _render_locked(scene: Turn, until: object) -> str:
    try:
        moment = datetime.fromisoformat(str(until))
        return scene.translate("pin.locked_until", until=scene.format_datetime(moment))
    except ValueError:
        return scene.translate("error.ACCOUNT_LOCKED")
