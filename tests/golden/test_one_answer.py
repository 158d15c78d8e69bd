"""A model writes the same words through every door: shell, Python, HTTP, documents and page.

The lines are of the test split of the built-in corpus and of the sentences written by hand, 2,691
in all. `make test` takes a few of them, and --full every tenth: all of them through every door take
half an hour of a core, with `DOORS_EVERY=1 pytest --full tests/golden/test_one_answer.py`. `COARSE`
are lines that the packaged model translates with other words in int8, so that a door with a
precision of its own shows.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from coarse_lines import coarse_lines
from page_in_node import compare, find_node
from served import Live

import pellucid
from pellucid.bundle import load_bundle, resolve_model
from pellucid.corpora import make_split
from pellucid.decode.decoder import make_decoder
from pellucid.decode.native import NativePath
from pellucid.formats.exporting import export_bundle
from pellucid.inside.show.model_page import carry_model
from pellucid.inside.studies.study_lines import Searcher, prepare_study_lines
from pellucid.native.loading import instruction_sets
from pellucid.serve.models import load_models
from pellucid.translate.translator import Translator

Run = Callable[..., subprocess.CompletedProcess[str]]
HERE = Path(__file__).parent
BY_HAND = ("own_sentences.txt", "neighbors.txt", "harder_sentences.txt")

COARSE = [one.line for one in coarse_lines()]

EVERY = int(os.environ.get("DOORS_EVERY", "10"))
"""One line of so many is asked with --full."""
BEAM_EVERY = 7
"""The page's beam of 5 takes a greedy search's time several times: one line of so many has it."""

AS_JSON = {"Accept": "application/json"}

# With DOORS_EVERY=1 each door answers 2,694 lines.
pytestmark = pytest.mark.timeout(1800)

needs_engine = pytest.mark.skipif(not instruction_sets(), reason="the engine in C was not built")


@cache
def all_lines() -> list[str]:
    lines = [example.source for example in make_split("test")]
    for name in BY_HAND:
        written = (HERE / name).read_text(encoding="utf-8").splitlines()
        lines += [line.split(" = ")[0] for line in written if not line.startswith("#")]
    return lines[::EVERY]


@pytest.fixture
def lines(some: Callable[[Sequence[str], int], Sequence[str]]) -> list[str]:
    return [*COARSE, *some(all_lines(), 12)]


@pytest.fixture(params=["float32", "int8", "bfloat16"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The packaged model, and the same one that computes in fewer bits by default."""
    if request.param == "float32":
        return "demo"
    bundle = load_bundle(resolve_model("demo"))
    export_bundle(bundle, tmp_path / "bundle", request.param, computes=request.param)
    return str(tmp_path / "bundle")


def words_of(found: pellucid.Translation | Sequence[pellucid.Translation]) -> list[str]:
    return [one.text for one in found]


def differing(lines: Sequence[str], texts: Sequence[str], others: Sequence[str]) -> list[Any]:
    return [one for one in zip(lines, texts, others, strict=True) if one[1] != one[2]]


def by_look(translator: Translator, lines: Sequence[str]) -> list[str]:
    traces = translator.look_at_each(lines)
    return [str(each[0].decoding["text"]) for each in traces]


def by_pair(translator: Translator, lines: Sequence[str]) -> list[str]:
    decode = translator.tokenizer.decode_target
    return [decode(translator.pair(line).target_ids) for line in lines]


def by_study(translator: Translator, lines: Sequence[str]) -> list[str]:
    bundle = translator.bundle
    decoder = make_decoder([bundle.model], bundle.tokenizer)
    found, problems = prepare_study_lines(bundle, Searcher(bundle), decoder, lines, None, None)
    assert not problems
    return [one.own for one in found]


def by_evaluate(translator: Translator, lines: Sequence[str]) -> list[str]:
    return list(pellucid.evaluate(translator, source=lines, reference=lines).hypotheses)


def by_stream(translator: Translator, lines: Sequence[str]) -> list[str]:
    return ["".join(translator.stream(line)) for line in lines]


def one_by_one(translator: Translator, lines: Sequence[str]) -> list[str]:
    return [translator.translate(line).text for line in lines]


PYTHON = (one_by_one, by_stream, by_look, by_pair, by_study, by_evaluate)


@needs_engine
def test_coarse_lines_are_those_of_the_packaged_model() -> None:
    translator = pellucid.load("demo")
    for line, own, other in coarse_lines():
        assert translator.translate(line).text == own
        assert translator.translate(line, precision="int8").text == other != own


@needs_engine
def test_every_function_writes_the_same_words(model: str, lines: list[str]) -> None:
    translator = pellucid.load(model)
    texts = words_of(translator.translate(lines))
    for door in PYTHON:
        assert differing(lines, texts, door(translator, lines)) == [], door.__name__


def test_without_the_engine_all_functions_agree_and_notes_name_the_precision(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, some: Any
) -> None:
    lines = [*COARSE, *some(all_lines(), 6)]
    bundle = load_bundle(resolve_model("demo"))
    export_bundle(bundle, tmp_path / "bundle", "int8", computes="int8")
    monkeypatch.setattr(NativePath, "find_obstacle", lambda *_: "the engine was not built")
    translator = pellucid.load(tmp_path / "bundle")

    found = translator.translate(lines)

    assert {one.notes.precision for one in found} == {"float32"}
    assert translator.computes == "float32"
    for door in PYTHON:
        assert differing(lines, words_of(found), door(translator, lines)) == [], door.__name__


@needs_engine
def test_every_command_writes_the_same_words(
    model: str, lines: list[str], run_here: Run, tmp_path: Path
) -> None:
    translator = pellucid.load(model)
    texts = words_of(translator.translate(lines))
    # A document keeps the words that a model does not know, see docs/guides/documents.md.
    kept = words_of(translator.translate(lines, unknown="source-word"))
    source = tmp_path / "lines.txt"
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    document = tmp_path / "lines.json"
    document.write_text(json.dumps(dict(enumerate(lines))), encoding="utf-8")

    shell = run_here("translate", model, "-i", str(source)).stdout.splitlines()
    rows = run_here("translate", model, "-i", str(source), "--json").stdout.splitlines()
    done = run_here("translate", model, "-i", str(document), "--format", "json")
    looked = []
    for number, line in enumerate(COARSE):
        trace = tmp_path / f"{number}.json"
        run_here("look", model, line, "-o", str(trace))
        looked.append(json.loads(trace.read_text(encoding="utf-8"))["decoding"]["text"])

    assert differing(lines, texts, shell) == []
    assert differing(lines, texts, [json.loads(row)["translation"] for row in rows]) == []
    assert differing(lines, kept, list(json.loads(done.stdout).values())) == []
    assert looked == texts[: len(COARSE)]


@needs_engine
def test_bulk_writes_the_same_words(lines: list[str], run_forked: Run, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    run_forked("bulk", "run", "demo", str(tmp_path / "lines.txt"), "-o", str(tmp_path / "job"))
    written = run_forked("bulk", "collect", str(tmp_path / "job")).stdout.splitlines()
    assert differing(lines, words_of(pellucid.load("demo").translate(lines)), written) == []


@needs_engine
def test_every_route_answers_the_same_words(model: str, lines: list[str]) -> None:
    translator = pellucid.load(model)
    texts = words_of(translator.translate(lines))
    # Programs that speak LibreTranslate's protocol get the word of the source, and no <unk>.
    kept = words_of(translator.translate(lines, unknown="source-word"))
    few = lines[:9]
    with Live(load_models({"m": model})) as live:
        plain: list[str] = []
        for start in range(0, len(lines), 50):
            body = {"texts": lines[start : start + 50]}
            plain += [
                one["translation"]
                for one in live.post("/v1/translate", body).json()["translations"]
            ]
        compat = {"source": "en", "target": "fr"}
        other = [live.post("/translate", {"q": one, **compat}).json() for one in lines]
        looked = [live.post("/v1/look", {"text": one}, headers=AS_JSON) for one in few]
        streams = [live.post("/v1/translate", {"texts": one, "stream": True}) for one in lines]
        (described,) = live.get("/v1/models").json()["models"]

    decode = translator.tokenizer.decode_target
    written = [decode(one.json()["predicted_ids"]) for one in looked]
    assert differing(lines, texts, plain) == []
    assert differing(lines, kept, [one["translatedText"] for one in other]) == []
    assert differing(few, texts[: len(few)], written) == []
    assert differing(lines, texts, [whole_text(one.text) for one in streams]) == []
    assert described["computes"] == translator.computes


def whole_text(events: str) -> str:
    data = [line[6:] for line in events.splitlines() if line.startswith("data: ")]
    return str(json.loads(data[-1])["translation"])


@pytest.mark.parametrize("name", ["demo", "demo-untrained"])
def test_page_writes_the_same_words(name: str, lines: list[str], tmp_path: Path) -> None:
    node = find_node()
    if node is None:
        pytest.skip("Node or the page's libraries are missing")
    # Each line of the untrained twin is as long as it may be.
    lines = lines[: 3 if name == "demo-untrained" else None]
    translator = pellucid.load(name)
    searched = lines if len(lines) < 2 * BEAM_EVERY or EVERY == 1 else lines[::BEAM_EVERY]
    fixture = {"model": carry_model(translator.bundle), "lines": lines, "searched": searched}
    (tmp_path / "lines.json").write_text(json.dumps(fixture), encoding="utf-8")

    (page,) = compare(node, [tmp_path / "lines.json"], tmp_path, "doors")

    assert differing(lines, words_of(translator.translate(lines)), page["greedy"]) == []
    texts = words_of(translator.translate(searched, beam=5))
    assert differing(searched, texts, page["beam"]) == []
