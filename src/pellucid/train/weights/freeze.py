"""Frozen weights, which training does not change."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from pellucid.errors import ConfigurationError, suggestion


def freeze(model: nn.Module, beginnings: Sequence[str]) -> None:
    """Freeze the weights whose names begin with one of ``beginnings``.

    Raises:
        ConfigurationError: no name begins so, or nothing would be left to train.
    """
    named = dict(model.named_parameters())
    for beginning in beginnings:
        chosen = [name for name in named if f"{name}.".startswith(f"{beginning}.")]
        if not chosen:
            parts = {".".join(name.split(".")[:n]) for name in named for n in (1, 2, 3)}
            raise ConfigurationError(
                f"training.freeze must name parts of the model, but {beginning!r} does not exist. "
                + suggestion(beginning, sorted(parts))
            )
        for name in chosen:
            named[name].requires_grad_(False)
    if not any(parameter.requires_grad for parameter in named.values()):
        raise ConfigurationError(
            f"training.freeze must leave something to train, but {', '.join(beginnings)} is the "
            "whole model."
        )
