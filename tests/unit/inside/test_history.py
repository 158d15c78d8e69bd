"""Heads through a training: figures equal those of single replays, and a picture shows them."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from small_words import make_words_bundle

from pellucid.bundle import Bundle, load_bundle, save_bundle
from pellucid.corpora.example import Pronoun, read_pronouns
from pellucid.errors import DataError, InputError, InputFileNotFoundError
from pellucid.evaluation.word_links import GoldLinks
from pellucid.inside import study
from pellucid.inside.heads.head_rows import head_rows
from pellucid.inside.heads.weight_figures import WEIGHT_FIGURES
from pellucid.inside.pair import make_pair
from pellucid.inside.replayed_pair import replay
from pellucid.inside.studies.head_study import ERRORS
from pellucid.inside.studies.moving import moving_picture
from pellucid.inside.studies.training_history import (
    MEANINGS,
    HeadHistory,
    find_models,
    follow_heads,
)

SOURCE = "The pizza came out of the oven and it tasted good."
TARGET = "La pizza est sortie du four et elle avait bon goût."
PRONOUN = Pronoun(source=8, source_antecedent=1, target=7, target_antecedent=1)
FACTORS = {0: 1.0, 70: 2.0, 130: 4.0}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that keeps the untrained model, one for its history, and a checkpoint."""
    folder = tmp_path_factory.mktemp("history") / "run"
    bundle = load_bundle(make_words_bundle(folder / "made"))
    for name, factor in zip(
        ("untrained", "history/step-00000070", "checkpoints/step-00000130"),
        FACTORS.values(),
        strict=True,
    ):
        save_scaled(bundle, folder / name, factor)
    (folder / "checkpoints" / "step-00000130.part").mkdir()
    return folder


def save_scaled(bundle: Bundle, folder: Path, factor: float) -> None:
    save_bundle(
        folder,
        config=bundle.config,
        weights={name: one * factor for name, one in bundle.model.state_dict().items()},
        tokenizer=bundle.tokenizer,
        recipe_toml="",
        provenance={"data": {"pairs": 1}},
    )


@pytest.fixture(scope="module")
def found(run: Path) -> HeadHistory:
    gold = GoldLinks(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1)}))
    empty: list[Pronoun] = []
    return follow_heads(
        run,
        [SOURCE, "The pizza was good."],
        [TARGET, "La pizza avait bon goût."],
        golds=[gold, gold],
        antecedents=[[PRONOUN], empty],
    )


def test_models_come_by_step_and_unfinished_ones_are_left_out(run: Path) -> None:
    assert [(step, path.name) for step, path in find_models(run)] == [
        (0, "untrained"),
        (70, "step-00000070"),
        (130, "step-00000130"),
    ]


def test_history_has_the_figures_of_each_model(run: Path, found: HeadHistory) -> None:
    assert found.steps == (0, 70, 130)
    assert found.values.shape == (3, len(found.heads), len(found.figures))
    gold = GoldLinks(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1)}))
    pairs = [(SOURCE, TARGET), ("The pizza was good.", "La pizza avait bon goût.")]
    for place, (_, path) in enumerate(find_models(run)):
        bundle = load_bundle(path)
        tables = [head_rows(replay(make_pair(bundle, *pair), float64=True)) for pair in pairs]
        for index, rows in enumerate(zip(*tables, strict=True)):
            ours = dict(zip(found.figures, found.values[place, index], strict=True))
            assert {str(row.head) for row in rows} == {found.heads[index]}
            for name in ("entropy", "confidence", "distance"):
                assert ours[name] == pytest.approx(
                    np.mean([getattr(row, name) for row in rows]), abs=1e-5
                )
        sources, targets = zip(*pairs, strict=True)
        alone = study(bundle, sources, targets, golds=[gold, gold])
        for name in (*WEIGHT_FIGURES, *ERRORS):
            ours = found.values[place, :, found.figures.index(name)]
            np.testing.assert_allclose(ours, alone.heads.column(name), atol=1e-9)


def test_weight_on_the_antecedent_is_that_of_a_replay(run: Path, found: HeadHistory) -> None:
    for place, (_, path) in enumerate(find_models(run)):
        bundle = load_bundle(path)
        trace = replay(make_pair(bundle, SOURCE, TARGET), float64=True)
        source, target = list(trace.source_tokens), list(trace.predicted_tokens)
        noun, it = source.index("pizza"), source.index("it")
        elle, read_noun = target.index("elle"), 1 + target.index("pizza")
        rows = {"encoder.self": it, "decoder.cross": elle, "decoder.self": elle}
        for index, head in enumerate(found.heads):
            part, layer, kind, number = head.split(".")
            weights_LM = trace[f"{part}.{layer}.{kind}.{int(number)}.weights"]
            row = rows[f"{part}.{kind}"]
            key = read_noun if (part, kind) == ("decoder", "self") else noun
            ours = dict(zip(found.figures, found.values[place, index], strict=True))
            assert ours["pronoun"] == pytest.approx(weights_LM[row, key], abs=1e-5)
            assert ours["clause"] == pytest.approx(weights_LM[row + 1 : -1, key].max(), abs=1e-5)


def test_half_of_a_change_is_made_where_a_head_stays_nearer_its_end() -> None:
    courses = np.array([[0, 0.1, 0.6, 1.0], [0, 0.9, 0.2, 1.0], [1.0, 0.9, 0.2, 0], [0.5] * 4])
    one = HeadHistory(
        (0, 10, 20, 30), ("a", "b", "c", "d"), ("entropy",), courses.T[..., None], 1, ()
    )
    assert one.half_steps("entropy") == [20, 30, 20, None]
    table = one.table("entropy")
    assert (table.axes, table.columns) == (("head", "step"), ("0", "10", "20", "30"))
    assert one.cells("entropy")[1] == ["a", "0.000", "0.100", "0.600", "1.000", "20"]
    assert one.records()[5] == {"step": 10, "head": "b", "entropy": 0.9}


@pytest.mark.parametrize("number", [0, 1])
def test_run_with_fewer_than_two_models_is_refused(
    tmp_path: Path, bundle_folder: Path, number: int
) -> None:
    (tmp_path / "recipe.toml").write_text(json.dumps({}))
    said = "keeps no models"
    if number:
        shutil.copytree(bundle_folder, tmp_path / "history" / "step-00000007")
        said = r"keeps only that of step 7. Name .* or train with keep_every=100"
    with pytest.raises(InputFileNotFoundError, match=said):
        follow_heads(tmp_path, [SOURCE], [TARGET])


@pytest.mark.parametrize("changes", [{"num_heads": 1}, {"positions": "none"}])
def test_models_of_different_shapes_are_refused(
    run: Path, tmp_path: Path, changes: dict[str, object]
) -> None:
    shutil.copytree(run / "untrained", tmp_path / "untrained")
    make_words_bundle(tmp_path / "history" / "step-00000007", **changes)
    with pytest.raises(InputError, match=r"one shape and one vocabulary, but .*untrained and"):
        follow_heads(tmp_path, [SOURCE], [TARGET])


def test_models_of_different_vocabularies_are_refused(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "untrained", tmp_path / "untrained")
    other = tmp_path / "history" / "step-00000007"
    shutil.copytree(run / "untrained", other)
    words = (other / "source.txt").read_text("utf-8")
    former = hashlib.sha256(words.encode()).hexdigest()
    words = words.replace("pizza", "-").replace("oven", "pizza").replace("-", "oven")
    (other / "source.txt").write_text(words, "utf-8")
    manifest = (other / "manifest.json").read_text("utf-8")
    assert former in manifest
    now = hashlib.sha256(words.encode()).hexdigest()
    (other / "manifest.json").write_text(manifest.replace(former, now), "utf-8")
    with pytest.raises(InputError, match="one shape and one vocabulary"):
        follow_heads(tmp_path, [SOURCE], [TARGET])


def test_pronoun_that_is_no_word_of_its_line_is_refused(run: Path) -> None:
    wrong = Pronoun(source=8, source_antecedent=31, target=7, target_antecedent=1)
    with pytest.raises(DataError, match="line 1 has no word 31"):
        follow_heads(run, [SOURCE], [TARGET], antecedents=[[wrong]])
    with pytest.raises(DataError, match="0 targets and 1 lists for 1 sources"):
        follow_heads(run, [SOURCE], antecedents=[[PRONOUN]])
    with pytest.raises(DataError, match="but line 2 is not"):
        read_pronouns(['{"pronouns": []}', '{"pronouns": [{"source": 1}]}'])


def test_moving_picture_is_one_file_without_programs(found: HeadHistory) -> None:
    text = moving_picture(found, "pronoun", title="a < b", meaning=MEANINGS["pronoun"])
    root = ElementTree.fromstring(text)
    names = [one.tag.rpartition("}")[2] for one in root.iter()]
    assert "script" not in names
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    cells = [one for one in root.iter() if one.tag.endswith("rect") and one.get("rx")]
    assert len(cells) == len(found.heads)
    # Each cell passes the colors of all steps, rests at the last one, and has it without movement.
    for cell in cells:
        animate = next(one for one in cell if one.tag.endswith("animate"))
        colors = str(animate.get("values")).split(";")
        assert len(colors) == len(found.steps) + 1
        assert colors[-1] == colors[-2] == cell.get("fill")
        times = [float(one) for one in str(animate.get("keyTimes")).split(";")]
        assert times == sorted(times)
        assert (times[0], times[-1]) == (0, 1)
    assert [one.text for one in root.iter() if one.get("class") == "step"] == [
        f"step {step}" for step in found.steps
    ]
