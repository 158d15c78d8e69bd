"""The tensors of a checkpoint with a plain ``nn.Transformer``, found by their names and shapes."""

from __future__ import annotations

import pickle
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pellucid.errors import BundleError

_LAYER = re.compile(r"(?P<stack>.*)\blayers\.(?P<layer>\d+)\.(?P<rest>.+)")
_BLOCKS = {
    "self_attn": "self_attention",
    "multihead_attn": "cross_attention",
    "linear1": "feed_forward.inner",
    "linear2": "feed_forward.outer",
}
_NORMS = {
    "encoder": ("self_attention_norm", "feed_forward_norm"),
    "decoder": ("self_attention_norm", "cross_attention_norm", "feed_forward_norm"),
}
_SIDE = {
    "source": re.compile(r"src|source|enc(?!oding)", re.IGNORECASE),
    "target": re.compile(r"tgt|trg|target|dec", re.IGNORECASE),
}
_POSITIONS = re.compile(r"pos|(?:^|[._])pe(?:$|[._])", re.IGNORECASE)
_OUTPUT = re.compile(r"generator|out|proj|head|fc|classif|linear|logit", re.IGNORECASE)
_INPUT_SIDES = 3
"""Queries, keys and values, which ``nn.MultiheadAttention`` has in one matrix."""


@dataclass(frozen=True)
class NnTensorsFound:
    """The tensors of a checkpoint.

    Attributes:
        layers: those of the layers and of the norms after them, by our names, each with its name
            in the file.
        others: all other ones, by their names in the file.
        depths: the number of layers of ``encoder`` and ``decoder``.
        width: of the model.
        inner: width of the feed-forward networks.
        path: the file.
    """

    layers: Mapping[str, tuple[str, Tensor]]
    others: Mapping[str, Tensor]
    depths: Mapping[str, int]
    width: int
    inner: int
    path: Path

    @property
    def summary(self) -> str:
        """The file and its sizes in words."""
        depth = f"{self.depths['encoder']} + {self.depths['decoder']}"
        return f"{self.path.name}: {depth} layers of width {self.width}"

    @property
    def has_biases(self) -> bool:
        """True if the projections have biases."""
        return "encoder.layers.0.self_attention.query.bias" in self.layers

    @property
    def has_stack_norms(self) -> bool:
        """True if encoder and decoder end in a norm."""
        return {"encoder.norm.weight", "decoder.norm.weight"} <= self.layers.keys()

    def tables(self) -> list[str]:
        """List the tensors outside of the layers that have a row of the model's width each."""
        return sorted(name for name in self.others if self._is_table(name))

    def candidates(self) -> dict[str, list[str]]:
        """List the tensors that may be each of the tables outside of the layers."""
        tables = self.tables()
        positions = [name for name in tables if _POSITIONS.search(name)]
        words = [name for name in tables if name not in positions]
        # A Linear has a bias next to it. Without one, its name has to tell it from an embedding.
        outputs = [one for one in words if self._bias_of(one) is not None]
        outputs = outputs or [one for one in words if _OUTPUT.search(one.rpartition(".")[0])]
        embeddings = [one for one in words if one not in outputs]
        return {
            "source_embedding": _of_side(embeddings, "source"),
            "target_embedding": _of_side(embeddings, "target"),
            "output": outputs,
            "source_positions": _of_side(positions, "source"),
            "target_positions": _of_side(positions, "target"),
        }

    def bias_of(self, name: str) -> Tensor | None:
        """Get the bias next to a matrix of logits, if there is one."""
        bias = self._bias_of(name)
        return None if bias is None else self.others[bias]

    def _bias_of(self, name: str) -> str | None:
        bias = f"{name.removesuffix('weight')}bias"
        is_one = name.endswith("weight") and bias in self.others
        return bias if is_one and self.others[bias].shape == self.others[name].shape[:1] else None

    def _is_table(self, name: str) -> bool:
        tensor = self.others[name]
        # Tables of positions often have an axis for the batch.
        return (
            tensor.is_floating_point()
            and tensor.squeeze().dim() == 2
            and (tensor.shape[-1] == self.width)
        )


def read_checkpoint(path: Path) -> NnTensorsFound:
    """Read the tensors of a checkpoint; nothing in it is run.

    Raises:
        BundleError: it is no checkpoint, holds more than numbers, or has no layers of
            ``nn.Transformer``, or others.
    """
    tensors = _state_of(_load(path), path)
    stacks: dict[str, dict[int, dict[str, str]]] = {}
    for name in tensors:
        if match := _LAYER.fullmatch(name):
            layers = stacks.setdefault(match["stack"], {})
            layers.setdefault(int(match["layer"]), {})[match["rest"]] = name
    stacks = {
        stack: layers
        for stack, layers in stacks.items()
        if any("self_attn.in_proj_weight" in layer for layer in layers.values())
    }
    parts = {
        "decoder" if "multihead_attn.in_proj_weight" in layers.get(0, {}) else "encoder": stack
        for stack, layers in stacks.items()
    }
    if len(parts) != len(stacks) or len(parts) != len(_NORMS):
        found = ", ".join(sorted(stack or "layers" for stack in stacks)) or "none"
        raise BundleError(
            "The checkpoint must hold one encoder and one decoder of nn.Transformer, with layers "
            f"that have self_attn.in_proj_weight, but its stacks are: {found} ({path}). Models "
            "with layers of another kind cannot be converted."
        )
    found_layers: dict[str, tuple[str, Tensor]] = {}
    depths = {}
    taken = set()
    for part, stack in parts.items():
        layers = stacks[stack]
        depths[part] = len(layers)
        if sorted(layers) != list(range(len(layers))):
            raise BundleError(
                f"The layers of {stack}layers must be numbered from 0 without a gap, but are "
                f"{', '.join(map(str, sorted(layers)))} ({path}). The file is damaged."
            )
        for index, names in layers.items():
            for rest, name in names.items():
                taken.add(name)
                for ours, tensor in _ours(part, rest, tensors[name], name, path):
                    found_layers[f"{part}.layers.{index}.{ours}"] = (name, tensor)
        for kind in ("weight", "bias"):
            name = f"{stack}norm.{kind}"
            if name in tensors:
                taken.add(name)
                found_layers[f"{part}.norm.{kind}"] = (name, tensors[name])
    others = {name: tensor for name, tensor in tensors.items() if name not in taken}
    width = tensors[f"{parts['encoder']}layers.0.self_attn.in_proj_weight"].shape[-1]
    inner = found_layers["encoder.layers.0.feed_forward.inner.weight"][1].shape[0]
    return NnTensorsFound(found_layers, others, depths, width, inner, path)


def _ours(part: str, rest: str, tensor: Tensor, name: str, path: Path) -> list[tuple[str, Tensor]]:
    """Name a tensor of a layer as the bundle does: three for a projection of three."""
    module, _, kind = rest.rpartition(".")
    block, _, projection = module.partition(".")
    ours = _BLOCKS.get(block)
    if block in ("self_attn", "multihead_attn"):
        if rest in (f"{block}.in_proj_weight", f"{block}.in_proj_bias"):
            own = rest.rpartition("_")[2]
            if tensor.shape[0] % _INPUT_SIDES == 0:
                sides = zip(("query", "key", "value"), tensor.chunk(_INPUT_SIDES), strict=True)
                return [(f"{ours}.{side}.{own}", one) for side, one in sides]
        elif projection == "out_proj" and (part == "decoder" or block == "self_attn"):
            return [(f"{ours}.output.{kind}", tensor)]
    elif ours is not None and not projection:
        return [(f"{ours}.{kind}", tensor)]
    elif match := re.fullmatch(r"norm([123])", module):
        number = int(match[1]) - 1
        if number < len(_NORMS[part]):
            return [(f"{_NORMS[part][number]}.{kind}", tensor)]
    raise BundleError(
        f"Every tensor of a layer must be one of nn.Transformer{part.capitalize()}Layer, but "
        f"{name} is not ({path}). Models with layers of another kind cannot be converted."
    )


def _load(path: Path) -> Any:
    # torch.save writes a zip archive, and long ago wrote pickles, which begin with this byte.
    with path.open("rb") as stream:
        is_pickle = stream.read(1) == b"\x80"
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        holds_objects = is_pickle or zipfile.is_zipfile(path)
    except (RuntimeError, EOFError, ValueError, LookupError, AttributeError, TypeError):
        holds_objects = False
    what = "is damaged, or no checkpoint of PyTorch. Copy it again."
    if holds_objects:
        what = (
            "holds objects, and reading those can run hidden code. Save the numbers alone: "
            "torch.save(model.state_dict(), 'checkpoint.pt')."
        )
    raise BundleError(f"A checkpoint must hold tensors only, but {path} {what}")


def _state_of(loaded: Any, path: Path) -> dict[str, Tensor]:
    """Find the state of the model, which may lie next to those of an optimizer and a schedule."""
    inner = loaded.values() if isinstance(loaded, Mapping) else ()
    for one in (loaded, *inner):
        if isinstance(one, Mapping) and any("self_attn.in_proj_weight" in str(key) for key in one):
            return {str(key): value for key, value in one.items() if isinstance(value, Tensor)}
    raise BundleError(
        "The checkpoint must hold the state of a model with an nn.Transformer, whose layers have "
        f"self_attn.in_proj_weight, but does not ({path}). Save it with "
        "torch.save(model.state_dict(), 'checkpoint.pt')."
    )


def _of_side(names: list[str], side: str) -> list[str]:
    """Choose the tensors of one side by their names: all if none says its side."""
    if len(names) < len(_SIDE):
        return names
    other = "target" if side == "source" else "source"
    own = [one for one in names if _SIDE[side].search(one) and not _SIDE[other].search(one)]
    return own or names
