"""Weights so large that results overflow: every command says so, and blames nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from pellucid.bundle import load_bundle, save_bundle
from pellucid.decode.constraints.request import Constraints
from pellucid.decode.hypothesis import OVERFLOW
from pellucid.decode.native import NativePath
from pellucid.decode.steppers import ModelStepper
from pellucid.errors import InputError
from pellucid.inside.align.attention_links import align_pairs
from pellucid.inside.align.link_views import all_views
from pellucid.translate.translator import load

LINES = ["The pizza came out .", "The oven"]


@pytest.fixture(scope="module")
def huge(bundle_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of `bundle_folder` with weights near the largest numbers."""
    bundle = load_bundle(bundle_folder)
    weights = {
        name: torch.where(tensor > 0, 1e30, -1e30) if tensor.dim() == 2 else tensor
        for name, tensor in bundle.model.state_dict().items()
    }
    folder = tmp_path_factory.mktemp("huge") / "model"
    save_bundle(
        folder,
        config=bundle.config,
        weights=weights,
        tokenizer=bundle.tokenizer,
        recipe_toml="",
        provenance={},
    )
    return folder


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beam": 3},
        {"beam": 3, "n_best": 3, "alternatives": True},
        {"beam": 4, "n_best": 2, "diverse_groups": 2},
        {"sample": True, "top_p": 0.9},
        {"sample": True, "top_k": 2, "n_best": 3},
        {"repetition_penalty": 1.5},
        {"strict": True},
        {"precision": "bfloat16"},
    ],
)
def test_translate_with_huge_weights_blames_the_weights(
    huge: Path, options: dict[str, Any]
) -> None:
    for found in load(huge).translate([*LINES, ""], **options)[:2]:
        assert (found.hypotheses, found.error) == ((), OVERFLOW)


def test_translate_with_huge_weights_and_a_phrase_blames_the_weights(huge: Path) -> None:
    constraints = Constraints(required=("pizza",))
    (found,) = load(huge).translate(LINES[:1], constraints=constraints, beam=3)
    assert found.error == OVERFLOW


def test_stream_with_huge_weights_raises_the_same(huge: Path) -> None:
    with pytest.raises(InputError, match="logits must be finite"):
        list(load(huge).stream(LINES[0]))


def test_ensemble_with_huge_weights_of_one_member_says_so(huge: Path, bundle_folder: Path) -> None:
    (found,) = load(bundle_folder, ensemble=[huge]).translate(LINES[:1])
    assert found.error == OVERFLOW


def test_score_with_huge_weights_gives_no_number(huge: Path) -> None:
    for scored in load(huge).score(LINES, ["La pizza", "four"]):
        assert (scored.error, scored.token_log_probabilities) == (OVERFLOW, ())


def test_look_and_align_with_huge_weights_say_so(huge: Path) -> None:
    translator = load(huge)
    with pytest.raises(InputError, match="logits must be finite"):
        translator.look(LINES[0])
    bundle = translator.bundle
    views = all_views(bundle.config.model)
    for pair in align_pairs(bundle.model, bundle.tokenizer, LINES, ["La pizza", "four"], views):
        assert pair.error == OVERFLOW
        assert not any(pair.links)


def test_only_the_lines_that_overflow_fail(
    bundle_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = load(bundle_folder)
    oven = translator.tokenizer.encode_source("oven")[0]
    plain = ModelStepper.encode

    def encode(self: ModelStepper, sources: Sequence[Sequence[int]]) -> Any:
        memory = plain(self, sources)
        memory.memory_BSD[[oven in source for source in sources]] = torch.inf
        return memory

    monkeypatch.setattr(NativePath, "find_obstacle", lambda *_: "this test breaks PyTorch's search")
    expected = translator.translate(["The pizza", "of the pizza"], beam=2)
    monkeypatch.setattr(ModelStepper, "encode", encode)
    found = translator.translate(["The pizza", "The oven", "of the pizza"], beam=2)
    assert [one.error for one in found] == [None, OVERFLOW, None]
    assert [found[0].text, found[2].text] == [one.text for one in expected]


def test_translate_command_with_huge_weights_has_a_line_each_and_exit_code_3(
    huge: Path, run_here: Callable[..., Any]
) -> None:
    done = run_here("translate", str(huge), "--json", stdin="\n".join(LINES) + "\n")
    assert done.returncode == 3
    assert [json.loads(line)["error"] for line in done.stdout.splitlines()] == [OVERFLOW] * 2
    assert "constraints" not in done.stderr


def test_unmet_constraints_are_still_named(bundle_folder: Path) -> None:
    translator = load(bundle_folder)
    words = tuple(translator.tokenizer.vocabulary("target"))[4:]
    constraints = Constraints(forbidden=words)
    (found,) = translator.translate(LINES[:1], constraints=constraints, min_length=5)
    assert found.error is not None
    assert "meets the constraints" in found.error
