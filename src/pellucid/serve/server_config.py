"""The settings of a server: from a file, from the environment, from changes, and from options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from pellucid.config import apply_overrides, parse_toml, validate
from pellucid.config.base import Several, Strict
from pellucid.files import expand_home, read_bytes
from pellucid.serve.settings import Keys, Limits, Settings

ENVIRONMENT = "PELLUCID_SERVE_"
"""The beginning of the environment variables: ``PELLUCID_SERVE_PORT`` is ``serve.port``, and
``PELLUCID_SERVE_LIMITS_BEAM`` is ``limits.beam``."""


class ServeConfig(Strict):
    """The section ``[serve]``: where a server listens, and who may use it from where."""

    # Clients
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = Field(default=5000, ge=0, le=65535)
    """Port; 0 takes a free one."""
    key_file: str = ""
    """Only clients with a key of this file may ask; empty asks for none."""
    public_no_auth: bool = False
    """Let other machines ask without a key."""
    allow_host: Several[str] = ()
    """Names that clients use for the server."""
    allow_origin: Several[str] = ()
    """Origins whose pages may ask, such as https://example.org."""
    path_prefix: str = ""
    """The path under which a proxy serves this server, such as /mt."""
    trust_proxy: Several[str] = ()
    """Proxies whose X-Forwarded headers count: addresses, networks or unix."""
    keys_in_query: bool = False
    """Accept api_key in a query string, which proxies may log."""

    # The model
    precision: Literal["float32", "bfloat16", "int8", ""] = ""
    """Precision of the weights in matrix products; empty is that of the model."""

    # Time and progress
    log: Literal["none", "errors", "requests"] = "errors"
    """What to write on standard error; never texts or addresses."""


class ServerConfig(Strict):
    """Everything that a file for ``pellucid serve --config`` may hold."""

    serve: ServeConfig = Field(default_factory=ServeConfig)
    """Where it listens, and for whom."""
    limits: Limits = Field(default_factory=Limits)
    """Bounds on requests."""

    def to_settings(self) -> Settings:
        """Read the key file, and return what the service needs.

        Raises:
            InputError: the key file is none, or a prefix or address is not one.
        """
        serve = self.serve
        return Settings(
            host=serve.host,
            port=serve.port,
            limits=self.limits,
            keys=Keys.read(_to_path(serve.key_file)) if serve.key_file else None,
            allowed_hosts=serve.allow_host,
            allowed_origins=serve.allow_origin,
            keys_in_query=serve.keys_in_query,
            path_prefix=serve.path_prefix,
            trusted_proxies=serve.trust_proxy,
        )


def read_config(
    file: str | None,
    environment: Mapping[str, str],
    changes: Sequence[str],
    options: Mapping[str, Any],
) -> ServerConfig:
    """Gather the settings of a server; what comes later in the arguments counts more.

    Args:
        file: a TOML file with the sections ``[serve]`` and ``[limits]``.
        environment: the variables of the environment; those that begin with `ENVIRONMENT` count.
        changes: ``section.key=value``.
        options: the options that were given, by the keys of ``[serve]``.

    Raises:
        ConfigurationError: a key is unknown, or a value is not of its type; the sentence names the
            file, the variable or the option.
    """
    values: dict[str, dict[str, Any]] = {"serve": {}, "limits": {}}
    sources: list[tuple[str, Mapping[str, Any]]] = []
    if file is not None:
        sources.append((file, parse_toml(read_bytes(_to_path(file)), file)))
    for name in sorted(environment):
        if name.startswith(ENVIRONMENT):
            key = name.removeprefix(ENVIRONMENT).lower()
            is_limit = key.startswith("limits_")
            key = f"limits.{key.removeprefix('limits_')}" if is_limit else f"serve.{key}"
            sources.append((name, apply_overrides({}, [f"{key}={environment[name]}"])))
    sources.append(("--set", apply_overrides({}, changes)))
    sources.append(("the options", {"serve": options}))
    for where, found in sources:
        # Each alone, so that the sentence about a fault says where to mend it.
        validate(ServerConfig, found, where)
        for section, entries in found.items():
            values[section] |= entries
    return validate(ServerConfig, values, "all settings together")


def _to_path(name: str) -> Path:
    """Turn the name of a file into its path; ``-`` is standard input."""
    return Path("/dev/stdin" if name == "-" else expand_home(name))
