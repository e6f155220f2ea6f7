"""Proof benchmark: compares payments without and with a proof."""

from bench.proofs import Cost, describe


def test_pairs_are_compared_by_their_medians() -> None:
    without, with_proof = Cost(200.0, 100.0), Cost(210.0, 100.0)
    stalled = (Cost(200.0, 100.0), Cost(2000.0, 5000.0))
    found = describe([(without, with_proof), stalled, (without, with_proof)])
    expected = (
        "Python 200 -> 210 µs (+10.0, ratio 0.952), PostgreSQL 100 -> 100 µs (+0.0, ratio 1.000)"
    )
    assert found == expected
