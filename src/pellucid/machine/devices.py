"""The device that computes: its name, whether it works, and the one that a command chose."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

from pellucid.errors import (
    ConfigurationError,
    LibraryError,
    PellucidError,
    fault_of_machine,
    need_library,
)
from pellucid.wording.value_rules import is_device_name

if TYPE_CHECKING:
    import torch

CPU = "cpu"
"""The processor, which is the default: docs/decisions/0033."""

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""The variable by which a process sees some devices of a machine only."""

_chosen: list[str] = []
"""The device that the command in progress was given, if any."""


def use_device(name: str | None) -> None:
    """Let models that are loaded from now on compute on a device; None stands for the processor.

    Raises:
        ConfigurationError: there is no such device.
        PellucidError: it does not work.
    """
    _chosen[:] = [] if name is None else [resolve_device(name)]


def device_in_use() -> str:
    """Return the device for models that name none."""
    return _chosen[0] if _chosen else CPU


def share_devices(device: str) -> list[str]:
    """List what processes share out by turns, if they compute on a device.

    Args:
        device: one that was found; ``cuda`` stands for all that there are.

    Returns:
        Values of `VISIBLE`, with each of which a process sees one device; an empty one leaves it.
    """
    if device != "cuda":
        return [""]
    count, _ = _count_devices()
    # A scheduler may have shared out the machine already, by numbers or by names.
    seen = os.environ.get(VISIBLE) or ",".join(map(str, range(count)))
    return seen.split(",")[:count]


def choose_device(asked: str) -> torch.device:
    """Choose the device to compute on, as `resolve_device` does."""
    import torch

    return torch.device(resolve_device(asked))


def resolve_device(asked: str) -> str:
    """Find a device by its name, and try it.

    Args:
        asked: ``cpu``, ``cuda``, ``cuda:N``, or ``auto`` for a CUDA device if one works, and
            otherwise the processor.

    Returns:
        The name of one that works.

    Raises:
        ConfigurationError: there is no such device.
        PellucidError: it does not work, or needs PyTorch, which is missing.
    """
    if not is_device_name(asked):
        raise ConfigurationError(f"The device must be auto, cpu, cuda or cuda:N, but is {asked!r}.")
    # Without PyTorch, whose import takes longer than a short translation.
    if asked == CPU:
        return CPU
    try:
        torch = need_library("torch", f"The device {asked}")
    except LibraryError:
        # The engine in C computes on the processor, and no other device works without PyTorch.
        if asked == "auto":
            return CPU
        raise
    count, reason = _count_devices()
    if asked == "auto":
        return "cuda" if count and _find_fault("cuda") is None else CPU
    if not count:
        raise ConfigurationError(f"The device {asked} needs CUDA, but {reason}, or use cpu.")
    number = torch.device(asked).index or 0
    if number >= count:
        known = "cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"
        raise ConfigurationError(
            f"The device must be one of this machine's ({known}), but is {asked}. Choose another."
        )
    fault = _find_fault(asked)
    if fault is not None:
        raise PellucidError(f"The device {asked} does not work: {fault}")
    return asked


def describe_device(device: torch.device) -> str:
    """Name a device, a GPU with its maker's name: ``cuda (NVIDIA H200)``."""
    import torch

    if device.type != "cuda":
        return str(device)
    return f"{device} ({torch.cuda.get_device_name(device)})"


def _count_devices() -> tuple[int, str]:
    """Count the CUDA devices; if there are none, also say why and what to do."""
    import torch

    # PyTorch says only in a warning that a driver is too old.
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    words = " ".join(str(one.message) for one in said).lower()
    if "driver" in words and "too old" in words:
        return count, "its driver is too old for this PyTorch: update the driver"
    if torch.version.cuda is None and torch.version.hip is None:
        return count, "this PyTorch was built without it: install a build for your device"
    return count, "PyTorch does not find a device for it: check the driver (nvidia-smi)"


def _find_fault(device: str) -> str | None:
    """Compute something on a device; say what is wrong and what to do if that fails."""
    import torch

    try:
        torch.ones(1, device=device).add(1).item()
    except (RuntimeError, AssertionError) as error:
        words = str(error)
        if "busy or unavailable" in words:
            return "another program keeps it for itself. End that program, or use cpu."
        if "no kernel image" in words:
            return "this PyTorch was not built for it. Install a newer build, or use cpu."
        first = words.strip().partition("\n")[0].rstrip(".")
        return fault_of_machine(error) or f"{first}. Check the driver (nvidia-smi), or use cpu."
    return None


def is_out_of_memory(error: Exception) -> bool:
    """Tell whether an allocator refused: for CPUs and in cuBLAS that is a plain RuntimeError."""
    said = ("can't allocate memory", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED")
    # PyTorch's own error is known by its name, so that nobody imports PyTorch to look.
    is_named = type(error).__name__ == "OutOfMemoryError"
    return isinstance(error, MemoryError) or is_named or any(one in str(error) for one in said)
