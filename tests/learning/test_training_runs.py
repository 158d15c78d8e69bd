"""A training run as a whole: its folder, its limits, and resuming after a stop."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from forked import Forked
from small_runs import make_recipe, model_bytes, read_metrics, write_text

import pellucid
from pellucid.bundle import load_bundle, read_json_object
from pellucid.config import DecodingConfig, TrainingConfig, to_toml
from pellucid.errors import ConfigurationError, DataError
from pellucid.inside.align.attention_links import align_pairs
from pellucid.inside.align.link_views import View
from pellucid.model import Transformer
from pellucid.text.reading.sentence_pairs import SentencePair
from pellucid.training import loop
from pellucid.training.learner import Learner
from pellucid.training.loop import train
from pellucid.training.run import validator
from pellucid.training.run.checkpoint import TrainingState
from pellucid.training.start.filling import FilledRecipe
from pellucid.training.validation import Validation
from pellucid.translate.translator import Translator

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.mark.report
def test_run_folder_holds_what_the_format_says(tmp_path: Path) -> None:
    write_text(tmp_path)
    summary = train(make_recipe(), tmp_path / "run", recipe_folder=tmp_path, progress=False)
    run = tmp_path / "run"
    assert summary.bundle == run / "bundle"
    assert summary.steps == 23
    names = {"recipe.toml", "chosen.json", "plan.json", "data", "checkpoints"}
    names |= {"bundle", "untrained", "finished"}
    names |= {"log.txt", "metrics.jsonl", "samples.jsonl", "report.html", "report.png"}
    assert {path.name for path in run.iterdir()} == names
    plan = json.loads((run / "plan.json").read_text())
    assert {"device": plan["device"], "max_tokens_per_batch": plan["max_tokens_per_batch"]} == {
        "device": "cpu",
        "max_tokens_per_batch": 400,
    }
    assert plan["kernels"] in (run / "log.txt").read_text().replace("\n" + 11 * " ", " ")
    steps = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert steps == ["step-00000020", "step-00000023"]
    records = read_metrics(run)
    assert {record["kind"] for record in records} == {"train", "validation"}
    for record in records:
        expected = {
            "train": {"step", "epoch", "seconds", "target_tokens", "loss", "learning_rate"}
            | {"gradient_norm"},
            "validation": {"step", "seconds", "loss", "bleu", "chrf"},
        }[record["kind"]]
        assert set(record) == expected | {"kind"}
    assert [record["step"] for record in records if record["kind"] == "validation"] == [10, 20, 23]
    losses = [record["loss"] for record in records if record["kind"] == "train"]
    assert losses[-1] < losses[0]
    manifest = load_bundle(run / "bundle").manifest
    assert manifest["data"]["pairs"] == 400
    assert (run / "bundle" / "recipe.toml").read_text() == (run / "recipe.toml").read_text()


def test_run_keeps_the_models_that_a_history_asks_for(tmp_path: Path) -> None:
    write_text(tmp_path)
    for name, steps in (("whole", 23), ("parts", 9), ("parts", 23)):
        recipe = make_recipe(training={"keep_every": 7, "max_steps": steps})
        train(recipe, tmp_path / name, recipe_folder=tmp_path, progress=False)
    kept = {name: sorted((tmp_path / name / "history").iterdir()) for name in ("whole", "parts")}
    assert [path.name for path in kept["whole"]] == [f"step-{step:08d}" for step in (7, 14, 21)]
    assert [load_bundle(path).model_hash for path in kept["whole"]] == [
        load_bundle(path).model_hash for path in kept["parts"]
    ]


EVERYTHING_ON = {
    "attention_dropout": 0.1,
    "feed_forward_dropout": 0.1,
    "token_dropout": 0.1,
    "accumulate": 2,
    "max_gradient_norm": 1.0,
    "optimizer": "muon",
    "averaging": "running",
    "schedule": "constant",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("stops", "settings"),
    [
        # Before the first validation, with it, and in the middle of the second epoch.
        ((3, 10, 17), {}),
        ((13,), EVERYTHING_ON),
        ((13,), EVERYTHING_ON | {"processes": 2}),
        ((13,), {"averaging": "best"}),
        ((13,), {"guided_head": "decoder.0.cross.1"}),
    ],
)
@pytest.mark.usefixtures("forked_children")
def test_resumed_training_ends_with_the_same_bytes(
    stops: tuple[int, ...], settings: dict[str, Any], tmp_path: Path
) -> None:
    write_text(tmp_path)
    data = {"train_alignments": "train.align"} if "guided_head" in settings else {}
    recipe = make_recipe(data=data, training=settings)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(recipe, whole, recipe_folder=tmp_path, progress=False)
    for stop_at in stops:
        # A run validates when it stops, which changes averages of validated weights.
        part = make_recipe(data=data, training={**settings, "max_steps": stop_at})
        train(part, parts, recipe_folder=tmp_path, progress=False)
    train(recipe, parts, recipe_folder=tmp_path, progress=False)
    last = Path("checkpoints") / "step-00000023"
    names = ["model.safetensors", "optimizer.safetensors"]
    names += [] if "best" in settings.values() else ["averaging.safetensors"]
    for name in names:
        assert (whole / last / name).read_bytes() == (parts / last / name).read_bytes(), name
    figures = [
        [
            {key: value for key, value in record.items() if key != "seconds"}
            for record in read_metrics(run)
            if record["kind"] == "train"
        ]
        for run in (whole, parts)
    ]
    assert [record["step"] for record in figures[0]] == [5, 10, 15, 20]
    assert figures[0] == figures[1]


COURSE = {
    "warmup_steps": 2,
    "validate_every": 4,
    "dropout_warmup_steps": 3,
    "averaging_decay": 0.5,
}


def _train_in_time(run: Path, minutes: float = 60.0, max_steps: int = 23) -> str:
    """Train with a time limit whose warm-up and so on were chosen; return the log."""
    settings = {"averaging": "running", "dropout_warmup_steps": 9, "max_minutes": minutes}
    recipe = make_recipe(training={**settings, "max_steps": max_steps})
    filled = FilledRecipe({}, [], {f"training.{name}": 1 for name in COURSE})
    train(recipe, run, recipe_folder=run.parent, progress=False, filled=filled)
    return (run / "log.txt").read_text()


def test_course_planned_again_is_kept_when_resumed_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    plans: list[int] = []

    def plan(training: TrainingConfig, *, now: TrainingState, **_: Any) -> Any:
        plans.append(now.step)
        return dict(COURSE), "Planned again."

    monkeypatch.setattr(loop, "plan_course", plan)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert "Planned again." in _train_in_time(whole)
    assert plans == [10]
    steps = [record["step"] for record in read_metrics(whole) if record["kind"] == "validation"]
    assert steps == [12, 16, 20, 23]
    _train_in_time(parts, max_steps=12)
    log = _train_in_time(parts, minutes=30.0)
    assert plans == [10, 10]
    assert "stays as it was planned" in log
    state = read_json_object(parts / "checkpoints" / "step-00000023" / "state.json")
    assert state["course"] == COURSE
    last = Path("checkpoints") / "step-00000023"
    for name in ("model", "optimizer", "averaging"):
        file = last / f"{name}.safetensors"
        assert (whole / file).read_bytes() == (parts / file).read_bytes(), name


def test_course_that_no_checkpoint_holds_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    monkeypatch.setattr(loop, "plan_course", lambda *_, **__: (dict(COURSE), "Planned again."))
    monkeypatch.setattr(loop.Trainer, "_save", lambda _: False)
    assert "Planned again." not in _train_in_time(tmp_path / "run", max_steps=13)


def test_many_pairs_left_out_are_warned_of_with_reasons_and_remedies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_text(tmp_path)
    for side in ("en", "fr"):
        with (tmp_path / f"train.{side}").open("a") as stream:
            stream.write("the dog " * 300 + "\n")
    recipe = make_recipe(training={"max_steps": 1})
    train(recipe, tmp_path / "few", recipe_folder=tmp_path, progress=False)
    assert "WARNING" not in capsys.readouterr().err
    with (tmp_path / "train.en").open("a") as stream:
        stream.write("\n" * 7 + "the dog " * 15 + "\n" + ("the dog " * 300 + "\n") * 20)
    with (tmp_path / "train.fr").open("a") as stream:
        stream.write("le chien\n" * 28)
    train(recipe, tmp_path / "many", recipe_folder=tmp_path, progress=False)
    assert (
        "WARNING: 6.76 % of the training pairs are left out: 21 source too long; 7 empty source; 1 "
        "length ratio. Remove empty lines, or add what is missing. Split long lines into "
        "sentences, or raise data.max_pair_length. See with pellucid check whether sides of "
        "very different lengths belong together, or raise data.max_source_target_ratio."
    ) in (tmp_path / "many" / "log.txt").read_text()


def score_by_step(monkeypatch: pytest.MonkeyPatch, bleus: dict[int, float]) -> list[DecodingConfig]:
    """Set the BLEU of each validation by its step; hands back the searches asked for."""
    searches: list[DecodingConfig] = []
    steps: list[int] = []
    judged = Learner.judged_model

    def watched(self: Learner) -> Transformer:
        steps.append(self.state.step)
        return judged(self)

    def scored(translator: Translator, pairs: Sequence[SentencePair]) -> Validation:
        searches.append(translator.decoding)
        return Validation(1.0, bleus[steps[-1]], 50.0, tuple(pair.target for pair in pairs))

    monkeypatch.setattr(Learner, "judged_model", watched)
    monkeypatch.setattr(validator, "validate_model", scored)
    return searches


@pytest.mark.parametrize("stop_at", [0, 6])
def test_patience_ends_a_run_and_more_of_it_goes_on(
    stop_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    bleus = {2: 10.0, 4: 12.0, 6: 11.0, 8: 12.0, 10: 9.0, 12: 8.0}
    score_by_step(monkeypatch, bleus)
    run = tmp_path / "run"
    settings = {"validate_every": 2, "patience": 2, "max_steps": 100}
    if stop_at:
        first = make_recipe(training=settings | {"max_steps": stop_at})
        train(first, run, recipe_folder=tmp_path, progress=False)
    summary = train(make_recipe(training=settings), run, recipe_folder=tmp_path, progress=False)
    assert (summary.steps, summary.best_step, summary.best_bleu) == (8, 4, 12.0)
    longer = make_recipe(training=settings | {"patience": 4})
    summary = train(longer, run, recipe_folder=tmp_path, progress=False)
    assert (summary.steps, summary.best_step) == (12, 4)
    assert load_bundle(run / "bundle").manifest["metrics"]["best_step"] == 4


def test_validation_is_greedy_whatever_the_model_is_to_search_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    searches = score_by_step(monkeypatch, {3: 10.0})
    recipe = make_recipe(
        training={"max_steps": 3}, decoding={"beam": 7, "alpha": 1.3, "no_repeat_ngram": 2}
    )
    train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert searches == [DecodingConfig()]
    assert DecodingConfig().beam == 1
    assert load_bundle(tmp_path / "run" / "bundle").config.decoding.beam == 7


def test_a_guided_head_learns_the_links_in_its_convention(tmp_path: Path) -> None:
    write_text(tmp_path)
    shares = {}
    for convention in ("predicts", "reads"):
        recipe = make_recipe(
            data={"train_alignments": "train.align"},
            training={
                "guided_head": "decoder.0.cross.1",
                "guided_weight": 3.0,
                "guided_convention": convention,
                "learning_rate": 0.015,
                "dropout": 0.0,
                "max_steps": 80,
                "validate_every": 80,
            },
        )
        run = tmp_path / convention
        train(recipe, run, recipe_folder=tmp_path, progress=False)
        bundle = load_bundle(run / "bundle")
        lines = [
            (tmp_path / f"validation.{side}").read_text().splitlines() for side in ("en", "fr")
        ]
        views = [View(0, "head", head, convention) for head in (0, 1)]  # type: ignore[arg-type]
        aligned = align_pairs(bundle.model, bundle.tokenizer, *lines, views, rule="best")
        found = [[0, 0], [0, 0]]
        for pair in aligned:
            for head, links in enumerate(pair.links):
                found[head][0] += sum(i == j for i, j in links)
                found[head][1] += len(links)
        shares[convention] = [right / count for right, count in found]
    for unguided, guided in shares.values():
        assert guided > 0.6
        assert guided > unguided + 0.1


def test_two_seeds_differ_and_one_seed_repeats(tmp_path: Path) -> None:
    write_text(tmp_path)
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        recipe = make_recipe(training={"seed": seed, "max_steps": 3})
        train(recipe, tmp_path / name, recipe_folder=tmp_path, progress=False)
    first, again, other = (
        model_bytes(tmp_path / name / "bundle") for name in ("first", "again", "other")
    )
    assert first == again
    assert first != other


def test_damaged_newest_checkpoint_is_skipped_and_said(
    finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished_run
    expected = model_bytes(run / "checkpoints" / "step-00000023")
    weights = run / "checkpoints" / "step-00000023" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    train(make_recipe(), run, recipe_folder=tmp_path, progress=False)
    said = capsys.readouterr().err
    assert "Skipped a damaged checkpoint" in said
    assert "Continuing after step 20" in said
    assert model_bytes(run / "checkpoints" / "step-00000023") == expected


def test_run_folder_of_another_recipe_is_refused_naming_the_key(
    finished_run: Path, tmp_path: Path
) -> None:
    before, other = model_bytes(finished_run / "bundle"), make_recipe(training={"dropout": 0.3})
    with pytest.raises(ConfigurationError, match=r"training\.dropout differs"):
        train(other, finished_run, recipe_folder=tmp_path, progress=False)
    assert model_bytes(finished_run / "bundle") == before


def test_run_folder_that_holds_something_else_is_refused_and_kept(tmp_path: Path) -> None:
    write_text(tmp_path)
    run = tmp_path / "run"
    run.mkdir()
    (run / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigurationError, match="holds something else"):
        train(make_recipe(), run, recipe_folder=tmp_path, progress=False)
    assert [path.name for path in run.iterdir()] == ["thesis.txt"]


def test_files_of_different_length_leave_no_run_folder(tmp_path: Path) -> None:
    write_text(tmp_path)
    with (tmp_path / "train.fr").open("a") as stream:
        stream.write("une ligne de trop\n")
    with pytest.raises(DataError, match=r"400.*401|401.*400"):
        train(make_recipe(), tmp_path / "runs" / "a", recipe_folder=tmp_path, progress=False)
    assert not (tmp_path / "runs").exists()


def test_dropped_pairs_are_counted_by_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_text(tmp_path)
    with (tmp_path / "train.en").open("a") as stream:
        stream.write("\nthe dog\n" + "the dog " * 300 + "\n")
    with (tmp_path / "train.fr").open("a") as stream:
        stream.write("le chien\n\nle chien\n")
    recipe = make_recipe(training={"max_steps": 1})
    train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    said = capsys.readouterr().err
    for part in (
        "400 of 403 pairs",
        "1 empty source",
        "1 empty target",
        "1 source too long",
    ):
        assert part in said


def test_separate_vocabularies_train_and_translate(tmp_path: Path) -> None:
    write_text(tmp_path)
    recipe = make_recipe(
        tokenizer={"kind": "words", "sharing": "separate"},
        model={"tied_embeddings": "decoder", "positions": "learned", "norm": "pre"},
        training={"max_steps": 2},
    )
    summary = train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    names = {path.name for path in summary.bundle.iterdir()}
    assert {"source.txt", "target.txt"} <= names
    translations = pellucid.load(tmp_path / "run").translate(["the dog", ""])
    assert [translation.error for translation in translations] == [None, None]
    assert translations[1].text == ""


@pytest.mark.sample(number=signal.SIGTERM)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_while_training_saves_and_the_same_command_goes_on(
    number: signal.Signals, code: int, tmp_path: Path, start: Start, run_forked: Run
) -> None:
    write_text(tmp_path)
    endless = {"max_steps": 100_000, "validate_every": 100_000, "max_minutes": 3.0}
    (tmp_path / "recipe.toml").write_text(to_toml(make_recipe(training=endless)))
    words = ["train", str(tmp_path / "recipe.toml"), "-o", str(tmp_path / "run")]
    command = [sys.executable, "-m", "pellucid", *words]
    process = start(command, kind=Forked, stderr=subprocess.PIPE)
    assert process.stderr is not None
    while b"step" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == code, said
    assert "Stopped after step" in said
    (checkpoint,) = (tmp_path / "run" / "checkpoints").iterdir()
    step = int(checkpoint.name.removeprefix("step-"))
    done = run_forked(*words, "--set", f"training.max_steps={step + 1}")
    assert done.returncode == 0, done.stderr
    assert f"Continuing after step {step}" in done.stderr
    assert (tmp_path / "run" / "bundle" / "manifest.json").is_file()


def test_time_limit_ends_training_with_a_bundle(tmp_path: Path) -> None:
    write_text(tmp_path)
    recipe = make_recipe(training={"max_minutes": 1e-4, "max_steps": 10_000})
    started = time.monotonic()
    summary = train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert summary.steps < 10_000
    assert summary.seconds <= time.monotonic() - started
    assert load_bundle(summary.bundle).config.model.d_model == 16


@pytest.mark.parametrize("damage", ["gone", "cut"])
@pytest.mark.parametrize("more_steps", [0, 7])
def test_best_model_that_is_gone_is_said_and_chosen_anew(
    finished_run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    damage: str,
    more_steps: int,
) -> None:
    run = finished_run
    if damage == "gone":
        shutil.rmtree(run / "bundle")
    else:
        weights = run / "bundle" / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
    recipe = make_recipe(training={"max_steps": 23 + more_steps})
    summary = train(recipe, run, recipe_folder=tmp_path, progress=False)
    assert "cannot be read, so the best from here on takes its place" in capsys.readouterr().err
    assert load_bundle(summary.bundle).manifest["training"]["step"] == summary.best_step
    assert summary.best_step >= 23


def test_other_text_is_refused_also_if_its_tokens_were_deleted(
    finished_run: Path, tmp_path: Path
) -> None:
    run, longer = finished_run, make_recipe(training={"max_steps": 27})
    shutil.rmtree(run / "data")
    texts = {path: path.read_bytes() for path in tmp_path.glob("train.*")}
    for path, text in texts.items():
        path.write_bytes(b"".join(reversed(text.splitlines(keepends=True))))
    with pytest.raises(ConfigurationError, match="fingerprint is not that in"):
        train(longer, run, recipe_folder=tmp_path, progress=False)
    shutil.rmtree(run / "data")
    for path, text in texts.items():
        path.write_bytes(text)
    assert train(longer, run, recipe_folder=tmp_path, progress=False).steps == 27


def test_validation_text_whose_targets_are_all_empty_is_refused(tmp_path: Path) -> None:
    write_text(tmp_path)
    (tmp_path / "validation.fr").write_text("\n" * 30)
    with pytest.raises(DataError, match="must hold at least one pair, but holds none"):
        train(make_recipe(), tmp_path / "run", recipe_folder=tmp_path, progress=False)


def test_variant_is_trained_by_pytorch_resumed_and_translated(tmp_path: Path) -> None:
    write_text(tmp_path)
    model = {"positions": "relative", "norm_kind": "rms", "gated_feed_forward": True}
    model |= {"num_key_value_heads": 1, "activation": "swish", "max_relative_distance": 3}
    settings = {"optimizer": "muon", "validate_every": 11}
    for max_steps in (11, 23):
        recipe = make_recipe(model=model, training={**settings, "max_steps": max_steps})
        run = tmp_path / "run"
        summary = train(recipe, run, recipe_folder=tmp_path, progress=False)
    losses = [one["loss"] for one in read_metrics(run) if one["kind"] == "train"]
    assert losses[-1] < losses[0]
    kernels = json.loads((run / "plan.json").read_text())["kernels"]
    assert "not own: model.norm_kind is rms" in kernels
    translator = pellucid.load(summary.bundle)
    trace = translator.look("the dog sees a cat", everything=True)
    assert trace.problems == ()
    assert translator.bundle.config.model.positions == "relative"
