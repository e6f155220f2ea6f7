"""Parser for the provider's reports about templates, the account and the phone number."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tapgate_client import clock
from tapgate_client.schemas.provider_warnings import (
    MAX_REASON_LENGTH,
    MAX_STATE_LENGTH,
    MAX_SUBJECT_LENGTH,
    ProviderReport,
    ProviderWarningKind,
)

#: Template states that allow sending. States that are neither here nor a problem are ignored.
_TEMPLATE_PROBLEMS: Final = frozenset(
    {"REJECTED", "PAUSED", "DISABLED", "FLAGGED", "PENDING_DELETION", "LIMIT_EXCEEDED"}
)
_TEMPLATE_SOLUTIONS: Final = frozenset({"APPROVED", "REINSTATED", "UNPAUSED", "DELETED"})
_ACCOUNT_PROBLEMS: Final = frozenset(
    {"ACCOUNT_RESTRICTION", "ACCOUNT_VIOLATION", "DISABLED_UPDATE", "ACCOUNT_DELETED"}
)
_ACCOUNT_SOLUTIONS: Final = frozenset({"VERIFIED_ACCOUNT", "ACCOUNT_REINSTATED"})
_BAN_PROBLEMS: Final = frozenset({"DISABLE", "SCHEDULE_FOR_DISABLE"})
_NUMBER_PROBLEMS: Final = frozenset({"FLAGGED", "DOWNGRADE", "RED", "YELLOW"})
_NUMBER_SOLUTIONS: Final = frozenset({"UNFLAGGED", "UPGRADE", "ONBOARDING", "GREEN"})


def parse_report(field: object, value: Mapping[str, Any], time: object) -> ProviderReport | None:
    """Return the report in a delivery's change, or None if it has none."""
    parse = _PARSERS.get(field) if isinstance(field, str) else None
    report = None if parse is None else parse(value)
    if report is None:
        return None
    kind, subject, state, reason, resolved = report
    return ProviderReport(
        kind=kind,
        subject=_clean(subject, MAX_SUBJECT_LENGTH) or kind,
        state=_clean(state, MAX_STATE_LENGTH) or "UNKNOWN",
        reason=_clean(reason, MAX_REASON_LENGTH),
        resolved=resolved,
        occurred_at=_format_time(time),
    )


_Report = tuple[ProviderWarningKind, object, str, object, bool]


def _parse_template(value: Mapping[str, Any]) -> _Report | None:
    state = _read_state(value)
    if state not in _TEMPLATE_PROBLEMS | _TEMPLATE_SOLUTIONS:
        return None
    name, language = value.get("message_template_name"), value.get("message_template_language")
    return (
        ProviderWarningKind.TEMPLATE,
        f"{name} ({language})",
        state,
        value.get("reason"),
        state in _TEMPLATE_SOLUTIONS,
    )


def _parse_account(value: Mapping[str, Any]) -> _Report | None:
    state, ban, reason = _read_state(value), _read_ban(value), _read_account_reason(value)
    if ban:
        return (ProviderWarningKind.ACCOUNT, "account", ban, reason, ban not in _BAN_PROBLEMS)
    if state not in _ACCOUNT_PROBLEMS | _ACCOUNT_SOLUTIONS:
        return None
    is_resolved = state in _ACCOUNT_SOLUTIONS
    return (ProviderWarningKind.ACCOUNT, "account", state, reason, is_resolved)


def _parse_number(value: Mapping[str, Any]) -> _Report | None:
    rating = value.get("quality_rating") or value.get("new_quality_score")
    state = rating.upper() if isinstance(rating, str) else _read_state(value)
    if state not in _NUMBER_PROBLEMS | _NUMBER_SOLUTIONS:
        return None
    return (
        ProviderWarningKind.PHONE_NUMBER,
        value.get("display_phone_number"),
        state,
        value.get("current_limit"),
        state in _NUMBER_SOLUTIONS,
    )


_PARSERS: Final[Mapping[str, Callable[[Mapping[str, Any]], _Report | None]]] = {
    "message_template_status_update": _parse_template,
    "account_update": _parse_account,
    "phone_number_quality_update": _parse_number,
}


def _read_state(value: Mapping[str, Any]) -> str:
    event = value.get("event")
    return event.upper() if isinstance(event, str) else ""


def _read_ban(value: Mapping[str, Any]) -> str:
    info = value.get("ban_info")
    state = info.get("waba_ban_state") if isinstance(info, dict) else None
    if isinstance(state, list):
        state = next(iter(state), None)
    return state.upper() if isinstance(state, str) else ""


def _read_account_reason(value: Mapping[str, Any]) -> str | None:
    violation = value.get("violation_info")
    if isinstance(violation, dict) and isinstance(violation.get("violation_type"), str):
        return str(violation["violation_type"])
    restrictions = value.get("restriction_info")
    if not isinstance(restrictions, list):
        return None
    types = (item.get("restriction_type") for item in restrictions if isinstance(item, dict))
    return ", ".join(text for text in types if isinstance(text, str)) or None


def _clean(value: object, max_length: int) -> str | None:
    """Return printable text on one line, or None if nothing is left."""
    if not isinstance(value, str):
        return None
    printable = "".join(character if character.isprintable() else " " for character in value)
    return " ".join(printable.split())[:max_length].strip() or None


def _format_time(value: object) -> str:
    """Return the entry time in Unix seconds; an invalid time counts as the earliest."""
    try:
        seconds = int(value) if isinstance(value, int | str) else 0
        return clock.format_rfc3339(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        return clock.format_rfc3339(datetime.fromtimestamp(0, UTC))
