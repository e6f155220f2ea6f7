"""Approval rules with their amounts in minor units."""

from collections.abc import Sequence

import msgspec

from tapgate.http.api.guards import Requirement
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.approvals import Operation


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Approval rule, with the amount in minor units."""

    id: int
    operation: Operation
    above: int | None
    roles: list[AdminRole]
    approvers: int
    expires_in: int

    def holds(self, total: int | None) -> bool:
        """Return whether the rule holds a request that brings the maker's sum to `total`."""
        return self.above is None or total is None or total > self.above

    @property
    def requirement(self) -> Requirement:
        return Requirement(roles=self.roles, approvers=self.approvers, expires_in=self.expires_in)


def build_rule_change_requirement(rules: Sequence[Rule]) -> Requirement:
    """Return the approvals that a change of these rules needs: as many as the strictest rule.

    A system_admin, and every role that may approve something, can approve the change.
    """
    roles = dict.fromkeys(
        [AdminRole.SYSTEM_ADMIN, *(role for rule in rules for role in rule.roles)]
    )
    return Requirement(
        roles=list(roles),
        approvers=max(rule.approvers for rule in rules),
        expires_in=max(rule.expires_in for rule in rules),
    )
