"""Sealed files: readable only if unaltered, and only with the key they were written with."""

import io
from collections.abc import Callable

import pytest

from cases import each
from tapgate.core.vault import Vault
from tapgate.runtime.store import StoreError, sealed_file
from tapgate.runtime.store.sealed_file import ARCHIVE, BACKUP, SealedWriter, read_sealed

VAULT = Vault("the secret key of these tests")
CHUNK_BYTES = 1000
SEALED_CHUNK_BYTES = CHUNK_BYTES + 16
HEADER_BYTES = len(BACKUP.magic) + 4 + 32


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed_file, "CHUNK_BYTES", CHUNK_BYTES)


def seal(plain: bytes, *, write_size: int = 700) -> bytes:
    file = io.BytesIO()
    writer = SealedWriter(file, VAULT, BACKUP)
    for start in range(0, len(plain), write_size):
        writer.write(plain[start : start + write_size])
    writer.finish()
    assert writer.bytes_written == len(file.getvalue())
    return file.getvalue()


def open_sealed(data: bytes, vault: Vault = VAULT) -> bytes:
    return b"".join(read_sealed(io.BytesIO(data), vault, BACKUP))


@each("size", [0, 1, 999, 1000, 1001, 2000, 5432])
@each("write_size", [1, 700, 10_000])
def test_sealed_content_is_returned_unchanged(size: int, write_size: int) -> None:
    plain = bytes(number % 251 for number in range(size))
    file = seal(plain, write_size=write_size)
    assert open_sealed(file) == plain
    assert len(file) == HEADER_BYTES + size + 16 * max(1, -(-size // CHUNK_BYTES))


def test_content_is_unreadable_and_no_two_sealed_files_are_alike() -> None:
    plain = b"Aminata Kamara" * 10
    assert b"Aminata" not in seal(plain)
    assert seal(plain)[HEADER_BYTES:] != seal(plain)[HEADER_BYTES:]


def get_chunk(data: bytes, number: int) -> bytes:
    return data[
        HEADER_BYTES + number * SEALED_CHUNK_BYTES : HEADER_BYTES
        + (number + 1) * SEALED_CHUNK_BYTES
    ]


@each(
    "alter",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[:HEADER_BYTES],
        lambda data: data[: HEADER_BYTES + 5],
        lambda data: data[:-1],
        lambda data: data[:-17],
        lambda data: data[: HEADER_BYTES + SEALED_CHUNK_BYTES],  # ends between two chunks
        lambda data: data[: HEADER_BYTES + 2 * SEALED_CHUNK_BYTES],
        lambda data: data + b"x",
        lambda data: data + data[HEADER_BYTES:],
        lambda data: data + get_chunk(data, 0),
        lambda data: (
            data[:HEADER_BYTES] + data[HEADER_BYTES + SEALED_CHUNK_BYTES :]
        ),  # without the first chunk
        lambda data: (
            data[:HEADER_BYTES]
            + get_chunk(data, 1)
            + get_chunk(data, 0)
            + data[HEADER_BYTES + 2 * SEALED_CHUNK_BYTES :]
        ),
        lambda data: (
            data[: HEADER_BYTES + SEALED_CHUNK_BYTES]
            + get_chunk(data, 0)
            + data[HEADER_BYTES + 2 * SEALED_CHUNK_BYTES :]
        ),
        lambda data: (
            data[:HEADER_BYTES]
            + get_chunk(seal(bytes(2500)), 0)
            + data[HEADER_BYTES + SEALED_CHUNK_BYTES :]
        ),
        lambda data: seal(bytes(2500))[:HEADER_BYTES] + data[HEADER_BYTES:],
        *(
            lambda data, at=at: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            for at in (
                0,
                16,
                HEADER_BYTES - 1,
                HEADER_BYTES,
                HEADER_BYTES + SEALED_CHUNK_BYTES - 1,
                HEADER_BYTES + SEALED_CHUNK_BYTES,
                -1,
                -17,
            )
        ),
    ],
)
def test_altered_file_is_rejected(alter: Callable[[bytes], bytes]) -> None:
    whole = seal(bytes(2500))
    assert open_sealed(whole) == bytes(2500)
    with pytest.raises(StoreError, match=r"damaged, incomplete or altered"):
        open_sealed(alter(whole))


def test_chunks_before_an_altered_one_are_returned_and_later_ones_are_not() -> None:
    whole = bytearray(seal(bytes(2500)))
    whole[HEADER_BYTES + SEALED_CHUNK_BYTES] ^= 1
    chunks = read_sealed(io.BytesIO(bytes(whole)), VAULT, BACKUP)
    assert next(chunks) == bytes(CHUNK_BYTES)
    with pytest.raises(StoreError):
        next(chunks)


def test_file_sealed_with_another_secret_key_is_rejected_with_the_key_id() -> None:
    other = Vault("another secret key")
    with pytest.raises(StoreError) as raised:
        open_sealed(seal(b"plain"), other)
    message = str(raised.value)
    assert f"created with secret key {VAULT.key_id}, but the configured key is" in message
    assert "\n" not in message


def test_file_with_a_forged_key_id_is_rejected() -> None:
    file = seal(b"plain")
    other = Vault("another secret key")
    forged = BACKUP.magic + bytes.fromhex(other.key_id) + file[len(BACKUP.magic) + 4 :]
    with pytest.raises(StoreError, match="authentication failed"):
        open_sealed(forged, other)


def test_file_of_another_kind_is_rejected() -> None:
    file = seal(b"plain")
    with pytest.raises(StoreError, match="authentication failed"):
        list(read_sealed(io.BytesIO(file), VAULT, ARCHIVE))
    renamed = io.BytesIO(ARCHIVE.magic + file[len(BACKUP.magic) :])
    with pytest.raises(StoreError, match="authentication failed"):
        list(read_sealed(renamed, VAULT, ARCHIVE))
