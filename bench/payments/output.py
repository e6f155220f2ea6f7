"""Writes results to files, and to the page section between two fixed markers."""

from collections.abc import Mapping
from pathlib import Path

import msgspec


def replace_section(page: str, begin: str, end: str, section: str) -> str:
    top, found_begin, rest = page.partition(begin)
    _, found_end, bottom = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"the page must contain the markers {begin!r} and {end!r}")
    return f"{top}{begin}{section}{end}{bottom}"


def encode_results(results: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n"


def write_files(root: Path, files: Mapping[Path, bytes]) -> list[Path]:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return list(files)
