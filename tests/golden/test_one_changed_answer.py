"""Under the same change and the same search, every door writes the same words.

Changes of each kind that text can name, greedily and with a beam of 5: Python, command, HTTP, the
page that asks a server, and the page that computes. In float32, the packaged model's own precision.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from page_in_node import compare, find_node
from served import Live

import pellucid
from pellucid.inside.show.model_page import carry_model
from pellucid.serve.models import load_models
from pellucid.translate.translator import Translator

Run = Callable[..., subprocess.CompletedProcess[str]]

LINES = (
    "The pizza came out of the oven and it tasted good.",
    "The dog ate the cake because it was hungry.",
    "The red house was next to the old church.",
)
BEAMS = (1, 5)

CHANGES: dict[str, Sequence[str]] = {
    "cut a head": ["cut decoder.1.cross.0"],
    "average heads of the encoder": ["average encoder.1.self.*"],
    "average heads of the decoder": ["average decoder.1.cross.*"],
    "mean of heads": ["mean decoder.0.self.*"],
    "cut an edge of the encoder": ["cut encoder.*.self.*:3>1"],
    "zero an edge of the decoder": ["zero decoder.*.cross.*:2>1"],
    "force an edge": ["force decoder.1.cross.*:1>0=0.9"],
    "cut a word": ["cut word 1"],
    "zero a word": ["zero word 4"],
    "several": ["average encoder.1.self.2", "cut word 1", "zero decoder.*.cross.*:2>2"],
}
NOT_ON_THE_PAGE = {"mean of heads", "zero a word"}

Asked = tuple[str, Sequence[str], int]


def in_python(translator: Translator, asked: Asked) -> list[str]:
    line, changes, beam = asked
    given = list(changes)
    changed = translator.changed(given)
    decode = translator.tokenizer.decode_target
    trace = translator.look(line, changes=given, decode_changed=True, beam=beam)
    pair = translator.pair(line, beam=beam)
    return [
        "".join(changed.stream(line, beam=beam)),
        decode(trace.predicted_ids),
        decode(changed.pair(line, beam=beam).target_ids),
        pair.what_if(given, search=translator.options(beam=beam)).after.text,
    ]


def by_command(run: Run, folder: Path, asked: Asked) -> list[str]:
    line, changes, beam = asked
    how = [word for one in changes for word in ("--change", one)] + ["--beam", str(beam)]
    trace = folder / "trace.json"
    done = run("look", "demo", line, *how, "--decode-changed", "-o", str(trace), "--overwrite")
    assert done.returncode == 0, done.stderr
    said = run("look", "demo", line, *how).stdout
    # A long text continues on further lines.
    (now,) = re.findall(r"^Now +(.*?)\n  (?:word \d|the same)", said, re.DOTALL | re.MULTILINE)
    shell = run("translate", "demo", *how, stdin=f"{line}\n").stdout
    return [
        shell.removesuffix("\n"),
        " ".join(now.split()),
        json.loads(trace.read_text(encoding="utf-8"))["decoding"]["text"],
    ]


def over_http(live: Live, translator: Translator, asked: Asked) -> list[str]:
    line, changes, beam = asked
    how = {"changes": changes, "beam": beam}
    (plain,) = live.post("/v1/translate", {"texts": line, **how}).json()["translations"]
    stream = live.post("/v1/translate", {"texts": line, "stream": True, **how}).text
    trace = live.post(
        "/v1/look", {"text": line, **how}, headers={"Accept": "application/json"}
    ).json()
    found = live.post("/v1/change", {"text": line, **how}).json()
    unchanged = translator.translate(line, beam=beam).text
    assert found["before"]["text"] == found["original"]["text"] == unchanged
    end = json.loads(stream.rpartition("data: ")[2])
    looked = translator.tokenizer.decode_target(trace["predicted_ids"])
    return [plain["translation"], end["translation"], looked, found["after"]["text"]]


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with Live(load_models({"m": "demo"})) as server:
        yield server


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", CHANGES)
def test_every_door_writes_the_same_words_under_a_change(
    kind: str,
    live: Live,
    run_here: Run,
    tmp_path: Path,
    some: Callable[[Sequence[str], int], Sequence[str]],
) -> None:
    translator = pellucid.load("demo")
    changes = CHANGES[kind]
    for line in some(LINES, 1):
        for beam in BEAMS:
            asked = line, changes, beam
            expected = translator.translate(line, changes=list(changes), beam=beam).text
            assert in_python(translator, asked) == [expected] * 4
            assert by_command(run_here, tmp_path, asked) == [expected] * 3
            assert over_http(live, translator, asked) == [expected] * 4


def test_changes_and_beams_are_ones_that_matter() -> None:
    translator = pellucid.load("demo")
    unchanged = [translator.translate(line).text for line in LINES]
    differing = set()
    widths = 0
    for kind, changes in CHANGES.items():
        greedy, wide = (
            [one.text for one in translator.translate(LINES, changes=list(changes), beam=beam)]
            for beam in BEAMS
        )
        widths += greedy != wide
        if greedy != unchanged:
            differing.add(kind)
    assert len(differing) >= 7, differing
    assert widths >= 2


def test_page_writes_the_same_words_under_a_change(live: Live, tmp_path: Path) -> None:
    node = find_node()
    if node is None:
        pytest.skip("Node or the page's libraries are missing")
    translator = pellucid.load("demo")
    asked: list[tuple[str, list[str], int]] = []
    expected = []
    for kind in CHANGES.keys() - NOT_ON_THE_PAGE:
        for line in LINES:
            for beam in BEAMS:
                changes = list(CHANGES[kind])
                expected.append(translator.translate(line, changes=changes, beam=beam).text)
                # The page hides words by their number, and calls that by a shorter name.
                asked.append((line, [one.replace("cut word", "word") for one in changes], beam))
    fixture: dict[str, Any] = {"model": carry_model(translator.bundle), "asked": asked}
    fixture["address"] = live.url
    (tmp_path / "asked.json").write_text(json.dumps(fixture), encoding="utf-8")

    (page,) = compare(node, [tmp_path / "asked.json"], tmp_path, "changed_doors")

    assert page["server"] == expected
    assert page["page"] == expected
