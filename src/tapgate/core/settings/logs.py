"""Settings for logs, metrics and the request log."""

from enum import StrEnum

from tapgate.core.settings.declaration import (
    Match,
    OptionalSetting,
    Secrecy,
    Setting,
    SettingGroup,
    Values,
)
from tapgate.core.settings.value_types import Choice, Flag, Integer, Text
from tapgate_client.schemas.nodes import NodeRole


class LogFormat(StrEnum):
    #: Text on a terminal, otherwise JSON.
    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


def _derive_request_log_bodies(values: Values) -> bool:
    return not values["environment"].requires_secrets


class LogSettings(SettingGroup):
    title = "Logs"

    log_format = Setting(
        Choice(LogFormat),
        LogFormat.AUTO,
        "Log format",
        "Format of the [log](logs.md): `json`, `text` (one short line per request, for people), or"
        " `auto`: text if standard error is a terminal, otherwise JSON.",
        french="Format du journal",
        production="`json` or `auto`",
        example="json",
    )
    metrics_token = OptionalSetting(
        Text(),
        "Metrics token",
        "Bearer token for `GET /metrics` of both services. If unset, every client gets metrics in"
        " development and testing, and no client does (404) in staging and production.",
        french="Jeton des métriques",
        production="Set it if Prometheus scrapes the nodes. Must be hard to guess.",
        example="a long token",
        secrecy=Secrecy.STRONG,
        suggested=True,
    )
    request_log_days = Setting(
        Integer(0, 90),
        7,
        "Request log retention (days)",
        "How long the [request log](running.md#request-log) keeps requests with API keys and"
        " signing keys, in days; `0` turns it off.",
        french="Conservation du journal des requêtes (jours)",
        production="As long as integrators need it.",
        example="30",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
    request_log_bodies = Setting(
        Flag(),
        _derive_request_log_bodies,
        "Request log bodies",
        "Include JSON request and response bodies in the request log, without secrets and personal"
        " data. Default: `on` in development and testing, `off` in staging and"
        " production.",
        french="Corps dans le journal des requêtes",
        production="`off`; `on` while integrators test.",
        example="on",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
    )
