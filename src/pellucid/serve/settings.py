"""The limits of the service, and who may use it from where."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address

from pydantic import Field

from pellucid.config.base import Strict
from pellucid.errors import InputError
from pellucid.serve.keys import Keys


class Limits(Strict):
    """Bounds on what a request may ask for, and on what may wait.

    The schema of the service states those that a single request can exceed.
    """

    # A request
    body_bytes: int = Field(default=2**20, ge=1024, le=2**30)
    """Size of a request's body; a larger one is refused with 413."""
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

    # Time
    header_seconds: float = Field(default=10.0, gt=0, le=3600)
    """Time that a client has to send the head of a request."""
    body_seconds: float = Field(default=20.0, gt=0, le=3600)
    """Time that a client has to send the body, and to take an answer that waits."""
    request_seconds: float = Field(default=60.0, gt=0, le=86_400)
    """Time for an answer; after it the request ends with 504."""
    idle_seconds: float = Field(default=30.0, gt=0, le=86_400)
    """Time that a connection stays open without a request."""
    drain_seconds: float = Field(default=60.0, gt=0, le=86_400)
    """Time for accepted requests once the server is to end."""

    # What waits
    queue_tokens: int = Field(default=200_000, ge=1, le=10**9)
    """Source tokens that may wait; with more, requests are refused with 429."""
    queue_requests: int = Field(default=1000, ge=1, le=10**6)
    """Requests that may wait; with more, they are refused with 429."""
    batch_tokens: int = Field(default=4096, ge=1, le=10**7)
    """Positions to compute at once, over the texts of all clients."""
    connections: int = Field(default=2000, ge=1, le=10**6)
    """Open connections; further ones are closed."""


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
    """

    host: str = "127.0.0.1"
    port: int = 5000
    limits: Limits = field(default_factory=Limits)
    keys: Keys | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    keys_in_query: bool = False

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
