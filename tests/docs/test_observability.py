"""The dashboard, the alert rules, their runbook and the list of log events match the code."""

import ast
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Harness
from tapgate.http.rate_limits.throttle import Throttle
from tapgate.runtime.logs import RequestLogLine
from tapgate.server.gateway import list_endpoints

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
RULE_TESTS = sorted(RULES.parent.glob("*_test.yaml"))
DASHBOARD = ROOT / "deploy" / "grafana" / "tapgate.json"
RUNBOOK = ROOT / "docs" / "alerts.md"
LOGS = ROOT / "docs" / "logs.md"
RUNNING = ROOT / "docs" / "running.md"

METRIC = re.compile(r"\btapgate_[a-z_]+")
HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")
LEVELS = {"info": "info", "warning": "warning", "error": "error", "exception": "error"}


def list_expressions() -> Iterator[str]:
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    yield RULES.read_text()


async def list_reported_metrics(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the names of all time series that a gateway can report."""
    monkeypatch.setattr(Throttle, "is_cache_reachable", True)
    await harness.get("/health")  # the health metrics report its result
    names = {"tapgate_database_synchronous_standbys"}  # only with permission to read replication
    for line in (await harness.get("/metrics")).text.splitlines():
        if line.startswith("# TYPE tapgate_"):
            _, _, name, kind = line.split()
            suffixes = HISTOGRAM_SUFFIXES if kind == "histogram" else ("",)
            names.update(name + suffix for suffix in suffixes)
    return names


async def test_dashboard_and_alerts_use_metrics_that_exist(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = await list_reported_metrics(harness, monkeypatch)
    used = {name for text in list_expressions() for name in METRIC.findall(text)}
    assert len(used) > 25
    assert not used - reported
    unused = {name for name in reported if not name.endswith(HISTOGRAM_SUFFIXES)} - used
    assert not unused, "show these metrics on the dashboard"


async def test_every_metric_is_documented(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = RUNNING.read_text()
    for name in await list_reported_metrics(harness, monkeypatch):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        suffix = base.removeprefix("tapgate_database_pool")
        assert f"`{base}" in text or f"`{suffix}`" in text, base


def test_latency_of_money_requests_selects_exactly_the_payment_endpoints() -> None:
    patterns = {
        pattern
        for text in list_expressions()
        for pattern in re.findall(r'endpoint=~"([^"]+)"', text)
    }
    (pattern,) = patterns
    for endpoint in list_endpoints():
        if endpoint.method == "POST":
            is_selected = re.fullmatch(pattern, endpoint.path) is not None
            assert is_selected == endpoint.is_payment, endpoint.path


def test_every_alert_has_a_runbook_section_and_tests() -> None:
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    assert len(alerts) == len(set(alerts)) > 10
    assert re.findall(r"^## (\w+)$", RUNBOOK.read_text(), re.MULTILINE) == alerts
    links = re.findall(r"runbook_url: (\S+)", RULES.read_text())
    assert links == [f"docs/alerts.md#{alert.lower()}" for alert in alerts]
    for section in RUNBOOK.read_text().split("\n## ")[1:]:
        assert all(f"**{part}.**" in section for part in ("Meaning", "Check", "Do")), section[:40]
    texts = "".join(file.read_text() for file in RULE_TESTS)
    tested = re.findall(r"- name: (\w+) (fires|stays quiet)", texts)
    assert sorted(tested) == sorted((a, case) for a in alerts for case in ("fires", "stays quiet"))


def run_promtool(*arguments: str | Path) -> None:
    promtool = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is missing: install the package prometheus, or set PROMTOOL")
    result = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_alert_rules_pass_their_unit_tests() -> None:
    run_promtool("check", "rules", RULES)
    run_promtool("test", "rules", *RULE_TESTS)


def test_expressions_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    *expressions, _ = list_expressions()
    rules = [
        {"record": f"panel_{index}", "expr": expression.replace("$__rate_interval", "5m")}
        for index, expression in enumerate(expressions)
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    run_promtool("check", "rules", file)


def list_log_calls() -> Iterator[tuple[str, str]]:
    """Yield the event and level of every log call."""
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        # Each public site names the event that the class of all of them logs.
        for event in re.findall(r'^    failure_event = "(.+)"$', text, re.MULTILINE):
            yield event, "error"
        if "log." not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and ast.unparse(node.func.value) in ("log", "_log", "structlog.get_logger()")
            ):
                for event in ast.walk(node.args[0]):
                    if isinstance(event, ast.Constant) and isinstance(event.value, str):
                        yield event.value, LEVELS[node.func.attr]


def test_every_log_event_is_documented_with_its_level() -> None:
    documented = re.findall(
        r"^\| `([a-z_]+\.[a-z_]+)` \| (\w+) \| \S.*\. \|$", LOGS.read_text(), re.MULTILINE
    )
    expected = sorted(set(list_log_calls()))
    missing = [event for event in expected if event not in documented]
    assert not missing, f"Add rows to docs/logs.md: | `event` | level | What it means. | {missing}"
    assert documented == expected  # sorted, and without events that do not exist


def test_fields_of_the_request_log_line_are_documented() -> None:
    text = LOGS.read_text()
    for field in RequestLogLine.__struct_fields__:
        assert f"`{field}`" in text, field
