"""Proof that a transaction is part of a closed day, with the public key that signed the day."""

from base64 import b64encode
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tapgate.business.finance.day_close.verify_receipt import (
    encode_signed_day,
    hash_leaf,
    hash_node,
)


def build_day_proof() -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Return a valid proof for the transaction `txn_1`, and the keys."""
    private = Ed25519PrivateKey.generate()
    leaf = {"id": "txn_1", "entries": [{"id": "txn_1:0", "amount": "25.00"}]}
    sibling = hash_leaf({"id": "txn_2", "entries": []})
    day: dict[str, Any] = {
        "date": "2026-03-10",
        "key_id": "k1",
        "merkle_root": hash_node(sibling, hash_leaf(leaf)).hex(),
        "previous_root": None,
        "totals_hash": "00",
    }
    day["signature"] = b64encode(private.sign(encode_signed_day(day))).decode()
    proof = {
        "transaction_id": "txn_1",
        "leaf": leaf,
        "path": [{"side": "left", "hash": sibling.hex()}],
        "day": day,
    }
    public = b64encode(private.public_key().public_bytes_raw()).decode()
    keys = [{"key_id": "k1", "public_key": public}]
    return proof, keys
