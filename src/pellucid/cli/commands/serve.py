"""``pellucid serve``: models over HTTP."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pellucid.cli.ending import OnlyErrors, note, show_made, warn
from pellucid.cli.option_rules import Needs, check_rules
from pellucid.cli.options import Threads, described, given_of, options_of
from pellucid.errors import InputError
from pellucid.serve.settings import Limits

if TYPE_CHECKING:
    from pellucid.bundle import Bundle
    from pellucid.serve.settings import Settings


def _name_limit(field: str) -> str:
    """Name the option of a limit: what a request or an answer may have begins with --max."""
    is_plain = field.endswith("_seconds") or field.startswith(("queue_", "batch_"))
    return field if is_plain else f"max_{field}"


LIMITS = options_of(Limits, named=_name_limit)
RULES = (Needs("new_key", "key_file", "which keeps its hash"),)


@described(
    LIMITS,
    host=("ADDRESS", "Address to listen on."),
    port=("N", "Port; 0 takes a free one.", {"min": 0, "max": 65535}),
    key_file=("FILE", "Only clients with a key of FILE may ask."),
    new_key=("NAME", "Add a new key to --key-file, write it, and end."),
    public_no_auth=("", "Let other machines ask without a key."),
    allow_host=("NAME", "A name that clients use for the server."),
    allow_origin=("ORIGIN", "Let pages of this origin ask, such as https://example.org."),
    path_prefix=("PATH", "The path under which a proxy serves this server, such as /mt."),
    trust_proxy=("ADDRESS", "A proxy whose X-Forwarded headers count: address, network or unix."),
    keys_in_query=("", "Accept api_key in a query string, which proxies may log."),
    precision=("", "Precision of matrix products."),
    log=("", "What to write on standard error; never texts or addresses."),
)
def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL...",
            help="Bundle or run folders, or the word demo; NAME=MODEL gives a model a name.",
        ),
    ] = None,
    host: str = "127.0.0.1",
    port: int = 5000,
    key_file: str | None = None,
    new_key: str | None = None,
    public_no_auth: bool = False,
    allow_host: list[str] | None = None,
    allow_origin: list[str] | None = None,
    path_prefix: str = "",
    trust_proxy: list[str] | None = None,
    keys_in_query: bool = False,
    precision: Literal["float32", "bfloat16", "int8"] | None = None,
    threads: Threads = None,
    log: Literal["none", "errors", "requests"] = "errors",
    **options: Any,
) -> int:
    """Serve models over HTTP: an API, LibreTranslate's clients, and a page.

    The address is written once requests are accepted. SIGTERM, SIGHUP and Ctrl-C stop
    accepting, answer what was accepted, and end with exit code 0.

    Addresses other than this machine's own need --key-file or --public-no-auth.
    """
    check_rules(RULES, {"key_file": key_file, "new_key": new_key})
    if key_file is not None and new_key is not None:
        return _add_key(Path(key_file), new_key)
    if not models:
        raise InputError("MODEL is missing. Name a bundle folder, or the word demo.")

    from pellucid.serve.models import load_models, name_models
    from pellucid.serve.settings import Keys, Settings

    settings = Settings(
        host=host,
        port=port,
        limits=_read_limits(options),
        keys=None if key_file is None else Keys.read(Path(key_file)),
        allowed_hosts=tuple(allow_host or ()),
        allowed_origins=tuple(allow_origin or ()),
        keys_in_query=keys_in_query,
        path_prefix=path_prefix,
        trusted_proxies=tuple(trust_proxy or ()),
    )
    # An address that is open to all is refused before anything listens there.
    settings.check_public(is_public=public_no_auth)
    _warn_of_useless(settings, is_public=public_no_auth)
    named = name_models(models)

    from pellucid.serve.connection.server import bind
    from pellucid.serve.connection.server import run_server as answer

    # A port that is in use must show before models are loaded for it.
    with bind(settings) as listening:
        from pellucid.serve.service import Service

        _start_log(log)
        loaded = load_models(named, threads=threads, precision=precision)
        service = Service(loaded, settings, lessons=_lessons_for)
        answer(service, listening, announce=_announce)
    return 0


def _lessons_for(bundle: Bundle) -> tuple[list[dict[str, Any]], str]:
    """Make the lessons of the page, when it is asked for: they load PyTorch."""
    from pellucid.lessons.walks.for_page import lessons_for

    return lessons_for(bundle)


def _add_key(key_file: Path, name: str) -> int:
    from pellucid.serve.settings import make_key

    show_made(make_key(key_file, name))
    note(f"The hash of this key is now in {key_file}. The key itself is kept nowhere: copy it.")
    return 0


def _read_limits(options: Mapping[str, Any]) -> Limits:
    from pellucid.config import validate

    given = given_of(LIMITS, options)
    named = {name.removeprefix("max_"): value for name, value in given.items()}
    return validate(Limits, named, "options")


def _warn_of_useless(settings: Settings, *, is_public: bool) -> None:
    from pellucid.serve.settings import is_loopback

    if is_public and (is_loopback(settings.host) or settings.keys is not None):
        why = "with --key-file" if settings.keys is not None else f"at {settings.host}"
        warn(f"--public-no-auth has no effect {why}.")
    if settings.keys_in_query and settings.keys is None:
        warn("--keys-in-query has no effect without --key-file.")


def _announce(address: str) -> None:
    show_made(f"Serving at {address}")
    # Programs that start a server wait for this line, often through a pipe.
    sys.stdout.flush()


def _start_log(level: str) -> None:
    # What --log asks for is written with --quiet too.
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
