"""Byte-level mutations."""

from collections.abc import Iterator

#: These bytes end a line, so the mutant would be a different request.
_LINE_ENDS = b"\r\n"


def mutate(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield every mutation of every byte, and truncations, without duplicates."""
    seen = {data}
    for how, mutant in _mutate_all(data):
        if mutant not in seen:
            seen.add(mutant)
            yield how, mutant


def mutate_header(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield mutations that are valid inside a request head."""
    for how, mutant in mutate(data):
        if not any(byte in _LINE_ENDS for byte in mutant):
            yield how, mutant


def _mutate_all(data: bytes) -> Iterator[tuple[str, bytes]]:
    for place in range(len(data)):
        yield from _mutate_byte(data, place)
    for space in (b" ", b"\t"):
        yield "white space before", space + data
        yield "white space after", data + space
    yield "twice", data + data
    yield "nothing", b""


def _mutate_byte(data: bytes, place: int) -> Iterator[tuple[str, bytes]]:
    before, byte, after = data[:place], data[place], data[place + 1 :]

    def changed(to: int) -> bytes:
        return before + bytes([to % 256]) + after

    yield from ((f"bit {bit} of byte {place}", changed(byte ^ 1 << bit)) for bit in range(8))
    yield f"byte {place} one more", changed(byte + 1)
    yield f"byte {place} one less", changed(byte - 1)
    yield f"byte {place} in the other case", before + bytes([byte]).swapcase() + after
    yield f"byte {place} left out", before + after
    yield f"byte {place} twice", before + bytes([byte, byte]) + after
    yield f"a zero before byte {place}", before + b"0" + data[place:]
    yield f"a space before byte {place}", before + b" " + data[place:]
    yield f"a NUL before byte {place}", before + b"\0" + data[place:]
    yield f"cut at byte {place}", before
    if after:
        yield f"byte {place} and the next swapped", before + after[:1] + bytes([byte]) + after[1:]
