"""Workers of `pellucid bulk` on pretended GPUs, which note what they see."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from pretended_device import NAME, pretended_device

NOTES = "PELLUCID_TEST_NOTES"
"""The variable that names the folder of their notes: a file a process, with a line."""


def serve_windows(descriptor: int, **arguments: Any) -> NoReturn:
    """Be a worker whose model is on a pretended device."""
    from pellucid.cli.bulk.work import serve_windows

    def resolve(name: str) -> str:
        seen = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
        (Path(os.environ[NOTES]) / str(os.getpid())).write_text(f"{name} of {seen}")
        return f"{NAME}:0"

    with pretended_device(), mock.patch("pellucid.translate.translator.resolve_device", resolve):
        serve_windows(descriptor, **arguments)


def read_notes(places: Mapping[str, str]) -> list[str]:
    """List what workers saw, in the order in which they wrote it."""
    notes = sorted(Path(places[NOTES]).iterdir(), key=lambda path: path.stat().st_mtime_ns)
    return [path.read_text() for path in notes]
