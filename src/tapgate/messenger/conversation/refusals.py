"""What a person is told when the gateway says no."""

from datetime import datetime
from typing import Final

from tapgate.errors import Code
from tapgate.messenger.conversation import texts
from tapgate.messenger.conversation.scene import Scene
from tapgate.messenger.model.events import Refused

#: What another amount may cure.
OF_THE_AMOUNT: Final = frozenset(
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


def sentence(scene: Scene, refused: Refused) -> str:
    if refused.code == Code.ACCOUNT_LOCKED:
        return _locked(scene, refused.details.get("locked_until"))
    if refused.details.get("party") == "receiver":
        return scene.text("error.receiver")
    return of_code(scene, refused.code)


def of_code(scene: Scene, code: str) -> str:
    """Codes that cannot come up in a conversation share one sentence."""
    key = f"error.{code}"
    return scene.text(key if texts.has(key) else "error.general")


def _locked(scene: Scene, until: object) -> str:
    try:
        moment = datetime.fromisoformat(str(until))
        return scene.text("pin.locked_until", until=scene.moment(moment))
    except ValueError:
        return scene.text("error.ACCOUNT_LOCKED")
