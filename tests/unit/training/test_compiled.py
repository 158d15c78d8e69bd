"""Compiled passes give the gradients of plain ones, and are compiled once for all lengths."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from small_model import make_batch, make_model
from small_runs import make_recipe, write_text
from torch import Tensor

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.errors import ConfigurationError
from pellucid.model import Transformer
from pellucid.training.fast.compiled import require_compiler
from pellucid.training.loop import train
from pellucid.training.update.batch_parts import BatchPart
from pellucid.training.update.passes import Passes


def gradients(passes: Passes, model: Transformer, step: int, batch: Batch) -> list[Tensor]:
    passes.refresh_weights()
    loss = passes.sum_gradients(step, [BatchPart(0, 1.0, batch)])
    found = [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
    return [loss.detach(), *found]


def test_gradients_are_those_of_plain_passes_and_all_lengths_share_what_was_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    num_graphs = 0

    def count(graph: Any, inputs: Any) -> Callable[..., Any]:
        nonlocal num_graphs
        num_graphs += 1
        return graph.forward  # type: ignore[no-any-return]

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=count))
    kinds = ("dropout", "attention_dropout", "feed_forward_dropout", "token_dropout")
    rates = dict.fromkeys(kinds, 0.3)
    plain, compiled = (
        TrainingConfig(**rates, dropout_warmup_steps=7, compile=is_compiled)
        for is_compiled in (False, True)
    )
    first, second = make_model(), make_model()
    expected, found = Passes(first, plain, "float32"), Passes(second, compiled, "float32")
    for step, sizes in enumerate(((7, 5, 11), (3, 13, 2), (17, 4, 6), (2, 19, 23)), start=1):
        batch = make_batch(*sizes)
        pairs = zip(
            gradients(expected, first, step, batch),
            gradients(found, second, step, batch),
            strict=True,
        )
        assert all(torch.allclose(one, other, atol=1e-6) for one, other in pairs)
        assert num_graphs == 2  # the encoder's and the decoder's


def test_a_machine_that_cannot_compile_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Callable[..., Any]:
        raise RuntimeError("No working C++ compiler found.\nSet TORCH_LOGS for more.")

    monkeypatch.setattr(torch, "compile", refuse)
    write_text(tmp_path)
    recipe = make_recipe(training={"compile": True})
    said = r"\(training.compile = true\): No working C\+\+ compiler found\. Install a C"
    with pytest.raises(ConfigurationError, match=said):
        train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_a_machine_that_can_compile_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_it, given = torch.compile, []

    def note(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        compiled = compile_it(function)

        def call(x: Tensor) -> Tensor:
            given.append((function(x), compiled(x)))
            return given[-1][1]

        return call

    monkeypatch.setattr(torch, "compile", note)
    # Each kind of vector would cost a compilation more, and so would the headers.
    monkeypatch.setattr("torch._inductor.cpu_vec_isa.valid_vec_isa_list", list, raising=False)
    monkeypatch.setattr("torch._inductor.config.cpp_cache_precompile_headers", False, raising=False)
    require_compiler(torch.device("cpu"))
    ((plain, compiled),) = given
    assert torch.allclose(plain, compiled)
