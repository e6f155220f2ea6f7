"""Default secrets for development and testing, generated once per data folder."""

import os
import secrets
from pathlib import Path
from typing import Any

import msgspec

from tapgate.core.settings.declaration import SettingsError


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """Installation secrets. Without the secret key, sealed data cannot be decrypted."""

    jwt_secret: str
    secret_key: str
    service_secrets: dict[str, str]

    def __repr__(self) -> str:
        return "Secrets(...)"


def add_dev_secrets(values: dict[str, Any]) -> None:
    """Add generated secrets to the values of settings, where no secret is set."""
    try:
        generated = load_dev_secrets(values["data_dir"])
    except OSError as error:
        raise build_folder_error(values["data_dir"], error) from error
    except ValueError as error:
        raise SettingsError(str(error)) from error
    values["jwt_secret"] = values["jwt_secret"] or generated.jwt_secret
    values["secret_key"] = values["secret_key"] or generated.secret_key
    values["service_secrets"] = generated.service_secrets | values["service_secrets"]


def build_folder_error(data_dir: Path, error: OSError) -> SettingsError:
    return SettingsError(f"the data folder {data_dir} cannot be used: {error.strerror}")


def load_dev_secrets(data_dir: Path) -> Secrets:
    """Return the secrets stored in a data folder, generating them on first use.

    Only the file's owner can read the file. Raise ValueError if the file is damaged.
    """
    path = data_dir / "secrets.json"
    if not path.exists():
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_once(path, msgspec.json.encode(generate_secrets()))
    try:
        return msgspec.json.decode(path.read_bytes(), type=Secrets)
    except msgspec.MsgspecError:
        # Do not generate new secrets: data sealed with the old key would become unreadable.
        raise ValueError(f"{path} is damaged. Restore it from a backup") from None


def load_dev_form_key(data_dir: Path) -> str:
    """Return the PEM private key that decrypts forms submitted on simulated phones.

    The key is generated on first use.
    """
    path = data_dir / "forms.pem"
    if not path.exists():
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_once(path, _generate_form_key())
    return path.read_text()


def _generate_form_key() -> bytes:
    # Imported here because every CLI command loads this module, but few generate a key.
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def generate_secrets() -> Secrets:
    return Secrets(
        jwt_secret=secrets.token_urlsafe(48),
        secret_key=secrets.token_urlsafe(48),
        service_secrets={name: secrets.token_urlsafe(48) for name in ("messenger", "gateway")},
    )


def _write_once(path: Path, data: bytes) -> None:
    """Create a file atomically. If another process creates it first, keep that file."""
    temporary_path = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(temporary_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary_path, path)
    except FileExistsError:
        return
    finally:
        temporary_path.unlink()
