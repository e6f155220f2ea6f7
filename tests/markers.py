"""One marker per capability, so that `pytest -m refund` runs everything about refunds.

A test gets a marker if its folder, file or name contains one of the marker's words, but not for
the part of the system that contains the folder. A test about a capability that its name does not
mention has the marker as `pytestmark` or decorator.
pyproject.toml describes the markers.
"""

import re
from functools import cache
from typing import Final

_WORDS: Final = {
    "access": "access|role|scope|ownership|permission|denial|denied|forbidden",
    "admin": "admin|staff",
    "agents": "agent|float",
    "approvals": "approval|approve|guarded",
    "api": "api|gateway|http|request_smuggling|openapi|endpoint",
    "audit": "audit",
    "auth": "auth|token|session|login|credential|api_key|password|sign_in|sign_out|single_sign_on",
    "backup": "backup|restore",
    "bench": "bench",
    "browser": "browser",
    "cards": "card",
    "cash_in": "cash_in|cash",
    "cash_out": "cash_out|cash",
    "child_cards": "child",
    "cli": "cli|chat|command|tool",
    "client": "client|sdk",
    "commission": "commission",
    "compliance": "compliance|alert|rule",
    "console": "console|branding",
    "demo": "demo|sandbox|simulator|fake_provider|fake_graph",
    "deploy": "deploy",
    "disclosure": "disclosure|leak|echoed|echoing|escaped|secret",
    "disputes": "dispute",
    "docs": "docs|guide|documented|readme|documentation|generator",
    "failures": "failure_mode|outage|killed|crash|supervisor",
    "fees": "fee|rounding",
    "finance": "finance|float_request|general_ledger|day_close|closed_day|payout|batch|batche"
    "|bank_account|reconciliation",
    "fuzz": "fuzz|arbitrary|hostile|malformed",
    "idempotency": "idempotency|replay|replayed|duplicate|retry|retrie|once",
    "journeys": "journey",
    "kyc": "kyc|image|document",
    "language": "understanding|free_text|text|small_talk",
    "ledger": "ledger|entries|books",
    "limits": "limit|maximum|exceed",
    "messenger": "messenger",
    "migrations": "migration|upgrade|schema",
    "money": "money|amount|currency|currencie|decimal",
    "notifications": "notification|message|receipt|notice",
    "one_time_codes": "code|otp",
    "p2p": "p2p|send_money|transfer",
    "owners": "owner|portal|cashier",
    "partners": "partner|top_up",
    "payment": "payment|pay|pos|paid|spending|overdraft",
    "pins": "pin",
    "primitives": "core|ids",
    "processes": "process|processe|worker|concurrent|parallel|race",
    "processors": "processor|merchant|terminal",
    "rate_limits": "rate|throttle|flood|overload|brute_force",
    "refund": "refund",
    "rekey": "rekey",
    "reporting": "reporting|overview|rollup|period|work_queue|work_item|money_view|timeline",
    "restricted": "restricted|masked|disclosure",
    "reversals": "reversal|reverse|recall",
    "reviews": "review|held|hold|released",
    "search": "search|searche|list|filter|page",
    "settings": "setting|startup|open_file",
    "signatures": "signature|signing|signed|hmac",
    "statements": "statement",
    "store": "store|database|pool|pgbouncer",
    "subscribers": "subscriber|registration",
    "support": "support",
    "torture": "torture",
    "transactions": "transaction",
    "wallets": "wallet|balance|quote",
    "webhooks": "webhook|delivery|deliverie|event",
}
_PARTS: Final = re.compile(
    r"\b(?:business/(?:(?:customers|finance|merchants|payments)/)?|(?:events|runtime|server|sites)/)"
)
_PATTERNS: Final = {
    name: re.compile(rf"(?<![a-z])(?:{words})(?:s|es|ed|ing)?(?![a-z])")
    for name, words in _WORDS.items()
}


@cache
def list_markers(path_and_name: str) -> set[str]:
    """Return the markers for a test with this path and name, without its parameters."""
    text = _PARTS.sub("", path_and_name)
    return {name for name, pattern in _PATTERNS.items() if pattern.search(text)}


def list_declared() -> set[str]:
    return {*_WORDS}
