"""Settings as staff may see them."""

from pathlib import Path

from tapgate.core.settings import Settings, load_settings
from tapgate.core.settings.effective import describe_settings


def test_every_setting_is_described_without_secrets(settings: Settings) -> None:
    described = describe_settings(settings)
    expected = [item.variable for _, item in sorted(Settings.declared.items())]
    assert [item.name for item in described] == expected
    text = str(described)
    secrets = (settings.jwt_secret, settings.secret_key, *settings.service_secrets.values())
    assert not any(secret in text for secret in secrets)
    assert all(item.value is None for item in described if item.hidden)


def test_urls_have_no_credentials(tmp_path: Path) -> None:
    environ = {
        "TAPGATE_DATA_DIR": str(tmp_path),
        "TAPGATE_DATABASE_URL": "postgresql://user:hidden@one,two:5433/pay?password=hidden",
        "TAPGATE_CACHE_URL": "rediss://:hidden@cache:6379/0",
    }
    described = {item.name: item.value for item in describe_settings(load_settings(environ))}
    assert described["TAPGATE_DATABASE_URL"] == "postgresql://one,two:5433/pay"
    assert described["TAPGATE_CACHE_URL"] == "rediss://cache:6379/0"


def test_settings_without_a_variable_are_defaults(tmp_path: Path) -> None:
    environ = {"TAPGATE_DATA_DIR": str(tmp_path), "TAPGATE_PORT": "8000", "TAPGATE_HOST": ""}
    described = {item.name: item for item in describe_settings(load_settings(environ))}
    changed = {name for name, item in described.items() if not item.is_default}
    assert changed == {"TAPGATE_DATA_DIR", "TAPGATE_PORT"}
    environ |= {
        "TAPGATE_OIDC_ISSUER": "https://login.example.com",
        "TAPGATE_OIDC_CLIENT_ID": "tapgate",
        "TAPGATE_OIDC_ROLE_MAP": '{"a": "system_admin"}',
    }
    described = {item.name: item for item in describe_settings(load_settings(environ))}
    assert not described["TAPGATE_OIDC"].is_default
