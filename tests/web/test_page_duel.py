"""The duel of the page: rounds won and lost, sentences without one, models equal to Python's."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import torch
from browser import Browser
from page_in_node import WEB, compare
from page_reader import PageReader

import pellucid
from pellucid import Translator
from pellucid.corpora import make_split
from pellucid.inside.changes.change import parse_change
from pellucid.inside.changes.what_if import what_if
from pellucid.inside.pair import make_pair
from pellucid.inside.show.model_page import carry_duel, carry_model, model_page
from pellucid.lessons.walks.for_page import lessons_for
from pellucid.lessons.walks.walk import read_outputs

TEXT = "The pizza came out of the oven and it tasted good."
DOG = "The dog ate the soup because it was hungry."
CAKE = "The cake was next to the soup and it was cold."
DUEL = {"view": "learn", "lesson": "duel"}


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


@pytest.fixture(scope="module")
def masculine(demo: Translator) -> tuple[str, list[str]]:
    """A sentence for which the model writes *il*, and the words that decide that."""
    lines = (example.source for example in make_split("pronoun", count=100))
    for text in (DOG, CAKE, *(line for line in lines if re.search(r"\bit\b", line))):
        if pronoun_of(demo, text) == "il" and (causes := deciding(demo, text, "il")):
            return text, causes
    pytest.fail("for no sentence does the model write il because of a word")


@pytest.fixture(scope="module")
def duel_page(demo: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("duel") / "page.html"
    lessons, _ = lessons_for(demo.bundle)
    html = model_page(demo.bundle, demo.look(TEXT, beam=1), TEXT, lessons=lessons, name="demo")
    path.write_text(html, encoding="utf-8")
    return path


def open_duel(browser: Browser, page: Path, **state: str) -> PageReader:
    return PageReader(browser, page, f"#{urlencode(DUEL | state)}")


def pronoun_of(demo: Translator, text: str) -> str:
    """Return the pronoun that the model writes for *it*; empty if none of the two."""
    written = str(demo.look(text, beam=1).decoding["text"]).lower()
    found = re.findall(r"\b(elle|il)\b", written)
    return found[0] if len(found) == 1 else ""


def deciding(demo: Translator, text: str, pronoun: str) -> list[str]:
    """Name the words without which the model writes the other pronoun."""
    other = {"elle": "il", "il": "elle"}[pronoun]
    pair = demo.pair(text)
    found = []
    for at, word in enumerate(pair.source_tokens):
        hidden = [f"cut encoder.*.self.*:*>{at}", f"cut decoder.*.cross.*:*>{at}"]
        stands = re.search(r"\b(elle|il)\b", pair.what_if(hidden).after.text)
        if stands and stands[1] == other:
            found.append(word)
    return found


def say_decide(causes: list[str]) -> str:
    return f"{' and '.join(causes)} decide{'s' if len(causes) == 1 else ''}"


def predict(reader: PageReader, pronoun: str, word: str) -> None:
    """Predict by clicks, and wait for the judgment."""
    reader.click_text(pronoun, "[role=radio]")
    number = reader.texts(".words button").index(word)
    reader.click(".words button", number)
    reader.click_text("Show what the model does")
    reader.wait("document.querySelector('.heard')")
    reader.wait(
        "/Try all heads|heads? (is|are) needed/.test(document.querySelector('.answer').textContent)"
    )


def lead(reader: PageReader) -> str:
    return " ".join(reader.texts(".answer .lead")[0].split())


def score(reader: PageReader) -> dict[str, list[str]]:
    rows = reader.run(
        "Array.from(document.querySelectorAll('tbody tr'), (row) =>"
        " Array.from(row.cells, (cell) => cell.textContent))"
    )
    return {name: cells for name, *cells in rows}


def write_fixture(path: Path, name: str, sentences: list[str]) -> Path:
    """Write a packaged model, and its logits and translations of some sentences."""
    translator = pellucid.load(name)
    bundle = translator.bundle
    found = []
    for text in sentences:
        source = bundle.tokenizer.encode_source(text)
        trace = translator.look(text, beam=1)
        inputs = [2, *trace.predicted_ids[:-1]]
        with torch.inference_mode():
            logits = bundle.exact_model(torch.tensor([source]), torch.tensor([inputs]))[0]
        packed = base64.b64encode(logits.float().numpy().tobytes()).decode()
        found.append(
            {"text": text, "source_ids": source, "inputs": inputs, "logits": packed}
            | {"target": trace.decoding["text"]}
        )
    fixture = {"model": carry_model(bundle), "sentences": found}
    path.write_text(json.dumps(fixture), encoding="utf-8")
    return path


def test_other_models_of_the_duel_compute_what_the_package_computes(
    node: str, tmp_path: Path
) -> None:
    names = ("demo-recurrent", "demo-untrained")
    sentences = [TEXT, DOG, "It works."]
    fixtures = [write_fixture(tmp_path / f"{name}.json", name, sentences) for name in names]
    for name, found in zip(names, compare(node, fixtures, tmp_path, "others"), strict=True):
        assert not found["wrong"], (name, found["wrong"])
        assert found["difference"] <= 1e-4, (name, found["difference"])
    # Weights that were stored in bfloat16 are carried in half the room, without loss.
    recurrent, untrained = carry_duel()["others"]
    assert untrained["has_halves"]
    assert not recurrent["has_halves"]


def test_guard_exchanged_directions_of_the_recurrent_encoder_are_found(
    node: str, tmp_path: Path
) -> None:
    fixture = write_fixture(tmp_path / "changed.json", "demo-recurrent", [TEXT])
    values = json.loads(fixture.read_text(encoding="utf-8"))
    tensors = values["model"]["tensors"]
    right = "encoder.layers.0.right_to_left.state.weight"
    left = right.replace("right_to_left", "left_to_right")
    tensors[right], tensors[left] = tensors[left], tensors[right]
    fixture.write_text(json.dumps(values), encoding="utf-8")
    (found,) = compare(node, [fixture], tmp_path, "others")
    assert found["difference"] > 1e-2


def test_duel_is_won_and_what_it_says_is_what_the_package_finds(
    browser: Browser, duel_page: Path, demo: Translator, node: str
) -> None:
    assert node, "axe-core is installed with the page's libraries"
    reader = PageReader(browser, duel_page, "#view=learn")
    reader.click_text("A duel with the model")
    assert reader.link.startswith("#view=learn&text=")
    # The French stays hidden until both are predicted.
    assert "elle avait" not in reader.texts("#panel")[0]
    assert reader.run("document.querySelector('.button.main').disabled")
    predict(reader, "elle", "pizza")
    causes = deciding(demo, TEXT, "elle")
    assert "pizza" in causes
    assert lead(reader) == f"You won: the model writes elle, and {say_decide(causes)}."
    assert "elle avait" in reader.target
    assert "duel=elle%2C1%2Ctold" in reader.link
    # Below each word: the pronoun without it.
    pair = make_pair(demo.bundle, TEXT, demo.look(TEXT, beam=1).predicted_ids)
    expected = []
    for at in range(len(reader.texts(".words button"))):
        hidden = [f"cut encoder.*.self.*:*>{at}", f"cut decoder.*.cross.*:*>{at}"]
        after = what_if(pair, [parse_change(one) for one in hidden]).after.text
        found = re.search(r"\b(elle|il)\b", after)
        expected.append(found[1] if found else "none")
    assert reader.texts(".words .small") == expected
    # The change of the English, made by the package, has the same effect.
    said = " ".join(" ".join(reader.texts(".answer")).split())
    old, new, french = re.findall(
        r"turns it: (\w+) becomes (\w+)\. Then the model writes il: (.*?) \(found at try", said
    )[0]
    changed = demo.look(TEXT.replace(old, new), beam=1)
    assert str(changed.decoding["text"]) == french
    assert " il " in french
    others = [pellucid.load(name) for name in ("demo-recurrent", "demo-untrained")]
    recurrent, untrained = [str(one.look(TEXT, beam=1).decoding["text"]) for one in others]
    shown = reader.texts(".heard li")
    assert shown[0].endswith(f"writes elle: {recurrent}")
    assert f"writes no pronoun: {untrained[:40]}" in shown[1]
    assert score(reader)["You"] == ["1 of 1", "1 of 1"]
    assert score(reader)["The nearest noun"] == ["0 of 1", "0 of 1"]
    reader.click_text("Try all heads")
    reader.wait("/of 24 heads/.test(document.querySelector('.answer').textContent)")
    for width in (390, 1400):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.call("Emulation.setDeviceMetricsOverride", **size)
        assert reader.run("document.documentElement.scrollWidth") <= width
    browser.call("Emulation.clearDeviceMetricsOverride")
    reader.run((WEB / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8") + "; 0")
    violations = reader.run("axe.run().then((it) => it.violations)")
    assert not [one for one in violations if one["impact"] in ("serious", "critical")]
    assert reader.is_quiet, (browser.requests, browser.problems)
    part, layer, kind, number = read_outputs()["cells"]["pronoun"].partition(":")[0].split(".")
    named = reader.texts(".answer .link")
    assert f"{part} {kind}-attention, layer {layer}, head {number}" in named
    reader.click(".answer .link")
    assert reader.texts("#panel h2") == named[:1]


def test_duel_is_lost_and_the_score_is_kept_against_the_rules_of_thumb(
    browser: Browser, duel_page: Path, demo: Translator, masculine: tuple[str, list[str]]
) -> None:
    text, causes = masculine
    reader = open_duel(browser, duel_page, text=text)
    predict(reader, "elle", "it")
    said = f"the model writes il, not elle, and {say_decide(causes)}, not it."
    assert lead(reader) == f"You lost: {said}"
    recurrent = pronoun_of(pellucid.load("demo-recurrent"), text) or "no pronoun"
    assert f"writes {recurrent}" in reader.texts(".heard li")[0]
    assert score(reader)["You"] == ["0 of 1", "0 of 1"]
    first = score(reader)["The nearest noun"]
    reader.click_text("Next sentence")
    assert not reader.texts(".answer")
    # Next is the first that was not played; it is offered again once another is taken.
    assert pronoun_of(demo, TEXT) == "elle"
    reader.click_text(next(one for one in (DOG, CAKE) if one != text))
    reader.click_text(TEXT)
    predict(reader, "elle", deciding(demo, TEXT, "elle")[0])
    assert lead(reader).startswith("You won: ")
    assert "you won 1 of 2" in " ".join(reader.texts("h3"))
    table = score(reader)
    assert table["You"] == ["1 of 2", "1 of 2"]
    # The oven is the nearest noun of the second sentence, and is wrong there.
    assert table["The nearest noun"] == [one.replace("of 1", "of 2") for one in first]
    assert table["A word attends most to itself"] == ["0 of 2", "–"]
    # Another view and back: the round is there, and counts once.
    reader.click("#tab-why")
    reader.click("#tab-learn")
    assert score(reader) == table


@pytest.mark.parametrize("way", ["keyboard", "touch"])
def test_duel_is_played_without_a_mouse(
    browser: Browser, duel_page: Path, masculine: tuple[str, list[str]], way: str
) -> None:
    # The masculine pronoun is the first of the two.
    text, causes = masculine
    reader = open_duel(browser, duel_page, text=text)
    at = reader.texts(".words button").index(causes[0])

    def do(element: str) -> None:
        reader.run(f"{element}.scrollIntoView({{ block: 'center' }})")
        if way == "touch":
            box = reader.run(f"(({{ x, y }}) => [x + 9, y + 9])({element}.getBoundingClientRect())")
            point = dict(zip("xy", box, strict=True))
            browser.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[point])
            browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        else:
            reader.run(f"{element}.focus()")
            reader.press(" ")
        reader.settle()

    # Of a choice that is not made yet, Tab reaches the first button.
    do("document.querySelector('[role=radio][tabindex=\"0\"]')")
    do(f"document.querySelectorAll('.words button')[{at}]")
    do("document.querySelector('.button.main')")
    reader.wait("/You won/.test(document.querySelector('.lead')?.textContent)")
    assert f"duel=il%2C{at}%2Ctold" in reader.link


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The pizza tasted good.", "has no pronoun such as it"),
        ("The kitten ate the soup because it was hungry.", "words that the model does not know"),
        ("The dog ate it.", "writes no pronoun such as il or elle for this sentence"),
        (
            "The dog ate the soup because it was hungry and the cat ate the cake because it was "
            "good and the baby ate the pizza.",
            "at most 24 words and signs, but this sentence has 26",
        ),
    ],
)
def test_sentence_without_a_duel_says_why(
    browser: Browser, duel_page: Path, text: str, said: str
) -> None:
    # An answer in the link changes nothing.
    reader = open_duel(browser, duel_page, text=text, duel="il,1,told")
    (refusal,) = reader.texts("#panel .remark[role=status]")
    assert said in refusal
    assert not reader.texts(".words, .answer")


def test_sentence_that_no_change_turns_says_so_and_does_not_count(
    browser: Browser, duel_page: Path, demo: Translator
) -> None:
    # Without a noun. Some of these have another subject in French: c'est.
    texts = (f"It {predicate}." for predicate in ("is hungry", "barked", "was eating", "sleeps"))
    text, pronoun = next((one, it) for one in texts if (it := pronoun_of(demo, one)))
    other = {"elle": "il", "il": "elle"}[pronoun]
    reader = open_duel(browser, duel_page, text=text)
    predict(reader, pronoun, text.rstrip(".").split()[-1])
    said = " ".join(reader.texts(".answer p"))
    assert f"This round does not count: no single change turns {pronoun} into {other}" in said
    assert not reader.texts("table")


def test_answer_in_a_link_is_shown_but_not_counted(
    browser: Browser, duel_page: Path, demo: Translator
) -> None:
    reader = open_duel(browser, duel_page, text=TEXT, duel="il,6,told")
    reader.wait("/You lost/.test(document.querySelector('.lead').textContent)")
    said = say_decide(deciding(demo, TEXT, "elle"))
    assert lead(reader) == f"You lost: the model writes elle, not il, and {said}, not oven."
    reader.wait("/Try all heads/.test(document.querySelector('.answer').textContent)")
    assert not reader.texts("table")
    # A link that names no word or pronoun asks.
    for duel in ("il,99,told", "sie,1,told", "<b>,-1,told", ",,told"):
        reader = open_duel(browser, duel_page, text=TEXT, duel=duel)
        assert reader.texts(".words")
        assert not reader.texts(".answer")


def test_search_of_the_duel_stops_and_is_taken_up_again(browser: Browser, duel_page: Path) -> None:
    reader = open_duel(browser, duel_page, text=TEXT, duel="elle,1,told")
    reader.wait("document.querySelector('.answer progress')")
    reader.click_text("Stop")
    assert not reader.texts("progress")
    assert not re.search("smallest change", reader.texts(".answer")[0])
    # What is being decoded ends first.
    reader.wait("/Look for the rest/.test(document.querySelector('.answer').textContent)")
    reader.click_text("Look for the rest")
    reader.wait("/smallest change/.test(document.querySelector('.answer').textContent)")
    assert lead(reader).startswith("You won")


def test_page_without_the_other_models_says_so(
    browser: Browser, demo: Translator, tmp_path: Path
) -> None:
    lessons, _ = lessons_for(demo.bundle)
    options: dict[str, Any] = {"lessons": lessons, "name": "demo", "has_others": False}
    path = tmp_path / "page.html"
    trace = demo.look(TEXT, beam=1)
    path.write_text(model_page(demo.bundle, trace, TEXT, **options), encoding="utf-8")
    reader = open_duel(browser, path, duel="elle,1,told")
    reader.wait("document.querySelector('.answer')")
    assert "carries no other models" in reader.texts(".answer")[0]
    assert not reader.texts(".heard")
