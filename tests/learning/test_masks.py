"""A model with masks translates placeholders that it has never seen, wherever it reads lines."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from served import Live

import pellucid
from pellucid.config import Recipe, validate
from pellucid.decode.constraints.request import Constraints
from pellucid.errors import ConfigurationError
from pellucid.serve.models import load_models
from pellucid.training.loop import train
from pellucid.training.start.from_model import with_start
from pellucid.translate.masking import hide
from pellucid.translate.results import TranslatedHypothesis, Translation
from pellucid.translate.translator import Translator

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]
VERBS = {"open": "ouvrir", "close": "fermer", "delete": "effacer", "move": "bouger"}
NOUNS = {"file": "fichier", "folder": "dossier", "window": "cadre", "page": "feuille"}
UNSEEN = ["{user}", "https://a.org/b_c", "--all-files", "%(name)s", "${HOME}", "%3$s"]
"""Training has only ``%s`` and ``%d``."""


def make_pairs(placeholders: list[str]) -> list[tuple[str, str]]:
    pairs = []
    for verb, noun, other, one, two in product(VERBS, NOUNS, VERBS, placeholders, placeholders):
        pairs += [
            (f"{verb} {noun}", f"{NOUNS[noun]} {VERBS[verb]}"),
            (f"{verb} {noun} {one}", f"{NOUNS[noun]} {one} {VERBS[verb]}"),
            (f"{verb} {one} and {other} {two}", f"{one} {VERBS[verb]} et {two} {VERBS[other]}"),
        ]
    pairs = [*dict.fromkeys(pairs)]
    random.Random(5).shuffle(pairs)
    return pairs


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("masks")
    pairs = make_pairs(["%s", "%d"])
    for name, own in (("train", pairs * 4), ("validation", pairs[:10])):
        text = "".join(f"{source}\t{target}\n" for source, target in own)
        (folder / f"{name}.tsv").write_text(text)
    recipe = validate(
        Recipe,
        {
            "data": {
                "train": "train.tsv",
                "validation": "validation.tsv",
                "source_language": "en",
                "target_language": "fr",
                "placeholders": "masks",
            },
            "tokenizer": {"kind": "words"},
            "model": {
                "d_model": 48,
                "d_ff": 96,
                "num_heads": 4,
                "num_encoder_layers": 2,
                "num_decoder_layers": 2,
            },
            "training": {
                "max_tokens_per_batch": 700,
                "learning_rate": 0.005,
                "warmup_steps": 50,
                "schedule": "linear",
                "dropout": 0.0,
                "label_smoothing": 0.0,
                "max_steps": 150,
                "validate_every": 150,
            },
        },
        "test",
    )
    train(recipe, folder / "run", recipe_folder=folder, progress=False)
    return folder / "run"


@pytest.fixture(scope="module")
def translator(run: Path) -> Translator:
    return pellucid.load(run)


def test_masks_carry_placeholders_that_training_never_had(translator: Translator) -> None:
    pairs = make_pairs(UNSEEN)[:100]
    found = [one.text for one in translator.translate([source for source, _ in pairs])]
    assert sum(text == target for text, (_, target) in zip(found, pairs, strict=True)) >= 98


def test_results_show_the_text_and_the_model_reads_symbols(translator: Translator) -> None:
    (found,) = translator.translate(["open {user} and move {a}"], align=True)
    assert found.source == "open {user} and move {a}"
    assert found.text == "{user} ouvrir et {a} bouger"
    assert found.source_words == ("open", "{user}", "and", "move", "{a}")
    assert found.best.words == ("{user}", "ouvrir", "et", "{a}", "bouger")
    assert found.best.tokens[0] == "❶"
    assert not found.notes.unknown_words


def test_streams_put_placeholders_back(translator: Translator) -> None:
    assert "".join(translator.stream("open file {user}")) == "fichier {user} ouvrir"


def test_symbols_of_a_text_stay(translator: Translator) -> None:
    assert translator.translate(["open file ❹"])[0].text == "fichier ❹ ouvrir"
    assert translator.translate(["open file ❶"])[0].text == "fichier ❶ ouvrir"


def test_more_placeholders_than_symbols_are_text(translator: Translator) -> None:
    many = " ".join(f"%{number}$s" for number in range(1, 25))
    (found,) = translator.translate([f"open file {many}"])
    assert "❶" not in found.text
    assert "⓴" not in found.text


def test_lines_of_one_text_keep_their_own_placeholders(translator: Translator) -> None:
    (found,) = translator.translate(["open file %s\nclose page {b}"])
    assert found.text == "fichier %s ouvrir\nfeuille {b} fermer"


def test_lost_placeholder_is_flagged(translator: Translator) -> None:
    hidden = hide(translator.tokenizer, ["open {user} and {b}"], [Constraints()])
    answers = tuple(map(TranslatedHypothesis, ("❶ ouvrir", "ouvrir ❷")))
    (shown,) = hidden.show([Translation(hidden.texts[0], answers)], ["open {user} and {b}"])
    assert [one.text for one in shown.hypotheses] == ["{user} ouvrir", "ouvrir {b}"]
    assert shown.notes.flags == ("partial",)
    assert shown.notes.unlinked_words == ("{b}",)
    whole = (*answers, TranslatedHypothesis("❷ ouvrir ❶"))
    (shown,) = hidden.show([Translation(hidden.texts[0], whole)], ["open {user} and {b}"])
    assert not shown.notes.flags


def test_placeholders_that_changed_places_are_flagged(translator: Translator) -> None:
    source = "move %s and open %s"
    hidden = hide(translator.tokenizer, [source], [Constraints()])
    (shown,) = hidden.show(
        [Translation(hidden.texts[0], (TranslatedHypothesis("❷ ouvrir et ❶ bouger"),))], [source]
    )
    assert shown.text == "%s ouvrir et %s bouger"
    assert shown.notes.flags == ("reordered",)
    (found,) = translator.translate([source])
    assert (found.text, found.notes.flags) == ("%s bouger et %s ouvrir", ())


def test_lines_of_placeholders_only_come_back_as_they_are(translator: Translator) -> None:
    for text in ("%s", " {a}{b}  %d ", "❶", "open file %s\n{x}", "{x}\n\nopen file"):
        (found,) = translator.translate([text])
        wanted = text.replace("open file %s", "fichier %s ouvrir")
        assert found.text == wanted.replace("open file", "fichier ouvrir")
        assert not found.notes.flags
    assert "".join(translator.stream("%s")) == "%s"


def test_symbols_of_other_lines_go_from_text_words_and_streams(translator: Translator) -> None:
    source = "open {{ a }}\nclose {b}"
    hidden = hide(translator.tokenizer, [source], [Constraints()])
    words = ("❶", "ouvrir", "❶", "❷", "fermer")
    answer = TranslatedHypothesis("❶ ouvrir\n❶ ❷ fermer", alignment=((1, 0), (3, 3)), words=words)
    found = Translation(hidden.texts[0], (answer,), source_words=("open", "❶", "close", "❷"))
    (shown,) = hidden.show([found], [source])
    assert shown.text == "{{ a }} ouvrir\n{b} fermer"
    assert shown.best.words == ("{{", "a", "}}", "ouvrir", "{b}", "fermer")
    assert shown.best.alignment == (*product(range(1, 4), range(3)), (5, 4))
    assert not shown.notes.flags
    assert "".join(hidden.show_pieces(["❶", " ouvrir\n", "❶", " ❷", " fermer"])) == shown.text
    swapped = TranslatedHypothesis("❷ ouvrir\n❶ fermer")
    (shown,) = hidden.show([Translation(hidden.texts[0], (swapped,))], [source])
    assert shown.notes.unlinked_words == ("{{ a }}", "{b}")


def test_constraints_name_placeholders(translator: Translator) -> None:
    constraints = Constraints(prefix="{b} fermer", required=("{a}",))
    (found,) = translator.translate(["open {a} and close {b}"], constraints=constraints)
    assert found.text.startswith("{b} fermer")
    assert "{a}" in found.text


def test_score_reads_both_sides_with_symbols(translator: Translator) -> None:
    right, wrong = translator.score(
        ["open file {user}"] * 2, ["fichier {user} ouvrir", "fichier {other} ouvrir"]
    )
    assert right.target == "fichier {user} ouvrir"
    assert right.tokens == ("fichier", "❶", "ouvrir", "</s>")
    assert right.log_probability > -1 > wrong.log_probability


def test_looking_aligning_and_studying_read_symbols(
    run: Path, translator: Translator, run_here: Run, write_lines: WriteLines
) -> None:
    trace = translator.look("open file {user}")
    assert trace.source_tokens == ("open", "file", "❶", "</s>")
    given = translator.look("open file {user}", translation="fichier {user} ouvrir")
    assert given.predicted_tokens == ("fichier", "❶", "ouvrir", "</s>")

    pair = ["open file {user}"], ["fichier {user} ouvrir"]
    done = run_here("look", str(run), *pair[0], "--translation", *pair[1])
    assert done.returncode == 0, done.stderr
    assert "❶" in done.stdout
    assert "The model reads symbols in the place of placeholders: ❶ for {user}." in done.stderr

    files = ("--source", write_lines("en", *pair[0]), "--target", write_lines("fr", *pair[1]))
    done = run_here("align", str(run), *files, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["source_words"] == ["open", "file", "❶"]
    done = run_here("study", str(run), *files, "--json")
    assert done.returncode == 0, done.stderr
    assert "open file ❶" in done.stdout


def test_training_from_a_model_takes_its_masks(run: Path, tmp_path: Path) -> None:
    values = {"data": {"train": "t.tsv", "validation": "v.tsv"}}
    assert with_start(values, str(run), tmp_path)["data"]["placeholders"] == "masks"
    values["data"]["placeholders"] = "text"
    with pytest.raises(ConfigurationError, match="must be that of the model to start from"):
        with_start(values, str(run), tmp_path)
    values["data"]["placeholders"] = "masks"
    with pytest.raises(ConfigurationError, match="'text', but is 'masks'"):
        with_start(values, "demo", tmp_path)


def test_parts_of_placeholders_do_not_stay_in_the_text_of_a_model_of_whole_words(
    run_here: Run, tmp_path: Path
) -> None:
    source, output = tmp_path / "a.md", tmp_path / "b.md"
    texts = {
        "The pizza of %{user_name} is good.": "La pizza de %{user_name} est bonne.",
        "The pizza of `user_name` is good.": "La pizza de `user_name` est bonne.",
        "The cat saw {{ a b }} and <a href=x>.": "Le chat a vu {{ a b }} et <a href=x>.",
        "The pizza of ❷ and {x} is good.": "La pizza de ❷ et {x} est bonne.",
        "The good pizza.": "La bonne pizza.",
        "The `good` pizza.": "La `good` pizza.",
    }
    source.write_text("\n\n".join(texts))
    assert run_here("translate", "demo", "-i", str(source), "-o", str(output)).returncode == 0
    # A placeholder may be one thing or several.
    written = output.read_text().replace("des {{", "{{").replace("des <", "<")
    assert written.split("\n\n") == [*texts.values()]


def test_service_reads_given_targets_with_symbols(run: Path) -> None:
    given = {"text": "open file {user}", "translation": "fichier {user} ouvrir"}
    with Live(load_models({"masks": str(run)})) as live:
        changed = live.post("/v1/change", {**given, "changes": ["cut decoder.1.cross.0"]}).json()
        looked = live.post("/v1/look", given).content
    assert changed["original"]["tokens"] == ["fichier", "❶", "ouvrir", "</s>"]
    header = json.loads(looked[8 : 8 + int.from_bytes(looked[:8], "little")])
    trace = json.loads(header["__metadata__"]["trace"])
    assert trace["predicted_tokens"] == changed["original"]["tokens"]
