"""The data that a run keeps of its text is checked byte by byte before it resumes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from small_runs import Changes, make_recipe, model_bytes, write_text

from pellucid.bundle import load_bundle
from pellucid.check.data_check import check_data
from pellucid.config import Recipe, validate
from pellucid.errors import BundleError, ConfigurationError
from pellucid.machine import hardware
from pellucid.machine.hardware import use_threads
from pellucid.text.learned import LearnedText
from pellucid.training.loop import train
from pellucid.training.run.folder import RunFolder
from pellucid.training.start import preparation
from pellucid.training.start import prepare as preparing
from pellucid.training.start.filling import fill_in
from pellucid.training.start.prepare import RECIPE_FOLDER, prepare_data

WITH_EVERYTHING: dict[str, Changes] = {
    "segmentations": {"training": {"subword_samples": 3}},
    "links": {
        "data": {"train_alignments": "train.align"},
        "training": {"guided_head": "decoder.0.cross.1"},
    },
}
FILES = {
    "manifest.json",
    "text.json",
    "corpora.json",
    "tokenizer.json",
    "tokenizer.model",
    "train/store.json",
    "train/source.tokens",
    "train/target.offsets",
}


def begin(folder: Path, **changes: dict[str, object]) -> Path:
    """Train the first ten of 23 steps."""
    write_text(folder)
    go_on(folder, 10, **changes)
    return folder / "run"


def go_on(folder: Path, steps: int = 23, **changes: dict[str, object]) -> None:
    recipe = make_recipe(
        **changes | {"training": {"max_steps": steps, **changes.get("training", {})}}
    )
    train(recipe, folder / "run", recipe_folder=folder, progress=False)


def test_what_is_damaged_is_named_and_making_it_again_gives_the_same_model(
    trained: Path, tmp_path: Path
) -> None:
    data = begin(tmp_path) / "data"
    names = {path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file()}
    assert names >= FILES
    for name in sorted(names - {RECIPE_FOLDER}):
        before = (data / name).read_bytes()
        (data / name).write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
        with pytest.raises(BundleError, match=f"{name} .*delete {data}: the same command"):
            go_on(tmp_path)
        (data / name).unlink()
        with pytest.raises(BundleError, match=f"{name} (is|does) not.*delete {data}:"):
            go_on(tmp_path)
        (data / name).write_bytes(before)
    shutil.rmtree(data)
    go_on(tmp_path)
    ours, plain = (folder / "run/bundle" for folder in (tmp_path, trained))
    assert model_bytes(ours) == model_bytes(plain)


@pytest.mark.parametrize("part", WITH_EVERYTHING)
def test_what_only_some_recipes_need_is_looked_at_too(part: str, tmp_path: Path) -> None:
    changes = WITH_EVERYTHING[part]
    data = begin(tmp_path, **changes) / "data"
    path = sorted(path for path in (data / part).rglob("*") if path.is_file())[0]
    path.write_bytes(path.read_bytes() + b"\0")
    name = path.relative_to(data).as_posix()
    with pytest.raises(BundleError, match=f"{name} must have"):
        go_on(tmp_path, **changes)


def test_a_manifest_that_is_none_is_refused(tmp_path: Path) -> None:
    data = begin(tmp_path) / "data"
    for text in ("", "[]", "{}", '{"files": 3}', "[" * 5000, json.dumps({"files": {"x": 1}})):
        (data / "manifest.json").write_text(text)
        with pytest.raises(BundleError, match=r"(manifest|x is not).*delete"):
            go_on(tmp_path)


def test_weights_that_make_an_epoch_enormous_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "MOST_PAIRS", 5_000)
    write_text(tmp_path)
    go_on(tmp_path, data={"train_weights": [12.0]})
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(ConfigurationError, match=r"at most 5,000 pairs, but make it 5,200\. Lower"):
        go_on(tmp_path, data={"train_weights": [13.0]})


def test_bundle_describes_the_text_that_its_model_learned_from(
    trained: Path, tmp_path: Path
) -> None:
    bundle = load_bundle(trained / "run" / "bundle")
    text = bundle.manifest["data"]["text"]
    learned = LearnedText.read(bundle.manifest, bundle.tokenizer)
    assert text == json.loads((begin(tmp_path) / "data" / "statistics.json").read_text())
    source = (tmp_path / "train.en").read_text()
    assert learned.characters.keys() == set(source) - {"\n"}
    assert learned.most_characters >= max(map(len, source.splitlines())) - 1
    assert learned.most_sentences == 1


def test_large_text_is_prepared_to_the_same_bytes_by_several_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("red dog", "blue cat", "old house", "long road", "new day")
    rows = [f"the {words[i % 5]} {i}\tle {words[(i * 3) % 5]} {i}" for i in range(300)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{row}\n" for row in rows))
    monkeypatch.setattr(preparation, "LARGE", 1_000)
    monkeypatch.setattr(preparation, "FIRST", 0.0)
    monkeypatch.setattr(hardware, "num_processors", lambda: 2)
    values = {"data": {"train": "pairs.tsv", "split": 20, "source_language": "en"}}
    found = []
    for threads in (1, 2):
        use_threads(threads)
        run = tmp_path / f"run{threads}"
        with preparation.preparing(values["data"], tmp_path, is_new=True, say=print) as check:
            assert (check is None) == (threads == 1)
            filled = fill_in(values, run, tmp_path, print)
            recipe = validate(Recipe, filled.values, "test")
            folder = RunFolder(run, recipe, filled.chosen)
            with folder.locked(), folder.created():
                prepare_data(recipe, tmp_path, folder, text=filled.text)
            found.append(check() if check else list(check_data(recipe.data, tmp_path).brief()))
    use_threads(1)
    assert found[0] == found[1]
    assert found[0][0].startswith("Data check: 260 training")
    assert data_of(tmp_path / "run1") == data_of(tmp_path / "run2")
    said = capfd.readouterr().out
    for part in ("takes about 1 min", "Reading the text: 0 pairs", "Learning a vocabulary: 0"):
        assert said.count(part) >= 2


def data_of(run: Path) -> dict[str, bytes]:
    files = (path for path in (run / "data").rglob("*") if path.is_file())
    return {str(path.relative_to(run)): path.read_bytes() for path in files}
