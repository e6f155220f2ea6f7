"""Tests of byte-level mutations."""

from fuzz import mutations


def test_mutations_are_distinct_and_include_every_bit_flip() -> None:
    mutants = [mutant for _, mutant in mutations.mutate(b"abc")]
    assert len(mutants) == len(set(mutants)) and b"abc" not in mutants
    for index in range(3):
        assert {b"abc"[:index] + bytes([b"abc"[index] ^ 1 << bit]) + b"abc"[index + 1 :]
                for bit in range(8)} <= set(mutants)  # fmt: skip
    assert {b"", b"ab", b"a", b"aabc", b" abc", b"abc\t", b"Abc", b"bac", b"abcabc"} <= set(mutants)
