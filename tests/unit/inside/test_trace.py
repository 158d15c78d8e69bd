"""A trace holds what was asked for, agrees with the decode, and comes back from disk equal."""

from __future__ import annotations

import json
import math
import pickle
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from of_subwords import SUBWORDS
from torch import Tensor

import pellucid
from pellucid.errors import InputError, InputFileNotFoundError, OutputError
from pellucid.inside import Ask, Replaying, Trace, load_trace
from pellucid.inside.changes.change import Changes, parse_change
from pellucid.inside.changes.what_if import decode_under, what_if
from pellucid.inside.heads.head_rows import head_rows
from pellucid.inside.measures.registry import measure
from pellucid.inside.pair import make_pair
from pellucid.inside.record.trace_files import NpzWriter, surroundings
from pellucid.inside.replayed_pair import replay
from pellucid.translate.translator import Translator

SOURCE = "The pizza came out of the oven and it tasted good."


@pytest.fixture(scope="module")
def translator() -> Translator:
    return pellucid.load(SUBWORDS)


@pytest.fixture(scope="module")
def whole(translator: Translator) -> Trace:
    return translator.look(SOURCE, everything=True)


@pytest.mark.parametrize(
    "options", [{}, {"beam": 5, "n_best": 3}, {"sample": True, "seed": 3}], ids=str
)
def test_every_hypothesis_is_replayed_and_agrees_with_its_decode(
    translator: Translator, options: dict[str, Any]
) -> None:
    (translation,) = translator.translate([SOURCE], precision="float32", **options)
    (traces,) = translator.look_at_each([SOURCE], **options)
    assert len(traces) == len(translation.hypotheses)
    for trace, hypothesis in zip(traces, translation.hypotheses, strict=True):
        assert trace.predicted_ids == hypothesis.ids
        assert trace.decode_log_probabilities == hypothesis.token_log_probabilities
        assert trace.checks["decode"] < 1e-4
        assert trace.problems == ()
        assert trace.target_tokens == ("<s>", *trace.predicted_tokens[:-1])


def test_without_anything_a_trace_holds_the_weights_of_everything(translator: Translator) -> None:
    trace = translator.look(SOURCE)
    assert sorted(trace.arrays) == sorted(
        f"{site}.weights"
        for layer in (0, 1)
        for site in (f"encoder.{layer}.self", f"decoder.{layer}.self", f"decoder.{layer}.cross")
    )
    for layer in (0, 1):
        weights_HTS = trace[f"decoder.{layer}.cross"]
        assert weights_HTS.shape == (4, len(trace.target_ids), len(trace.source_ids))
        np.testing.assert_allclose(weights_HTS.sum(axis=-1), 1, atol=1e-5)


def test_asking_by_address_bounds_layers_kinds_heads_and_stages(translator: Translator) -> None:
    ask = Ask(("decoder.1.cross.3", "decoder.1.cross.1"), stages="context")
    trace = translator.look(SOURCE, ask=ask)
    whole = translator.look(SOURCE, everything=True)
    assert list(trace.arrays) == ["decoder.1.cross.context"]
    assert trace.heads == (1, 3)
    for head in (1, 3):
        np.testing.assert_array_equal(
            trace[f"decoder.1.cross.{head}.context"], whole[f"decoder.1.cross.{head}.context"]
        )
    with pytest.raises(InputError, match=r"holds \(1, 3\), but is 0"):
        trace["decoder.1.cross.0.context"]
    with pytest.raises(InputError, match=r"does not hold 'decoder\.0\.cross'"):
        trace["decoder.0.cross"]


def test_head_of_a_trace_of_some_heads_is_never_taken_for_another(translator: Translator) -> None:
    trace = translator.look(SOURCE, ask=Ask("decoder.1.cross.3"))
    whole = translator.look(SOURCE)
    np.testing.assert_array_equal(trace["decoder.1.cross.3"], whole["decoder.1.cross"][3])
    # Its first would be head 3, without a word.
    for name in ("decoder.1.cross", "decoder.1.cross.weights"):
        with pytest.raises(InputError, match=r"only some heads.*trace\['decoder\.1\.cross\.3'\]"):
            trace[name]
        assert name not in trace
    assert "decoder.1.cross.3" in trace
    assert "decoder.1.cross.2" not in trace
    assert list(trace) == ["decoder.1.cross.weights"]
    assert trace.arrays["decoder.1.cross.weights"].shape[0] == 1


def test_trace_gives_heads_stages_and_arrays_by_their_address(whole: Trace) -> None:
    arrays = whole.arrays
    for name, array in (
        ("decoder.1.cross", arrays["decoder.1.cross.weights"]),
        ("decoder.1.cross.2", arrays["decoder.1.cross.weights"][2]),
        ("decoder.1.cross.2.query", arrays["decoder.1.cross.query"][2]),
        ("decoder.1.cross.scores", arrays["decoder.1.cross.scores"]),
        ("decoder.logits", arrays["decoder.logits"]),
        ("encoder.0.feed_forward.inner", arrays["encoder.0.feed_forward.inner"]),
    ):
        assert name in whole
        np.testing.assert_array_equal(whole[name], array)
    weights = arrays["decoder.1.cross.weights"]
    np.testing.assert_array_equal(whole["decoder", 1, "cross", 2], weights[2])
    np.testing.assert_array_equal(whole.weights("decoder.1.cross.2"), weights[2])
    np.testing.assert_array_equal(whole.weights("decoder", 1, "cross", 2), weights[2])
    np.testing.assert_array_equal(whole.weights("decoder", 1, "cross"), weights)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (("decoder.1.cross.2.query",), "at most 4 levels"),
        (("decoder.logits",), "layer in the address"),
        (("decoder", 1, "croos"), "Did you mean 'cross'"),
        (("decoder", 9, "cross", 0), "does not hold 'decoder.9.cross.0'"),
        ((), "must be encoder, decoder"),
    ],
)
def test_what_has_no_weights_is_refused(
    whole: Trace, address: tuple[str | int, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        whole.weights(*address)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("decoder.1.croos.0", "Did you mean 'decoder.1.cross.0'"),
        ("decoder.*.cross.0", "does not hold 'decoder.*.cross.0'. Did you mean"),
        ("decoder.1.feed_forward.0.inner", "does not hold"),
        ("decoder.1.cross.7", r"holds \(0, 1, 2, 3\), but is 7"),
        ("decoder", "does not hold"),
        ("", "does not hold"),
        (3, "must be a text such as 'decoder.1.cross.0', but is 3"),
    ],
)
def test_what_a_trace_does_not_hold_is_refused_with_the_nearest_name(
    whole: Trace, name: str, message: str
) -> None:
    assert name not in whole
    with pytest.raises(InputError, match=message):
        whole[name]


def test_nothing_of_a_trace_can_be_written_to(whole: Trace) -> None:
    with pytest.raises(ValueError, match="read-only"):
        whole["decoder.1.cross.0"][:] = 0
    for records in (whole.arrays, whole.checks, whole.model, whole.decoding):
        with pytest.raises(TypeError):
            records["rows"] = 0  # type: ignore[index]
    copied = pickle.loads(pickle.dumps(whole))
    assert list(copied) == list(whole)
    assert copied.decoding == whole.decoding


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (Ask("*.2"), "layer must be from 0 to 1"),
        (Ask("*.*.*.4"), "head must be from 0 to 3"),
        (Ask("decoder.1.self", stages="inner"), "no stage inner. Name one of its stages: input"),
    ],
    ids=str,
)
def test_asking_for_what_a_model_does_not_have_is_refused(
    translator: Translator, ask: Ask, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        translator.look(SOURCE, ask=ask)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"heads": "decoder.-1"}, "The layer in the address 'decoder.-1'"),
        ({"heads": "encoder.0.cross"}, "no cross-attention"),
        ({"heads": "decoder.1.corss"}, "Did you mean 'cross'"),
        ({"heads": 1}, "heads must be a text such as 'decoder.1.cross.0' or several, but is 1"),
        ({"heads": (3, 1)}, r"heads must be a text .* but is \(3, 1\)"),
        ({"stages": "wieghts"}, "Did you mean 'weights'"),
        ({"stages": None}, "stages must be a text such as 'weights' or several, but is None"),
    ],
    ids=str,
)
def test_asking_for_what_no_model_has_is_refused_at_once(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ask(**given)


def test_size_is_known_before(whole: Trace, translator: Translator) -> None:
    lengths = (len(whole.source_ids), len(whole.target_ids))
    for ask in (Ask(), Ask(everything=True), Ask("*.0.*.2", stages="query")):
        trace = translator.look(SOURCE, ask=ask)
        size = sum(array.nbytes for array in trace.arrays.values())
        assert ask.num_bytes(translator.model.config, *lengths) == size


def test_what_does_not_fit_into_memory_is_refused_before_it_is_tried(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["pellucid.inside.pair"]
    monkeypatch.setattr(module, "available_memory", lambda _device: 10_000)
    with pytest.raises(InputError, match=r"but takes 0\.0 GiB.*Ask for less"):
        translator.look(SOURCE, everything=True)


def test_double_precision_agrees_closely(translator: Translator, whole: Trace) -> None:
    exact = translator.look(SOURCE, everything=True, float64=True)
    assert exact.checks["weights"] < 1e-12
    assert exact.checks["contributions"] < 1e-12
    assert exact.decoding["replay_precision"] == "float64"
    for name, array in whole.arrays.items():
        assert exact[name].dtype == np.float64
        finite = np.isfinite(array)
        scale = np.abs(array[finite]).max()
        assert np.abs(exact[name][finite] - array[finite]).max() <= 1e-5 * scale, name


def test_a_given_target_is_looked_at_without_a_decode(translator: Translator) -> None:
    trace = translator.look(SOURCE, translation="La pizza est bonne.")
    assert trace.decode_log_probabilities is None
    assert "decode" not in trace.checks
    (scored,) = translator.score([SOURCE], ["La pizza est bonne."])
    assert trace.log_probabilities == pytest.approx(scored.token_log_probabilities, abs=1e-4)
    assert trace.predicted_ids == scored.ids


def test_a_replay_that_disagrees_is_told(translator: Translator) -> None:
    (translation,) = translator.translate([SOURCE], precision="float32")
    pair = make_pair(translator.bundle, SOURCE, translation.ids)
    wrong = [value - 0.01 for value in translation.token_log_probabilities]
    trace = replay(pair, decode_log_probabilities=wrong, decoding={"precision": "float32"})
    (problem,) = trace.problems
    assert "differ by 0.01" in problem
    coarse = replay(pair, decode_log_probabilities=wrong, decoding={"precision": "int8"})
    assert coarse.problems == ()
    nonsense = replace(coarse, checks={**coarse.checks, "decode": math.nan})
    assert len(nonsense.problems) == 1


class _Cut:
    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        if (site, stage) == ("decoder.1.cross", "context"):
            return torch.zeros_like(tensor)
        return None


def test_a_change_is_seen_in_what_follows_from_it(translator: Translator, whole: Trace) -> None:
    cut = translator.look(
        SOURCE,
        translation=translator.translate([SOURCE])[0].text,
        ask=Ask(everything=True),
        changes=_Cut(),
    )
    before, after = "decoder.1.cross.weights", "decoder.1.feed_forward.input"
    np.testing.assert_allclose(cut[before], whole[before], atol=1e-6)
    assert np.abs(cut[after] - whole[after]).max() > 0.1
    assert not cut["decoder.1.cross.context"].any()


@pytest.mark.sample(4)
@pytest.mark.parametrize("ending", ["npz", "json", "json.gz", "safetensors"])
@pytest.mark.parametrize("float64", [False, True])
def test_a_trace_comes_back_equal(
    translator: Translator, tmp_path: Path, ending: str, float64: bool
) -> None:
    for trace in (
        translator.look(SOURCE, everything=True, float64=float64),
        translator.look(SOURCE, translation="La pizza.", ask=Ask("*.*.*.2")),
    ):
        path = tmp_path / f"trace.{ending}"
        trace.save(path)
        # From a file, and from its bytes.
        found, again = load_trace(path), load_trace(path.read_bytes())
        assert again["decoder.1.cross.2"].tobytes() == trace["decoder.1.cross.2"].tobytes()
        assert list(found.arrays) == list(trace.arrays)
        for name, array in trace.arrays.items():
            assert found.arrays[name].dtype == array.dtype
            np.testing.assert_array_equal(found.arrays[name], array)
        for field in trace.__dataclass_fields__.keys() - {"arrays"}:
            assert getattr(found, field) == getattr(trace, field), field


def test_npz_opens_without_pickle_and_json_writes_minus_infinity(
    whole: Trace, tmp_path: Path
) -> None:
    whole.save(tmp_path / "t.npz")
    whole.save(tmp_path / "t.json")
    with np.load(tmp_path / "t.npz", allow_pickle=False) as archive:
        assert archive["source_tokens"].dtype.kind == "U"
        assert archive["checks"].shape == ()
        assert json.loads(str(archive["model"]))["model_hash"] == whole.model["model_hash"]
        assert archive["decoder.0.self.masked"].dtype == np.float32
    values = json.loads((tmp_path / "t.json").read_text(), parse_constant=pytest.fail)
    assert values["decoder.0.self.masked"][0][0][1] == "-inf"
    assert values["target_tokens"] == list(whole.target_tokens)


def test_arrays_may_go_to_a_file_one_by_one(translator: Translator, tmp_path: Path) -> None:
    pair = make_pair(translator.bundle, SOURCE, "La pizza.")
    with NpzWriter(tmp_path / "t.npz") as writer:
        trace = replay(pair, Ask(everything=True), keep=writer.keep)
        assert not (tmp_path / "t.npz").exists()
        writer.finish(surroundings(trace))
    assert [path.name for path in tmp_path.iterdir()] == ["t.npz"]
    assert trace.arrays == {}
    found = load_trace(tmp_path / "t.npz")
    held = replay(pair, Ask(everything=True))
    assert sorted(found.arrays) == sorted(held.arrays)
    np.testing.assert_array_equal(found["decoder.logits"], held["decoder.logits"])


@pytest.mark.parametrize("ending", ["npz", "json", "json.gz", "safetensors"])
def test_files_that_are_no_traces_are_refused(whole: Trace, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t.{ending}"
    with pytest.raises(InputFileNotFoundError, match="does not exist"):
        load_trace(path)
    whole.save(path)
    data = path.read_bytes()
    flipped = data[:2000] + bytes([data[2000] ^ 1]) + data[2001:] if "z" in ending else b"\xff"
    for damaged in (b"", data[: len(data) // 2], b"[1, 2]", b"{}", flipped):
        path.write_bytes(damaged)
        for source in (path, damaged):
            with pytest.raises(InputError, match=r"is damaged|cannot be read|must be 1"):
                load_trace(source)
    for name in ("t.txt", "t.npz.gz", "t.gz"):
        with pytest.raises(
            InputError, match=r"must be a \.npz, \.json, \.safetensors or \.json\.gz file"
        ):
            load_trace(tmp_path / name)


def test_a_trace_of_a_later_format_is_refused(whole: Trace, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    whole.save(path)
    path.write_text(path.read_text().replace('"format": 1', '"format": 2', 1))
    with pytest.raises(InputError, match="must be 1, but is 2"):
        load_trace(path)


def test_a_trace_that_cannot_be_written_is_told(whole: Trace, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.npz"):
        whole.save(tmp_path / "t.doc")
    for ending in ("npz", "json"):
        with pytest.raises(OutputError):
            whole.save(tmp_path / "no" / "folder" / f"t.{ending}")
    assert not list(tmp_path.iterdir())


def test_empty_and_long_texts_are_refused(translator: Translator) -> None:
    with pytest.raises(InputError, match="line is empty"):
        translator.look(" ", translation="x")
    with pytest.raises(InputError, match="at most 256 tokens"):
        translator.look("a " * 300, translation="x")
    with pytest.raises(InputError, match="A target must have at most 256"):
        translator.look("a", translation="x " * 300)


class _Probe:
    """A probe of one function."""

    def __init__(self, see: Any, **attributes: Any) -> None:
        self._see = see
        self.__dict__.update(attributes)

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        found: Tensor | None = self._see(f"{site}.{stage}", tensor)
        return found


@pytest.mark.parametrize(
    "options",
    [{}, {"beam": 3, "n_best": 2}, {"sample": True, "seed": 3}, {"precision": "bfloat16"}],
    ids=str,
)
@pytest.mark.parametrize("float64", [False, True])
def test_changed_replay_is_not_compared_with_the_unchanged_decode(
    translator: Translator, options: dict[str, Any], float64: bool
) -> None:
    how = Replaying(changes=Changes(parse_change("cut encoder.1.self.3")), float64=float64)
    (traces,) = translator.look_at_each([SOURCE], how, **options)
    for trace in traces:
        assert trace.problems == ()
        assert "decode" not in trace.checks
        assert trace.decode_log_probabilities is not None  # they stay for the reader
        # Unchanged attention still follows from what enters it.
        assert trace.checks.keys() == {"weights", "rows", "contributions"}


def test_decode_under_the_same_changes_is_compared(translator: Translator) -> None:
    changes = Changes(parse_change("cut decoder.1.cross.1"))
    pair = make_pair(translator.bundle, SOURCE, "La pizza.", float64=True)
    found = decode_under(pair, changes, max_length=20)
    pair = make_pair(translator.bundle, SOURCE, found.ids, float64=True)
    given = {"decode_log_probabilities": found.log_probabilities, "changes": changes}
    trace = replay(pair, **given, decoded_under_changes=True)
    assert trace.checks["decode"] < 1e-4
    wrong = [value - 0.01 for value in found.log_probabilities]
    given["decode_log_probabilities"] = wrong
    assert replay(pair, **given, decoded_under_changes=True).problems


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_replacement_of_another_type_is_replayed_in_double_precision(
    translator: Translator, dtype: torch.dtype
) -> None:
    def look_at_itself(name: str, tensor: Tensor) -> Tensor | None:
        if name != "encoder.0.self.weights":
            return None
        return torch.eye(tensor.shape[-1], dtype=dtype).expand_as(tensor)

    trace = translator.look(SOURCE, changes=_Probe(look_at_itself), float64=True)
    length = len(trace.source_tokens)
    expected = np.broadcast_to(np.eye(length), (4, length, length))
    np.testing.assert_array_equal(trace["encoder.0.self"], expected)
    assert trace.problems == ()


@pytest.mark.parametrize(
    "see",
    [
        lambda name, tensor: tensor * 0 if name == "encoder.0.self.weigths" else None,
        lambda name, tensor: tensor,
        lambda name, tensor: (tensor.zero_(), None)[1],
    ],
    ids=["typo", "returns what it sees", "changes in place and returns nothing"],
)
def test_probe_that_replaces_nothing_is_told_and_changes_nothing(
    translator: Translator, see: Any
) -> None:
    before = translator.look(SOURCE)
    with pytest.warns(UserWarning, match="The probe replaced nothing"):
        trace = translator.look(SOURCE, changes=_Probe(see))
    assert trace.decoding["changes"] == "by a probe, which replaced nothing"
    assert trace.checks.keys() == before.checks.keys()
    assert trace.log_probabilities == before.log_probabilities


class _Watcher:
    def __init__(self, is_writing: bool = False) -> None:
        self.seen: list[str] = []
        self._is_writing = is_writing

    def see(self, site: str, stage: str, tensor: torch.Tensor) -> None:
        self.seen.append(f"{site}.{stage}")
        if self._is_writing:
            tensor.zero_()


def test_probe_that_only_observes_is_no_change(translator: Translator) -> None:
    watcher = _Watcher()
    # Warnings are errors.
    trace = translator.look(SOURCE, changes=watcher)
    assert "encoder.0.self.weights" in watcher.seen
    assert "changes" not in trace.decoding
    with pytest.warns(UserWarning, match="The probe replaced nothing"):
        translator.look(SOURCE, changes=_Watcher(is_writing=True))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (_Probe(lambda *_: None, sites=("encoder.0.slef",)), "Did you mean 'encoder.0.self'"),
        (_Probe(lambda *_: None, sites="encoder.9.self"), "must exist in this model"),
        ("cut encoder.9.self.1", "must be from 0 to 1"),
        (parse_change("cut encoder.9.self.1"), "must be from 0 to 1"),
        (object(), r"changes must be a text such as .*, a probe \(an object with a method see"),
        (Changes(parse_change("cut encoder.9.self.1")), "must be from 0 to 1"),
        (Changes(parse_change("cut encoder.0.self.9")), "must be from 0 to 3"),
        (Changes(parse_change("cut encoder.0.self.1:99>0")), "query must be from 0 to"),
    ],
    ids=["sites", "layer", "text", "change", "object", "layer of a change", "head", "query"],
)
@pytest.mark.parametrize("target", [None, "La pizza."])
def test_change_of_what_does_not_exist_is_refused(
    translator: Translator, changes: Any, message: str, target: str | None
) -> None:
    with pytest.raises(InputError, match=message):
        translator.look(SOURCE, translation=target, changes=changes)


def test_trace_is_written_in_one_line(whole: Trace) -> None:
    written = repr(whole)
    assert len(written) < 150
    assert "\n" not in written
    assert written.startswith(f"<Trace of {whole.model['name']}: ▁The")
    assert re.search(rf"{len(whole.arrays)} arrays, [\d.]+ KiB>$", written)
    one = replace(whole, arrays={"decoder.logits": np.ones((3, 7), dtype=np.float32)}, model={})
    assert repr(one).endswith("; 1 array, 84 B>")


def test_other_records_are_written_in_about_two_lines(translator: Translator) -> None:
    long = " ".join([SOURCE] * 2)
    pair = make_pair(translator.bundle, long, "La pizza est bonne . " * 9)
    steps = pellucid.attend(np.ones((90, 5)), np.ones((70, 5)), np.ones((70, 3)))
    change = parse_change("cut encoder.1.self.3")
    rows = head_rows(replay(pair), pair=pair)
    for record in (pair, steps, rows[0], measure(pair, "alti"), what_if(pair, [change])):
        assert len(repr(record)) < 400
        assert "\n" not in repr(record)
    assert "scores=torch.float64 (90, 70)" in repr(steps)
    assert "head=encoder.0.self.0" in repr(rows[0])
