"""The data check in another process, while the same text is prepared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from pellucid.check.data_check import check_data
from pellucid.config import DataConfig
from pellucid.machine.processes import serve_parent


def serve_check(descriptor: int, data: str, base: str) -> NoReturn:
    """Check text and send the lines of the short report to the parent.

    Args:
        descriptor: the end of the connection to the parent.
        data: the recipe's data section, as JSON.
        base: the folder that its names start from.
    """

    def set_up() -> Callable[[Callable[[], bytes]], list[str]]:
        lines = list(check_data(DataConfig.model_validate_json(data), Path(base)).brief())
        return lambda take: lines if take() is not None else []

    serve_parent(descriptor, set_up)
