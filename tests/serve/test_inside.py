"""Streams, traces and what-if over HTTP give what the library gives."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from served import Live

from pellucid.serve.models import Models, ServedModel
from pellucid.serve.settings import Limits, Settings

JSON = {"Accept": "application/json"}
PIZZA = "The pizza came out of the oven and it tasted good."


@pytest.fixture
def model(models: Models) -> ServedModel:
    (one,) = models
    return one


def read_events(live: Live, body: Any) -> list[tuple[str, dict[str, Any]]]:
    with live.client.stream("POST", "/v1/translate", json={**body, "stream": True}) as answer:
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        blocks = "".join(answer.iter_text()).split("\n\n")
    events = []
    for block in blocks[:-1]:
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        events.append((lines.get("event", ""), json.loads(lines["data"])))
    return events


@pytest.mark.parametrize("options", [{}, {"beam": 4}, {"sample": True, "seed": 5}])
def test_stream_pieces_make_the_translation(
    live: Live, model: ServedModel, options: dict[str, Any]
) -> None:
    *pieces, (kind, whole) = read_events(live, {"texts": PIZZA, **options})
    assert kind == "end"
    assert {name for name, _ in pieces} == {""}
    assert "".join(piece["text"] for _, piece in pieces) == whole["translation"]
    # The same object as without stream, field by field.
    answer = live.post("/v1/translate", {"texts": PIZZA, "strict": False, **options})
    (expected,) = answer.json()["translations"]
    rounded = pytest.approx(whole["hypotheses"][0].pop("log_probability"), abs=1e-4)
    assert expected["hypotheses"][0].pop("log_probability") == rounded
    rounded = pytest.approx(whole["hypotheses"][0].pop("score"), abs=1e-4)
    assert expected["hypotheses"][0].pop("score") == rounded
    assert whole == expected
    assert len(pieces) > 5 or "beam" in options


def test_stream_ends_with_the_tokens_and_the_notes_of_the_translation(live: Live) -> None:
    events = read_events(live, {"texts": "The xylophone sang.", "tokens": True})
    whole = events[-1][1]
    assert whole["notes"]["unknown_words"] == ["xylophone"]
    best = whole["hypotheses"][0]
    assert len(best["tokens"]) == len(best["token_log_probabilities"]) > 2
    assert best["text"] == whole["translation"]


def test_stream_constraints_hold(live: Live) -> None:
    events = read_events(live, {"texts": ["The dog ate it."], "prefix": "Un"})
    assert events[-1][1]["translation"].startswith("Un ")


def test_stream_changes_hold(live: Live, model: ServedModel) -> None:
    changes = ["average decoder.1.cross.*"]
    events = read_events(live, {"texts": PIZZA, "changes": changes})
    (expected,) = model.translator.translate([PIZZA], changes=changes)
    assert events[-1][1]["translation"] == expected.text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"texts": "a", "beam": 99}, "16"),
        ({"texts": "cat " * 300, "split": "none"}, "tokens"),
        ({"texts": "a", "target_language": "fra"}, "en-fr"),
        ({"texts": ["a", "b"]}, "texts must be one text"),
        ({"texts": "a", "changes": "cut decoder.9.cross.0"}, "layer"),
        *(
            ({"texts": "a", **given}, "cannot be combined with stream")
            for given in (
                {"n_best": 2},
                {"alternatives": True},
                {"prefixes": ["x"]},
                {"require_each": [["x"]]},
                {"unknown": "source-word"},
                {"retry": True},
                {"align": True},
                {"format": "html"},
            )
        ),
    ],
)
def test_stream_impossible_request_is_refused_before_it_begins(
    live: Live, body: Any, words: str
) -> None:
    answer = live.post("/v1/translate", {**body, "stream": True})
    assert answer.status_code == 422
    assert words in answer.json()["error"]


def read_trace(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    return json.loads(header["__metadata__"]["trace"]), safetensors.numpy.load(content)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"heads": "decoder.1.cross.2"},
        {"heads": ["encoder.1"], "everything": True},
        {"everything": True},
        {"stages": ["scores", "context"], "beam": 3},
        {"translation": "Le chien l'a mangé."},
    ],
)
def test_look_gives_the_arrays_of_the_library(
    live: Live, model: ServedModel, asked: dict[str, Any]
) -> None:
    from pellucid.inside import load_trace
    from pellucid.inside.ask import Ask

    answer = live.post("/v1/look", {"text": PIZZA, **asked})
    assert answer.status_code == 200, answer.text
    records, arrays = read_trace(answer.content)
    kept = {name: asked[name] for name in ("heads", "stages", "everything") if name in asked}
    ask = Ask(**kept)
    options = {"beam": asked["beam"]} if "beam" in asked else {}
    expected = model.translator.look(
        PIZZA, ask=ask, translation=asked.get("translation"), **options
    )
    assert set(arrays) == set(expected.arrays)
    for name, array in expected.arrays.items():
        np.testing.assert_allclose(arrays[name], array, atol=1e-6)
    # The same bytes are a file, and a trace again.
    loaded = load_trace(answer.content)
    assert set(loaded) == set(arrays)
    assert (loaded.predicted_ids, loaded.heads) == (expected.predicted_ids, expected.heads)
    in_json = live.post("/v1/look", {"text": PIZZA, **asked}, headers=JSON)
    assert in_json.headers["Content-Type"] == "application/json"
    same = load_trace(in_json.content)
    for name in loaded:
        np.testing.assert_array_equal(same.arrays[name], loaded.arrays[name])
    assert records["source_tokens"] == list(expected.source_tokens)
    assert records["predicted_tokens"] == list(expected.predicted_tokens)
    assert records["problems"] == []
    assert records["model"]["model_hash"] == expected.model["model_hash"]


def test_look_notes_what_is_unusual_and_cleans_if_asked(live: Live, model: ServedModel) -> None:
    body = {"text": " The\u00a0zyzzyva \U0001f600 is good. ", "beam": 1, "heads": "*.0"}
    records, _ = read_trace(live.post("/v1/look", {**body, "clean": True}).content)
    assert records["source_tokens"][:2] == model.translator.tokenizer.source_tokens(
        model.translator.tokenizer.encode_source("The zyzzyva")[:2]
    )
    notes = records["notes"]
    assert notes["changed"] == ["U+00A0 NO-BREAK SPACE"]
    assert notes["unknown"] == ["\U0001f600 U+1F600"]
    assert '"zyzzyva" (nothing close)' in notes["words"]
    looping = "it ate the cake and the dog ate the soup because it was hungry and " * 2
    records, _ = read_trace(live.post("/v1/look", {**body, "text": looping}).content)
    (found,) = model.translator.translate(
        [looping], beam=1, clean=False, split="none", precision="float32"
    )
    assert tuple(records["notes"]["flags"]) == found.notes.flags


def test_look_larger_than_the_limit_gives_413(models: Models) -> None:
    with Live(models, Settings(limits=Limits(look_bytes=20_000))) as server:
        assert server.post("/v1/look", {"text": PIZZA, "heads": ["*.0"]}).status_code == 200
        answer = server.post("/v1/look", {"text": PIZZA, "everything": True})
        assert answer.status_code == 413
        assert "20,000" in answer.json()["error"]
    # Text takes more bytes than the numbers in it.
    with Live(models, Settings(limits=Limits(response_bytes=20_000))) as server:
        body = {"text": PIZZA, "heads": ["decoder"]}
        assert server.post("/v1/look", body).status_code == 200
        assert server.post("/v1/look", body, headers=JSON).status_code == 413


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"text": ""}, "one line"),
        ({"text": "a\nb"}, "one line"),
        ({"text": "a", "heads": "decoder.7"}, "layer"),
        ({"text": "a", "stages": "weigths"}, "Did you mean 'weights'?"),
        ({"text": "a", "translation": "b", "beam": 2}, "translation"),
        ({"text": "cat " * 300}, "tokens"),
    ],
)
def test_look_impossible_request_is_refused(live: Live, body: Any, words: str) -> None:
    answer = live.post("/v1/look", body)
    assert answer.status_code == 422
    assert words in answer.json()["error"]


def test_change_gives_what_the_library_gives(live: Live, model: ServedModel) -> None:
    from pellucid.inside import Pair
    from pellucid.inside.changes.what_if import what_if
    from pellucid.inside.changes.written_changes import parse_changes

    body = {"text": PIZZA, "changes": ["cut word pizza", "average decoder.1.cross.0"]}
    answer = live.post("/v1/change", body)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    translator = model.translator
    trace = translator.look(PIZZA)
    pair = Pair(translator.model, translator.tokenizer, trace.source_ids, trace.predicted_ids)
    expected = what_if(pair, parse_changes(body["changes"], pair.tokenizer, PIZZA, pair.source_ids))
    assert found["after"]["text"] == expected.after.text != found["original"]["text"]
    assert found["effect"] == pytest.approx(expected.effect, abs=1e-5)
    assert [tuple(one["after"]) for one in found["edits"]] == [e.after for e in expected.edits]
    assert found["baseline"] is None


def test_change_baseline_and_given_target(live: Live) -> None:
    body = {"text": "A red house.", "translation": "Une maison rouge.", "random": 2}
    answer = live.post("/v1/change", {**body, "changes": ["cut decoder.0.cross.0"]}).json()
    assert answer["original"]["text"] == body["translation"]
    assert len(answer["baseline"]["effects"]) == 2


@pytest.mark.parametrize("change", ["cut", "cut decoder.9.cross.0", "cut word zebra", "x" * 300])
def test_change_impossible_is_refused(live: Live, change: str) -> None:
    answer = live.post("/v1/change", {"text": "A cat.", "changes": [change]})
    assert answer.status_code == 422
    assert answer.json()["field"] == "changes"


def test_look_follows_hypotheses_prefixes_changes_and_given_ids(
    live: Live, model: ServedModel
) -> None:
    body = {"text": "The dog ate it.", "stages": ["weights", "logits"]}
    wide, _ = read_trace(live.post("/v1/look", {**body, "beam": 3, "n_best": 3}).content)
    assert len(wide["hypotheses"]) == 3
    best = wide["hypotheses"][0]
    assert best["ids"] == wide["predicted_ids"]
    assert wide["text"] == best["text"]
    # The likeliest tokens of every row have names.
    plain, arrays = read_trace(live.post("/v1/look", body).content)
    for row in arrays["decoder.logits"]:
        for id_ in np.argsort(-row)[:9]:
            named = plain["vocabulary"][str(id_)]
            assert named == model.translator.tokenizer.target_tokens([int(id_)])[0]
    other = wide["hypotheses"][1]["ids"]
    given, _ = read_trace(live.post("/v1/look", {**body, "target_ids": other}).content)
    assert given["predicted_ids"] == other
    prefix = model.translator.tokenizer.encode_target("Un")[:1]
    after, _ = read_trace(live.post("/v1/look", {**body, "prefix_ids": prefix}).content)
    assert after["predicted_ids"][:1] == prefix
    change = {"changes": ["cut word dog"]}
    changed, cut = read_trace(live.post("/v1/look", {**body, **change}).content)
    assert changed["text"] != plain["text"]
    assert cut["decoder.1.cross.weights"][:, :, 1].max() == 0
    found = live.post("/v1/change", {"text": body["text"], **change}).json()
    assert changed["text"] == found["after"]["text"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"target_ids": []},
        {"target_ids": [10**6]},
        {"prefix_ids": [10**6]},
        {"target_ids": [5], "translation": "b"},
        {"prefix_ids": [5], "target_ids": [5]},
        {"changes": ["cut encoder.0.self.0:99>1"]},
    ],
)
def test_look_impossible_target_is_refused(live: Live, wrong: dict[str, Any]) -> None:
    answer = live.post("/v1/look", {"text": "a", **wrong})
    assert answer.status_code == 422, answer.text
