"""Calls as people guess them: one text or many, keywords, results that show and keep themselves."""

from __future__ import annotations

import copy
import dataclasses
import gzip
import json
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import pellucid
from pellucid.config import DecodingConfig
from pellucid.config.typed_options import DecodingOptions
from pellucid.errors import ConfigurationError, DataError, InputError, PellucidError
from pellucid.translate.call_options import TranslationOptions
from pellucid.translate.line_translation import WINDOW_LINES
from pellucid.translate.results import NO_NOTES, Notes
from pellucid.translate.translator import Translator, load

SOUP = "The soup was cold."
CAT = "The cat slept."


@pytest.fixture(scope="module")
def translator() -> Translator:
    return pellucid.load("demo")


# One or many


def test_one_text_gives_one_translation_and_a_collection_a_list(translator: Translator) -> None:
    one = translator.translate(SOUP)
    assert one.text == "La soupe était froide."
    for several in ([SOUP, CAT], (SOUP, CAT), {SOUP: 1, CAT: 2}.keys()):
        found = translator.translate(several)
        assert isinstance(found, list)
        assert found == [one, translator.translate(CAT)]
    assert translator.translate([]) == []


def test_lines_of_a_file_lose_their_ends_and_come_one_by_one(
    translator: Translator, tmp_path: Path
) -> None:
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress(f"{SOUP}\r\n{CAT}\n\n{SOUP}".encode()))
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        found = list(translator.translate(file))
    assert [one.source for one in found] == [SOUP, CAT, "", SOUP]
    assert found == translator.translate([SOUP, CAT, "", SOUP])


def test_iterator_is_read_window_by_window(translator: Translator) -> None:
    num_read = 0

    def lines() -> Iterator[str]:
        nonlocal num_read
        for number in range(3 * WINDOW_LINES):
            num_read += 1
            yield CAT if number % 2 else SOUP

    found = translator.translate(lines())
    assert num_read == 0
    assert next(found).source == SOUP
    assert num_read == WINDOW_LINES
    assert next(found).source == CAT


def test_wrong_options_of_an_iterator_are_refused_before_it_is_read(
    translator: Translator,
) -> None:
    with pytest.raises(ConfigurationError, match="'beem'"):
        translator.translate(iter([SOUP]), beem=3)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ([SOUP, None], "texts[1] must be a text, but is None. Leave it out, or put"),
        ([float("nan")], "texts[0] must be a text, but is nan. Leave it out"),
        ([SOUP, b"soup"], "texts[1] must be a text, but is bytes. Decode it first"),
        ([[SOUP]], "texts[0] must be a text, but is a list. Give its texts one by one."),
        ([3], "texts[0] must be a text, but is 3. Convert it with str()."),
        (b"soup", "texts must be a text, but is bytes. Decode it first"),
        (3, "texts must be a list of texts, but is 3."),
        ({SOUP: 1}, "texts must be a list of texts, but is a dict."),
    ],
)
def test_what_is_no_text_is_one_sentence_with_its_number(
    translator: Translator, texts: Any, sentence: str
) -> None:
    with pytest.raises(DataError) as caught:
        translator.translate(texts)
    assert str(caught.value).startswith(sentence)
    if isinstance(texts, list):
        with pytest.raises(DataError) as caught:
            list(translator.translate(iter(texts)))
        assert str(caught.value).startswith(sentence)


def test_two_strings_are_scored_as_one_pair(translator: Translator) -> None:
    one = translator.score(SOUP, "La soupe était froide.")
    assert one.tokens[-1] == "</s>"
    assert one == translator.score([SOUP], ["La soupe était froide."])[0]
    with pytest.raises(DataError, match=r"must be two texts or two lists .* a list and 'La soupe'"):
        translator.score([SOUP], "La soupe")  # type: ignore[call-overload]
    with pytest.raises(DataError, match=r"targets\[0\] must be a text, but is None"):
        translator.score([SOUP], [None])  # type: ignore[list-item]


@pytest.mark.parametrize("call", ["stream", "look"])
def test_a_list_in_the_place_of_a_text_is_refused(translator: Translator, call: str) -> None:
    with pytest.raises(InputError, match=r"text must be .*, but is a list"):
        getattr(translator, call)([SOUP])


# Keywords


def test_phrases_are_keywords_as_in_the_command(translator: Translator, tmp_path: Path) -> None:
    assert translator.translate(SOUP, prefix="Une").text.startswith("Une ")
    assert "soupe" not in translator.translate(SOUP, forbid="soupe").text
    assert "soupe" not in translator.translate([SOUP], forbid=["soupe", "pizza"])[0].text
    assert "voiture" in translator.translate(SOUP, require="voiture", beam=4).text
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("soup\tvoiture\n", encoding="utf-8")
    for given in ({"soup": "voiture"}, glossary, str(glossary), [glossary]):
        found = translator.translate([SOUP, CAT], glossary=given, beam=4)
        assert "voiture" in found[0].text
        assert found[1].text == "Le chat a dormi."
    pieces = list(translator.stream(SOUP, prefix="Une"))
    assert "".join(pieces) == translator.translate(SOUP, prefix="Une").text
    assert all(pieces)


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"num_beams": 3}, "The option 'num_beams' is unknown. Did you mean 'beam'?"),
        ({"num_return_sequences": 3}, "Did you mean 'n_best'?"),
        ({"do_sample": True}, "Did you mean 'sample'?"),
        ({"max_new_tokens": 9}, "Did you mean 'max_length'?"),
        ({"batch_size": 9}, "Did you mean 'batch_tokens'?"),
        ({"aling": True}, "Did you mean 'align'?"),
        ({"lr": 1e-3}, "It is a setting of training: training.learning_rate."),
        ({"epochs": 3}, "It is a setting of training: training.max_steps."),
        ({"threads": 3}, "It is an argument of pellucid.load: load(model, threads=…)."),
        ({"device": "cuda"}, "It is an argument of pellucid.load"),
        ({"beam": "5"}, "beam must be a whole number, but is '5'. Change it."),
        ({"forbid": ["soupe", " "]}, "forbid must be phrases, but one is empty."),
        ({"forbid": ["soupe", 3]}, "forbid[1] must be a text, but is 3."),
        ({"glossary": 3}, "glossary must be a file, several files, or a dict of terms"),
        ({"glossary": {"": "soupe"}}, "A term of glossary must be words, but is ''"),
        ({"glossary": {"a": "b|"}}, "A term of glossary must be forms with | between them"),
        ({"clean": "yes"}, "clean must be true or false, but is 'yes'"),
        ({"align": "yes"}, "align must be True, False or an Aligner, but is 'yes'"),
        ({"batch_tokens": 0}, "batch_tokens must be a whole number of at least 1, but is 0"),
        ({"to": 3}, "to must be a code or name of a language, but is 3"),
    ],
)
def test_wrong_keyword_is_one_sentence_with_the_right_name(
    translator: Translator, keywords: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError) as caught:
        translator.translate(SOUP, **keywords)
    assert sentence in str(caught.value)
    assert "(options)" not in str(caught.value)


@pytest.mark.parametrize(
    ("keyword", "sentence"),
    [
        ("translaton", "Did you mean 'translation'?"),
        ("target", "Did you mean 'translation'?"),
        ("heads", "look(text, ask='decoder.1') takes an address."),
        ("prefix", "It is an argument of translate: translate(text, prefix=…)."),
    ],
)
def test_wrong_keyword_of_look_leads_to_its_own(
    translator: Translator, keyword: str, sentence: str
) -> None:
    with pytest.raises(InputError) as caught:
        translator.look(SOUP, **{keyword: "x"})
    assert str(caught.value) == f"The option {keyword!r} is unknown. {sentence}"


def test_terms_say_which_form_the_model_chose(translator: Translator) -> None:
    terms = {"dog": "chien|*free*", "old": "ancien|vieux|vieille"}
    texts = ["The dogs are red.", "The old car is red.", "The door."]
    found = translator.translate(texts, glossary=terms, glossary_match="forms")
    assert [[(one.written, one.outcome) for one in each.terms] for each in found] == [
        [("chiens", "form")],
        [("vieille", "form")],
        [],
    ]
    assert [one.text for one in found] == [one.text for one in translator.translate(texts)]
    sampled = translator.translate("The dog.", glossary={"dog": "pizza"}, sample=True, seed=3)
    assert "samples" in sampled.terms[0].reason


def test_required_phrases_stay_when_a_term_is_searched_for(translator: Translator) -> None:
    text = "The soup was cold."
    found = translator.translate(text, require="chien", glossary={"soup": "pizza"}, beam=8)
    assert {"chien", "pizza"} <= set(re.findall(r"\w+", found.text))


def test_terms_are_looked_for_in_each_sentence_that_is_split(translator: Translator) -> None:
    text = "The dog is red. The pizza is cold. The cat sees the house. The door is open."
    found = translator.translate(text, glossary={"pizza": "soupe"})
    assert found.notes.parts > 1
    assert "La soupe est froide." in found.text
    assert [one.outcome for one in found.terms] == ["hit"]


def test_terms_of_a_glossary_are_found_in_the_forms_that_are_asked_for(
    translator: Translator,
) -> None:
    terms = {"soup": "pizza"}
    text = "The soups were cold."
    assert "pizza" not in translator.translate(text, glossary=terms, glossary_match="exact").text
    assert "pizza" in translator.translate(text, glossary=terms, glossary_match="forms").text
    stream = translator.stream(text, glossary=terms, glossary_match="forms")
    assert "pizza" in "".join(stream)
    with pytest.raises(InputError, match="one of auto, exact, forms, but is 'form'"):
        translator.translate(text, glossary=terms, glossary_match="form")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="glossary_match must be given with a glossary"):
        translator.translate(text, glossary_match="exact")


def test_why_takes_a_word_by_its_number(translator: Translator) -> None:
    text = "The pizza came out of the oven and it tasted good."
    words = translator.translate(text, precision="float32").text.split()
    number = words.index("elle")
    assert translator.why(text, number).difference == translator.why(text, "elle").difference
    with pytest.raises(InputError, match="word must be a text or a whole number, but is True"):
        translator.why(text, True)


def test_typed_options_are_the_fields_of_the_configuration(translator: Translator) -> None:
    typed = get_type_hints(DecodingOptions)
    assert set(typed) == set(DecodingConfig.model_fields)
    for name, field in DecodingConfig.model_fields.items():
        if name != "forbidden_tokens":
            assert typed[name] == field.annotation, name
    signature = set(translator.translate.__annotations__) - {"texts", "options", "return"}
    assert signature == set(TranslationOptions.__annotations__) - set(typed)


# Loading


def test_options_of_load_hold_for_every_call() -> None:
    beam = load("demo", beam=4, n_best=2)
    assert len(beam.translate(SOUP).hypotheses) == 2
    assert len(beam.translate(SOUP, n_best=1).hypotheses) == 1
    plain = load("demo")
    assert plain.options().precision == beam.options().precision == "float32"
    assert beam.translate(SOUP, strict=True).text == plain.translate(SOUP, beam=4).text
    named = load("demo", precision="int8", beam=2)
    assert named.options().precision == "int8"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: load("nope"), "The model must be a bundle folder or a run folder, but nope"),
        (lambda: load("demo", num_beams=3), "Did you mean 'beam'?"),  # type: ignore[call-arg]
        (lambda: load("demo", prefix="La"), "argument of translate"),  # type: ignore[call-arg]
        (lambda: load("demo", beam=0), "beam must be at least 1, but is 0"),
        (lambda: load("demo", ensemble="demo"), "ensemble must be a list of models"),
        (lambda: load("demo", ensemble=[3]), "ensemble must be the name of a model"),  # type: ignore[list-item]
        (lambda: load(None), "model must be the name of a model"),  # type: ignore[arg-type]
    ],
)
def test_wrong_argument_of_load_is_one_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert sentence in str(caught.value)


def test_languages_and_repr_tell_what_a_model_is(translator: Translator) -> None:
    assert translator.languages == ("en", "fr", ())
    assert repr(translator) == "<Translator demo, en to fr, 2+2 layers of width 96>"
    assert "changed" in repr(translator.changed("cut decoder.1.cross.0"))


def test_closed_translator_says_so() -> None:
    with load("demo") as translator:
        assert copy.copy(translator).translate(SOUP).text
        assert not hasattr(translator, "nothing")
    with pytest.raises(InputError, match="was closed with its with block"):
        translator.translate(SOUP)


# Results


def test_results_show_themselves_in_one_line(translator: Translator) -> None:
    good, bad = translator.translate([SOUP, "soup " * 600])
    assert str(good) == good.text
    assert repr(good) == f"Translation({good.text!r}, log_probability={good.log_probability:.3f})"
    assert repr(good.best) == repr(good).replace("Translation", "TranslatedHypothesis")
    assert repr(bad).startswith("Translation(error='A source line must have at most")
    assert repr(NO_NOTES) == "Notes()"
    assert repr(Notes(parts=2)) == "Notes(parts=2)"
    odd = translator.translate("漢字 cats")
    assert "notes=Notes(unknown={'漢': 1, '字': 1}" in repr(odd)
    assert repr(translator.score(SOUP, "La soupe")).startswith("Scored('La soupe', log_prob")


def test_notebook_shows_source_text_and_links(translator: Translator) -> None:
    plain = translator.translate("The <soup> was cold.")._repr_html_()
    assert "&lt;soup&gt;" in plain
    linked = translator.translate(SOUP, align=True)
    html = linked._repr_html_()
    assert html.count("<line ") == len(linked.best.alignment or ())
    assert html.count("<text ") == len(linked.source_words) + len(linked.best.words)


def test_results_cannot_be_changed_and_can_be_kept(translator: Translator) -> None:
    found = translator.translate([SOUP, "漢字 cats"], align=True)
    for notes in (NO_NOTES, found[1].notes):
        for counts in (notes.replaced, notes.dropped, notes.unknown):
            with pytest.raises(TypeError):
                counts["x"] = 1  # type: ignore[index]
    given = {"x": 1}
    notes = Notes(replaced=given)
    given["y"] = 2
    assert notes.replaced == {"x": 1}
    assert len({*found, *translator.translate([SOUP], align=True)}) == 2
    assert pickle.loads(pickle.dumps(found)) == found
    assert copy.deepcopy(found) == found
    assert dataclasses.asdict(found[1])["notes"]["unknown"] == {"漢": 1, "字": 1}


def test_dictionary_of_a_translation_has_the_promised_names(translator: Translator) -> None:
    good, damaged = translator.translate([SOUP, "so\udcffup"])
    record = good.to_dict()
    assert list(record) == ["source", "translation", "error", "hypotheses", "notes"]
    assert list(record["hypotheses"][0]) == [
        *("text", "tokens", "ids", "token_log_probabilities", "log_probability", "score")
    ]
    assert record["source"] == SOUP
    assert record["translation"] == good.text
    assert (record["error"], record["notes"]) == (None, {})
    assert json.loads(json.dumps(record)) == record
    failed = damaged.to_dict()
    assert failed["translation"] is None
    assert failed["source"] == "so\ufffdup"
    assert "UTF-8" in failed["error"]
    linked = translator.translate(SOUP, align=True).to_dict()
    assert linked["source_words"] == ["The", "soup", "was", "cold."]
    assert linked["hypotheses"][0]["words"] == ["La", "soupe", "était", "froide."]
    assert json.loads(json.dumps(linked)) == linked


def test_every_error_of_a_call_is_ours(translator: Translator) -> None:
    with pytest.raises(PellucidError):
        translator.translate(object())  # type: ignore[call-overload]
