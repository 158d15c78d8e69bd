"""Vectors of a corpus: equal to those of single pairs, resumed, and refused in one sentence."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from of_subwords import SUBWORDS

import pellucid
from pellucid.corpora import make_split
from pellucid.errors import DataError, InputError, InputFileNotFoundError, OutputError
from pellucid.inside import Replace, load_vectors, vectors
from pellucid.inside.pair import make_pair
from pellucid.inside.studies import corpus_vectors
from pellucid.translate.translator import Translator

PAIRS = make_split("test", count=26)
SOURCES = [pair.source for pair in PAIRS]
TARGETS = [pair.target for pair in PAIRS]
NORM = "encoder.1.feed_forward.norm"


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


def one_by_one(translator: Translator, at: str, *, greedy: bool = False) -> list[np.ndarray]:
    """Read the vectors of one pair after the other; of heads next to each other."""
    site, _, stage = at.rpartition(".")
    found = []
    for source, target in zip(SOURCES, TARGETS, strict=True):
        given = translator.translate([source], beam=1)[0].ids if greedy else target
        seen = make_pair(translator.bundle, source, given).see({stage}, sites={site})
        array = seen[at].numpy()
        if array.ndim == 3:
            array = array.transpose(1, 0, 2).reshape(array.shape[1], -1)
        found.append(array)
    return found


@pytest.mark.parametrize(
    ("model", "at"),
    [
        ("demo", NORM),
        ("demo", "encoder.0.self.value"),
        ("demo", "decoder.0.feed_forward.activated"),
        ("demo", "decoder.1.cross.context"),
        ("demo", "decoder.1.cross.key"),
        ("demo", "decoder.logits"),
        ("demo-recurrent", "encoder.0.recurrent.state"),
        ("demo-recurrent", "decoder.0.cross.context"),
        (SUBWORDS, "encoder.norm"),
    ],
)
def test_vectors_are_those_of_single_pairs(model: str, at: str, tmp_path: Path) -> None:
    translator = pellucid.load(model)
    found = vectors(translator, SOURCES, TARGETS, at=at, output=tmp_path / "x.npz")
    wanted = one_by_one(translator, at)
    np.testing.assert_allclose(found.vectors, np.concatenate(wanted), atol=2e-5, rtol=1e-5)
    assert found.rows["line"].tolist() == [
        number for number, one in enumerate(wanted) for _ in range(len(one))
    ]
    assert found.rows["position"].tolist() == [
        position for one in wanted for position in range(len(one))
    ]


def test_own_translations_are_greedy_and_only_heads_asked_for_are_kept(
    demo: Translator, tmp_path: Path
) -> None:
    found = vectors(demo, SOURCES, at="decoder.1.cross.2", output=tmp_path / "x.npz")
    wanted = np.concatenate(one_by_one(demo, "decoder.1.cross.context", greedy=True))
    width = wanted.shape[1] // 4
    np.testing.assert_allclose(found.vectors, wanted[:, 2 * width : 3 * width], atol=2e-5)
    assert found.about["at"] == "decoder.1.cross.2.context"
    assert found.about["side"] == "target"


@pytest.mark.parametrize("model", ["demo", SUBWORDS])
def test_rows_name_line_position_word_and_token(model: str, tmp_path: Path) -> None:
    translator = pellucid.load(model)
    found = vectors(translator, SOURCES, TARGETS, at=NORM, output=tmp_path / "x.npz")
    for row in found.rows:
        pieces = SOURCES[row["line"]].split()
        if row["word"] < 0:
            assert (row["token"], row["text"]) == ("</s>", "")
        elif row["text"].isalpha():
            assert row["text"] == pieces[row["word"]].strip(".,?!'")
        else:
            # A mark of its own, which is part of the word before it.
            assert row["text"] in pieces[row["word"]]
    only = vectors(translator, SOURCES, at=NORM, words="it", output=tmp_path / "it.npz")
    is_it = found.rows["text"] == "it"
    assert is_it.sum() == len(re.findall(r"\bit\b", "\n".join(SOURCES))) > 3
    np.testing.assert_array_equal(only.rows, found.rows[is_it])
    # Batches differ, so rounding may.
    np.testing.assert_allclose(only.vectors, found.vectors[is_it], atol=2e-5)


def test_decoder_rows_count_for_the_word_that_they_predict(
    demo: Translator, tmp_path: Path
) -> None:
    where: Any = {"at": "decoder.1.cross.0", "output": tmp_path / "x.npz"}
    found = vectors(demo, SOURCES, TARGETS, words="elle", **where)
    assert len(found.rows) > 2
    for row in found.rows:
        pair = demo.pair(SOURCES[row["line"]], TARGETS[row["line"]])
        assert pair.predicted_tokens[row["position"]] == row["token"] == row["text"]


def test_file_is_mapped_and_read_only_and_numpy_reads_it(demo: Translator, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    found = vectors(demo, SOURCES, at="encoder.1", output=path)
    assert isinstance(found.vectors, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        found.vectors[0] = 0
    with np.load(path) as file:
        np.testing.assert_array_equal(file["vectors"], found.vectors)
        np.testing.assert_array_equal(file["rows"], found.rows)
        assert json.loads(str(file["about"])) == found.about
    assert [one.name for one in tmp_path.iterdir()] == ["x.npz"]


def test_parquet_has_the_same_rows(demo: Translator, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    found = vectors(demo, SOURCES, at="encoder.1", output=tmp_path / "x.parquet")
    table = parquet.read_table(tmp_path / "x.parquet")
    np.testing.assert_array_equal(np.array(table["vector"].to_pylist(), "<f4"), found.vectors)
    for name in found.rows.dtype.names:
        assert table[name].to_pylist() == found.rows[name].tolist()
    assert [one.name for one in tmp_path.iterdir()] == ["x.parquet"]


PROGRAM = """
import os, signal, sys
import pellucid
from pellucid.corpora import make_split
from pellucid.inside import vectors
from pellucid.inside.studies import corpus_vectors

corpus_vectors.WINDOW = 7
sources = [pair.source for pair in make_split("test", count=26)]

def stop(what, done, total):
    if done == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

vectors(pellucid.load("demo"), sources, at="decoder.1.cross.0", output=sys.argv[1], on_step=stop)
"""


def test_killed_run_continues_to_the_same_bytes(
    demo: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at = 2
    monkeypatch.setattr(corpus_vectors, "WINDOW", 7)
    whole = tmp_path / "whole.npz"
    vectors(demo, SOURCES, at="decoder.1.cross.0", output=whole)
    path = tmp_path / "x.npz"
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(path), str(stop_at)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not path.exists()
    ran = []
    run = corpus_vectors._run
    monkeypatch.setattr(corpus_vectors, "_run", lambda *given: (ran.append(given), run(*given))[1])
    # Another run with this output does not disturb the first.
    other = vectors(demo, SOURCES, at="decoder.1.cross.1", output=path)
    assert other.about["at"] == "decoder.1.cross.1.context"
    ran.clear()
    vectors(demo, SOURCES, at="decoder.1.cross.0", output=path, overwrite=True)
    lines = sum(len(pairs) for _, pairs in ran)
    assert lines == len(SOURCES) - 7 * stop_at
    assert path.read_bytes() == whole.read_bytes()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["whole.npz", "x.npz"]


def test_full_disk_is_one_sentence_and_the_same_call_continues(
    demo: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_vectors, "WINDOW", 7)
    path = tmp_path / "x.npz"
    flush = os.fsync
    left = [5]

    def fail(descriptor: int) -> None:
        left[0] -= 1
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OutputError, match=r"No space left .* Free some space"):
            vectors(demo, SOURCES, at=NORM, output=path)
    found = vectors(demo, SOURCES, at=NORM, output=path)
    wanted = np.concatenate(one_by_one(demo, NORM))
    np.testing.assert_allclose(found.vectors, wanted, atol=2e-5)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"at": "encoder.1.feed_forward.norn"}, r"Did you mean 'encoder.1.feed_forward.norm'\?"),
        ({"at": "encoder"}, "but encoder has several: encoder.input, "),
        ({"at": "encoder.0.self.weights"}, "but encoder.0.self.weights has none"),
        ({"at": "encoder.0.self.3.norm"}, "but encoder.0.self.3.norm has none"),
        ({"at": "encoder.0.self.4"}, "A head must be from 0 to 3"),
        ({"words": ["it", "pizzza"]}, r"words must be .* 'pizzza' .*Did you mean 'pizza'\?"),
        ({"words": "xylophones"}, "is in none of 3 lines. Name one that is there."),
        ({"output": "x.zarr"}, "must end in .npz or .parquet, but is named x.zarr"),
        ({"output": "x.npz.gz"}, "but is named x.npz.gz"),
        ({"output": "there.npz"}, "there.npz exists. .*add overwrite"),
        ({"targets": ["x"]}, "targets for each of 3 sources, but there are 1"),
        ({"sources": ["a", 2]}, r"must be a list of texts, but sources\[1\] is 2"),
        ({"sources": []}, "there is no line"),
        ({"sources": ["", " "]}, "line 1: .*the line is empty"),
    ],
)
def test_mistake_is_refused_before_anything_is_computed(
    demo: Translator,
    changes: dict[str, Any],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.npz").touch()
    monkeypatch.setattr(corpus_vectors, "_run", None)
    given: dict[str, Any] = {"sources": ["Sell it.", "The pizza was cold.", "The dog ate it."]}
    given |= {"at": NORM, "output": "x.npz"} | changes
    with pytest.raises((InputError, DataError), match=sentence):
        vectors(demo, **given)
    assert [one.name for one in tmp_path.iterdir()] == ["there.npz"]


def test_long_word_is_found_though_its_text_is_cut(demo: Translator, tmp_path: Path) -> None:
    word = "anticonstitutionnellement-anticonstitutionnellement"
    where: Any = {"at": NORM, "words": word, "output": tmp_path / "x.npz"}
    found = vectors(demo, [f"The {word} was cold."], **where)
    assert {*found.rows["text"]} == {word[:32]}


def test_word_that_is_in_no_translation_is_reported(demo: Translator, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none has girafe there"):
        vectors(demo, SOURCES, at="decoder.1", words="girafe", output=tmp_path / "x.npz")
    assert not list(tmp_path.iterdir())


def test_lines_that_cannot_be_run_are_left_out(demo: Translator, tmp_path: Path) -> None:
    sources = ["The soup was cold.", "", "cold " * 3000, "The \udcff soup.", "The dog ate it."]
    found = vectors(demo, sources, at="encoder.1", output=tmp_path / "x.npz")
    assert set(found.rows["line"]) == {0, 4}
    assert [one.partition(":")[0] for one in found.about["left_out"]] == [
        *("line 2", "line 3", "line 4")
    ]
    targets = ["La soupe était froide.", " "]
    rows = {"at": "decoder.1", "output": tmp_path / "y.npz"}
    found = vectors(demo, [sources[0]] * 2, targets, **rows)
    assert found.about["left_out"] == ["line 2: The translation is empty. Write one in it."]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"{}"])
def test_other_file_is_no_vectors(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a \.npz file that pellucid vectors made, but"):
        load_vectors(path)
    np.savez(path, vectors=np.zeros((2, 3), "<f8"), rows=np.zeros(2))
    with pytest.raises(InputError, match=r"a \.npz file that pellucid vectors made, but"):
        load_vectors(path)
    with pytest.raises(InputFileNotFoundError, match="does not exist"):
        load_vectors(tmp_path / "none.npz")


CHANGES = {
    "heads": ["cut encoder.1.self.2", "cut decoder.0.self.1"],
    "text": ["average encoder.0.self.*", "zero decoder.*.cross.*:0>0"],
    "word": ["cut word it"],
}


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.parametrize("at", [NORM, "decoder.1.cross.context", "decoder.1.cross.key"])
@pytest.mark.filterwarnings("ignore:'cut word it' changed nothing")
def test_vectors_under_a_change_are_those_of_changed_pairs(
    demo: Translator, kind: str, at: str, tmp_path: Path
) -> None:
    changes = CHANGES[kind]
    path = tmp_path / "x.npz"
    found = vectors(demo, SOURCES, TARGETS, at=at, changes=changes, output=path)
    plain = vectors(demo, SOURCES, TARGETS, at=at, output=tmp_path / "plain.npz")
    changed = demo.changed(changes)
    site, _, stage = at.rpartition(".")
    wanted = []
    for source, target in zip(SOURCES, TARGETS, strict=True):
        array = changed.pair(source, target).see({stage}, sites={site})[at].numpy()
        wanted.append(array if array.ndim == 2 else np.concatenate([*array], axis=1))
    np.testing.assert_allclose(found.vectors, np.concatenate(wanted), atol=2e-5, rtol=1e-5)
    assert np.abs(found.vectors - plain.vectors).max() > 0.1
    assert found.about["changes"] == load_vectors(path).about["changes"] == ", ".join(changes)
    assert plain.about["changes"] == ""


def test_own_translations_are_of_the_changed_model(demo: Translator, tmp_path: Path) -> None:
    change = "average decoder.1.cross.*"
    found = vectors(
        demo,
        SOURCES[:7],
        at="decoder.1.feed_forward.norm",
        changes=change,
        output=tmp_path / "x.npz",
    )
    written = demo.translate(SOURCES[:7], changes=change, beam=1)
    assert len(found.rows) == sum(len(one.ids) for one in written)
    assert written != demo.translate(SOURCES[:7], beam=1)


def test_a_probe_knows_its_sentence_and_never_continues_what_another_left(
    demo: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_vectors, "WINDOW", 11)
    given: Any = {"at": NORM, "output": tmp_path / "x.npz"}
    told = []

    def steer(by: float) -> Replace:
        def add(tensor: Any, pair: Any) -> Any:
            told.append(pair.source_text)
            return tensor + by

        return Replace({"encoder.1.feed_forward.norm": add})

    def stop(_: str, done: int, __: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vectors(demo, SOURCES, changes=steer(1.0), on_step=stop, **given)
    assert list(tmp_path.glob("*.part"))
    told.clear()
    found = vectors(demo, SOURCES, changes=steer(3.0), **given)
    assert sorted(told) == sorted(SOURCES)
    plain = vectors(demo, SOURCES, at=NORM, output=tmp_path / "plain.npz")
    np.testing.assert_allclose(found.vectors, plain.vectors + 3.0, atol=2e-5)
    assert found.about["changes"] == "by a probe"


def test_changes_that_reach_no_vector_are_refused_before_anything_is_computed(
    demo: Translator, tmp_path: Path
) -> None:
    given: Any = {"at": NORM, "output": tmp_path / "x.npz"}
    with pytest.raises(InputError, match="does not depend on the decoder"):
        vectors(demo, SOURCES, changes="average decoder.1.cross.*", **given)
    with pytest.raises(InputError, match="layer"):
        vectors(demo, SOURCES, changes="cut encoder.7.self.0", **given)
    assert not list(tmp_path.iterdir())


def test_another_change_has_a_folder_of_its_own(
    demo: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_vectors, "WINDOW", 11)
    given: Any = {"at": NORM, "output": tmp_path / "x.npz"}

    def stop(_: str, done: int, __: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    steps: list[int] = []
    change = "average encoder.0.self.*"
    for other in (change, "average encoder.0.self.1"):
        with pytest.raises(KeyboardInterrupt):
            vectors(demo, SOURCES, changes=other, on_step=stop, **given)
    assert len(list(tmp_path.glob("*.part"))) == 2
    found = vectors(
        demo, SOURCES, changes=change, on_step=lambda _, done, __: steps.append(done), **given
    )
    whole = vectors(demo, SOURCES, at=NORM, changes=change, output=tmp_path / "whole.npz")
    np.testing.assert_array_equal(found.vectors, whole.vectors)
    assert steps == [0, 1, 2]
