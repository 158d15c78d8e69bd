"""Lines around a search: split, joined, judged, and unknown words taken from the source."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from of_subwords import SUBWORDS

import pellucid
from pellucid.cli.lines.notices import Notices
from pellucid.config import ModelConfig, TokenizerRecipe
from pellucid.decode.constraints.request import Constraints
from pellucid.decode.decoder import Decoder, make_decoder
from pellucid.decode.hypothesis import Hypothesis
from pellucid.languages.function_words import is_function_word
from pellucid.languages.negations import lost_negations
from pellucid.model import EncoderDecoder, Transformer, initialize
from pellucid.text.learned import LearnedText
from pellucid.text.tokenizers.kinds import learn_tokenizer
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate import attended_words
from pellucid.translate.attended_words import (
    AttentionReader,
    GivenPair,
    is_stuck,
    replace_unknown,
    unlinked_words,
)
from pellucid.translate.judging import judge, repeats, seems_short
from pellucid.translate.results import Translation
from pellucid.translate.splitting import split_line
from pellucid.translate.text_translator import examine
from pellucid.translate.translator import Translator

SOUP = "The soup was next to the car and it was too salty."
DOG = "The dog found some pizza next to the baby and ate it."
EVERYTHING = dict.fromkeys(map(chr, range(32, 0x2100)), 100)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return pellucid.load(SUBWORDS)


# Splitting


@pytest.mark.parametrize(
    ("learned", "text", "parts"),
    [
        (LearnedText(EVERYTHING), "One.", ["One."]),
        (LearnedText(EVERYTHING), "One. Two! Three?", ["One.", "Two!", "Three?"]),
        (LearnedText(EVERYTHING), "Mr. Smith paid 3.50.", ["Mr. Smith paid 3.50."]),
        (LearnedText(EVERYTHING), "One. Two. 😀", ["One.", "Two. 😀"]),
        (LearnedText(EVERYTHING, most_sentences=2), "One. Two.", ["One. Two."]),
        (LearnedText(EVERYTHING, most_sentences=2), "One. Two. Three.", ["One.", "Two.", "Three."]),
        (
            LearnedText(EVERYTHING, usual_sentences=2, most_sentences=3),
            "One. Two. Three. Four. Five.",
            ["One. Two.", "Three. Four.", "Five."],
        ),
        (
            LearnedText(EVERYTHING, most_sentences=9, most_characters=12),
            "One. Two. Three.",
            ["One.", "Two.", "Three."],
        ),
        (
            LearnedText(EVERYTHING, usual_sentences=9, most_sentences=9, most_characters=12),
            "One. Two. Three.",
            ["One. Two.", "Three."],
        ),
    ],
)
def test_line_is_split_if_it_is_unlike_the_training_lines(
    learned: LearnedText, text: str, parts: list[str], translator: Translator
) -> None:
    assert split_line(text, translator.tokenizer, learned, is_too_long=False) == parts


def test_several_sentences_are_translated_one_by_one(translator: Translator) -> None:
    soup, dog = (one.text for one in translator.translate([SOUP, DOG]))
    whole, single = translator.translate([f"{SOUP} {DOG}", SOUP])
    assert whole.text == f"{soup} {dog}"
    assert whole.notes.parts == 2
    assert whole.log_probability == pytest.approx(sum(whole.token_log_probabilities))
    assert single.notes == pellucid.translate.results.NO_NOTES
    (kept,) = translator.translate([f"{SOUP} {DOG}"], split="none")
    assert kept.text != whole.text


def test_line_far_longer_than_the_training_lines_is_noted(translator: Translator) -> None:
    learned = LearnedText(EVERYTHING, most_characters=len(SOUP) - 20)
    short = Translator(translator.model, translator.tokenizer, learned=learned)
    found, other = short.translate([SOUP, SOUP[:31]])
    assert (found.notes.is_long, other.notes.is_long) == (True, False)


def test_n_best_of_a_split_line_are_the_best_combinations(translator: Translator) -> None:
    each = translator.translate([SOUP, DOG], beam=3, n_best=3)
    (whole,) = translator.translate([f"{SOUP} {DOG}"], beam=3, n_best=3)
    pairs = [
        (a.score + b.score, f"{a.text} {b.text}")
        for a in each[0].hypotheses
        for b in each[1].hypotheses
    ]
    expected = sorted(pairs, reverse=True)[:3]
    assert [one.text for one in whole.hypotheses] == [text for _, text in expected]
    assert [one.score for one in whole.hypotheses] == pytest.approx(
        [s for s, _ in expected], abs=1e-4
    )


@pytest.mark.parametrize(
    ("constraints", "options"),
    [
        (Constraints(prefix="La"), {}),
        (Constraints(required=("soupe",)), {"beam": 4}),
        (Constraints(), {"max_length": 30}),
        (Constraints(), {"alternatives": True, "n_best": 2}),
    ],
)
def test_line_with_rules_for_the_whole_is_kept_whole_and_said_to(
    constraints: Constraints, options: dict[str, int], translator: Translator
) -> None:
    arguments = {"constraints": constraints, **options}
    (found,) = translator.translate([f"{SOUP} {DOG}"], **arguments)
    (whole,) = translator.translate([f"{SOUP} {DOG}"], split="none", **arguments)
    assert found.text == whole.text
    assert (found.notes.parts, found.notes.is_whole) == (1, True)


def test_forbidden_phrases_hold_in_every_part(translator: Translator) -> None:
    (found,) = translator.translate(
        [f"{SOUP} {SOUP}"], constraints=Constraints(forbidden=("soupe",))
    )
    assert "soupe" not in found.text.split()
    assert found.notes.parts == 2


def test_stream_gives_the_text_of_a_split_and_cleaned_line(translator: Translator) -> None:
    text = f"\u202a{SOUP} {DOG}".replace(" ", "\u00a0") + "\u202c"
    (whole,) = translator.translate([text])
    assert "".join(translator.stream(text)) == whole.text
    assert examine(translator, text).parts == 2
    assert list(translator.stream("\u200b")) == []


def test_model_in_memory_leaves_lines_as_they_are(translator: Translator) -> None:
    plain = Translator(translator.model, translator.tokenizer)
    text = f"{SOUP}\u00a0{DOG}"
    assert plain.translate([text])[0].notes.parts == 1
    assert (
        plain.translate([text])[0].text
        == translator.translate([text], clean=False, split="none")[0].text
    )


def test_line_of_invisible_characters_has_an_empty_translation(translator: Translator) -> None:
    found, _ = translator.translate(["\u200b\ufeff", SOUP])
    assert (found.text, found.error) == ("", None)
    assert found.notes.dropped == {"\u200b": 1, "\ufeff": 1}


# Judging


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("a b c d", "w x y z", False),
        ("a b", "x x x", False),
        ("a b", "x x x x", True),
        ("a a a a", "x x x x", False),
        ("a b c", "x y x y", False),
        ("a b c", "x y x y x y", True),
        ("a b c", "v w x y z v w x y z", True),
        ("a b c d e a b c d e", "v w x y z v w x y z", False),
        ("a b c", "v w x y 1 v w x y 2 3 v w x y", True),
        ("", "", False),
    ],
)
def test_repeats_are_what_the_source_does_not_say_as_often(
    source: str, target: str, expected: bool
) -> None:
    numbers = {word: index for index, word in enumerate(sorted({*source.split(), *target.split()}))}
    ids = [[numbers[word] for word in text.split()] for text in (source, target)]
    assert repeats(*ids) is expected


def hypothesis(count: int, mean: float = -0.1, *, is_finished: bool = True) -> Hypothesis:
    return Hypothesis(tuple(range(count)), (mean,) * count, is_finished, 0.0)


LEARNED = LearnedText(EVERYTHING, longest_targets={5: 10, 10: 20})


@pytest.mark.parametrize(
    ("source", "text", "found", "flags"),
    [
        ("A cat.", "Un chat.", hypothesis(5), []),
        ("A cat.", " ", hypothesis(1), ["empty"]),
        ("A cat.", "Un chat.", hypothesis(15), []),
        ("A cat.", "Un chat et un chien.", hypothesis(16), ["long"]),
        ("A cat.", "Un chat", hypothesis(5, is_finished=False), ["unfinished"]),
        ("1234 567", "Le pain a vu", hypothesis(5), ["invented"]),
        ("50 %", "50 pour cent", hypothesis(5), []),
        ("A cat.", "Un chat.", hypothesis(5, -1.3), ["unsure"]),
    ],
)
def test_translation_is_judged_by_its_length_its_end_and_its_probability(
    source: str, text: str, found: Hypothesis, flags: list[str]
) -> None:
    ids = range(100, 105)
    mean = found.log_probability / len(found.ids)
    asked = (source, ids, text, found, LEARNED)
    assert judge(*asked, mean=mean, has_own_length=False, is_sample=False) == flags
    lenient = judge(*asked, mean=mean, has_own_length=True, is_sample=True)
    assert lenient == [flag for flag in flags if flag not in ("unfinished", "unsure")]


@pytest.mark.parametrize(
    "text", ["1234567890", "a", "zyzzyva qwertz", "SALAD", "Bcdfg Hjklm, Nprst Vwxz"]
)
def test_complaints_of_the_field_are_flagged(text: str, translator: Translator) -> None:
    (found,) = translator.translate([text])
    assert found.notes.flags or found.notes.unknown, found.text


def test_known_sentences_have_no_notes() -> None:
    from pellucid.corpora import make_split

    translator = pellucid.load("demo")

    sources = [example.source for example in make_split("test", count=100)]
    noted = [one.source for one in translator.translate(sources) if one.notes.to_json()]
    # A model may doubt one of a hundred.
    assert len(noted) <= 1, noted


HALF = "The dog barked and the cat meowed."


def test_translation_that_leaves_a_clause_out_is_flagged_with_its_words() -> None:
    demo = pellucid.load("demo")
    (whole,) = demo.translate([HALF])
    assert whole.notes.to_json() == {}
    (half,) = demo.translate([HALF], max_length=4)
    assert half.notes.flags == ("partial",)
    assert {"cat", "meowed"} <= set(half.notes.unlinked_words) <= {"and", "the", "cat", "meowed"}
    sentence = "\n".join(said_of(half))
    assert "1 translation looks wrong" in sentence
    assert 'without some words of the line (line 1), which nothing is linked to: "' in sentence


def said_of(found: Translation) -> list[str]:
    notices = Notices()
    notices.add(0, found.notes)
    return list(notices.sentences(1))


def left_out(source: str, target: str) -> tuple[str, ...]:
    """List the words that a given translation of the packaged model leaves out."""
    demo = pellucid.load("demo")
    head = demo.bundle.guided_head
    assert head is not None
    convention = demo.bundle.guided_convention
    assert convention == "predicts"
    (scored,) = demo.score([source], [target])
    source_ids = demo.tokenizer.encode_source(source)
    pair = GivenPair(source, source_ids, scored.ids, scored.token_log_probabilities)
    (words,) = unlinked_words(demo.attention_reader(), head, convention, [pair])
    return words


def test_words_left_out_are_those_without_a_link_and_marks_are_none() -> None:
    assert left_out(HALF, "Le chien a aboyé et le chat a miaulé.") == ()
    assert left_out(HALF, "Le chien a aboyé et le chat a miaulé") == ()
    assert {"cat", "meowed"} <= set(left_out(HALF, "Le chien a aboyé."))


@pytest.mark.parametrize(
    ("source", "target", "lost"),
    [
        ("I want to go.", "Je veux.", "go"),
        ("They want to sing.", "Ils veulent.", "sing"),
        ("I like tea, not coffee.", "J'aime le thé.", "not"),
    ],
)
def test_row_that_predicts_a_mark_links_no_word(source: str, target: str, lost: str) -> None:
    assert lost in left_out(source, target)


@pytest.mark.parametrize(
    ("source", "target", "lost"),
    [
        ("The mice were next to the bikes.", "Les étaient à côté des vélos.", ("mice",)),
        ("The queen sees the coat and irons it.", "La voit le manteau et le repasse.", ("queen",)),
        ("The dogs eat and they sleep.", "Les chiens mangent ils dorment.", ("and",)),
    ],
)
def test_word_that_is_lost_is_named_and_not_the_one_after_it(
    source: str, target: str, lost: tuple[str, ...]
) -> None:
    assert left_out(source, target) == lost


def test_many_words_after_an_unexpected_one_are_named() -> None:
    words = left_out("Something fell on my head.", "Quelque.")
    assert {"fell", "head"} <= {*words}


def test_word_that_needs_no_counterpart_counts_only_where_the_model_hesitated() -> None:
    assert left_out("Do not put on suits!", "Ne mets pas de costumes !") == ()
    assert "on" in left_out("The cat is on the bed.", "Le chat est le lit.")
    # A pronoun counts, however sure the model is.
    source = "the king and the pineapple were easy but the donkey lent her the actors' shirt."
    target = "le roi et l'ananas étaient faciles mais l'âne a prêté la chemise des acteurs."
    assert left_out(source, target) == ("her",)
    assert not is_function_word("not", "en")
    assert is_function_word("On", "en_GB")
    assert not is_function_word("on", "")


@pytest.mark.parametrize(
    ("source", "target", "lost"),
    [
        ("I like tea, not coffee.", "J'aime le thé, le café.", ("not",)),
        ("He doesn't sing.", "Il chante.", ("doesn't",)),
        ("I like tea, not coffee.", "J'aime le thé, pas le café.", ()),
        ("He doesn't sing.", "Il n'chante.", ()),
        ("No!", "Non !", ()),
        ("The note is here.", "La note est ici.", ()),
    ],
)
def test_negation_that_a_translation_loses_is_named(
    source: str, target: str, lost: tuple[str, ...]
) -> None:
    found = lost_negations(source, target, source_language="en", target_language="fr")
    assert found == lost
    assert lost_negations(source, target, source_language="en", target_language="ja") == ()


def test_negations_of_a_long_line_without_spaces_are_found_at_once() -> None:
    languages = {"source_language": "en", "target_language": "fr"}
    began = time.perf_counter()
    # From every letter anew, this takes a hundred times as long.
    assert lost_negations("a" * 30_000, "Non.", **languages) == ()
    assert lost_negations("a" * 30_000 + "n't", "Oui.", **languages) == ("a" * 30_000 + "n't",)
    assert lost_negations("a" * 30_000, "Oui.", **languages) == ()
    assert time.perf_counter() - began < 2


def test_translation_that_ends_before_its_negation_is_flagged() -> None:
    demo = pellucid.load("demo")
    (half,) = demo.translate(["I like tea, not coffee."], max_length=4)
    assert "partial" in half.notes.flags
    assert "not" in half.notes.unlinked_words


def test_only_short_or_hesitant_translations_are_asked_for_their_links() -> None:
    assert seems_short("Show me the money!", "Montre-moi l'argent !", hypothesis(4)) is None
    assert seems_short("Let's go.", "Allons-y.", hypothesis(3)) is None
    assert seems_short("Let's not go.", "Allons.", hypothesis(3)) == -3
    assert seems_short("The cat or the dog ate.", "Le chat le chien.", hypothesis(5)) == -2
    assert seems_short("Let's go.", "Allons-y.", hypothesis(3, -1.1)) == -1


def test_retry_replaces_a_loop_only_by_something_better(translator: Translator) -> None:
    (before,) = translator.translate(["a"])
    assert "repeats" in before.notes.flags
    (after, same) = translator.translate(["a", SOUP], retry=True)
    assert after.notes.retried
    assert len(after.notes.flags) < len(before.notes.flags)
    assert same.text == translator.translate([SOUP])[0].text


def test_attention_that_never_leaves_a_word_is_noticed(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = translator.tokenizer.encode_source(SOUP)
    tokenizer = translator.tokenizer
    reader = reader_of(translator.model, tokenizer)
    for columns, expected in (([2] * 9, True), ([2] * 8 + [5], True), ([2, 5, 7] * 3, False)):
        attend_to(monkeypatch, columns)
        assert is_stuck(reader, SOUP, ids, range(9)) is expected
    attend_to(monkeypatch, [2] * 9)
    assert not is_stuck(reader, SOUP, ids, range(7))  # too short to tell
    assert not is_stuck(reader, "The soup", tokenizer.encode_source("The soup"), range(9))
    monkeypatch.undo()
    target = translator.translate([SOUP])[0].ids
    assert not is_stuck(reader, SOUP, ids, target)


def test_least_certain_translations_are_asked_for_their_attention(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def stuck(_reader: object, source: str, *_ids: object) -> bool:
        asked.append(source)
        return source == "SALAD 7"

    monkeypatch.setattr(attended_words, "is_stuck", stuck)
    lines = [SOUP, *(f"SALAD {number}" for number in range(20))]
    found = translator.translate(lines)
    assert SOUP not in asked
    assert len(asked) <= 16
    assert ("stuck" in found[8].notes.flags) is ("SALAD 7" in asked)


# Unknown words


def make(kind: str, lines: list[str], **settings: object) -> tuple[Transformer, Tokenizer]:
    recipe = TokenizerRecipe.model_validate({"kind": kind, **settings})
    tokenizer = learn_tokenizer(recipe, lambda: lines, lambda: lines)
    size = tokenizer.source_vocabulary_size
    config = ModelConfig(
        d_model=22,
        d_ff=19,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=3,
        source_vocabulary_size=size,
        target_vocabulary_size=size,
    )
    model = Transformer(config)
    initialize(model, seed=3)
    return model, tokenizer


def reader_of(model: EncoderDecoder, tokenizer: Tokenizer) -> AttentionReader:
    decoder = make_decoder([model], tokenizer)
    return AttentionReader(decoder, model.config, tokenizer, lambda: model)


def attend_to(monkeypatch: pytest.MonkeyPatch, columns: Sequence[int]) -> None:
    """Make row t attend to the source token ``columns[t]``."""

    def attended(_r: object, source: Sequence[int], target: Sequence[int]) -> np.ndarray:
        weights_TS = np.full((len(target), len(source)), 0.01, np.float32)
        for row, column in enumerate(columns):
            weights_TS[row, column] = 0.9
        return weights_TS

    monkeypatch.setattr(AttentionReader, "read_mean", attended)


def test_unknown_word_becomes_the_word_attended_to(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = make("words", ["the cat sees Max .", "le chat voit Max ."])
    source = "the cat sees Kraków-Süd."
    ids = tokenizer.encode_source(source)
    target = tokenizer.encode_target("le chat voit Kraków.")
    unknown = tokenizer.config.unk_id
    assert ids.count(unknown) == target.count(unknown) == 2  # the full stop has no space before it
    text = tokenizer.decode_target(target)
    assert text == "le chat voit <unk> <unk>"
    attend_to(monkeypatch, [0, 1, 2, 3, 4])
    found = replace_unknown(reader_of(model, tokenizer), source, ids, target, text)
    assert found == "le chat voit Kraków-Süd ."
    attend_to(monkeypatch, [0, 1, 2, 3, 3])
    found = replace_unknown(reader_of(model, tokenizer), source, ids, target, text)
    assert found == "le chat voit Kraków-Süd"


def test_unknown_letters_of_subwords_are_copied_without_the_rest_of_the_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ["Krak w sees the cat in Paris.", "Krak w voit le chat."] * 5
    model, tokenizer = make(
        "sentencepiece", lines, vocabulary_size=60, byte_fallback=False, model_type="bpe"
    )
    source = "Kraków sees 日本."
    ids = tokenizer.encode_source(source)
    target = tokenizer.encode_target("Kraków voit 日本.")
    unknown = tokenizer.config.unk_id
    places = [place for place, id_ in enumerate(ids) if id_ == unknown]
    rows = [row for row, id_ in enumerate(target) if id_ == unknown]
    assert len(places) == len(rows) == 2
    columns = [0] * len(target)
    for row, place in zip(rows, places, strict=True):
        columns[row] = place
    attend_to(monkeypatch, columns)
    text = tokenizer.decode_target(target)
    assert (
        replace_unknown(reader_of(model, tokenizer), source, ids, target, text)
        == "Kraków voit 日本."
    )


def test_unknown_words_are_taken_from_the_source_by_a_whole_translator() -> None:
    model, tokenizer = make("words", ["a b c d e f g h", "i j k l m n o p"])
    translator = Translator(model, tokenizer)
    sources = ["a b Kraków d", "Łódź", "a b c"]
    plain = translator.translate(sources, max_length=9)
    copied = translator.translate(sources, max_length=9, unknown="source-word")
    for one, other in zip(plain, copied, strict=True):
        assert one.ids == other.ids
        assert "<unk>" not in other.text
        if "<unk>" not in one.text:
            assert one.text == other.text


def test_cross_attention_is_the_mean_of_layers_and_heads() -> None:
    model, tokenizer = make("words", ["a b c d e f g h"])
    source, target = tokenizer.encode_source("a b x d"), tokenizer.encode_target("c d e f g")
    reader = reader_of(model, tokenizer)
    weights_TS = reader.read_mean(source, target)
    assert weights_TS.shape == (6, 5)
    np.testing.assert_allclose(weights_TS.sum(-1), 1, atol=1e-6)
    ((_, weights_NHTS),) = reader.read([(source, target)])
    np.testing.assert_allclose(weights_TS, weights_NHTS.mean((0, 1)), atol=1e-6)


def test_cross_attention_is_the_same_on_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    demo = pellucid.load("demo")
    encode = demo.tokenizer.encode_source
    pairs = [(encode(line), demo.translate([line])[0].ids) for line in (SOUP, DOG, "The cat.")]
    reader = reader_of(demo.model, demo.tokenizer)
    in_c = dict(reader.read(pairs))
    monkeypatch.setattr(Decoder, "find_engine", lambda *_: None)
    on_pytorch = dict(reader.read(pairs))
    for index in range(len(pairs)):
        np.testing.assert_allclose(in_c[index], on_pytorch[index], atol=1e-4)


def test_notes_in_json_hold_only_what_is_unusual() -> None:
    notes = pellucid.translate.results.NO_NOTES
    assert notes.to_json() == {}
    other = replace(notes, unknown={"é": 2}, rare_tokens=1 / 3, parts=2, flags=("empty",))
    assert other.to_json() == {
        "unknown": {"é": 2},
        "rare_tokens": 0.3333,
        "parts": 2,
        "flags": ("empty",),
    }


def test_carriage_return_ends_a_line_as_on_an_old_mac() -> None:
    demo = pellucid.load("demo")
    (found,) = demo.translate(["The cat\rThe dog"])
    assert found.text == "Le chat\rLe chien"
