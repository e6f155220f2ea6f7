"""The hash tree, its chunks and its paths agree with the definition."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from tapgate.business.finance.day_close.hash_tree import CHUNK_SIZE, build_path, compute_root
from tapgate.ledger.verification.closed_days import _Tree


def hash_number(number: int) -> bytes:
    return hashlib.sha256(number.to_bytes(8)).digest()


def define_root(nodes: list[bytes]) -> bytes | None:
    """Return the root as the specification defines it, level by level."""
    while len(nodes) > 1:
        level = []
        for index in range(0, len(nodes), 2):
            pair = nodes[index : index + 2]
            is_odd = len(pair) == 1
            level.append(pair[0] if is_odd else hashlib.sha256(b"\x01" + b"".join(pair)).digest())
        nodes = level
    return nodes[0] if nodes else None


@given(st.one_of(st.integers(0, 40), st.integers(CHUNK_SIZE - 2, 3 * CHUNK_SIZE + 2)), st.data())
def test_chunked_tree_has_the_defined_root_and_every_path_leads_to_it(
    count: int, data: st.DataObject
) -> None:
    leaves = [hash_number(number) for number in range(count)]
    chunks = [leaves[at : at + CHUNK_SIZE] for at in range(0, count, CHUNK_SIZE)]
    nodes = [compute_root(chunk) or b"" for chunk in chunks]
    root = define_root(leaves)
    assert compute_root(leaves) == compute_root(nodes) == root
    verified = _Tree()
    for leaf in leaves:
        verified.add(leaf)
    assert (verified.count, verified.root) == (count, root)
    if not count:
        return
    index = data.draw(st.integers(0, count - 1))
    number, offset = divmod(index, CHUNK_SIZE)
    node = leaves[index]
    for step in (*build_path(chunks[number], offset), *build_path(nodes, number)):
        pair = step.hash + node if step.side == "left" else node + step.hash
        node = hashlib.sha256(b"\x01" + pair).digest()
    assert node == root
