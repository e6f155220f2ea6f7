"""Settings that must be the same on all nodes, compared by keyed hashes.

The key is derived from the secret key, which is not in the database. The hashes therefore reveal
nothing, not even settings with few possible values.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from tapgate.core.settings import Settings
from tapgate.core.settings.declaration import Match
from tapgate.core.vault import Vault
from tapgate_client.schemas.nodes import NodeRole

#: Hashes by setting name, separated by spaces.
Fingerprint = Mapping[str, str]

_HASH_BYTES: Final = 8


def compute_fingerprint(settings: Settings, role: NodeRole) -> dict[str, str]:
    """Return setting hashes for a role, and its secret key fingerprints.

    A setting has one hash per secret key, so that nodes with one key in common can be compared. The
    currency is not included, because a database is bound to it.
    """
    vault = Vault(settings.secret_key)
    fingerprint = {Settings.secret_key.variable: " ".join(vault.key_names)}
    for item in settings.declared.values():
        if item.match is Match.NONE or item.used_by not in (None, role):
            continue
        value = getattr(settings, item.name)
        if item.match is Match.WARN_IN_PRODUCTION and not settings.requires_secrets:
            value = None
        for name, compared in item.list_compared(value).items():
            hashes = vault.list_keyed_hashes("node settings", f"{name}={compared}".encode())
            fingerprint[name] = " ".join(value[:_HASH_BYTES].hex() for value in hashes)
    return fingerprint


def is_critical(name: str) -> bool:
    """Return whether a node with another value for this setting must not run."""
    variable = name.partition(" ")[0]
    return any(
        item.variable == variable and item.match is Match.REFUSE
        for item in Settings.declared.values()
    )


def list_differences(fingerprint: Fingerprint, other: Fingerprint) -> list[str]:
    """Return the settings that both nodes have, with different values."""
    return sorted(
        name
        for name in fingerprint.keys() & other.keys()
        if not {*fingerprint[name].split()} & {*other[name].split()}
    )


def find_common_values(fingerprints: Iterable[Fingerprint]) -> dict[str, str]:
    """Return each setting's most frequent hash; if several are equally frequent, the first."""
    counts: dict[str, Counter[str]] = {}
    for fingerprint in fingerprints:
        for name, value in fingerprint.items():
            counts.setdefault(name, Counter()).update(value.split())
    return {name: counter.most_common(1)[0][0] for name, counter in counts.items()}


def list_secret_keys(fingerprint: Fingerprint) -> list[str]:
    """Return a node's secret key fingerprints, newest first.

    The list is empty if the node's release knows only one key, the database's first.
    """
    return fingerprint.get(Settings.secret_key.variable, "").split()
