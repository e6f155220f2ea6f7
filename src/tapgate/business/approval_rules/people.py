"""Admins as people: which accounts may be one person, and who could approve which requests."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from tapgate.auth.owners import Owner
from tapgate.business.approval_rules.model import Rule, build_rule_change_requirement
from tapgate_client.schemas.approvals import Operation

#: Roles that may request each guarded operation.
RolesByOperation: TypeAlias = Mapping[str, frozenset[str]]

_NO_ROLES: Final = frozenset[str]()
_RULE_CHANGE_ID: Final = 0
#: Separates owner and email address in an owner user's identity. Neither contains it.
_OWNER_SEPARATOR: Final = " "


class Person(NamedTuple):
    """An admin account and the person behind it."""

    admin_id: int
    name: str
    role: str
    is_active: bool
    person: str
    #: False until the admin has used the link that replaced the password.
    can_sign_in: bool = True
    #: Processor, partner or agent of an owner's user, who never approves anything.
    owner: Owner | None = None
    #: False while someone else may have a link to this account.
    is_confirmed: bool = True


class LinkedPeople:
    """The people who may use each admin's account, besides the admin.

    A link `(one, other)` says that `other` may have had a link to an account of `one`. Users of
    the account of `other` may then use the account of `one` too.

    A platform person with an owner user's email address may use the owner user's account. The
    reverse never holds: owner users choose addresses without an approval, so they must not connect
    platform people.
    """

    def __init__(self, links: Iterable[tuple[str, str]] = ()) -> None:
        self._links = defaultdict[str, set[str]](set)
        for one, other in links:
            self._links[one].add(other)

    def get(self, person: str) -> frozenset[str]:
        """Return everyone who may act as a person, including the person."""
        found, waiting = {person}, [person]
        while waiting:
            each = waiting.pop()
            _, separator, email_person = each.partition(_OWNER_SEPARATOR)
            new = self._links.get(each, set()) | ({email_person} if separator else set())
            new -= found
            found |= new
            waiting += new
        return frozenset(found)

    def may_be_same(self, one: str, other: str) -> bool:
        """Return whether one person may act as both."""
        return not self.get(one).isdisjoint(self.get(other))

    def count(self, people: Iterable[str]) -> int:
        """Return how many people at least act as these people.

        Exact up to two, the largest number of approvers of a rule. Above, a lower bound.
        """
        actors = sorted((self.get(person) for person in people), key=len)
        if not actors:
            return 0
        if frozenset.intersection(*actors):
            return 1
        different = list[frozenset[str]]()
        for each in actors:
            if all(map(each.isdisjoint, different)):
                different.append(each)
        return max(2, len(different))


class ApproverCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many people could approve a request under a rule.

    `available` counts the approvers available to the maker who has the fewest. `maker` is None if
    no active admin may make such a request; `available` then counts all approvers. `approvers` are
    the accounts with one of the roles.
    """

    rule: Rule
    available: int
    maker: Person | None
    approvers: list[Person]

    @property
    def missing(self) -> int:
        """How many more people the rule needs."""
        return 0 if self.maker is None else max(0, self.rule.approvers - self.available)


def count_approvers(
    rules: Sequence[Rule],
    admins: Sequence[Person],
    linked: LinkedPeople,
    makers: RolesByOperation,
) -> list[ApproverCount]:
    """Return the approvers of each rule, and of changing the rules, among active admins.

    As in a decision, someone who may be the maker cannot approve the request, and accounts that one
    person may use count once. Admins who cannot sign in yet count as makers, but not as approvers.
    An account that waits for its confirmation counts as a maker as if it were confirmed: its
    requests can wait for the confirmation, so it does not prevent rules or invitations.
    """
    return [
        _count(rule, admins, linked, makers.get(rule.operation, _NO_ROLES))
        for rule in [*rules, *_build_rule_change_rule(rules)]
    ]


def _count(
    rule: Rule, admins: Sequence[Person], linked: LinkedPeople, maker_roles: frozenset[str]
) -> ApproverCount:
    accounts = [admin for admin in admins if admin.role in rule.roles and admin.can_sign_in]
    approvers = {admin.person for admin in accounts}
    available, maker = linked.count(approvers), None
    for admin in admins:
        if admin.role not in maker_roles:
            continue
        makers = linked.get(admin.person) if admin.is_confirmed else {admin.person}
        others = linked.count(each for each in approvers if makers.isdisjoint(linked.get(each)))
        if maker is None or others < available:
            available, maker = others, admin
    return ApproverCount(rule=rule, available=available, maker=maker, approvers=accounts)


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


def identify_person(email: str, owner: Owner | None = None) -> str:
    """Return the person behind an email address, which can have several admin accounts.

    Case and the part after a plus sign are ignored. The users of each owner are people of their
    own, even if an address is also a platform admin's.
    """
    local, _, domain = email.lower().rpartition("@")
    person = f"{local.partition('+')[0]}@{domain}"
    return person if owner is None else f"{owner.public_id}{_OWNER_SEPARATOR}{person}"
