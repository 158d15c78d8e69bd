"""The routes that exist, and who may use each. A route that is not here is refused."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from pellucid.serve.settings import Settings, is_loopback


class Need(enum.Enum):
    """The key that a route needs, if the server has keys."""

    NOTHING = "nothing"
    KEY = "a key in the Authorization header"
    KEY_IN_BODY = "a key in the header or in the body"


@dataclass(frozen=True)
class Place:
    """A route.

    Attributes:
        route: its path as metrics and logs show it.
        need: who may use it.
        is_work: True if it computes, so that it is refused while the server ends or is full.
    """

    route: str
    need: Need
    is_work: bool = False


_OPEN, _KEY, _BODY = Need.NOTHING, Need.KEY, Need.KEY_IN_BODY

ROUTES: Mapping[tuple[str, str], Place] = {
    ("GET", "/"): Place("/", _OPEN),
    ("GET", "/livez"): Place("/livez", _OPEN),
    ("GET", "/readyz"): Place("/readyz", _OPEN),
    ("GET", "/metrics"): Place("/metrics", _KEY),
    ("GET", "/openapi.json"): Place("/openapi.json", _OPEN),
    ("GET", "/v1/models"): Place("/v1/models", _KEY),
    ("POST", "/v1/translate"): Place("/v1/translate", _KEY, is_work=True),
    ("POST", "/v1/score"): Place("/v1/score", _KEY, is_work=True),
    ("POST", "/v1/stream"): Place("/v1/stream", _KEY, is_work=True),
    ("POST", "/v1/look"): Place("/v1/look", _KEY, is_work=True),
    ("POST", "/v1/change"): Place("/v1/change", _KEY, is_work=True),
    # LibreTranslate's
    ("GET", "/languages"): Place("/languages", _OPEN),
    ("GET", "/frontend/settings"): Place("/frontend/settings", _OPEN),
    ("GET", "/health"): Place("/health", _OPEN),
    ("GET", "/spec"): Place("/spec", _OPEN),
    ("POST", "/translate"): Place("/translate", _BODY, is_work=True),
    ("POST", "/detect"): Place("/detect", _BODY, is_work=True),
    ("POST", "/suggest"): Place("/suggest", _BODY),
    ("POST", "/translate_file"): Place("/translate_file", _BODY, is_work=True),
    # Open, because the name of a file cannot be guessed and clients fetch it without a key.
    ("GET", "/download_file/{name}"): Place("/download_file/{name}", _OPEN),
}
"""Every method and path. `pellucid.serve.gate.Gate` refuses whatever is not here."""

_FILE = re.compile(r"/download_file/[^/]+")


def find_place(method: str, path: str) -> Place | frozenset[str]:
    """Find a route.

    Returns:
        The route; or the methods that its path has, an empty set if nothing is there.
    """
    asked = "GET" if method == "HEAD" else method
    if _FILE.fullmatch(path):
        path = "/download_file/{name}"
    place = ROUTES.get((asked, path))
    if place is not None:
        return place
    return frozenset(known for known, route in ROUTES if route == path)


def is_allowed_host(settings: Settings, host: str | None) -> bool:
    """Tell whether a ``Host`` header names this server.

    Web pages can make a browser send requests to any name that they own, also if it leads to this
    machine. They do not own addresses and ``localhost``.
    """
    name = _name_of(host)
    if name is None:
        return False
    if name == "localhost" or _is_address(name):
        return True
    return name in {one.lower() for one in (*settings.allowed_hosts, settings.host)}


def is_allowed_origin(settings: Settings, origin: str | None, host: str | None) -> bool:
    """Tell whether the page that sent a request may use the server: its own, or a listed one."""
    if origin is None:
        return True
    if origin in settings.allowed_origins:
        return True
    try:
        return urlsplit(origin).netloc.lower() == (host or "").lower() != ""
    except ValueError:
        return False


@lru_cache(maxsize=256)
def _name_of(host: str | None) -> str | None:
    """Take the name out of a ``Host`` header; None if the header is not valid."""
    if not host or any(character in host for character in "/@?#\\ "):
        return None
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    return None if parts.hostname is None else parts.hostname.rstrip(".")


@lru_cache(maxsize=256)
def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return is_loopback(name)
    return True
