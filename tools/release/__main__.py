"""Build a release into a folder: `python -m tools.release VERSION`.

The current commit is built. Nothing is published, and no tag is set: the last line says which.
"""

import argparse
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.release import ReleaseError
from tools.release.checks import check_release, get_tag
from tools.release.materials import install_server, require_version, write_bill
from tools.release.packages import build_packages, export_commit

_ROOT: Final = Path(__file__).parents[2]
CHECKSUMS: Final = "SHA256SUMS"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("version", help="the version to release, such as 2.0.0")
    parser.add_argument("--output", type=Path, default=_ROOT / "dist")
    options = parser.parse_args(arguments)
    try:
        build_release(_ROOT, options.version, options.output)
    except ReleaseError as error:
        print(f"make release: {error}", file=sys.stderr)
        return 1
    return 0


def build_release(root: Path, version: str, output: Path) -> None:
    """Build the release in a temporary folder, and replace the output folder at the end."""
    if output.exists() and not all(map(_is_release_file, output.iterdir())):
        raise ReleaseError(f"{output} has other files than a release. Choose another --output.")
    commit, notes = check_release(root, version)
    with tempfile.TemporaryDirectory(prefix="tapgate-release-") as name:
        scratch, files = Path(name), Path(name) / "files"
        files.mkdir()
        source = export_commit(root, commit, scratch)
        for file in build_packages(source, files, scratch, commit.time):
            print(f"built     {file.name}")
        python = install_server(source, files, scratch / "environment", version)
        require_version(python, version, scratch)
        print(f"installed tapgate {version} with the packages of deploy/requirements.lock")
        write_bill(source, python, files / f"tapgate-{version}.cdx.json", commit)
        (files / f"tapgate-{version}.md").write_text(f"# Tapgate {version}\n\n{notes}\n")
        write_checksums(files)
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(files, output)
    print(f"{CHECKSUMS} and {len([*output.iterdir()]) - 1} files are in {output}")
    print("Publish them, and tag the commit:")
    tag = get_tag(version)
    print(f'  git tag --annotate {tag} --message "Tapgate {version}" {commit.id}')
    print(f"  git push origin {tag}")


def _is_release_file(file: Path) -> bool:
    return file.name == CHECKSUMS or file.name.startswith("tapgate")


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files, as `sha256sum --check` reads them."""
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(folder.iterdir())
    ]
    (folder / CHECKSUMS).write_text("".join(lines))


if __name__ == "__main__":
    sys.exit(main())
