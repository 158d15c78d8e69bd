"""Translation and scores over HTTP are the translator's, whatever other clients send."""

from __future__ import annotations

import random
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from served import Live

from pellucid.config import DecodingConfig
from pellucid.serve.answers.request_bodies import DECODING
from pellucid.serve.models import Models

TEXTS = [
    "The pizza came out of the oven and it tasted good.",
    "The dog ate it.",
    "A red house.",
    "The cat sees the small dog and the dog sees the cat.",
    "",
    "zzz qqq",
    "The children play in the garden.\n\nThe cat sleeps.",
]


def texts_of(answer: Any) -> list[str]:
    return [one["translation"] for one in answer.json()["translations"]]


def test_translate_gives_what_the_translator_gives(live: Live, models: Models) -> None:
    (model,) = models
    answer = live.post("/v1/translate", {"texts": TEXTS, "tokens": True})
    assert answer.status_code == 200
    expected = model.translator.translate(TEXTS)
    assert texts_of(answer) == [one.text for one in expected]
    for found, one in zip(answer.json()["translations"], expected, strict=True):
        assert found["hypotheses"][0]["ids"] == list(one.ids)
        assert found["hypotheses"][0]["log_probability"] == pytest.approx(
            one.log_probability, abs=1e-4
        )


def test_translate_same_text_alone_or_among_other_clients(live: Live) -> None:
    alone = {text: texts_of(live.post("/v1/translate", {"texts": [text]}))[0] for text in TEXTS}
    order = random.Random(3)

    def ask(number: int) -> bool:
        chosen = [TEXTS[(number + step) % len(TEXTS)] for step in range(1 + number % 5)]
        return texts_of(live.post("/v1/translate", {"texts": chosen})) == [
            alone[text] for text in chosen
        ]

    numbers = list(range(60))
    order.shuffle(numbers)
    before = live.figure("pellucid_batch_texts_count")
    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(ask, numbers))
    assert live.figure("pellucid_batch_texts_count") - before < len(numbers)


def test_translate_options_reach_the_search(live: Live, models: Models) -> None:
    (model,) = models
    options: dict[str, Any] = {"beam": 5, "n_best": 3, "length_penalty": "none"}
    answer = live.post("/v1/translate", {"texts": TEXTS[:1], **options})
    (expected,) = model.translator.translate(TEXTS[:1], **options)
    found = answer.json()["translations"][0]["hypotheses"]
    assert [one["text"] for one in found] == [one.text for one in expected.hypotheses]
    sample = {"texts": TEXTS[:3], "sample": True, "seed": 7, "temperature": 1.5}
    first, second = (texts_of(live.post("/v1/translate", sample)) for _ in range(2))
    assert first == second != texts_of(live.post("/v1/translate", {**sample, "seed": 11}))


def test_translate_constraints_hold(live: Live) -> None:
    body = {
        "texts": ["The dog ate it.", "The cat sees the red house."],
        "forbid": ["chien"],
        "require_each": [[], ["petite"]],
        "beam": 4,
    }
    first, second = texts_of(live.post("/v1/translate", body))
    assert "chien" not in first
    assert "petite" in re.findall(r"\w+", second)
    body = {"texts": ["The dog ate it."], "prefixes": ["Un"]}
    assert texts_of(live.post("/v1/translate", body))[0].startswith("Un ")
    body = {
        "texts": ["The dog ate it."],
        "glossary": [{"source": "dog", "target": "chat"}],
        "beam": 4,
    }
    assert "chat" in texts_of(live.post("/v1/translate", body))[0]


def test_translate_says_what_became_of_the_terms_of_a_glossary(live: Live) -> None:
    terms = [
        {"source": "dog", "target": "chien|*free*"},
        {"source": "Cat", "target": "chat", "case_sensitive": True},
        {"source": "soup", "target": "qqq|zzz"},
    ]
    texts = ["The dogs ate the soup.", "The cat."]
    body = {"texts": texts, "glossary": terms, "glossary_match": "forms"}
    first, second = live.post("/v1/translate", body).json()["translations"]
    assert [one["outcome"] for one in first["terms"]] == ["form", "miss"]
    assert first["terms"][0]["written"] == "chiens"
    assert "vocabulary" in first["terms"][1]["reason"]
    assert "terms" not in second
    empty = {**body, "glossary": [{"source": "dog", "target": "chien|"}]}
    answer = live.post("/v1/translate", empty)
    assert (answer.status_code, answer.json()["field"]) == (422, "glossary")


def test_translate_links_words(live: Live) -> None:
    answer = live.post("/v1/translate", {"texts": ["The red house."], "align": True})
    (found,) = answer.json()["translations"]
    assert found["source_words"] == ["The", "red", "house."]
    (hypothesis,) = found["hypotheses"]
    assert hypothesis["words"] == ["La", "maison", "rouge."]
    assert {(1, 2), (2, 1)} <= {tuple(link) for link in hypothesis["alignment"]}


def test_translate_text_that_cannot_be_translated_fails_alone(live: Live) -> None:
    long = "cat " * 300
    old = live.post("/v1/translate", {"texts": ["A cat.", long], "split": False})
    assert (old.status_code, "'none'" in old.json()["error"]) == (422, True)
    answer = live.post("/v1/translate", {"texts": ["A cat.", long], "split": "none"})
    assert answer.status_code == 200
    good, bad = answer.json()["translations"]
    assert good["error"] is None
    assert good["translation"]
    assert "tokens" in bad["error"]
    assert bad["translation"] is None
    assert bad["source"] == long


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "texts is missing"),
        ({"texts": []}, "texts must have at least 1 entry"),
        ({"texts": 5}, "texts must be a text or a list of texts, but is 5"),
        ({"texts": ["a"] * 257}, "256"),
        ({"texts": ["a" * 20_001]}, "at most 20,000 characters, but has 20,001"),
        ({"texts": ["a"], "beam": 17}, "16"),
        ({"texts": ["a"], "beam": "2"}, "beam"),
        ({"texts": ["a"], "n_best": 10_000}, "16"),
        ({"texts": ["a"], "n_best": 3}, "than its width. Raise beam, or lower n_best"),
        ({"texts": ["a"], "max_length": 5000}, "1024"),
        ({"texts": ["a"], "max_length_ratio": 1e5}, "10"),
        ({"texts": ["a"], "temperature": 0}, "temperature"),
        ({"texts": ["a"], "bean": 2}, "bean is unknown"),
        ({"texts": ["a"], "model": "demmo"}, "Did you mean 'demo'?"),
        ({"texts": ["a"], "target_language": "de"}, "en-fr"),
        ({"texts": ["a"], "model": "demo", "source_language": "fr"}, "en-fr"),
        ({"texts": ["a"], "target": "fr"}, "target_language"),
        ({"texts": ["a"], "to": "fra"}, "target_language"),
        ({"texts": ["a"], "num_beams": 4}, "Did you mean 'beam'?"),
        ({"texts": ["a"], "align_layer": 1}, "align_head"),
        ({"texts": ["a"], "align_head": "decoder.1"}, "align"),
        ({"texts": ["a"], "words_by": "spaces"}, "align"),
        ({"texts": ["a"], "align": True, "align_head": "decoder.9.cross.0"}, "layer"),
        ({"texts": ["a"], "align": True, "align_head": "encoder.1.self"}, "cross"),
        ({"texts": ["a"], "align": True, "changes": "cut decoder.1.cross.0"}, "changes"),
        ({"texts": ["a"], "changes": "cut decoder.9.cross.0"}, "layer"),
        ({"texts": ["a"], "prefixes": ["x", "y"]}, "2 for 1"),
        ({"texts": ["a"], "require": [" "]}, "blank"),
        ({"texts": ["a"], "forbid": ["x"] * 101}, "100"),
        ({"texts": ["a"], "prefix": "Le", "prefixes": ["La"]}, "prefix"),
    ],
)
def test_translate_impossible_request_is_refused_in_a_sentence(
    live: Live, body: Any, words: str
) -> None:
    answer = live.post("/v1/translate", body)
    assert answer.status_code == 422
    assert {"error", "code"} <= set(answer.json()) <= {"error", "code", "field", "index"}
    assert words in answer.json()["error"]
    assert "should" not in answer.json()["error"]
    assert len(answer.json()["error"]) < 600


def test_translate_halves_of_characters_are_refused(live: Live) -> None:
    answer = live.client.post(
        "/v1/translate",
        content=rb'{"texts": ["\ud800 cat"]}',
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == 422


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 50_000, b"\xff\xfe", b"9" * 5000, b"NaN"])
def test_translate_body_that_is_not_an_object_is_refused(live: Live, body: bytes) -> None:
    answer = live.client.post(
        "/v1/translate", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (400, 422)
    assert {"error", "code"} <= set(answer.json())


def test_score_gives_what_the_translator_gives(live: Live, models: Models) -> None:
    (model,) = models
    pairs = [("The dog ate it.", "Le chien l'a mangé."), ("A cat.", ""), ("a " * 300, "b")]
    body = {"pairs": [dict(zip(("source", "target"), pair, strict=True)) for pair in pairs]}
    answer = live.post("/v1/score", {**body, "tokens": True})
    expected = model.translator.score(*zip(*pairs, strict=True))
    for found, one in zip(answer.json()["scores"], expected, strict=True):
        assert found["error"] == one.error
        if one.error is None:
            assert found["log_probability"] == pytest.approx(one.log_probability, abs=1e-4)
            assert found["tokens"] == list(one.tokens)


@pytest.mark.parametrize("changes", ["cut decoder.1.cross", ["average decoder.1.cross.*"]])
def test_changes_are_those_of_the_translator(live: Live, models: Models, changes: Any) -> None:
    (model,) = models
    answer = live.post("/v1/translate", {"texts": TEXTS[:4], "changes": changes})
    expected = model.translator.translate(TEXTS[:4], changes=changes)
    assert texts_of(answer) == [one.text for one in expected]
    assert texts_of(answer) != texts_of(live.post("/v1/translate", {"texts": TEXTS[:4]}))
    pair = {"source": TEXTS[1], "target": "Le chien l'a mangé."}
    (found,) = live.post("/v1/score", {"pairs": [pair], "changes": changes}).json()["scores"]
    (scored,) = model.translator.score([pair["source"]], [pair["target"]], changes=changes)
    assert found["log_probability"] == pytest.approx(scored.log_probability, abs=1e-4)


def test_one_text_needs_no_list(live: Live) -> None:
    one = live.post("/v1/translate", {"texts": TEXTS[1]}).json()
    assert one == live.post("/v1/translate", {"texts": [TEXTS[1]]}).json()
    assert one["translations"][0]["source"] == TEXTS[1]


def test_align_links_given_pairs_as_translations_are_linked(live: Live) -> None:
    body = {"texts": TEXTS[:4], "align": True, "align_head": "decoder.1.cross.0"}
    translated = live.post("/v1/translate", body).json()["translations"]
    pairs = [{"source": one["source"], "target": one["translation"]} for one in translated]
    answer = live.post("/v1/align", {"pairs": pairs, "head": "decoder.1.cross.0"})
    for found, one in zip(answer.json()["alignments"], translated, strict=True):
        (hypothesis,) = one["hypotheses"]
        assert found["source_words"] == one["source_words"]
        assert found["target_words"] == hypothesis["words"]
        assert found["alignment"] == hypothesis["alignment"]
    # The mean of the last layer links otherwise, and one bad pair costs no other.
    pairs[1] = {"source": "cat " * 300, "target": "chat"}
    mean = live.post("/v1/align", {"pairs": pairs, "head": "decoder.1"}).json()["alignments"]
    assert "tokens" in mean[1]["error"]
    assert mean[0]["error"] is None


def test_models_are_listed_with_limits(live: Live) -> None:
    answer = live.get("/v1/models").json()
    (model,) = answer["models"]
    assert model["name"] == "demo"
    assert (model["source_language"], model["target_languages"]) == ("en", ["fr"])
    assert answer["limits"]["beam"] == 16


def test_decoding_options_are_those_of_the_command(live: Live) -> None:
    from pellucid.cli.lines.decoding_options import DECODING as COMMAND

    assert set(DECODING) == set(DecodingConfig.model_fields) - {"forbidden_tokens"}
    assert set(COMMAND) - {"set"} <= set(DECODING)
    schema = live.get("/openapi.json").json()["components"]["schemas"]["TranslateRequest"]
    assert set(DECODING) <= set(schema["properties"])
    assert all(schema["properties"][name]["description"] for name in DECODING)


@pytest.mark.filterwarnings("ignore:'cut word it' changed nothing")
def test_texts_that_lack_the_word_of_a_change_say_so(live: Live) -> None:
    texts = [
        "The pizza came out and it tasted good.",
        "The soup was cold.",
        "it was it.",
        "The cat. The soup and it.",
    ]
    body = {"texts": texts, "changes": ["cut word it", "cut decoder.1.cross.0"]}
    found = live.post("/v1/translate", body).json()["translations"]
    missed = [one["notes"].get("missed_changes", []) for one in found]
    # A word must stand in one sentence of a text, and only once there.
    assert missed == [[], ["cut word it"], ["cut word it"], []]
    stream = live.post("/v1/translate", {**body, "texts": texts[1], "stream": True}).text
    assert '"missed_changes": ["cut word it"]' in stream

    pairs = [{"source": text, "target": "Il."} for text in texts[:2]]
    scores = live.post("/v1/score", {"pairs": pairs, "changes": "cut word it"}).json()["scores"]
    assert ["missed_changes" in one for one in scores] == [False, True]
    assert scores[1]["missed_changes"] == ["cut word it"]
