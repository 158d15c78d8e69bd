"""The limits of the service, its keys, and who may use it from where."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

from pydantic import Field

from pellucid.config.base import Strict
from pellucid.errors import DataError, InputError, not_readable, suggestion
from pellucid.files import writing

_LINE = re.compile(r"([0-9a-f]{64})(?:\s+(?!.*[0-9a-f]{64}).*)?\Z")


class Limits(Strict):
    """Bounds on what a request may ask for, and on what may wait.

    The schema of the service states those that a single request can exceed.
    """

    # A request
    body_bytes: int = Field(default=2**20, ge=1024, le=2**30)
    """Size of a request's body; a larger one is refused with 413, as is JSON with thousands of keys
    more than ``texts`` and ``phrases`` allow."""
    texts: int = Field(default=256, ge=1, le=100_000)
    """Number of texts in a request."""
    characters: int = Field(default=20_000, ge=1, le=10**8)
    """Characters of one text."""
    phrases: int = Field(default=100, ge=0, le=10_000)
    """Phrases that a request may forbid, require or list in a glossary."""
    beam: int = Field(default=16, ge=1, le=1000)
    """Width of the beam."""
    count: int = Field(default=16, ge=1, le=1000)
    """Number of translations or samples of each text."""
    tokens: int = Field(default=1024, ge=1, le=65_536)
    """Tokens that a request may ask a translation to have, whatever the length of the source."""
    look_bytes: int = Field(default=64 * 2**20, ge=1024, le=2**32)
    """Size of the tensors in an answer of /v1/look."""
    response_bytes: int = Field(default=16 * 2**20, ge=1024, le=2**32)
    """Size of any other answer."""
    document_memory_bytes: int = Field(default=128 * 2**20, ge=64 * 2**20, le=2**36)
    """Memory of the process that reads documents."""

    # Time
    header_seconds: float = Field(default=10.0, gt=0, le=3600)
    """Time that a client has to send the head of a request."""
    body_seconds: float = Field(default=20.0, gt=0, le=3600)
    """Time that a client has to send the body, and to take an answer that waits."""
    request_seconds: float = Field(default=60.0, gt=0, le=86_400)
    """Time for an answer; after it the request ends with 504."""
    document_seconds: float = Field(default=10.0, gt=0, le=3600)
    """Processor time to read or write a document; one that takes more is refused with 413."""
    idle_seconds: float = Field(default=30.0, gt=0, le=86_400)
    """Time that a connection stays open without a request."""
    drain_seconds: float = Field(default=60.0, gt=0, le=86_400)
    """Time for accepted requests once the server is to end."""

    # What waits
    queue_tokens: int = Field(default=200_000, ge=1, le=10**9)
    """Positions that may wait, as the work of requests is estimated: tokens times hypotheses. With
    more, requests are refused with 429, and one that is more with 413."""
    queue_requests: int = Field(default=1000, ge=1, le=10**6)
    """Requests that may wait; with more, they are refused with 429."""
    batch_tokens: int = Field(default=4096, ge=1, le=10**7)
    """Positions to compute at once, over the texts of all clients."""
    connections: int = Field(default=2000, ge=1, le=10**6)
    """Open connections; further ones are closed."""


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
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise DataError(f"The key file must be text, but {path} is not.") from None
        except OSError as error:
            raise not_readable(error, path) from None
        hashes = []
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            match = _LINE.match(line.strip().lower())
            if match is None:
                # The line may be a key that was pasted by mistake, so it is not shown.
                raise DataError(
                    f"A line of a key file must begin with the SHA-256 of a key and hold no other, "
                    f"but line {number} of {path} does not. Make keys with pellucid keys "
                    "add."
                )
            hashes.append(bytes.fromhex(match[1]))
        if not hashes:
            raise DataError(f"The key file {path} has no key. Make one with pellucid keys add.")
        return cls(hashes)

    def accept(self, key: str | None) -> bool:
        """Tell whether a key is one of them, in a time that does not depend on which."""
        given = hash_key(key or "")
        is_found = False
        for known in self._hashes:
            # No early return: the time must not tell how many keys were compared.
            is_found |= hmac.compare_digest(given, known)
        return is_found and bool(key)


@dataclass(frozen=True)
class Settings:
    """Everything about the service but its models.

    Attributes:
        host: the address to listen on.
        port: the port; 0 takes a free one.
        limits: bounds on requests.
        keys: the keys that open the routes that need one; None if none is needed.
        allowed_hosts: further names by which clients may address the server.
        allowed_origins: origins of web pages that may use the server.
        keys_in_query: True to accept a key in a query string, which proxies may log.
        path_prefix: the path under which a proxy serves this server, such as ``/mt``.
        trusted_proxies: addresses and networks of proxies whose ``X-Forwarded`` headers count;
            ``unix`` for those that connect through a Unix socket.

    Raises:
        InputError: the prefix or an address is not one.
    """

    host: str = "127.0.0.1"
    port: int = 5000
    limits: Limits = field(default_factory=Limits)
    keys: Keys | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    keys_in_query: bool = False
    path_prefix: str = ""
    trusted_proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.path_prefix and not is_prefix(self.path_prefix):
            raise InputError(
                "The path prefix must be a path such as /mt, without a slash at its end, but is "
                f"{self.path_prefix!r}. Change serve.path_prefix."
            )
        for one in self.trusted_proxies:
            try:
                _ = one == "unix" or ip_network(one)
            except ValueError:
                raise InputError(
                    "A trusted proxy must be an address, a network such as 10.0.0.0/8, or unix, "
                    f"but is {one!r}. Change serve.trust_proxy."
                ) from None

    def trusts(self, client: Sequence[Any] | None) -> bool:
        """Tell whether the headers of a proxy count; one without an address uses a Unix socket."""
        if not self.trusted_proxies or client is None:
            return client is None and "unix" in self.trusted_proxies
        try:
            address = ip_address(str(client[0]).partition("%")[0])
        except ValueError:
            return False
        # A socket for IPv6 shows clients of IPv4 as ::ffff:10.0.0.1.
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in ip_network(one) for one in self.trusted_proxies if one != "unix")

    def check_public(self, *, is_public: bool) -> None:
        """Refuse to serve other machines without a key, unless that is wanted explicitly.

        Args:
            is_public: True if it is wanted.

        Raises:
            InputError: the address is not a loopback one and keys are missing.
        """
        if is_loopback(self.host) or self.keys is not None or is_public:
            return
        raise InputError(
            f"The address {self.host} can be reached from other machines, so it needs keys. Give "
            "--key-file FILE, or --public-no-auth to let everyone translate."
        )


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_prefix(path: str) -> bool:
    """Tell whether a text is a path that addresses may begin with."""
    return re.fullmatch(r"(/[\w.~-]+)+", path, re.ASCII) is not None


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
    with writing(path):
        # Before the first byte, as the file must never be readable by others.
        path.touch(mode=0o600)
        # An editor may have left the last line without an end.
        is_cut = path.read_bytes()[-1:] not in (b"", b"\n")
        with path.open("a", encoding="utf-8") as file:
            file.write("\n" * is_cut + line)
    return key


def list_keys(path: Path) -> list[str]:
    """Read the names of the keys in a key file; a key without one is ``-``.

    Raises:
        DataError: the file is no key file, or has no key.
    """
    Keys.read(path)
    return [_name_of(line) for line in _lines(path) if _name_of(line)]


def remove_keys(path: Path, name: str) -> None:
    """Remove the keys of a name.

    Raises:
        DataError: the file is no key file, or has no such key.
    """
    known = list_keys(path)
    if name not in known:
        raise DataError(f"{path} has no key of {name!r}. {suggestion(name, known)}")
    kept = [line for line in _lines(path) if _name_of(line) != name]
    with writing(path):
        # In place, so that the file stays readable by its owner only.
        path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8-sig").splitlines()


def _name_of(line: str) -> str:
    """Find the name next to a hash; ``""`` on a line without a hash."""
    digits, _, name = line.strip().partition(" ")
    return (name.strip() or "-") if digits and not digits.startswith("#") else ""
