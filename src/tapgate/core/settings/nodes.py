"""Process and node settings, and the environment on which other defaults depend."""

import secrets
from enum import StrEnum

from tapgate.core.settings.declaration import Match, Setting, SettingGroup, Values
from tapgate.core.settings.value_types import Choice, Integer, Text


class Environment(StrEnum):
    DEVELOPMENT = "development"
    TESTING = "testing"
    STAGING = "staging"
    PRODUCTION = "production"

    @property
    def requires_secrets(self) -> bool:
        """Whether secrets must be set and strong. If False, missing secrets are generated."""
        return self in (Environment.STAGING, Environment.PRODUCTION)


class MismatchAction(StrEnum):
    """What a node does at startup if its settings differ from other nodes' settings."""

    REFUSE = "refuse"
    WARN = "warn"


class Demo(StrEnum):
    """Demo data size."""

    OFF = "off"
    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


def _derive_demo(values: Values) -> Demo:
    return Demo.SMALL if values["environment"] is Environment.DEVELOPMENT else Demo.OFF


def _derive_drain_seconds(values: Values) -> int:
    """Return long enough for a balancer that checks every second and needs two failures."""
    return 5 if values["environment"].requires_secrets else 0


def _generate_node_id(_: Values) -> str:
    return secrets.token_hex(8)


class NodeSettings(SettingGroup):
    title = "Processes and nodes"

    environment = Setting(
        Choice(Environment),
        Environment.DEVELOPMENT,
        "Environment",
        "Selects defaults and checks. See [Environments](#environments).",
        french="Environnement",
        production="Set it to `production`.",
        example="production",
        match=Match.REFUSE,
        template="production",
    )
    workers = Setting(
        Integer(1, 64),
        1,
        "Gateway workers",
        "Number of gateway processes. All guarantees hold across processes.",
        french="Workers de la passerelle",
        production="About one per core.",
        example="4",
        template="2",
    )
    report_workers = Setting(
        Integer(0, 16),
        1,
        "Report workers",
        "Number of processes for exports, statements, verification and images. With `0`, the"
        " gateway workers run them. See [Reports](running.md#reports).",
        french="Workers des rapports",
        production="1, or 2 if reports are requested all day.",
        example="2",
        template="1",
    )
    messenger_workers = Setting(
        Integer(1, 64),
        1,
        "Messenger workers",
        "Number of messenger processes.",
        french="Workers de la messagerie",
        example="2",
    )
    node_id = Setting(
        Text(),
        _generate_node_id,
        "Node ID",
        "Identifies the node in the [node list](high-availability.md#nodes), unique per node."
        " Generated at every start by default.",
        french="Identifiant du nœud",
        production="Leave it unset.",
        example="gateway-a",
        generated=True,
    )
    drain_seconds = Setting(
        Integer(0, 600),
        _derive_drain_seconds,
        "Drain time (s)",
        "How long a stopping service accepts connections after `/ready` begins to return 503. See"
        " [Stopping](running.md#stopping). Default: 5 in staging and production, otherwise 0.",
        french="Délai d'arrêt progressif (s)",
        production="Behind a load balancer: longer than it takes to notice.",
        example="10",
        template="5",
    )
    max_clock_offset = Setting(
        Integer(1, 300),
        60,
        "Max. clock offset (s)",
        "Clock error above which `/ready` returns 503, in seconds. Signed requests are accepted"
        " within 300 seconds. See [Clocks](high-availability.md#clocks).",
        french="Écart max. de l'horloge (s)",
        production="Synchronize all clocks with NTP.",
        example="10",
    )
    settings_mismatch = Setting(
        Choice(MismatchAction),
        MismatchAction.REFUSE,
        "Settings mismatch action",
        "What a node does if a setting that [must"
        " agree](high-availability.md#settings-that-must-agree) differs from a running node's"
        " setting: `refuse` to start, or `warn` and start.",
        french="Action si les paramètres diffèrent",
        production="`warn` only while you change the setting node by node.",
        example="warn",
    )
    demo = Setting(
        Choice(Demo),
        _derive_demo,
        "Demo data",
        "Demo data that the first start creates in an empty database. See [Demo"
        " data](running.md#demo-data). Default: `small` in development, otherwise `off`.",
        french="Données de démonstration",
        production="Must be `off`, the default in production.",
        example="off",
    )
