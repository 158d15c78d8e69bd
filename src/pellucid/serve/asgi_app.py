"""The service as an ASGI application, for another server than that of the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pellucid.arguments import check_kind, check_text, list_texts, refuse
from pellucid.config.base import validate
from pellucid.serve.models import load_models, name_models
from pellucid.serve.service import Service
from pellucid.serve.settings import Keys, Limits, Settings

if TYPE_CHECKING:
    from pellucid.config import Precision


def make_app(
    models: str | Path | Mapping[str, str | Path],
    *,
    key_file: str | Path | None = None,
    allow_host: Sequence[str] = (),
    allow_origin: Sequence[str] = (),
    path_prefix: str = "",
    trust_proxy: Sequence[str] = (),
    keys_in_query: bool = False,
    limits: Mapping[str, float] = MappingProxyType({}),
    threads: int | None = None,
    device: str | None = None,
    precision: Precision | None = None,
) -> Service:
    """Load models, and make the application that ``pellucid serve`` runs.

    Any ASGI server runs it, and Starlette's ``Mount`` puts it under a path. It begins to compute
    with the server's lifespan, or with the first request if it hears of none; then call its method
    ``stop`` at the end. Limits of slow heads and of connections are those of the other server.

    Args:
        models: one model, a folder or ``demo``; or several by the names that requests use, of
            which the first is the default.
        key_file: only clients with a key of this file may ask; without it everybody may who
            reaches the server.
        allow_host: further names by which clients may address the server.
        allow_origin: origins of web pages that may use the server.
        path_prefix: the path under which a proxy serves this server, such as ``/mt``.
        trust_proxy: addresses and networks of proxies whose ``X-Forwarded`` headers count.
        keys_in_query: True to accept a key in a query string, which proxies may log.
        limits: bounds on requests and time, by the names that ``/v1/models`` lists.
        threads: processor threads to use; as the machine allows unless given.
        device: where to compute, as for `pellucid.load`; the processor unless given.
        precision: precision of the products; that of each bundle unless given.

    Raises:
        InputError: there is no model, or a model, a limit, a key file or an address is wrong.
    """
    if isinstance(models, str | Path):
        models = name_models([str(models)])
    if not isinstance(models, Mapping) or not models:
        advice = "Write make_app('demo') or make_app({'demo': 'demo'})."
        refuse("models", "a model, or a dict of models by name", models, advice)
    for name, model in models.items():
        check_kind(f"models[{name!r}]", model, str | Path, "a folder, or demo")
    if key_file is not None:
        check_kind("key_file", key_file, str | Path, "a file")
    check_kind("keys_in_query", keys_in_query, bool, "True or False")
    check_kind("limits", limits, Mapping, "a dict of limits")
    settings = Settings(
        limits=validate(Limits, dict(limits), "limits"),
        keys=None if key_file is None else Keys.read(Path(key_file)),
        allowed_hosts=tuple(list_texts("allow_host", allow_host)),
        allowed_origins=tuple(list_texts("allow_origin", allow_origin)),
        keys_in_query=keys_in_query,
        path_prefix=check_text("path_prefix", path_prefix),
        trusted_proxies=tuple(list_texts("trust_proxy", trust_proxy)),
    )
    named = {name: str(model) for name, model in models.items()}
    loaded = load_models(named, threads=threads, device=device, precision=precision)
    return Service(loaded, settings)
