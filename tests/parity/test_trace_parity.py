"""Every number of a trace against a second computation that sees only a bundle's files."""

from __future__ import annotations

import ast
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from of_subwords import SUBWORDS

import pellucid
from pellucid.bundle import save_bundle
from pellucid.config import BundleConfig, ModelConfig, TokenizerConfig, TokenizerRecipe
from pellucid.inside import Ask, Trace, load_trace
from pellucid.inside.line_traces import Replaying, look_at_hypotheses
from pellucid.model import Transformer
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.translate.translator import Translator

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from numpy_transformer import NumpyTransformer, distance, log_softmax  # noqa: E402

ROOT = HERE.parents[1]
Run = Callable[..., subprocess.CompletedProcess[str]]
DEMO = ROOT / "src" / "pellucid" / "models" / SUBWORDS
SENTENCES = (
    "The pizza came out of the oven and it tasted good.",
    "The dog found some pizza next to the baby and ate it.",
    "The bank told the man he was bankrupt.",
)
DECODINGS: dict[str, dict[str, Any]] = {
    "greedy": {"beam": 1},
    "beam 5": {"beam": 5, "n_best": 5},
    "sampling": {"sample": True, "temperature": 1.3, "seed": 7},
}

# A different prime for every axis (S and T count </s>); D is even where sines and cosines are.
S, T, H, K, E, F, V, TARGET_V = 5, 7, 3, 13, 17, 19, 37, 41
WORDS = [f"word{number}" for number in range(60)]
SOURCE, TARGET = " ".join(WORDS[3:7]), " ".join(WORDS[11:17])

CASES: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "pre-norm": {"norm": "pre"},
    "no norm": {"norm": "none"},
    "wide epsilon": {"layer_norm_epsilon": 0.3},
    "no residual": {"residual": False},
    "no residual, pre-norm": {"residual": False, "norm": "pre"},
    "scores not scaled": {"scale_scores": False},
    "no look-ahead mask": {"look_ahead_mask": False},
    "weights on keys": {"projections": "qk", "d_value": K},
    "no projections": {"projections": "none", "d_model": 26, "num_heads": 2, "d_value": 13},
    "halved positions": {"positions": "sinusoidal_halves"},
    "learned positions": {"positions": "learned", "d_model": 29},
    "no positions": {"positions": "none", "d_model": 29},
    "embeddings not scaled": {"embedding_scale": "none"},
    "no biases": {"projection_bias": False},
    "gelu": {"activation": "gelu"},
    "swish": {"activation": "swish"},
    "decoder tied": {"tied_embeddings": "decoder"},
    "nothing tied, output bias": {"tied_embeddings": "none", "has_output_bias": True},
    "output bias": {"has_output_bias": True},
    "values of width 1": {"d_value": 1},
    "rotary": {"positions": "rotary", "d_key": 14},
    "rotary, the keys are values": {
        "positions": "rotary",
        "projections": "qk",
        "d_key": 14,
        "d_value": 14,
    },
    "alibi": {"positions": "alibi", "d_model": 29},
    "relative": {"positions": "relative", "max_relative_distance": 3, "d_model": 29},
    "relative, not scaled": {
        "positions": "relative",
        "max_relative_distance": 2,
        "scale_scores": False,
    },
    "RMS norm": {"norm_kind": "rms"},
    "RMS norm, pre-norm, wide epsilon": {
        "norm_kind": "rms",
        "norm": "pre",
        "layer_norm_epsilon": 0.3,
    },
    "a norm after the last layer": {"stack_norm": True},
    "a norm of the input": {"input_norm": True, "activation": "gelu"},
    "a norm of the input, learned positions": {
        "input_norm": True,
        "norm": "pre",
        "positions": "learned",
    },
    "gated": {"gated_feed_forward": True},
    "gated, swish": {"gated_feed_forward": True, "activation": "swish"},
    "grouped": {"num_heads": 6, "num_key_value_heads": 2},
    "one head of keys, weights on keys": {
        "num_key_value_heads": 1,
        "projections": "qk",
        "d_value": K,
    },
    "all together": {
        "positions": "rotary",
        "norm_kind": "rms",
        "norm": "pre",
        "gated_feed_forward": True,
        "activation": "swish",
        "num_heads": 6,
        "num_key_value_heads": 2,
        "d_key": 14,
    },
    "recurrent units in the decoder": {"decoder": "ssru"},
    "recurrent units, pre-norm, nothing scaled": {
        "decoder": "ssru",
        "norm": "pre",
        "scale_scores": False,
    },
    "bfloat16 on disk": {"precision": "bfloat16"},
    "int8 on disk": {"precision": "int8", "norm": "pre", "tied_embeddings": "decoder"},
}


def save_random(
    folder: Path, *, has_output_bias: bool = False, precision: str = "float32", **changes: Any
) -> Path:
    """A bundle over whole words in which every weight matters."""
    is_joint = changes.get("tied_embeddings", "all") == "all"
    sharing: Literal["joint", "separate"] = "joint" if is_joint else "separate"
    target_size = V if is_joint else TARGET_V
    recipe = TokenizerRecipe(kind="words", sharing=sharing)
    tokenizer = learn_tokenizer(
        recipe,
        lambda: iter([" ".join(WORDS[: V - 4])]),
        lambda: iter([" ".join(WORDS[: target_size - 4])]),
    )
    sizes: dict[str, Any] = {"d_model": 22, "d_ff": F, "num_heads": H, "d_key": K, "d_value": E}
    depths = {"num_encoder_layers": 1, "num_decoder_layers": 2, "projection_bias": True}
    lengths = {"max_source_length": 11, "max_target_length": 23}
    vocabularies = {"source_vocabulary_size": V, "target_vocabulary_size": target_size}
    config = ModelConfig(**{**sizes, **depths, **lengths, **vocabularies, **changes})
    model = Transformer(config, has_output_bias=has_output_bias)
    numbers = torch.Generator().manual_seed(29)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Wide enough that every weight matters, narrow enough that no softmax saturates.
            width = parameter.shape[1] ** -0.5 if parameter.dim() == 2 else 0.3
            center = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.normal_(center, width, generator=numbers)
    stored = {key: getattr(recipe, key) for key in TokenizerConfig.model_fields}
    save_bundle(
        folder,
        config=BundleConfig.model_validate(
            {"model": config, "tokenizer": TokenizerConfig(**stored), "precision": precision}
        ),
        weights=model.state_dict(),
        tokenizer=tokenizer,
        recipe_toml="",
        provenance={},
    )
    return folder


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load(SUBWORDS)


@pytest.fixture(scope="module")
def random_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random(tmp_path_factory.mktemp("random") / "bundle", norm="pre")


def problems_of(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> list[str]:
    """List the arrays of a trace that are wrong."""
    problems = [f"{name} is missing" for name in expected.keys() - found.keys()]
    problems += [f"{name} is one too many" for name in found.keys() - expected.keys()]
    dtypes = {array.dtype for array in found.values()}
    problems += [] if len(dtypes) == 1 else [f"the numbers are of {dtypes}"]
    for name in expected.keys() & found.keys():
        absolute, share = distance(expected[name], found[name])
        if found[name].dtype == np.float64:
            is_right = absolute <= 1e-9
        else:
            is_right = absolute <= 1e-5 if name.endswith(".weights") else share <= 1e-5
        if not is_right:
            problems.append(f"{name} is {absolute:.2g} apart, {share:.2g} of its largest")
        if np.isneginf(found[name]).any() and not name.endswith(".masked"):
            problems.append(f"{name} has infinities")
    return problems


def assert_equals_numpy(trace: Trace, folder: Path) -> None:
    """Check a whole trace, and its records of the target, from the ids in it."""
    expected = NumpyTransformer(folder).run(trace.source_ids, trace.target_ids)
    problems = problems_of(trace.arrays, expected)
    assert not problems, "\n".join(problems)
    logs_TV = log_softmax(expected["decoder.logits"])
    rows = np.arange(len(trace.target_ids))
    is_double = trace.arrays["decoder.logits"].dtype == np.float64
    np.testing.assert_allclose(
        trace.log_probabilities,
        logs_TV[rows, list(trace.predicted_ids)],
        rtol=0,
        atol=1e-9 if is_double else 1e-5 * np.abs(expected["decoder.logits"]).max(),
    )


def all_traces(demo: Translator, options: dict[str, Any]) -> Iterator[tuple[Trace, Trace]]:
    """Every hypothesis of some sentences, in float32 and in float64."""
    how = [Replaying(Ask(everything=True), float64=float64) for float64 in (False, True)]
    for single, double in zip(
        *(demo.look_at_each(SENTENCES, one, **options) for one in how), strict=True
    ):
        assert len(single) == len(double) == options.get("n_best", 1)
        yield from zip(single, double, strict=True)


@pytest.mark.parametrize("decoding", DECODINGS)
def test_demo_traces_equal_numpy_and_their_decode(decoding: str, demo: Translator) -> None:
    for single, double in all_traces(demo, DECODINGS[decoding]):
        assert single.target_ids == double.target_ids
        for trace in (single, double):
            assert_equals_numpy(trace, DEMO)
            assert trace.decode_log_probabilities is not None
            differences = np.subtract(trace.log_probabilities, trace.decode_log_probabilities)
            assert np.abs(differences).max() <= 1e-4
            assert trace.checks["decode"] == pytest.approx(np.abs(differences).max(), abs=1e-15)
            assert not trace.problems


@pytest.mark.sample(12)
@pytest.mark.parametrize("case", CASES)
def test_trace_of_every_kind_of_model_equals_numpy(case: str, tmp_path: Path) -> None:
    folder = save_random(tmp_path / "bundle", **CASES[case])
    translator = pellucid.load(folder)
    for float64 in (False, True):
        trace = translator.look(SOURCE, translation=TARGET, everything=True, float64=float64)
        assert (len(trace.source_ids), len(trace.target_ids)) == (S, T)
        assert_equals_numpy(trace, folder)
        decoded = translator.look(SOURCE, everything=True, float64=float64, max_length=T)
        assert decoded.target_ids[0] == 2
        assert_equals_numpy(decoded, folder)
        # Without the look-ahead mask a replay sees what a decode could not, which is reported.
        assert bool(decoded.problems) == (case == "no look-ahead mask")
        assert (decoded.checks["decode"] <= 1e-4) == (not decoded.problems)


@pytest.mark.parametrize("float64", [False, True])
def test_trace_of_the_shortest_pair_equals_numpy(float64: bool, random_folder: Path) -> None:
    trace = pellucid.load(random_folder).look(
        WORDS[0], translation="", everything=True, float64=float64
    )
    assert len(trace.source_ids) == 2
    assert trace.target_ids == (2,)
    assert_equals_numpy(trace, random_folder)


def test_trace_of_some_heads_and_layers_is_a_part_of_numpy(random_folder: Path) -> None:
    ask = Ask(["*.1.cross.2", "*.1.cross.0"], stages=("query", "weights", "output"))
    trace = pellucid.load(random_folder).look(SOURCE, translation=TARGET, ask=ask, float64=True)
    all_arrays = NumpyTransformer(random_folder).run(trace.source_ids, trace.target_ids)
    expected = {
        "decoder.1.cross.query": all_arrays["decoder.1.cross.query"][[0, 2]],
        "decoder.1.cross.weights": all_arrays["decoder.1.cross.weights"][[0, 2]],
        "decoder.1.cross.output": all_arrays["decoder.1.cross.output"],
    }
    assert not problems_of(trace.arrays, expected)
    assert trace.heads == (0, 2)


def test_trace_without_a_wish_holds_the_weights_of_everything(random_folder: Path) -> None:
    trace = pellucid.load(random_folder).look(SOURCE, translation=TARGET)
    all_arrays = NumpyTransformer(random_folder).run(trace.source_ids, trace.target_ids)
    weights = {name: array for name, array in all_arrays.items() if name.endswith(".weights")}
    assert not problems_of(trace.arrays, weights)
    assert list(trace.arrays) == list(weights)


def test_words_of_a_trace_are_those_of_the_vocabulary_files(tmp_path: Path) -> None:
    folder = save_random(tmp_path / "bundle", tied_embeddings="none")
    trace = pellucid.load(folder).look(SOURCE, translation=TARGET, everything=True)
    sources = (folder / "source.txt").read_text().splitlines()
    targets = (folder / "target.txt").read_text().splitlines()
    assert trace.source_tokens == tuple(sources[one] for one in trace.source_ids)
    assert trace.target_tokens == tuple(targets[one] for one in trace.target_ids)
    assert trace.predicted_tokens == tuple(targets[one] for one in trace.predicted_ids)
    assert trace.source_tokens == (*SOURCE.split(), "</s>")
    assert trace.target_tokens == ("<s>", *TARGET.split())
    assert trace.predicted_tokens == (*TARGET.split(), "</s>")
    best = NumpyTransformer(folder).run(trace.source_ids, trace.target_ids)["decoder.logits"]
    assert trace.argmax_tokens == tuple(targets[one] for one in best.argmax(axis=1))


def read_npz(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def read_json(path: Path) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    values: dict[str, Any] = json.loads(path.read_text(), parse_constant=refuse)
    return values


@pytest.mark.parametrize("float64", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_files_hold_every_number_and_read_back_equal(
    float64: bool, given: bool, demo: Translator, tmp_path: Path
) -> None:
    target = "Elle est bonne." if given else None
    trace = demo.look("It is good.", translation=target, everything=True, float64=float64)
    for ending in ("npz", "json"):
        trace.save(tmp_path / f"trace.{ending}")
        again = load_trace(tmp_path / f"trace.{ending}")
        assert_same(again, trace)
        again.save(tmp_path / f"again.{ending}")
        paths = [tmp_path / f"{name}.{ending}" for name in ("trace", "again")]
        assert paths[0].read_bytes() == paths[1].read_bytes()
    packed, plain = read_npz(tmp_path / "trace.npz"), read_json(tmp_path / "trace.json")
    expected = NumpyTransformer(DEMO).run(
        packed["source_ids"].tolist(), packed["target_ids"].tolist()
    )
    from_npz = {name: packed.pop(name) for name in list(packed) if name in expected}
    from_json = {
        name: np.array(plain.pop(name), np.dtype(plain["dtype"]))
        for name in list(plain)
        if name in expected
    }
    assert not problems_of(from_npz, expected)
    for name, array in from_npz.items():
        assert array.dtype == from_json[name].dtype
        np.testing.assert_array_equal(array, from_json[name])
    assert_same_records(packed, plain)


def assert_same(found: Trace, expected: Trace) -> None:
    """Two traces, number by number and bit by bit."""
    for name, value in vars(expected).items():
        if name != "arrays":
            assert getattr(found, name) == value, name
    assert list(found.arrays) == list(expected.arrays)
    for name, array in expected.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape
        assert found.arrays[name].tobytes() == array.tobytes(), name


def assert_same_records(packed: dict[str, Any], plain: dict[str, Any]) -> None:
    """Check the records that both files hold, as `docs/formats/trace.md` lists them."""
    plain.pop("dtype")
    assert packed.keys() == plain.keys()
    for name in ("checks", "model", "decoding"):
        assert packed[name].shape == ()
        assert packed[name].dtype.kind == "U"
        assert json.loads(str(packed.pop(name))) == plain.pop(name)
    assert packed.pop("format") == plain.pop("format") == 1
    if plain["decode_log_probabilities"] is None:
        assert packed["decode_log_probabilities"].size == 0
        plain["decode_log_probabilities"] = []
    for name, values in plain.items():
        kind = "U" if name.endswith("tokens") else "f" if name.endswith("probabilities") else "i"
        assert packed[name].dtype.kind == kind
        assert packed[name].tolist() == values


def test_json_writes_masked_scores_as_strings(random_folder: Path, tmp_path: Path) -> None:
    trace = pellucid.load(random_folder).look(SOURCE, translation=TARGET, everything=True)
    trace.save(tmp_path / "trace.json")
    masked = read_json(tmp_path / "trace.json")["decoder.0.self.masked"]
    for head in masked:
        for query, row in enumerate(head):
            assert row[query + 1 :] == ["-inf"] * (T - 1 - query)
            assert all(isinstance(number, float) for number in row[: query + 1])


def test_trace_written_layer_by_layer_equals_the_one_held(
    random_folder: Path, tmp_path: Path
) -> None:
    translator = pellucid.load(random_folder)
    (translation,) = translator.translate([SOURCE], beam=2, n_best=2, max_length=T)
    held, written = (
        look_at_hypotheses(
            translator.bundle,
            SOURCE,
            translation.hypotheses,
            Replaying(ask=Ask(everything=True), into=into),
            decoding={"beam": 2},
        )
        for into in (None, lambda index, count: tmp_path / f"{index}-of-{count}.npz")
    )
    for index, (trace, without) in enumerate(zip(held, written, strict=True)):
        assert not without.arrays
        assert_same(load_trace(tmp_path / f"{index}-of-2.npz"), trace)


def test_command_with_all_writes_every_array(run_here: Run, tmp_path: Path) -> None:
    paths = [str(tmp_path / f"trace.{ending}") for ending in ("npz", "json")]
    files = ("-o", paths[0], "-o", paths[1])
    done = run_here("look", SUBWORDS, "It is good.", "--everything", "--float64", *files)
    assert done.returncode == 0, done.stderr
    for path in paths:
        assert_equals_numpy(load_trace(path), DEMO)


@pytest.mark.parametrize("name", ["encoder.0.self.scores", "decoder.1.cross.weights"])
def test_guard_a_wrong_number_is_found(name: str, random_folder: Path) -> None:
    trace = pellucid.load(random_folder).look(SOURCE, translation=TARGET, everything=True)
    expected = NumpyTransformer(random_folder).run(trace.source_ids, trace.target_ids)
    for wrong in (math.nan, -math.inf, float(expected[name][1, 0, 1]) + 1e-3):
        changed = trace.arrays[name].copy()
        changed[1, 0, 1] = wrong
        (problem,) = {
            one.split()[0] for one in problems_of({**trace.arrays, name: changed}, expected)
        }
        assert problem == name
    swapped = {**trace.arrays, name: trace.arrays[name][::-1]}
    assert problems_of(swapped, expected)
    less = {key: array for key, array in trace.arrays.items() if key != name}
    assert problems_of(less, expected) == [f"{name} is missing"]
    assert problems_of(trace.arrays, less) == [f"{name} is one too many"]


def test_numpy_shares_no_code_with_the_package() -> None:
    tree = ast.parse((HERE / "numpy_transformer.py").read_text(encoding="utf-8"))
    found = {
        one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names
    }
    found |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    allowed = {"json", "math", "numpy", "safetensors", "collections.abc", "pathlib", "typing"}
    assert found == allowed | {"__future__"}
