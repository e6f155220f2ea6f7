"""Admins as people: which accounts may be one person, and who could approve which requests."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from tapgate.business.approval_rules.model import Rule, build_rule_change_requirement
from tapgate_client.schemas.approvals import Operation

#: Roles that may request each guarded operation.
RolesByOperation: TypeAlias = Mapping[str, frozenset[str]]

_NO_ROLES: Final = frozenset[str]()
_RULE_CHANGE_ID: Final = 0


class Person(NamedTuple):
    """An admin account and the person behind it."""

    admin_id: int
    name: str
    role: str
    is_active: bool
    person: str
    #: False until the admin has used the link that replaced the password.
    can_sign_in: bool = True


class PersonGroups:
    """People who count as one: each pair in `pairs`, and everyone they are connected with."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._parents: dict[str, str] = {}
        for one, other in pairs:
            self._parents[self.get(one)] = self.get(other)

    def get(self, person: str) -> str:
        """Return the person who represents the group."""
        while person in self._parents and self._parents[person] != person:
            person = self._parents[person]
        return person


class ApproverCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many people could approve a request under a rule.

    `available` counts the approvers available to the maker who has the fewest. `maker` is None if
    no active admin may make such a request; `available` then counts all approvers.
    """

    rule: Rule
    available: int
    maker: Person | None

    @property
    def missing(self) -> int:
        """How many more people the rule needs."""
        return 0 if self.maker is None else max(0, self.rule.approvers - self.available)


def count_approvers(
    rules: Sequence[Rule],
    admins: Sequence[Person],
    groups: PersonGroups,
    makers: RolesByOperation,
) -> list[ApproverCount]:
    """Return the approvers of each rule, and of changing the rules, among active admins.

    A maker, and everyone in the maker's group, cannot approve the request. Each group counts once.
    Admins who cannot sign in yet count as makers, but not as approvers.
    """
    return [
        _count(rule, admins, groups, makers.get(rule.operation, _NO_ROLES))
        for rule in [*rules, *_build_rule_change_rule(rules)]
    ]


def _count(
    rule: Rule, admins: Sequence[Person], groups: PersonGroups, maker_roles: frozenset[str]
) -> ApproverCount:
    approvers = {
        groups.get(admin.person)
        for admin in admins
        if admin.role in rule.roles and admin.can_sign_in
    }
    available, maker = len(approvers), None
    for admin in admins:
        if admin.role not in maker_roles:
            continue
        others = len(approvers) - (groups.get(admin.person) in approvers)
        if maker is None or others < available:
            available, maker = others, admin
    return ApproverCount(rule=rule, available=available, maker=maker)


def _build_rule_change_rule(rules: Sequence[Rule]) -> list[Rule]:
    """Return the rule that guards rule changes, once rules exist."""
    if not rules:
        return []
    requirement = build_rule_change_requirement(rules)
    return [
        Rule(
            id=_RULE_CHANGE_ID,
            operation=Operation.APPROVAL_RULES,
            above=None,
            roles=requirement.roles,
            approvers=requirement.approvers,
            expires_in=requirement.expires_in,
        )
    ]


def identify_person(email: str) -> str:
    """Return the person behind an email address, which can have several admin accounts.

    Case and the part after a plus sign are ignored.
    """
    local, _, domain = email.lower().rpartition("@")
    return f"{local.partition('+')[0]}@{domain}"
