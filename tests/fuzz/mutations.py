"""Byte-level mutations."""

from collections.abc import Iterator

#: These bytes end a line, so the mutant would be a different request.
_LINE_ENDS = b"\r\n"


def mutate(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield mutations for every byte and for the whole value, without duplicates."""
    seen = {data}
    for description, mutant in _mutate_all(data):
        if mutant not in seen:
            seen.add(mutant)
            yield description, mutant


def mutate_header(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield mutations that are valid inside a request head."""
    for description, mutant in mutate(data):
        if not any(byte in _LINE_ENDS for byte in mutant):
            yield description, mutant


def _mutate_all(data: bytes) -> Iterator[tuple[str, bytes]]:
    for index in range(len(data)):
        yield from _mutate_byte(data, index)
    for space in (b" ", b"\t"):
        yield "white space before", space + data
        yield "white space after", data + space
    yield "duplicated", data + data
    yield "empty", b""


def _mutate_byte(data: bytes, index: int) -> Iterator[tuple[str, bytes]]:
    before, byte, after = data[:index], data[index], data[index + 1 :]

    def replace_byte(value: int) -> bytes:
        return before + bytes([value % 256]) + after

    yield from ((f"bit {bit} of byte {index}", replace_byte(byte ^ 1 << bit)) for bit in range(8))
    yield f"byte {index} incremented", replace_byte(byte + 1)
    yield f"byte {index} decremented", replace_byte(byte - 1)
    yield f"byte {index} with swapped case", before + bytes([byte]).swapcase() + after
    yield f"byte {index} removed", before + after
    yield f"byte {index} duplicated", before + bytes([byte, byte]) + after
    yield f"a zero before byte {index}", before + b"0" + data[index:]
    yield f"a space before byte {index}", before + b" " + data[index:]
    yield f"a NUL before byte {index}", before + b"\0" + data[index:]
    yield f"truncated at byte {index}", before
    if after:
        yield f"byte {index} and the next swapped", before + after[:1] + bytes([byte]) + after[1:]
