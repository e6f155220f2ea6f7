"""Every rule of every setting."""

import stat
from pathlib import Path

import pytest

from tapgate.edge.fields import EmailRule
from tapgate.settings import Settings, SettingsError, load

_SECRET = "a secret of more than thirty-two characters"
_PRODUCTION = {
    "TAPGATE_ENVIRONMENT": "production",
    "TAPGATE_JWT_SECRET": _SECRET,
    "TAPGATE_SECRET_KEY": _SECRET,
    "TAPGATE_SERVICE_SECRETS": '{"messenger": "one", "gateway": "two"}',
    "TAPGATE_MESSENGER_VERIFY_TOKEN": "a token",
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loaded(**variables: str) -> Settings:
    return load({f"TAPGATE_{name}": value for name, value in variables.items()})


def test_the_defaults() -> None:
    settings = load({})
    assert (settings.host, settings.port, settings.messenger_port) == ("127.0.0.1", 8000, 8001)
    assert settings.public_url == "http://127.0.0.1:8000"
    assert settings.messenger_url == "http://127.0.0.1:8001"
    assert settings.database_url is None
    assert settings.data_dir == Path(".tapgate")
    assert settings.cache_url is None
    assert settings.workers == 1
    assert (settings.environment, settings.production) == ("development", False)
    assert (settings.admin_email, settings.admin_password) == (None, None)
    assert (settings.rate_limit, settings.rate_burst) == (100, 200)
    assert (settings.max_connections, settings.max_connections_per_address) == (4096, 256)
    assert (settings.currency, str(settings.timezone)) == ("SLE", "UTC")
    assert (settings.refuse_weak_pins, settings.demo) == (False, "small")
    assert (settings.float_low, settings.receipts) == (1000, "received")
    assert settings.messenger_verify_token == "dev-verify-token"
    assert (settings.messenger_rate, settings.messenger_text_pin) == (30, False)
    assert settings.messenger_app_secret is None
    assert settings.messenger_bridge_token is None
    assert settings.messenger_graph_url is None
    assert settings.messenger_access_token is None
    assert settings.messenger_phone_number_id is None
    assert settings.messenger_flow_private_key is None


def test_an_empty_variable_is_as_if_not_set() -> None:
    settings = loaded(PORT="", DATABASE_URL="", CURRENCY="", DEMO="", SERVICE_SECRETS="")
    assert (settings.port, settings.database_url, settings.currency) == (8000, None, "SLE")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:9000"),
        ("::", "http://[::1]:9000"),
        ("pay.example", "http://pay.example:9000"),
    ],
)
def test_the_urls_follow_from_host_and_port(host: str, url: str) -> None:
    assert loaded(HOST=host, PORT="9000").public_url == url


def test_a_given_url_wins() -> None:
    assert loaded(PUBLIC_URL="https://pay.example/").public_url == "https://pay.example"


def test_a_database_may_have_several_hosts_with_ports() -> None:
    url = "postgresql://user:p%40ss@one:5432,two:5433,three/tapgate"
    assert loaded(DATABASE_URL=url).database_url == url


@pytest.mark.parametrize(
    ("name", "value"),
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
        ("ENVIRONMENT", "Production"),
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
def test_a_bad_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        loaded(**{name: value})
    assert str(refused.value).startswith(f"TAPGATE_{name} ")
    assert "\n" not in str(refused.value)


def test_the_first_admin_needs_both() -> None:
    settings = loaded(ADMIN_EMAIL="a@example.com", ADMIN_PASSWORD="short")
    assert (settings.admin_email, settings.admin_password) == ("a@example.com", "short")
    with pytest.raises(SettingsError, match="TAPGATE_ADMIN_PASSWORD must be set too"):
        loaded(ADMIN_EMAIL="a@example.com")
    with pytest.raises(SettingsError, match="TAPGATE_ADMIN_EMAIL must be set too"):
        loaded(ADMIN_PASSWORD="short")
    with pytest.raises(SettingsError, match="TAPGATE_ADMIN_EMAIL must be an e-mail"):
        loaded(ADMIN_EMAIL="example.com", ADMIN_PASSWORD="short")


class TestSecrets:
    def test_are_made_once_and_private(self) -> None:
        first, second = load({}), load({})
        assert first.jwt_secret == second.jwt_secret
        assert first.secret_key == second.secret_key
        assert first.service_secrets == second.service_secrets
        assert first.service_secrets.keys() == {"messenger", "gateway"}
        assert len({first.jwt_secret, first.secret_key, *first.service_secrets.values()}) == 4
        assert min(len(first.jwt_secret), len(first.secret_key)) >= 32
        path = Path(".tapgate/secrets.json")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [file.name for file in path.parent.iterdir()] == ["secrets.json"]

    def test_given_ones_win_and_are_added_to(self) -> None:
        made = load({})
        settings = loaded(
            JWT_SECRET="given", SERVICE_SECRETS='{"gateway": "given", "reports": "given too"}'
        )
        assert settings.jwt_secret == "given"
        assert settings.secret_key == made.secret_key
        assert settings.service_secrets == {
            "messenger": made.service_secrets["messenger"],
            "gateway": "given",
            "reports": "given too",
        }

    @pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"jwt_secret": "x"}'])
    def test_damaged_ones_are_not_replaced(self, damage: bytes) -> None:
        load({})
        path = Path(".tapgate/secrets.json")
        path.write_bytes(damage)
        with pytest.raises(SettingsError, match=r"secrets\.json is damaged"):
            load({})
        assert path.read_bytes() == damage

    def test_need_a_folder_that_can_be_used(self) -> None:
        Path("file").touch()
        with pytest.raises(SettingsError, match="cannot be used"):
            loaded(DATA_DIR="file/folder")

    def test_are_not_shown(self) -> None:
        settings = loaded(ADMIN_EMAIL="a@example.com", ADMIN_PASSWORD="a long password")
        assert settings.secret_key not in repr(settings)
        assert "a long password" not in repr(settings)


class TestProduction:
    def test_with_all_it_needs(self) -> None:
        settings = load(_PRODUCTION)
        assert settings.production
        assert settings.demo == "off"
        assert settings.service_secrets == {"messenger": "one", "gateway": "two"}
        assert not settings.data_dir.exists()

    @pytest.mark.parametrize("name", [name for name in _PRODUCTION if name[8:] != "ENVIRONMENT"])
    def test_refuses_to_make_up(self, name: str) -> None:
        for value in ({}, {name: ""}):
            rest = {key: given for key, given in _PRODUCTION.items() if key != name}
            with pytest.raises(SettingsError, match=f"{name} must be set in production"):
                load(rest | value)

    @pytest.mark.parametrize("name", ["TAPGATE_JWT_SECRET", "TAPGATE_SECRET_KEY"])
    def test_refuses_short_secrets(self, name: str) -> None:
        with pytest.raises(SettingsError, match=f"{name} must have at least 32 characters"):
            load(_PRODUCTION | {name: "x" * 31})

    def test_refuses_a_short_password(self) -> None:
        admin = {"TAPGATE_ADMIN_EMAIL": "a@example.com", "TAPGATE_ADMIN_PASSWORD": "x" * 11}
        with pytest.raises(SettingsError, match="TAPGATE_ADMIN_PASSWORD must have at least 12"):
            load(_PRODUCTION | admin)


def test_a_staging_environment_makes_secrets_but_no_demo_and_no_known_token() -> None:
    settings = loaded(ENVIRONMENT="staging")
    assert (settings.demo, settings.messenger_verify_token) == ("off", "")
    assert len(settings.secret_key) >= 32


def test_an_empty_verify_token_is_a_decision() -> None:
    assert loaded(MESSENGER_VERIFY_TOKEN="").messenger_verify_token == ""


def test_the_flow_key_is_a_pem_or_the_path_of_one() -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    Path("key.pem").write_text(pem)
    assert loaded(MESSENGER_FLOW_PRIVATE_KEY=pem).messenger_flow_private_key == pem
    assert loaded(MESSENGER_FLOW_PRIVATE_KEY="key.pem").messenger_flow_private_key == pem


@pytest.mark.parametrize(
    ("value", "on"), [("on", True), ("TRUE", True), ("1", True), ("off", False)]
)
def test_flags(value: str, on: bool) -> None:
    assert loaded(REFUSE_WEAK_PINS=value).refuse_weak_pins is on


def test_whoever_is_made_the_first_admin_can_log_in() -> None:
    for email in ("ada@localhost", "ada.lovelace@example.com"):
        assert loaded(ADMIN_EMAIL=email, ADMIN_PASSWORD="short").admin_email == email
        assert EmailRule(within_a_company=True).check(email) == email
    for email in ("ada lovelace@example.com", "ada@", "@example.com", "a,b@example.com", "a@b..c"):
        with pytest.raises(SettingsError, match="TAPGATE_ADMIN_EMAIL must be an e-mail"):
            loaded(ADMIN_EMAIL=email, ADMIN_PASSWORD="short")
    with pytest.raises(SettingsError, match="TAPGATE_ADMIN_PASSWORD must have at most 255"):
        loaded(ADMIN_EMAIL="a@example.com", ADMIN_PASSWORD="x" * 256)


def test_trusted_proxies() -> None:
    settings = loaded(TRUSTED_PROXIES="10.0.0.0/8, ::1")
    assert [str(network) for network in settings.trusted_proxies] == ["10.0.0.0/8", "::1/128"]
    assert loaded().trusted_proxies == ()
    with pytest.raises(SettingsError, match="TAPGATE_TRUSTED_PROXIES must be addresses"):
        loaded(TRUSTED_PROXIES="proxy.example.com")
