"""Recurrent models train, resume, and go through every command."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import make_recipe, write_text

import pellucid
from pellucid.config import Recipe, to_toml, validate
from pellucid.corpora import make_split
from pellucid.errors import ConfigurationError
from pellucid.inside import load_trace
from pellucid.training.loop import train

Run = Callable[..., subprocess.CompletedProcess[str]]

SETTINGS: dict[str, Any] = {
    "max_tokens_per_batch": 500,
    "learning_rate": 0.01,
    "warmup_steps": 20,
    "schedule": "linear",
    "dropout": 0.0,
    "label_smoothing": 0.0,
    "processes": 1,
}


def recurrent_recipe(form: str = "additive", **changes: dict[str, Any]) -> Recipe:
    values = make_recipe().model_dump()
    values["model"] = {"architecture": "recurrent", "recurrent_attention": form, "d_model": 16}
    for section, entries in changes.items():
        values[section] = values.get(section, {}) | entries
    return validate(Recipe, json.loads(json.dumps(values)), "test")


@pytest.mark.sample(form="additive")
@pytest.mark.parametrize("form", ["additive", "dot"])
def test_model_with_attention_learns_to_copy_unseen_sequences(form: str, tmp_path: Path) -> None:
    numbers = random.Random(7)
    lines = sorted(
        {" ".join(numbers.choices("abcdefgh", k=numbers.randint(2, 6))) for _ in range(2000)}
    )
    numbers.shuffle(lines)
    for name, part in (("test", lines[:100]), ("validation", lines[100:120])):
        (tmp_path / f"{name}.tsv").write_text("".join(f"{line}\t{line}\n" for line in part))
    (tmp_path / "train.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines[120:]))
    values = {
        "data": {"train": "train.tsv", "validation": "validation.tsv"},
        "tokenizer": {"kind": "words"},
        "model": {"architecture": "recurrent", "recurrent_attention": form, "d_model": 48},
        "training": SETTINGS | {"max_steps": 250, "validate_every": 250},
    }
    recipe = validate(Recipe, values, "test")
    summary = train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    found = pellucid.load(summary.bundle).translate(lines[:100])
    num_right = sum(one.text == line for one, line in zip(found, lines[:100], strict=True))
    assert num_right >= 95


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("form", "settings"),
    [
        ("additive", {"token_dropout": 0.1, "averaging": "running", "max_gradient_norm": 1.0}),
        ("none", {"r_drop": 1.0}),
        ("dot", {"guided_head": "decoder.0.cross.0"}),
        ("additive", {"processes": 2}),
    ],
    ids=str,
)
@pytest.mark.usefixtures("forked_children")
def test_resumed_training_ends_with_the_same_bytes(
    form: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    write_text(tmp_path)
    data = {"train_alignments": "train.align"} if "guided_head" in settings else {}
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    recipe = recurrent_recipe(form, training=settings, data=data)
    train(recipe, whole, recipe_folder=tmp_path, progress=False)
    part = recurrent_recipe(form, training={**settings, "max_steps": 13}, data=data)
    train(part, parts, recipe_folder=tmp_path, progress=False)
    train(recipe, parts, recipe_folder=tmp_path, progress=False)
    last = Path("checkpoints") / "step-00000023"
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (whole / last / name).read_bytes() == (parts / last / name).read_bytes(), name
    bundle = pellucid.load(whole)
    assert bundle.model.config == recipe.model.model_copy(
        update={
            "source_vocabulary_size": bundle.tokenizer.source_vocabulary_size,
            "target_vocabulary_size": bundle.tokenizer.target_vocabulary_size,
        }
    )


@pytest.mark.parametrize(
    ("training", "said"),
    [
        (
            {"kernels": "own"},
            "training.kernels must be 'auto' or 'pytorch' for a recurrent model",
        ),
        ({"precision": "bfloat16"}, "training.precision must be 'auto' or 'float32'"),
        ({"compile": True}, "training.compile must be left out: a GPU repeats its updates"),
        ({"attention_dropout": 0.1}, "training.attention_dropout must be 0.0"),
        ({"feed_forward_dropout": 0.1}, "training.feed_forward_dropout must be 0.0"),
    ],
    ids=str,
)
def test_training_that_a_recurrent_model_lacks_is_refused(
    training: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        recurrent_recipe(training=training)
    assert said in str(error.value)


@pytest.mark.parametrize(("form", "said"), [("none", "no attention to guide"), ("dot", "0 to 0")])
def test_guided_head_that_does_not_exist_is_refused(form: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        recurrent_recipe(
            form,
            training={"guided_head": "decoder.1.cross.0"},
            data={"train_alignments": "train.align"},
        )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of the models ``additive`` and ``none`` on the text of `small_runs`."""
    folder = tmp_path_factory.mktemp("recurrent")
    write_text(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pellucid.training.report.report_page.write_report", lambda run: None)
        for form in ("additive", "none"):
            recipe = recurrent_recipe(
                form,
                tokenizer={"kind": "words", "vocabulary_size": 350},
                training=SETTINGS | {"max_steps": 60, "validate_every": 60},
            )
            train(recipe, folder / form, recipe_folder=folder, progress=False)
    return folder


@pytest.fixture
def pellucid_in(runs: Path, run_here: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(runs)
    return run_here


LINE = "small dog sees man"


@pytest.mark.sample(3)
@pytest.mark.parametrize("form", ["additive", "none"])
@pytest.mark.parametrize(
    "options",
    [
        ["--beam", "3", "--n-best", "2"],
        ["--sample", "--set", "decoding.seed=7"],
        ["--json", "--set", "decoding.no_repeat_ngram=2"],
        ["--set", "decoding.strict=true"],
    ],
    ids=" ".join,
)
def test_translate_answers_every_line(form: str, options: list[str], pellucid_in: Run) -> None:
    done = pellucid_in("translate", form, *options, stdin=f"{LINE}\n\nbig cat runs\n")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 3


@pytest.mark.parametrize("form", ["additive", "none"])
def test_score_evaluate_and_inspect_take_a_recurrent_model(form: str, pellucid_in: Run) -> None:
    texts = ("--source", "validation.en")
    scored = pellucid_in("score", form, *texts, "--target", "validation.fr")
    assert (scored.returncode, len(scored.stdout.splitlines())) == (0, 30)
    evaluated = pellucid_in("evaluate", form, *texts, "--reference", "validation.fr", "--json")
    assert evaluated.returncode == 0
    assert json.loads(evaluated.stdout)["bleu"]["score"] >= 0
    inspected = json.loads(pellucid_in("inspect", form, "--json").stdout)
    assert inspected["config"]["model"]["recurrent_attention"] == form
    assert "num_heads" not in inspected["config"]["model"]
    drawn = pellucid_in("inspect", form, "--draw", "whole", "-o", "whole.svg", "--overwrite")
    assert drawn.returncode == 0
    assert Path("whole.svg").read_text().startswith("<svg")


def test_look_shows_the_attention_and_follows_a_unit(pellucid_in: Run) -> None:
    whole = pellucid_in("look", "additive", LINE, "--translation", "petit chien voit homme")
    assert whole.returncode == 0, whole.stderr
    assert "Weights, decoder layer 0, cross-attention, head 0" in whole.stdout
    assert "attention of a recurrent decoder" in whole.stdout
    row = pellucid_in("look", "additive", LINE, "--row", "1", "--show", "verify")
    assert row.returncode == 0, row.stderr
    for said in ("The reset gate of decoder.0", "vᵀ tanh(q + k)", "(1 - z) ⊙ n + z ⊙ h"):
        assert said in row.stdout
    difference = row.stdout.rsplit("difference ", 1)[1].strip().rstrip(".")
    assert float(difference) < 1e-6
    encoder = pellucid_in("look", "additive", LINE, "--row", "0", "--head", "encoder")
    assert "right to left" in encoder.stdout, encoder.stderr


def test_look_shows_the_vector_of_fixed_length(pellucid_in: Run) -> None:
    whole = pellucid_in("look", "none", LINE)
    assert whole.returncode == 0, whole.stderr
    assert "vector, encoder. " in whole.stdout.replace("\n", " ")
    row = pellucid_in("look", "none", LINE, "--row", "1")
    assert "the vector of fixed length, c" in row.stdout, row.stderr


def test_look_writes_every_array_of_a_unit(pellucid_in: Run) -> None:
    done = pellucid_in("look", "additive", LINE, "--everything", "-o", "all.npz")
    assert done.returncode == 0, done.stderr
    with np.load("all.npz", allow_pickle=False) as arrays:
        for stage in ("update", "reset", "candidate", "state"):
            assert arrays[f"encoder.0.recurrent.{stage}"].shape == (5, 16)
        assert not {"decoder.0.cross.scaled", "decoder.0.cross.output"} & set(arrays)
    for name in ("page.html", "picture.svg"):
        assert pellucid_in("look", "additive", LINE, "-o", name).returncode == 0
        assert Path(name).stat().st_size > 1000


@pytest.mark.parametrize("form", ["additive", "none"])
def test_whole_trace_reads_back_from_both_kinds_of_file(form: str, pellucid_in: Run) -> None:
    done = pellucid_in(
        "look", form, LINE, "--everything", "-o", "whole.npz", "-o", "whole.json", "--overwrite"
    )
    assert done.returncode == 0, done.stderr
    first, second = load_trace("whole.npz"), load_trace("whole.json")
    assert first["encoder.vector"].shape == (1, 16)
    assert first["decoder.0.recurrent.state"].shape == (len(first.target_ids), 16)
    assert first.arrays.keys() == second.arrays.keys()
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(second[name], array)


@pytest.mark.parametrize("measure", ["weights", "occlusion", "integrated-gradients"])
def test_measure_that_needs_no_transformer_is_shown(measure: str, pellucid_in: Run) -> None:
    done = pellucid_in("look", "additive", LINE, "--measure", measure)
    assert done.returncode == 0, done.stderr
    assert measure in done.stdout


def test_align_links_words_by_the_only_head(pellucid_in: Run) -> None:
    texts = ("--source", "validation.en", "--target", "validation.fr")
    done = pellucid_in("align", "additive", *texts, "--head", "decoder.0.cross.0")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 30), done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["look", "additive", LINE, "--head", "decoder.0.cross.1"], "A head must be from 0 to 0"),
        (["look", "additive", LINE, "--head", "*.*.self"], "is decoder.0.cross.0, but"),
        (["look", "additive", LINE, "--measure", "alti"], "alti needs the layers of a Transformer"),
        (
            ["look", "additive", LINE, "--show", "lens"],
            "The lens needs the layers of a Transformer",
        ),
        (["look", "none", LINE, "--show", "heads"], "reads one vector of fixed length"),
        (["look", "none", LINE, "--show", "links"], "reads one vector of fixed length"),
        (["look", "none", LINE, "--stage", "weights"], "reads one vector of fixed length"),
        (["look", "none", LINE, "-o", "x.svg"], "holds no array of a head"),
        (
            ["look", "none", LINE, "--row", "0", "--show", "verify"],
            "reads one vector of fixed length",
        ),
        (["look", "none", LINE, "--measure", "weights"], "reads one vector of fixed length"),
        (["translate", "none", "--align", "-i", "validation.en"], "one vector of fixed length"),
        (
            ["align", "none", "--source", "validation.en", "--target", "validation.fr"],
            "reads one vector of fixed length",
        ),
        (["translate", "additive", "--precision", "int8"], "must be float32, but is int8"),
        (
            ["export", "additive", "--format", "pellucid", "--precision", "int8", "-o", "x"],
            "must be float32",
        ),
        (["export", "additive", "--format", "marian", "-o", "x"], "model.architecture must be"),
        (["export", "additive", "--format", "ctranslate2", "-o", "x"], "model.architecture must"),
        (["inspect", "additive", "--draw", "heads", "-o", "x.svg"], "must be one of whole, unit"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_request_for_what_the_model_lacks_is_one_sentence(
    arguments: list[str], said: str, pellucid_in: Run
) -> None:
    done = pellucid_in(*arguments, stdin="the dog\n")
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("form", "num_words", "is_long"),
    [("none", 60, True), ("none", 5, False), ("additive", 60, False)],
    ids=str,
)
def test_line_beyond_what_the_vector_learned_is_translated_and_reported(
    form: str, num_words: int, is_long: bool, pellucid_in: Run
) -> None:
    line = " ".join(["dog"] * num_words)
    said = "more tokens than any source that this model learned to put into its one vector"
    for command in (["translate", form], ["look", form, line, "--json"]):
        done = pellucid_in(*command, stdin=f"{line}\n")
        assert done.returncode == 0, done.stderr
        assert (said in done.stderr) is is_long, command


def test_training_from_a_recurrent_model_keeps_its_architecture(
    runs: Path, pellucid_in: Run, no_report: None
) -> None:
    recipe = runs / "more.toml"
    settings = 'data.train=["train.en", "train.fr"]'
    recipe.write_text(
        '[data]\ntrain = ["train.en", "train.fr"]\n'
        'validation = ["validation.en", "validation.fr"]\n'
        "[training]\nmax_steps = 2\nvalidate_every = 2\nprocesses = 1\n"
    )
    done = pellucid_in("train", "more.toml", "--start", "additive", "-o", "more", "--set", settings)
    assert done.returncode == 0, done.stderr
    assert pellucid.load(runs / "more").model.config.is_recurrent


@pytest.mark.sample(form="additive")
@pytest.mark.parametrize("form", ["additive", "none"])
def test_demo_trains_tests_and_shows_a_recurrent_model(
    form: str, tmp_path: Path, run_here: Run, monkeypatch: pytest.MonkeyPatch, no_report: None
) -> None:
    monkeypatch.setattr(
        "pellucid.demo.make_split",
        lambda name, seed, count=40: make_split(name, seed=seed, count=40),
    )
    settings = [f"model.recurrent_attention={form}", "training.max_steps=3"]
    settings += ["training.validate_every=3", "training.processes=1", "model.d_model=16"]
    settings += ["tokenizer.min_word_count=1"]
    changes = [part for setting in settings for part in ("--set", setting)]
    done = run_here("demo", "--architecture", "recurrent", "-o", str(tmp_path / "run"), *changes)
    assert done.returncode == 0, done.stderr
    assert "small recurrent model" in done.stderr.replace("\n", " ")
    page = (tmp_path / "run" / "look.html").read_text()
    assert ("reads one vector of fixed length" in page) is (form == "none")
    assert ("this model is recurrent" in page) is (form == "additive")
    assert "Translated exactly" in done.stdout


def test_recipe_of_a_recurrent_model_reads_back() -> None:
    recipe = recurrent_recipe("dot")
    assert "d_ff" not in to_toml(recipe)
