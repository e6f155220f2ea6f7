"""Console texts that people read, found in its templates, scripts and modules."""

import ast
import re
from collections.abc import Iterator
from enum import StrEnum
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import iter_modules
from typing import Final, get_args

import tapgate
from tapgate.auth.actors import ANONYMOUS, SYSTEM_ACTOR
from tapgate.auth.principals import PrincipalKind
from tapgate.core.message_templates import TEMPLATES
from tapgate.core.settings import Settings
from tapgate.core.settings.nodes import Environment
from tapgate.ledger import chart
from tapgate.sites import console
from tapgate.sites.console import labels
from tapgate.sites.console.actions import Action
from tapgate.sites.console.console import ACTIONS
from tapgate.sites.console.pages import commission, general_ledger, limits
from tapgate.sites.console.rendering import build_environment
from tapgate.sites.console.translation.template_texts import (
    TemplateTranslator,
    list_macros,
    parse_template,
)
from tapgate.sites.portal.portal import ACTIONS as PORTAL_ACTIONS
from tapgate_client import schemas
from tapgate_client.errors import TABLE, Code
from tapgate_sandbox import simulators

_PACKAGE: Final = Path(tapgate.__file__).parent
_CONSOLE: Final = Path(console.__file__).parent
_PORTAL: Final = _CONSOLE.parent / "portal"
_SIMULATORS: Final = Path(simulators.__file__).parent
#: Texts that are recognized without a mark: they begin with a capitalized word or a number.
_CAPITALIZED: Final = re.compile(r"[A-Z][a-z']*(?: |$|[a-z]{2,}|[.:-])(?:[^_/]*|.* .*)|\d+ [a-z]+")
#: Calls whose texts are part of `ACTIONS`, or are no texts.
_OTHER_CALLS: Final = re.compile(
    r"Action|Field|_?build_\w*action|partial|_RuleForm|getLogger|fromhex|Markup|import_module"
    r"|TypeVar"
)
#: Capitalized texts that are not shown to people: headers, column names, units.
_NOT_SHOWN: Final = frozenset(
    {
        "B", "Cache-Control", "Clear-Site-Data", "Content-Disposition", "Content-Security-Policy",
        "Credentials(...)", "Cross-Origin-Opener-Policy", "HtmlScanner", "Lax", "Location", "M",
        "Permissions-Policy", "Referrer-Policy", "Row", "Serial No.", "Set-Cookie", "Strict",
        "The ", "Vary", "X-Next-Cursor", "X-Rows", "Z", "Beancount", "Expiry Date", "Allow",
        "Action", "Android", "Chrome", "ChromeOS", "Edg", "Edge", "Field", "Firefox", "Linux",
        "Mac OS X", "Content-Type", "Opera", "PhoneMessage(...)", "Reset PIN?", "Simulator",
        "Till 1", "Mozilla/5.0 (", "Safari", "Samsung Internet", "Windows",
    }
)  # fmt: skip
#: KYC level requirements, and names in alert and decline details.
_DETAIL_NAMES: Final = (
    "attempts_remaining", "available", "limit", "phone_number", "refundable_amount", "required",
    "rule_type", "transaction_type", "used", "webhook_test",
)  # fmt: skip
#: Values of the API that no page shows as labels.
_UNLABELED: Final = frozenset(
    {
        "DELETE", "GET", "POST", "PUT", "beancount", "clock_offset", "csv", "custom", "day",
        "draining", "en", "fr", "hledger", "internal", "json", "month", "newest", "oldest", "pdf",
        "second_admin", "sun", "totp", "week", "more_needed",
    }
)  # fmt: skip
_SCRIPT_TEXT: Final = re.compile(r"""\btranslate\(\s*"((?:[^"\\]|\\.)*)\"""")
_PLACEHOLDER: Final = re.compile(r"{(\w+)}")


def list_template_texts() -> dict[str, set[str]]:
    """Return template texts, with the templates that contain them."""
    environment = build_environment(
        "tapgate_sandbox.simulators", "tapgate.sites.console", "tapgate.sites.portal"
    )
    macros, texts = list_macros(environment), dict[str, set[str]]()
    for name in environment.list_templates():

        def record(text: str, name: str = name) -> str:
            texts.setdefault(text, set()).add(name)
            return text

        TemplateTranslator(record, macros).translate_template(parse_template(environment, name))
    return texts


def list_script_texts() -> set[str]:
    return {
        match[1]
        for folder in (_CONSOLE, _SIMULATORS)
        for file in (folder / "assets").glob("*.js")
        for match in _SCRIPT_TEXT.finditer(file.read_text())
    }


def list_action_texts() -> set[str]:
    """Return action texts, which some modules build from parts."""
    own = (
        limits.FEE_FORM.action,
        commission.COMMISSION_FORM.action,
        general_ledger.GL_CODES_FORM.action,
    )
    return {
        text for action in (*ACTIONS, *PORTAL_ACTIONS, *own) for text in _list_texts(action) if text
    }


def _list_texts(action: Action) -> Iterator[str]:
    yield from (action.title, action.button, action.description, action.success_message)
    for field in action.fields:
        if field.kind not in ("hidden", "credential"):
            yield from (field.label, field.hint)
            labels = (choice[1] for choice in field.choices if isinstance(choice, tuple))
            yield from (label for label in labels if not label.isdigit())


def list_module_texts() -> set[str]:
    """Return the texts in console and simulator modules, except action texts."""
    texts = {text for item in Settings.declared.values() for text in (item.group, item.label)}
    for file in chain(_CONSOLE.rglob("*.py"), _PORTAL.rglob("*.py"), _SIMULATORS.glob("*.py")):
        finder = _TextFinder()
        finder.visit(ast.parse(file.read_text()))
        texts |= finder.texts
    return texts - _NOT_SHOWN


class _TextFinder(ast.NodeVisitor):
    def __init__(self) -> None:
        self.texts: set[str] = set()

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts with values are written with placeholders instead."""

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if name in ("translate", "source_text", "translate_plural"):
            for argument in node.args:
                self._add_texts(argument)
        elif not _OTHER_CALLS.fullmatch(name):
            self.generic_visit(node)

    def _add_texts(self, node: ast.expr) -> None:
        if isinstance(node, ast.IfExp):
            self._add_texts(node.body)
            self._add_texts(node.orelse)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.texts.add(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Messages of other errors are in `list_api_messages`."""
        if isinstance(node.exc, ast.Call) and ast.unparse(node.exc.func) == "MessengerError":
            for argument in node.exc.args:
                self._add_texts(argument)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and _CAPITALIZED.fullmatch(node.value):
            self.texts.add(node.value)


def list_labels() -> set[str]:
    """Return the labels for API values that pages show."""
    values = {
        *chart.TRANSACTION_TYPES,
        *(code for code in Code if TABLE[code][0] == 404),
        *TEMPLATES,
        *_DETAIL_NAMES,
        *Environment,
        *get_args(PrincipalKind),
        *(actor["type"] for actor in (ANONYMOUS, SYSTEM_ACTOR.record)),
    }
    for module in iter_modules(schemas.__path__):
        for item in vars(import_module(f"tapgate_client.schemas.{module.name}")).values():
            if isinstance(item, type) and issubclass(item, StrEnum) and item is not Code:
                values |= {str(member.value) for member in item}
    shown = {value for value in values - _UNLABELED if value.isidentifier()}
    return {labels.humanize(value) for value in shown} | {
        labels.get_decline_reason(code) for code in Code
    }


#: Functions that record an audit entry, and take its action as a text.
_RECORDING: Final = re.compile(
    r"record|record_change|_record|_record_change|_record_factor|_change_status|_audit|_set_pin"
    r"|record_rule_change|require_correct_pin|Transition|Access"
)


_AUDITED: Final = re.compile(r"[Tt]rail\b|RejectedRequest|record_rule_change|Transition\(|_audit\(")


def list_audit_terms() -> tuple[set[str], set[str]]:
    """Return the types of resources in the audit log, and the actions that modules record."""
    resources, actions = set[str](), {"completed", "failed", "refunded"}  # review outcomes
    for file in _PACKAGE.rglob("*.py"):
        source = file.read_text()
        if not _AUDITED.search(source):
            continue
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func).rpartition(".")[2]
            texts = [item.value for item in node.args if isinstance(item, ast.Constant)]
            named = {
                item.arg: item.value.value
                for item in node.keywords
                if isinstance(item.value, ast.Constant)
            }
            if name == "AuditTrail":
                resources |= {text for text in texts if isinstance(text, str)}
            elif name == "RejectedRequest":
                resources.add(str(named["resource_type"]))
                resource, _, action = str(named["event"]).partition(".")
                resources.add(resource)
                actions.add(action)
            elif name == "record_rule_change":
                _, _, _, resource_type, _, action_node, *_ = node.args
                if isinstance(resource_type, ast.Constant):
                    resources.add(str(resource_type.value))
                if isinstance(action_node, ast.Constant):
                    actions.add(str(action_node.value))
            elif _RECORDING.fullmatch(name):
                actions |= {
                    text
                    for text in (*texts, named.get("action"))
                    if isinstance(text, str) and re.fullmatch(r"[a-z][a-z_]+", text)
                }
    return resources, actions


def list_approval_summaries() -> set[str]:
    """Return approval summaries, with {} for the values in them."""
    summaries = set()
    for file in _PACKAGE.rglob("routes.py"):
        summaries |= _list_summaries(file)
    for file in _PACKAGE.rglob("*_routes.py"):
        summaries |= _list_summaries(file)
    return summaries


def _list_summaries(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "Proposal"):
            continue
        for keyword in node.keywords:
            if keyword.arg != "summary":
                continue
            for part in ast.walk(keyword.value):
                if isinstance(part, ast.JoinedStr):
                    pieces = (
                        str(item.value) if isinstance(item, ast.Constant) else "{}"
                        for item in part.values
                    )
                    found.add("".join(pieces))
            if isinstance(keyword.value, ast.Constant):
                found.add(str(keyword.value.value))
    return found
