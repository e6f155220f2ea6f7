"""What the provider allows, beyond the shape of a message: how fast, to whom and until when."""

from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from tapgate.messenger.fake_graph.errors import GraphApiError


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The provider's numbers, unless a test wants others."""

    #: Messages of a business phone number within a second.
    max_per_second: int = 80
    #: Messages to one person: so many at once, then one in so many seconds.
    pair_burst: int = 45
    pair_seconds: float = 6.0
    #: How long after a person's last message they may be answered freely.
    reply_window: timedelta = timedelta(hours=24)
    media_url_lifetime: timedelta = timedelta(minutes=5)
    #: Name -> number of parameters of its body. None: whatever is named has been approved.
    templates: Mapping[str, int] | None = None
    #: Pauses before a delivery that was not answered with 200 is made again.
    redelivery_delays: tuple[float, ...] = (0.05, 0.2, 1.0, 5.0)


class User(msgspec.Struct, kw_only=True):
    last_message_at: datetime | None = None
    is_reachable: bool = True
    #: How many messages may be sent at once, as of when that was counted.
    allowance: float
    counted_at: datetime


class MessagePolicy:
    """Decides whether a well-formed message is taken."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._users: dict[str, User] = {}
        self._accepted_at: deque[datetime] = deque()

    def get_user(self, address: str, now: datetime) -> User:
        if address not in self._users:
            self._users[address] = User(allowance=self._rules.pair_burst, counted_at=now)
        return self._users[address]

    def admit(self, to: str, message: Mapping[str, Any], now: datetime) -> None:
        """Raises `FakeError`; if not, the message has been counted."""
        person = self.get_user(to, now)
        self._require_rate(now)
        self._require_pair_rate(person, now)
        if not person.is_reachable:
            raise GraphApiError(131026, "Message undeliverable.")
        if message.get("type") == "template":
            self._require_template(message["template"])
        elif (
            person.last_message_at is None
            or now - person.last_message_at > self._rules.reply_window
        ):
            raise GraphApiError(
                131047, "More than 24 hours have passed since the recipient last replied."
            )
        person.allowance -= 1
        self._accepted_at.append(now)

    def _require_rate(self, now: datetime) -> None:
        while self._accepted_at and self._accepted_at[0] <= now - timedelta(seconds=1):
            self._accepted_at.popleft()
        if len(self._accepted_at) >= self._rules.max_per_second:
            raise GraphApiError(130429, "Cloud API message throughput has been reached.")

    def _require_pair_rate(self, person: User, now: datetime) -> None:
        passed = (now - person.counted_at).total_seconds() / self._rules.pair_seconds
        person.allowance = min(float(self._rules.pair_burst), person.allowance + passed)
        person.counted_at = now
        if person.allowance < 1:
            raise GraphApiError(131056, "Too many messages to the same phone number.")

    def _require_template(self, template: Mapping[str, Any]) -> None:
        if self._rules.templates is None:
            return
        wanted = self._rules.templates.get(template["name"])
        if wanted is None:
            raise GraphApiError(132001, "Template name does not exist", status=404)
        given = sum(len(one.get("parameters", ())) for one in template.get("components", ()))
        if given != wanted:
            raise GraphApiError(132000, f"{given} parameters instead of {wanted}")
