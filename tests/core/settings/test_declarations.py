"""A new setting needs only its declaration: everything else about it is derived."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from drivers.messenger import build_flow_key
from harness import PRODUCTION_ENVIRON
from tapgate.cli.start import build_gateway_services, build_messenger_service
from tapgate.core.settings import Settings, list_own_secrets, load_settings
from tapgate.core.settings.declaration import (
    Match,
    OptionalSetting,
    Secrecy,
    Setting,
    SettingsError,
)
from tapgate.core.settings.effective import describe_settings
from tapgate.core.settings.fingerprint import compute_fingerprint
from tapgate.core.settings.value_types import Integer, Text
from tapgate.sites.console.pages.settings import group_settings
from tapgate_client.schemas.nodes import NodeRole
from tools.manual.settings import render_files, write_settings

ROOT = Path(__file__).parents[3]


class _MoreSettings(Settings):
    title = "Loyalty"

    cashback_percent = Setting(
        Integer(0, 50),
        5,
        "Cashback (%)",
        "Share of a payment that is returned.",
        french="Remise (%)",
        example="10",
        match=Match.WARN,
        used_by=NodeRole.GATEWAY,
        template="7",
    )
    cashback_token = OptionalSetting(
        Text(),
        "Cashback token",
        "Token of the loyalty service.",
        french="Jeton de fidélité",
        example="a loyal token",
        secrecy=Secrecy.STRONG,
        suggested=True,
    )


def _load(tmp_path: Path, **variables: str) -> Any:
    environ = {f"TAPGATE_{name}": value for name, value in variables.items()}
    return load_settings({"TAPGATE_DATA_DIR": str(tmp_path), **environ}, _MoreSettings)


def test_declared_setting_is_read_and_validated(tmp_path: Path) -> None:
    assert _load(tmp_path).cashback_percent == 5
    assert _load(tmp_path).cashback_token is None
    assert _load(tmp_path, CASHBACK_PERCENT="9").cashback_percent == 9
    message = "TAPGATE_CASHBACK_PERCENT must be a whole number from 0 to 50"
    with pytest.raises(SettingsError, match=f"^{message}$"):
        _load(tmp_path, CASHBACK_PERCENT="51")


def test_declared_secret_must_be_strong_in_production() -> None:
    environ = PRODUCTION_ENVIRON | {"TAPGATE_CASHBACK_TOKEN": "cashback"}
    with pytest.raises(SettingsError, match=r"^TAPGATE_CASHBACK_TOKEN is easy to guess\."):
        load_settings(environ, _MoreSettings)


def test_declared_setting_is_shown_with_its_label(tmp_path: Path) -> None:
    settings = _load(tmp_path, CASHBACK_PERCENT="9", CASHBACK_TOKEN="a hidden text")
    records = msgspec.to_builtins(describe_settings(settings))
    *_, (title, shown) = group_settings(records, _MoreSettings).items()
    assert title == "Loyalty"
    values = [(label, setting["value"], setting["is_set"]) for label, setting in shown]
    assert values == [("Cashback (%)", "9", True), ("Cashback token", None, True)]


def test_declared_setting_is_compared_between_nodes(tmp_path: Path) -> None:
    first, second = (_load(tmp_path, CASHBACK_PERCENT=value) for value in ("1", "2"))
    name = "TAPGATE_CASHBACK_PERCENT"
    gateways = [compute_fingerprint(item, NodeRole.GATEWAY) for item in (first, second)]
    assert gateways[0][name] != gateways[1][name]
    assert name not in compute_fingerprint(first, NodeRole.MESSENGER)


def test_declared_setting_is_documented_and_in_all_templates() -> None:
    files = render_files(ROOT, _MoreSettings)
    added = {
        name: [
            line
            for line in text.splitlines()
            if "TAPGATE_CASHBACK" in line and line not in (ROOT / name).read_text()
        ]
        for name, text in files.items()
    }
    percent, token = "TAPGATE_CASHBACK_PERCENT", "TAPGATE_CASHBACK_TOKEN"
    assert added.pop("docs/settings.md") == [
        f"| `{percent}` | 0 to 50 | `5` | Share of a payment that is returned. |  | `10` |",
        f"| `{token}` | text | none | Token of the loyalty service. |  | `a loyal token` |",
    ]
    assert added.pop("deploy/systemd/tapgate.env.example") == [f"{percent}=7", f"#{token}="]
    assert added.pop("deploy/compose/compose.yaml") == [f"  {percent}: ${{{percent}:-7}}"]
    setting, secrets = sorted(added.pop("deploy/helm/tapgate/values.yaml"))
    assert (setting, secrets.split()[-1]) == (f'  {percent}: "7"', f"{token}.")
    (compared,) = added.pop("docs/high-availability.md")
    assert f"`{percent}`" in compared
    assert not added


def test_optional_secrets_belong_to_the_service_that_uses_them() -> None:
    assert list_own_secrets(NodeRole.GATEWAY) == {
        "TAPGATE_BOOK_SECRETS",
        "TAPGATE_OIDC_CLIENT_SECRET",
    }
    assert list_own_secrets(NodeRole.MESSENGER) == {
        "TAPGATE_MESSENGER_ACCESS_TOKEN",
        "TAPGATE_MESSENGER_APP_SECRET",
        "TAPGATE_MESSENGER_BRIDGE_TOKEN",
        "TAPGATE_MESSENGER_FLOW_PRIVATE_KEY",
        "TAPGATE_SMS_TOKEN",
    }


def test_each_service_starts_with_every_variable_that_it_receives() -> None:
    """A setting that needs another one is withheld with it."""
    environ = {
        item.variable: item.example
        for item in Settings.list_variables()
        if item.used_by is not None and item.example
    }
    environ["TAPGATE_MESSENGER_FLOW_PRIVATE_KEY"] = build_flow_key()[0]
    settings = load_settings(environ)
    for service in (*build_gateway_services(settings), build_messenger_service(settings, "")):
        received = {
            name: value for name, value in environ.items() if name not in service.withheld_variables
        }
        assert len(received) < len(environ)
        load_settings(received)


def test_generated_parts_are_written_once(tmp_path: Path) -> None:
    for name in (*render_files(ROOT), "deploy/helm/tapgate/templates/_helpers.tpl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    assert write_settings(tmp_path) == []
    assert len(write_settings(tmp_path, _MoreSettings)) == 5
    assert len(write_settings(tmp_path)) == 5
    (tmp_path / "docs/settings.md").write_text("# Settings\n")
    with pytest.raises(ValueError, match="'tables' must begin and end once"):
        write_settings(tmp_path)
