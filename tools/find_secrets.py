"""Scan of all tracked files for possible secrets that are not in `.secrets.baseline`.

The baseline lists harmless secrets by file, type and fingerprint: examples in the docs, and keys
that exist only in tests. Line numbers are ignored, so a harmless secret may move within its file.
"""

import json
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from detect_secrets import SecretsCollection
from detect_secrets.settings import transient_settings

BASELINE = Path(".secrets.baseline")


class Finding(NamedTuple):
    file: str
    line: int
    kind: str
    fingerprint: str

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.file, self.kind, self.fingerprint


def scan_file(name: str, settings: dict[str, object]) -> list[Finding]:
    secrets = SecretsCollection()
    with transient_settings(settings):
        secrets.scan_file(name)
    return [
        Finding(file, secret.line_number, secret.type, secret.secret_hash)
        for file, secret in secrets
    ]


def main() -> None:
    baseline = json.loads(BASELINE.read_text())
    settings = {key: baseline[key] for key in ("plugins_used", "filters_used")}
    known = {
        (file, secret["type"], secret["hashed_secret"])
        for file, secrets in baseline["results"].items()
        for secret in secrets
    }
    tracked = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True)  # noqa: S607
    names = [name for name in tracked.stdout.split("\0") if Path(name).is_file()]
    files = [name for name in names if Path(name) != BASELINE]  # fingerprints look like keys
    with ProcessPoolExecutor() as processes:
        scans = processes.map(scan_file, files, [settings] * len(files), chunksize=16)
        new_secrets = [
            secret for findings in scans for secret in findings if secret.identity not in known
        ]
    for secret in new_secrets:
        print(f"{secret.file}:{secret.line}: {secret.kind}")
    if new_secrets:
        print(
            f"{len(new_secrets)} possible secrets. Revoke real secrets: Git history keeps them\n"
            f"after their removal from the file. Add harmless secrets to the baseline with\n"
            f"  .venv/bin/detect-secrets scan --no-verify --baseline {BASELINE}",
            file=sys.stderr,
        )
        sys.exit(1)
    print(f"{len(files)} files scanned: no new secrets. The baseline lists {len(known)}.")


if __name__ == "__main__":
    main()
