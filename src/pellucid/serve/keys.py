"""Keys of clients: kept as hashes, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

from pellucid.errors import DataError, OutputError, not_readable, not_writable

_LINE = re.compile(r"([0-9a-f]{64})(?:\s+.*)?\Z")


def hash_key(key: str) -> bytes:
    """Hash a key. Keys are random and long, so that one round of SHA-256 is enough."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


class Keys:
    """The hashes of all keys.

    Args:
        hashes: SHA-256 of each key.
    """

    def __init__(self, hashes: Iterable[bytes]) -> None:
        self._hashes = tuple(hashes)

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Read a key file: a SHA-256 in hexadecimal digits on each line, and a name if wanted.

        ``sha256sum`` writes such lines. Blank lines and lines that begin with ``#`` are skipped.

        Raises:
            DataError: a line is something else, or the file has no key.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise DataError(f"The key file must be text, but {path} is not.") from None
        except OSError as error:
            raise not_readable(error, path) from None
        hashes = []
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            match = _LINE.match(line.strip().lower())
            if match is None:
                # The line may be a key that was pasted by mistake, so it is not shown.
                raise DataError(
                    f"A line of a key file must begin with the SHA-256 of a key, but line {number} "
                    f"of {path} does not. Make keys with pellucid serve --new-key."
                )
            hashes.append(bytes.fromhex(match[1]))
        if not hashes:
            raise DataError(
                f"The key file {path} has no key. Make one with pellucid serve --new-key."
            )
        return cls(hashes)

    def accept(self, key: str | None) -> bool:
        """Tell whether a key is one of them, in a time that does not depend on which."""
        given = hash_key(key or "")
        is_found = False
        for known in self._hashes:
            is_found |= hmac.compare_digest(given, known)
        return is_found and bool(key)


def key_of(authorization: str | None) -> str | None:
    """Take the key out of an ``Authorization: Bearer KEY`` header."""
    scheme, _, key = (authorization or "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None


def make_key(path: Path, name: str) -> str:
    """Make a random key, append its hash to a file that only its owner can read, and return it.

    Args:
        path: the key file; it is made if it does not exist.
        name: a note next to the hash.
    """
    key = secrets.token_urlsafe(32)
    line = f"{hash_key(key).hex()}  {' '.join(name.split()) or '-'}\n"
    try:
        path.touch(mode=0o600)
        with path.open("a", encoding="utf-8") as file:
            file.write(line)
    except OSError as error:
        fault: OutputError = not_writable(error, path)
        raise fault from None
    return key
