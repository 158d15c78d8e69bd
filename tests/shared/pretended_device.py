"""A pretended device other than the processor, for machines without a GPU.

Its tensors hold their numbers on the processor, but report another device. An operation on tensors
of both devices fails, as it would on a GPU, and operations that make the processor wait for the
device are counted. It changes PyTorch for a whole process, so that tests use it in a fork.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "pretended"
aten = torch.ops.aten

waits: Counter[str] = Counter()
"""How often the processor had to wait for the device, by what it asked for."""

_WAIT_ALWAYS = (
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.is_nonzero.default,
    aten.equal.default,
    aten.masked_select.default,
)
_MOVE = (aten._to_copy.default, aten.copy_.default)
_INDEX = (aten.index.Tensor, aten.index_put_.default, aten.index_put.default)


class OnDevice(Tensor):
    """A tensor that reports to be on the device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> OnDevice:
        found: OnDevice = Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=torch.device(NAME, 0),
        )
        found.held = held
        return found

    def tolist(self) -> Any:
        """Wait, and hand over the numbers."""
        waits["tolist"] += 1
        return self.held.tolist()

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Convert: in inference mode PyTorch looks for code of the device, which has none."""
        if not torch.is_inference_mode_enabled():
            return super().to(*args, **kwargs)
        device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)  # type: ignore[attr-defined]
        if device is not None and device.type != NAME:
            waits["to"] += 1
            return self.held.to(device, dtype)
        return self if dtype in (None, self.dtype) else OnDevice(self.held.to(dtype))

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(_moved(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(_moved(index), value)

    def numpy(self, *, force: bool = False) -> Any:
        """Wait, and hand over the numbers, if a copy was asked for."""
        if not force:
            raise TypeError("NumPy cannot read a tensor of the device")
        waits["numpy"] += 1
        return self.held.numpy(force=True)

    @classmethod
    def __torch_dispatch__(
        cls, operation: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return _run(operation, args, kwargs or {})


class _Factories(TorchDispatchMode):
    """A mode that catches operations that create tensors on the device."""

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return _run(operation, args, kwargs or {})


def _run(operation: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    ours = [tensor for tensor in tensors if isinstance(tensor, OnDevice)]
    goes_to = torch.device(kwargs["device"]).type if kwargs.get("device") is not None else None
    if not ours and goes_to != NAME:
        return operation(*args, **kwargs)
    if operation not in _MOVE:
        strangers = [tensor for tensor in tensors if not isinstance(tensor, OnDevice)]
        if ours and any(tensor.dim() for tensor in strangers):
            raise AssertionError(f"{operation} is given tensors of the device and of the processor")
    if operation is aten._fused_sdp_choice.default:
        return 0  # Plain products, which every device has.
    _count_waits(operation, args, goes_to)
    own_kwargs = {name: value for name, value in kwargs.items() if name != "pin_memory"}
    if goes_to == NAME:
        own_kwargs["device"] = "cpu"
    result = operation(*tree_map(_held, tuple(args)), **tree_map(_held, own_kwargs))
    if operation is aten.copy_.default:
        return args[0]
    if goes_to == "cpu":
        return result
    known = {id(tensor.held): tensor for tensor in ours}
    # As on a real device, a view is of inference only if its base is.
    is_view = operation.is_view and not any(tensor.is_inference() for tensor in ours)
    with torch.inference_mode(torch.is_inference_mode_enabled() and not is_view):
        return tree_map(
            lambda leaf: known[id(leaf)] if id(leaf) in known else _on_device(leaf), result
        )


def _count_waits(operation: Any, args: Sequence[Any], goes_to: str | None) -> None:
    is_masked = operation in _INDEX and any(
        index is not None and index.dtype == torch.bool for index in args[1]
    )
    leaves = goes_to == "cpu" or (
        operation is aten.copy_.default and not isinstance(args[0], OnDevice)
    )
    if operation in _WAIT_ALWAYS or is_masked or leaves:
        waits[str(operation)] += 1


class _Generator(torch.Generator):
    """A generator of the processor, whatever device is asked for."""

    def __new__(cls, device: Any = "cpu") -> _Generator:
        return super().__new__(cls)


def _made_here(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make a tensor of numbers on the processor and then move it: PyTorch hides this from modes."""

    def made(values: Any, *, dtype: torch.dtype | None = None, device: Any = None) -> Tensor:
        if device is None and isinstance(values, OnDevice):
            device = values.device
        here = values if isinstance(values, OnDevice) else make(values, dtype=dtype)
        return here if device is None else here.to(device=device, dtype=dtype)

    return made


def _moved(index: Any) -> Any:
    """Put lists of an index on the device, as PyTorch does without asking a mode."""
    if isinstance(index, tuple):
        return tuple(_moved(one) for one in index)
    is_list = isinstance(index, list | range)
    return torch.tensor(list(index), device=torch.device(NAME, 0)) if is_list else index


def _held(leaf: Any) -> Any:
    return leaf.held if isinstance(leaf, OnDevice) else leaf


def _on_device(leaf: Any) -> Any:
    return OnDevice(leaf) if type(leaf) is Tensor else leaf


@contextmanager
def pretended_device() -> Iterator[torch.device]:
    """Add the device, and let training choose it."""
    _setup_privateuseone_for_python_backend(NAME)
    device = torch.device(NAME, 0)
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    with (
        mock.patch("torch.Generator", _Generator),
        mock.patch("torch.tensor", _made_here(torch.tensor)),
        mock.patch("torch.as_tensor", _made_here(torch.as_tensor)),
        mock.patch("torch.Tensor.pin_memory", lambda tensor: tensor),
        mock.patch("pellucid.training.start.plan.choose_device", return_value=device),
        mock.patch("pellucid.training.loop.choose_device", return_value=device),
        _Factories(),
    ):
        yield device


def leave() -> NoReturn:
    """End the process at once, as the command line does, after a backward pass on the device.

    PyTorch runs that pass in a thread of the device, which may still release Python's objects while
    the process ends. Python cancels such a thread at its exit, and C++ then aborts with "terminate
    called without an active exception".
    """
    sys.stdout.flush()
    os._exit(0)
