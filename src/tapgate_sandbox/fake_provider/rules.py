"""The provider's policies: rate limits, reachability, reply window and approved templates."""

from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from tapgate_sandbox.fake_provider.errors import GraphApiError


class ProviderRules(msgspec.Struct, frozen=True, kw_only=True):
    """Policy parameters. The default limits match the provider's; redelivery is faster."""

    #: Messages per second from a business phone number.
    max_per_second: int = 80
    #: Token bucket for messages to one person: burst size, and seconds per further message.
    pair_burst: int = 45
    pair_seconds: float = 6.0
    #: Time after a person's last message in which free-form replies are allowed.
    reply_window: timedelta = timedelta(hours=24)
    media_url_lifetime: timedelta = timedelta(minutes=5)
    #: Number of parameters by template name. None accepts every template.
    templates: Mapping[str, int] | None = None
    #: Delays in seconds before each redelivery attempt for a webhook that did not get a 200
    #: response.
    redelivery_delays: tuple[float, ...] = (0.05, 0.2, 1.0, 5.0)


class ProviderUser(msgspec.Struct, kw_only=True):
    last_message_at: datetime | None = None
    is_reachable: bool = True
    #: Tokens left in the pair rate limit's bucket at `counted_at`.
    allowance: float
    counted_at: datetime


class MessagePolicy:
    """Decides whether a valid message is accepted."""

    def __init__(self, rules: ProviderRules) -> None:
        self._rules = rules
        self._users: dict[str, ProviderUser] = {}
        self._accepted_at: deque[datetime] = deque()

    def get_user(self, address: str, now: datetime) -> ProviderUser:
        if address not in self._users:
            self._users[address] = ProviderUser(allowance=self._rules.pair_burst, counted_at=now)
        return self._users[address]

    def admit(self, to: str, message: Mapping[str, Any], now: datetime) -> None:
        """Count the message against the limits, or raise `GraphApiError`."""
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

    def _require_pair_rate(self, person: ProviderUser, now: datetime) -> None:
        refilled = (now - person.counted_at).total_seconds() / self._rules.pair_seconds
        person.allowance = min(float(self._rules.pair_burst), person.allowance + refilled)
        person.counted_at = now
        if person.allowance < 1:
            raise GraphApiError(131056, "Too many messages to the same phone number.")

    def _require_template(self, template: Mapping[str, Any]) -> None:
        if self._rules.templates is None:
            return
        expected = self._rules.templates.get(template["name"])
        if expected is None:
            raise GraphApiError(132001, "Template name does not exist", status=404)
        actual = sum(len(item.get("parameters", ())) for item in template.get("components", ()))
        if actual != expected:
            raise GraphApiError(132000, f"Expected {expected} parameters, got {actual}")
