"""Object access: which other parties' objects an authorized caller can reach.

Every gateway endpoint declares `objects=`. docs/access.md lists the checks, and the ownership tests
try each kind of check with another party's objects.
"""

from enum import Flag
from typing import Self


class ObjectAccess(Flag):
    """Object check with its title and description. Checks combine with `|`."""

    title: str
    description: str

    def __new__(cls, title: str, description: str) -> Self:
        member = object.__new__(cls)
        member._value_ = 1 << len(cls.__members__)
        member.title = title
        member.description = description
        return member

    NO_OBJECT = ("no object", "The operation names no object, or creates a new one.")
    ANY = (
        "any",
        "The objects belong to the platform. Every allowed caller can access all of them.",
    )
    UNRESTRICTED = (
        "unrestricted subscribers",
        "Subscribers that are not restricted. API keys cannot access a restricted subscriber, and"
        " admins only after they verify a code from the subscriber's phone. Otherwise the response"
        " is 403 `OTP_REQUIRED`, and lists omit the subscriber. Transactions are an exception:"
        " admins get them with `masked: true` and without personal data. Services and terminals"
        " have full access. Partners can fund a restricted subscriber, but get no balance.",
    )
    PIN = (
        "PIN",
        "The request must contain the subscriber's, card's or agent's PIN. A wrong PIN gets 400"
        " `INVALID_PIN` and counts as a failed attempt.",
    )
    OTP = (
        "one-time code",
        "The request must contain the code sent to the subscriber's, card parent's or agent's"
        " phone. A wrong code gets 400 `INVALID_OTP`.",
    )
    SUBSCRIBER_WALLETS = (
        "subscribers' wallets",
        "An API key can transfer only between subscribers. Other accounts get 403 `FORBIDDEN`.",
    )
    SUB_AGENTS = (
        "own sub-agents",
        "An agent can transfer only to its own sub-agents. Other agents get 403 `FORBIDDEN`.",
    )
    PROCESSOR = (
        "own processor",
        "The signing key identifies the processor. Terminals and payments of another processor get"
        " 404, as if they did not exist.",
    )
    PARTNER = (
        "own partner",
        "The signature identifies the partner. Another partner gets the same response as one that"
        " does not exist: 422 for `partner_id`, 401 on a webhook.",
    )
    OWN = (
        "own account",
        "The operation applies to the admin or session that the token belongs to.",
    )
    APPROVABLE = (
        "own or approvable requests",
        "Requests that the admin made or whose approval rule names the admin's role; a"
        " system_admin sees all. Others get 404. Deciding on one's own request gets 403"
        " `FORBIDDEN`.",
    )
    LINK = (
        "link",
        "The link is the credential, valid for 24 hours. An unknown or expired link gets 404.",
    )
    PARENT_IN_PATH = (
        "parent in path",
        "An object of another parent than the one in the path gets 404, as if it did not exist.",
    )
