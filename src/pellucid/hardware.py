"""The machine: threads, and what to call it in a log."""

from __future__ import annotations

import os
import platform

import torch

from pellucid.errors import ConfigurationError

__all__ = ["describe_machine", "set_threads"]


def set_threads(threads: int | None) -> int:
    """Use this many processor threads; None leaves PyTorch's choice.

    Returns:
        How many are in use.

    Raises:
        ConfigurationError: fewer than one, or more than a thousand.
    """
    if threads is not None:
        if not 1 <= threads <= 1000:
            raise ConfigurationError(
                f"The number of threads must be between 1 and 1000, but is {threads} (--threads)."
            )
        torch.set_num_threads(threads)
    return torch.get_num_threads()


def describe_machine() -> str:
    """One line about processor, threads and versions, for logs and manifests."""
    return (
        f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}, "
        f"{torch.get_num_threads()} of {os.cpu_count()} threads, {platform.system()}, "
        f"Python {platform.python_version()}, PyTorch {torch.__version__}"
    )
