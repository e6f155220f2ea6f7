"""Settings defaults and validation."""

import stat
from pathlib import Path

import pytest

from cases import each
from harness import PRODUCTION_ENVIRON, SERVICE_SECRETS
from tapgate.core.settings import Settings, load_settings, read_setting_files
from tapgate.core.settings.declaration import SettingsError
from tapgate_client.schemas.fields import EmailRule

_ADMIN_ENVIRON = {
    "TAPGATE_ADMIN_EMAIL": "ada@example.com",
    "TAPGATE_ADMIN_PASSWORD": "correct horse battery",
}


@pytest.fixture(autouse=True)
def _run_in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load_from_environ(**variables: str) -> Settings:
    return load_settings({f"TAPGATE_{name}": value for name, value in variables.items()})


def test_defaults_apply_without_any_variable() -> None:
    settings = load_settings({})
    assert (settings.host, settings.port, settings.messenger_port) == ("127.0.0.1", 8000, 8001)
    assert settings.public_url == "http://127.0.0.1:8000"
    assert settings.messenger_url == "http://127.0.0.1:8001"
    assert settings.database_url is None
    assert settings.data_dir == Path(".tapgate")
    assert settings.cache_url is None
    assert (settings.workers, settings.drain_seconds) == (1, 0)
    assert (settings.environment, settings.is_production) == ("development", False)
    assert (settings.admin_email, settings.admin_password) == (None, None)
    assert (settings.rate_limit, settings.rate_burst) == (100, 200)
    assert (settings.max_connections, settings.max_connections_per_address) == (4096, 256)
    assert (settings.currency, str(settings.timezone)) == ("SLE", "UTC")
    assert (settings.refuse_weak_pins, settings.demo) == (True, "small")
    assert (settings.float_low, settings.receipts) == (1000, "all")
    assert settings.messenger_verify_token == "dev-verify-token"
    assert (settings.messenger_rate, settings.messenger_text_pin) == (30, False)
    assert settings.messenger_app_secret is None
    assert settings.messenger_bridge_token is None
    assert settings.messenger_graph_url is None
    assert settings.messenger_access_token is None
    assert settings.messenger_phone_number_id is None
    assert settings.messenger_flow_private_key is None


def test_empty_variable_counts_as_unset() -> None:
    settings = load_from_environ(PORT="", DATABASE_URL="", CURRENCY="", DEMO="", SERVICE_SECRETS="")
    assert (settings.port, settings.database_url, settings.currency) == (8000, None, "SLE")


@each(
    "host, url",
    [
        ("0.0.0.0", "http://127.0.0.1:9000"),
        ("::", "http://[::1]:9000"),
        ("pay.example", "http://pay.example:9000"),
    ],
)
def test_public_url_defaults_to_host_and_port(host: str, url: str) -> None:
    assert load_from_environ(HOST=host, PORT="9000").public_url == url


def test_explicit_public_url_takes_precedence() -> None:
    assert load_from_environ(PUBLIC_URL="https://pay.example/").public_url == "https://pay.example"


def test_database_url_may_have_several_hosts_with_ports() -> None:
    url = "postgresql://user:p%40ss@one:5432,two:5433,three/tapgate"
    assert load_from_environ(DATABASE_URL=url).database_url == url


@each(
    "name, value",
    [
        *(("PORT", value) for value in ("0", "65536", "-1", "80.5", "eighty", "١")),
        ("MESSENGER_PORT", "8000"),
        *(("WORKERS", value) for value in ("0", "65", "many")),
        *(("RATE_LIMIT", value) for value in ("0", "1e3")),
        ("RATE_BURST", "0"),
        ("MAX_CONNECTIONS", "0"),
        ("MAX_CONNECTIONS_PER_ADDRESS", "none"),
        ("MESSENGER_RATE", "-5"),
        ("CURRENCY", "sle"),
        ("CURRENCY", "XXX"),
        *(("TIMEZONE", value) for value in ("Freetown", "../UTC", "Africa", "/etc/passwd")),
        ("REFUSE_WEAK_PINS", "maybe"),
        ("MESSENGER_TEXT_PIN", "2"),
        ("DEMO", "huge"),
        *(("RECEIPTS", value) for value in ("some", "All", "on")),
        *(("ENVIRONMENT", value) for value in ("Production", "prod", "live", "dev", "production ")),
        *(("DATABASE_URL", value) for value in ("mysql://x/y", "localhost", "postgresql://h:p/d")),
        ("DATABASE_URL", "postgresql://one:5432,two:p/d"),
        ("CACHE_URL", "http://localhost"),
        *(("PUBLIC_URL", value) for value in ("pay.example", "ftp://x", "https://", "http://[")),
        ("MESSENGER_URL", "//host"),
        ("MESSENGER_GRAPH_URL", "file:///x"),
        *(
            ("SERVICE_SECRETS", value)
            for value in ("[]", "{", '{"a": 1}', '{"a": ""}', '{"": "a"}')
        ),
        ("MESSENGER_FLOW_PRIVATE_KEY", "no-such-file.pem"),
    ],
)
def test_invalid_value_is_rejected_with_the_name_of_the_setting(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load_from_environ(**{name: value})
    assert str(raised.value).startswith(f"TAPGATE_{name} ")
    assert "\n" not in str(raised.value)


def test_first_admin_needs_both_email_and_password() -> None:
    settings = load_from_environ(ADMIN_EMAIL="a@example.com", ADMIN_PASSWORD="short")
    assert (settings.admin_email, settings.admin_password) == ("a@example.com", "short")
    with pytest.raises(SettingsError, match="TAPGATE_ADMIN_PASSWORD must be set too"):
        load_from_environ(ADMIN_EMAIL="a@example.com")
    with pytest.raises(SettingsError, match="TAPGATE_ADMIN_EMAIL must be set too"):
        load_from_environ(ADMIN_PASSWORD="short")
    with pytest.raises(SettingsError, match="TAPGATE_ADMIN_EMAIL must be an email"):
        load_from_environ(ADMIN_EMAIL="example.com", ADMIN_PASSWORD="short")


class TestSecrets:
    def test_secrets_are_generated_once_in_a_private_file(self) -> None:
        first, second = load_settings({}), load_settings({})
        assert first.jwt_secret == second.jwt_secret
        assert first.secret_key == second.secret_key
        assert first.service_secrets == second.service_secrets
        assert first.service_secrets.keys() == {"messenger", "gateway"}
        assert len({first.jwt_secret, first.secret_key, *first.service_secrets.values()}) == 4
        assert min(len(first.jwt_secret), len(first.secret_key)) >= 32
        path = Path(".tapgate/secrets.json")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [file.name for file in path.parent.iterdir()] == ["secrets.json"]

    def test_explicit_secrets_take_precedence_and_missing_ones_are_generated(self) -> None:
        generated = load_settings({})
        settings = load_from_environ(
            JWT_SECRET="given " * 6, SERVICE_SECRETS='{"gateway": "given", "reports": "given too"}'
        )
        assert settings.jwt_secret == "given " * 6
        assert settings.secret_key == generated.secret_key
        assert settings.service_secrets == {
            "messenger": generated.service_secrets["messenger"],
            "gateway": "given",
            "reports": "given too",
        }

    @pytest.mark.parametrize("environment", ["development", "testing", "staging", "production"])
    def test_short_jwt_secret_is_rejected_in_every_environment(self, environment: str) -> None:
        environ = {**PRODUCTION_ENVIRON, "TAPGATE_ENVIRONMENT": environment}
        with pytest.raises(SettingsError) as error:
            load_settings({**environ, "TAPGATE_JWT_SECRET": "x7Kd-22Qm-pa9Z-x7Kd-22Qm-pa9Z-1"})
        assert str(error.value) == "TAPGATE_JWT_SECRET must have at least 32 characters"

    @pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"jwt_secret": "x"}'])
    def test_damaged_secrets_file_is_rejected_and_not_replaced(self, damage: bytes) -> None:
        load_settings({})
        path = Path(".tapgate/secrets.json")
        path.write_bytes(damage)
        with pytest.raises(SettingsError, match=r"secrets\.json is damaged"):
            load_settings({})
        assert path.read_bytes() == damage

    def test_unusable_data_folder_is_rejected_when_secrets_are_generated(self) -> None:
        Path("file").touch()
        with pytest.raises(SettingsError, match="cannot be used"):
            load_from_environ(DATA_DIR="file/folder")

    def test_repr_does_not_contain_secrets(self) -> None:
        settings = load_from_environ(ADMIN_EMAIL="a@example.com", ADMIN_PASSWORD="a long password")
        assert settings.secret_key not in repr(settings)
        assert "a long password" not in repr(settings)


@pytest.mark.parametrize("environment", ["staging", "production"])
class TestProduction:
    def test_complete_settings_are_accepted(self, environment: str) -> None:
        settings = load_settings(
            PRODUCTION_ENVIRON | _ADMIN_ENVIRON | {"TAPGATE_ENVIRONMENT": environment}
        )
        assert settings.requires_secrets
        assert settings.is_production is (environment == "production")
        assert settings.drain_seconds == 5  # a balancer needs seconds to notice
        assert settings.demo == "off"
        assert settings.service_secrets == SERVICE_SECRETS
        assert not settings.data_dir.exists()

    @pytest.mark.parametrize(
        "name", [name for name in PRODUCTION_ENVIRON if name[8:] != "ENVIRONMENT"]
    )
    def test_missing_or_empty_setting_is_rejected(self, environment: str, name: str) -> None:
        for value in ({}, {name: ""}):
            rest = {key: text for key, text in PRODUCTION_ENVIRON.items() if key != name}
            rest["TAPGATE_ENVIRONMENT"] = environment
            with pytest.raises(SettingsError, match=f"{name} must be set in {environment}"):
                load_settings(rest | value)

    @pytest.mark.parametrize(
        ("name", "value", "reason"),
        [
            ("JWT_SECRET", "x7Kd-22Qm-pa9Z", "must have at least 32 characters"),
            ("SECRET_KEY", "x7Kd-22Qm-pa9Z", "must have at least 32 characters"),
            ("JWT_SECRET", "x" * 32, "is easy to guess"),
            ("SECRET_KEY", "changeme" * 4, "is easy to guess"),
            ("SERVICE_SECRETS", '{"gateway": "secret"}', "(gateway) is easy to guess"),
            ("MESSENGER_BRIDGE_TOKEN", "bridge", "is easy to guess"),
            ("JWT_SECRET", PRODUCTION_ENVIRON["TAPGATE_SECRET_KEY"], "must differ from"),
            ("MESSENGER_APP_SECRET", SERVICE_SECRETS["gateway"], "must differ from"),
            ("MESSENGER_VERIFY_TOKEN", SERVICE_SECRETS["gateway"], "must differ from"),
            ("MESSENGER_VERIFY_TOKEN", "dev-verify-token", "must not be an example"),
            ("ADMIN_PASSWORD", "a long pass phrase", "must not be an example"),
            ("ADMIN_PASSWORD", "short-$7Kq", "must have at least 12 characters"),
            ("ADMIN_PASSWORD", "Password1234!", "must not be easy to guess"),
            ("ADMIN_PASSWORD", "ada@example.com", "must not be easy to guess"),
        ],
    )
    def test_weak_or_reused_secret_is_rejected(
        self, environment: str, name: str, value: str, reason: str
    ) -> None:
        environ = PRODUCTION_ENVIRON | _ADMIN_ENVIRON | {"TAPGATE_ENVIRONMENT": environment}
        with pytest.raises(SettingsError) as raised:
            load_settings(environ | {f"TAPGATE_{name}": value})
        assert str(raised.value).startswith("TAPGATE_")
        assert reason in str(raised.value)
        assert value not in str(raised.value)


def test_testing_environment_generates_secrets_and_has_no_demo_or_verify_token() -> None:
    settings = load_from_environ(ENVIRONMENT="testing")
    assert (settings.demo, settings.messenger_verify_token) == ("off", "")
    assert len(settings.secret_key) >= 32


def test_verify_token_may_be_explicitly_empty() -> None:
    assert load_from_environ(MESSENGER_VERIFY_TOKEN="").messenger_verify_token == ""


def test_flow_private_key_is_pem_text_or_the_path_of_a_pem_file() -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    Path("key.pem").write_text(pem)
    assert load_from_environ(MESSENGER_FLOW_PRIVATE_KEY=pem).messenger_flow_private_key == pem
    assert load_from_environ(MESSENGER_FLOW_PRIVATE_KEY="key.pem").messenger_flow_private_key == pem


@each("value, on", [("on", True), ("TRUE", True), ("1", True), ("off", False)])
def test_flag_accepts_on_off_and_synonyms(value: str, on: bool) -> None:
    assert load_from_environ(REFUSE_WEAK_PINS=value).refuse_weak_pins is on


def test_first_admin_email_and_password_follow_the_login_rules() -> None:
    for email in ("ada@localhost", "ada.lovelace@example.com"):
        assert load_from_environ(ADMIN_EMAIL=email, ADMIN_PASSWORD="short").admin_email == email
        assert EmailRule(allow_single_label=True).check(email) == email
    for email in ("ada lovelace@example.com", "ada@", "@example.com", "a,b@example.com", "a@b..c"):
        with pytest.raises(SettingsError, match="TAPGATE_ADMIN_EMAIL must be an email"):
            load_from_environ(ADMIN_EMAIL=email, ADMIN_PASSWORD="short")
    with pytest.raises(SettingsError, match="TAPGATE_ADMIN_PASSWORD must have at most 255"):
        load_from_environ(ADMIN_EMAIL="a@example.com", ADMIN_PASSWORD="x" * 256)


def test_trusted_proxies_are_addresses_or_networks() -> None:
    settings = load_from_environ(TRUSTED_PROXIES="10.0.0.0/8, ::1")
    assert [str(network) for network in settings.trusted_proxies] == ["10.0.0.0/8", "::1/128"]
    assert load_from_environ().trusted_proxies == ()
    with pytest.raises(
        SettingsError, match="TAPGATE_TRUSTED_PROXIES must be a comma-separated list"
    ):
        load_from_environ(TRUSTED_PROXIES="proxy.example.com")


def test_settings_are_read_from_files(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("first line\nsecond line\n")
    environ = {"TAPGATE_SECRET_KEY_FILE": str(file), "TAPGATE_CACHE_URL_FILE": "", "A_FILE": "x"}
    read_setting_files(environ)
    assert environ == {"TAPGATE_SECRET_KEY": "first line\nsecond line", "A_FILE": "x"}


@pytest.mark.parametrize(
    ("content", "other", "message"),
    [
        (b"text", "set", "TAPGATE_PORT_FILE and TAPGATE_PORT must not both be set"),
        (b"\n", "", "TAPGATE_PORT_FILE: {file} is empty"),
        (b"\xff", "", "TAPGATE_PORT_FILE: {file} cannot be read: not valid UTF-8 text"),
        (b"a\0b", "", "TAPGATE_PORT_FILE: {file} must contain text"),
        (None, "", "TAPGATE_PORT_FILE: {file} cannot be read: No such file or directory"),
    ],
)
def test_unusable_setting_file_is_an_error(
    tmp_path: Path, content: bytes | None, other: str, message: str
) -> None:
    file = tmp_path / "value"
    if content is not None:
        file.write_bytes(content)
    environ = {"TAPGATE_PORT_FILE": str(file), "TAPGATE_PORT": other}
    with pytest.raises(SettingsError) as raised:
        read_setting_files(environ)
    assert str(raised.value) == message.format(file=file)


_OIDC = {
    "OIDC_ISSUER": "http://login.example.com/",
    "OIDC_CLIENT_ID": "tapgate",
    "OIDC_ROLE_MAP": '{"admins": "system_admin", "finance": "finance_user"}',
}


def test_single_sign_on_is_off_without_an_issuer() -> None:
    assert load_from_environ(**{**_OIDC, "OIDC_ISSUER": ""}).oidc is None


def test_single_sign_on_has_defaults() -> None:
    oidc = load_from_environ(**_OIDC, OIDC_CLIENT_SECRET="hidden").oidc
    assert oidc is not None
    assert (oidc.issuer, oidc.role_claim) == ("http://login.example.com", "roles")
    assert list(oidc.role_map.items()) == [("admins", "system_admin"), ("finance", "finance_user")]
    assert oidc.scopes == "openid email profile"
    assert "hidden" not in repr(oidc)


@each(
    "name, value",
    [
        ("OIDC_ISSUER", "login.example.com"),
        ("OIDC_CLIENT_ID", ""),
        ("OIDC_ROLE_MAP", ""),
        ("OIDC_ROLE_MAP", "{}"),
        ("OIDC_ROLE_MAP", "admins"),
        ("OIDC_ROLE_MAP", '{"admins": "root"}'),
        ("OIDC_SCOPES", "email"),
    ],
)
def test_invalid_setting_of_single_sign_on_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^TAPGATE_{name} "):
        load_from_environ(**{**_OIDC, name: value})


def test_issuer_must_have_https_in_production() -> None:
    environ = {f"TAPGATE_{name}": value for name, value in _OIDC.items()}
    with pytest.raises(SettingsError, match=r"^TAPGATE_OIDC_ISSUER "):
        load_settings(PRODUCTION_ENVIRON | environ)
