#!/usr/bin/env python3
"""Verify an inclusion proof without network or database.

    python3 verify_receipt.py PROOF [--keys KEYS]

PROOF is the response of GET /api/v1/transactions/{id}/proof, KEYS the response of
GET /.well-known/tapgate-keys. Requires only Python 3.11 and the package `cryptography`.
"""

import argparse
import base64
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


class InvalidProofError(Exception):
    """Reason why a proof is not valid."""


def encode_canonically(value: Any) -> bytes:
    """Return JSON with sorted keys and without spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def hash_leaf(leaf: Any) -> bytes:
    return hashlib.sha256(b"\x00" + encode_canonically(leaf)).digest()


def hash_node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def compute_root(leaf: Any, path: list[dict[str, str]]) -> bytes:
    """Return the root that the path leads to from a leaf."""
    node = hash_leaf(leaf)
    for step in path:
        sibling = bytes.fromhex(step["hash"])
        if step["side"] not in ("left", "right") or len(sibling) != len(node):
            raise InvalidProofError("a step of the path is not valid")
        node = hash_node(sibling, node) if step["side"] == "left" else hash_node(node, sibling)
    return node


def encode_signed_day(day: dict[str, Any]) -> bytes:
    """Return the bytes that are signed: the day without its signature and totals."""
    signed = {name: value for name, value in day.items() if name not in ("signature", "totals")}
    return encode_canonically(signed)


def verify_day(day: dict[str, Any], keys: list[dict[str, Any]]) -> None:
    """Raise InvalidProofError unless one of the keys signed the day and the totals match."""
    public_keys = [key["public_key"] for key in keys if key["key_id"] == day["key_id"]]
    if not public_keys:
        raise InvalidProofError(f"the keys do not contain {day['key_id']}")
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_keys[0], validate=True))
    try:
        key.verify(base64.b64decode(day["signature"], validate=True), encode_signed_day(day))
    except InvalidSignature:
        raise InvalidProofError("the signature of the day is not valid") from None
    if "totals" in day:
        digest = hashlib.sha256(encode_canonically(day["totals"])).hexdigest()
        if digest != day["totals_hash"]:
            raise InvalidProofError("the totals of the day do not match their hash")


def verify_proof(proof: dict[str, Any], keys: list[dict[str, Any]]) -> str:
    """Return what the proof proves, or raise InvalidProofError."""
    try:
        day, leaf = proof["day"], proof["leaf"]
        if leaf["id"] != proof["transaction_id"]:
            raise InvalidProofError("the leaf belongs to another transaction")
        verify_day(day, keys)
        if compute_root(leaf, proof["path"]).hex() != day["merkle_root"]:
            raise InvalidProofError("the transaction is not part of the day")
        count = len(leaf["entries"]) // 2
        noun = "entry" if count == 1 else "entries"
        return (
            f"{leaf['id']} with {count} {noun} is part of {day['date']}, signed by {day['key_id']}"
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidProofError(f"the file is not a proof ({type(error).__name__})") from None


def verify_files(proof: Path, keys: Path | None) -> str:
    """Return what the proof in a file proves, or raise InvalidProofError."""
    if keys is None:
        raise InvalidProofError("the keys are missing: name their file with --keys")
    return verify_proof(_read(proof), _read_keys(keys))


def _read_keys(path: Path) -> list[dict[str, Any]]:
    document = _read(path)
    if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
        raise InvalidProofError(f"{path}: not a list of keys")
    keys: list[dict[str, Any]] = document["keys"]
    return keys


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InvalidProofError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise InvalidProofError(f"{path}: not JSON") from None


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify an inclusion proof offline.")
    parser.add_argument("proof", type=Path)
    parser.add_argument("--keys", type=Path)
    arguments = parser.parse_args()
    try:
        print(f"valid: {verify_files(arguments.proof, arguments.keys)}")
    except InvalidProofError as error:
        print(f"not valid: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
