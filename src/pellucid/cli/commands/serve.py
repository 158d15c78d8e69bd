"""``pellucid serve``: models over HTTP."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pellucid.cli.ending import OnlyErrors, show_made, warn
from pellucid.cli.options import Device, Threads, described

if TYPE_CHECKING:
    from pellucid.bundle import Bundle
    from pellucid.serve.settings import Settings


@described(
    config=("FILE", "Settings of the server as TOML, with sections [serve] and [limits]."),
    host=("ADDRESS", "Address to listen on.  [default: 127.0.0.1]"),
    port=("N", "Port; 0 takes a free one.  [default: 5000]", {"min": 0, "max": 65535}),
    key_file=("FILE", "Only clients with a key of FILE may ask; see pellucid keys."),
    public_no_auth=("", "Let other machines ask without a key."),
    allow_host=("NAME", "A name that clients use for the server; may be repeated."),
    allow_origin=(
        "ORIGIN",
        "Let pages of this origin ask, such as https://example.org; may be repeated.",
    ),
    precision=("", "Precision of the weights in matrix products.  [default: the model's]"),
    changes=(
        "SECTION.KEY=VALUE",
        "Change one setting, such as limits.beam=8, serve.log=requests or "
        "serve.trust_proxy=127.0.0.1; may be repeated. pellucid recipe --key serve (or limits) "
        "lists all, with their defaults.",
        {"name": "--set"},
    ),
)
def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL",
            help="Bundle or run folders, or packaged models such as demo; NAME=MODEL gives a "
            "model a name.",
        ),
    ],
    config: str | None = None,
    host: str | None = None,
    port: int | None = None,
    key_file: str | None = None,
    public_no_auth: bool = False,
    allow_host: list[str] | None = None,
    allow_origin: list[str] | None = None,
    precision: Literal["float32", "bfloat16", "int8"] | None = None,
    threads: Threads = None,
    device: Device = None,
    changes: list[str] | None = None,
) -> int:
    """Serve models over HTTP: an API, LibreTranslate's clients, and a page.

    The address is written once requests are accepted. SIGTERM, SIGHUP and Ctrl-C stop
    accepting, answer what was accepted, and end with exit code 0.

    Addresses other than this machine's own need --key-file or --public-no-auth.

    Every setting can be given in FILE, as an environment variable (PELLUCID_SERVE_PORT,
    PELLUCID_SERVE_LIMITS_BEAM), with --set, or, if it has one, as an option: the last counts most.
    """
    from pellucid.serve.server_config import read_config

    given = {
        "host": host,
        "port": port,
        "key_file": key_file,
        "public_no_auth": public_no_auth or None,
        "allow_host": allow_host or None,
        "allow_origin": allow_origin or None,
        "precision": precision,
    }
    options = {name: value for name, value in given.items() if value is not None}
    asked = read_config(config, os.environ, changes or (), options)
    settings = asked.to_settings()
    # An address that is open to all is refused before anything listens there.
    settings.check_public(is_public=asked.serve.public_no_auth)
    _warn_of_useless(settings, is_public=asked.serve.public_no_auth)

    from pellucid.serve.models import load_models, name_models

    named = name_models(models)

    from pellucid.serve.connection.server import bind
    from pellucid.serve.connection.server import run_server as answer

    # A port that is in use must show before models are loaded for it.
    with bind(settings) as listening:
        from pellucid.serve.service import Service

        _start_log(asked.serve.log)
        loaded = load_models(named, threads=threads, precision=asked.serve.precision or None)
        service = Service(loaded, settings, lessons=_lessons_for)
        answer(service, listening, announce=_announce)
    return 0


def _lessons_for(bundle: Bundle) -> tuple[list[dict[str, Any]], str]:
    """Make the lessons of the page, when it is asked for: they load PyTorch."""
    from pellucid.lessons.walks.for_page import lessons_for

    return lessons_for(bundle)


def _warn_of_useless(settings: Settings, *, is_public: bool) -> None:
    from pellucid.serve.settings import is_loopback

    if is_public and (is_loopback(settings.host) or settings.keys is not None):
        why = "with --key-file" if settings.keys is not None else f"at {settings.host}"
        warn(f"--public-no-auth has no effect {why}.")
    if settings.keys_in_query and settings.keys is None:
        warn("serve.keys_in_query has no effect without --key-file.")


def _announce(address: str) -> None:
    show_made(f"Serving at {address}")
    # Programs that start a server wait for this line, often through a pipe.
    sys.stdout.flush()


def _start_log(level: str) -> None:
    # What serve.log asks for is written with --quiet too.
    stream = sys.stderr.stream if isinstance(sys.stderr, OnlyErrors) else sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("pellucid.serve")
    logger.handlers = [] if level == "none" else [handler]
    # Handlers that a library gives to the root would write each line twice.
    logger.propagate = False
    logger.setLevel(logging.INFO if level == "requests" else logging.ERROR)
    # Without any handler Python writes errors to standard error itself.
    if level == "none":
        logger.addHandler(logging.NullHandler())
