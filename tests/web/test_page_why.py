"""Why a French word was written, as the page finds it, next to what the package finds."""

from __future__ import annotations

import json
import re
import time
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest
from browser import Browser
from page_reader import PageReader

import pellucid
from pellucid import Translator
from pellucid.corpora.rival_forms import RivalForms
from pellucid.inside import Pair
from pellucid.inside.changes.change import Changes, parse_change
from pellucid.inside.changes.what_if import what_if
from pellucid.inside.measures.hiding import WordChoice, hide_each
from pellucid.inside.pair import make_pair
from pellucid.inside.show.model_page import model_page
from pellucid.lessons.walks.walk import read_outputs

TEXT = "The pizza came out of the oven and it tasted good."
SHORT = "I ate the pizza because it tasted good."
CARRIED = (
    SHORT,
    "I ate the soup because it tasted good.",
    "I like the pizza because it is good.",
    "The cake was next to the soup and it was cold.",
    "The baby ate the cake because it was good.",
    "The car was behind the bus because it was slow.",
)
"""Sentences in one of which several heads carry the pronoun, and none alone."""
PRONOUNS = ("il", "elle", "qu'il", "qu'elle")


@pytest.fixture(scope="module")
def demo() -> Translator:
    return pellucid.load("demo")


@pytest.fixture(scope="module")
def demo_page(demo: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "page.html"
    trace = demo.look(TEXT, beam=1)
    path.write_text(model_page(demo.bundle, trace, TEXT, name="demo"), encoding="utf-8")
    return path


def measured(reader: PageReader) -> PageReader:
    """Wait until every word was hidden in turn, and the most needed were decoded without."""
    reader.wait("document.querySelector('.costs')")
    reader.wait("/ide|No single|Without|still/.test(document.querySelector('.lead').textContent)")
    return reader


def lead(reader: PageReader) -> str:
    return " ".join(reader.texts(".lead [role=status]")[0].split())


def hidden_by(position: int) -> list[str]:
    return [f"cut encoder.*.self.*:*>{position}", f"cut decoder.*.cross.*:*>{position}"]


def losses(demo: Translator, text: str, changes: list[str]) -> list[float]:
    """What each French word loses when the sentence is translated again under changes.

    For a pronoun it is the log of the factor by which its odds fall against the other pronoun,
    where a pronoun stands now; else the fall of the word's log-probability in its place.
    """
    pair = make_pair(demo.bundle, text, demo.look(text, beam=1).predicted_ids)
    parsed = [parse_change(one) for one in changes]
    after = what_if(pair, parsed).after
    again = Pair(pair.model, pair.tokenizer, pair.source_ids, after.ids)
    logs = pair.logits().log_softmax(-1).detach().numpy()
    now = again.logits(probe=Changes(*parsed)).log_softmax(-1).detach().numpy()
    names = list(pair.tokenizer.vocabulary("target"))
    old, new = pair.predicted_tokens, again.predicted_tokens
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    found = []
    for row, token in enumerate(old):
        if token in PRONOUNS:
            # Of several, the one that stands nearest to its old place.
            standing = [(i, x) for i, x in enumerate(new) if x in PRONOUNS]
            standing.sort(key=lambda one: abs(one[0] - row))
            place, stands = standing[0] if standing else (-1, "")
            # The odds of the feminine one: before, and where a pronoun stands now.
            stems = [one.removesuffix("elle").removesuffix("il") for one in (token, stands)]
            odds = [
                table[at, names.index(stem + "elle")] - table[at, names.index(stem + "il")]
                for table, at, stem in ((logs, row, stems[0]), (now, place, stems[1]))
            ]
            sign = 1 if token.endswith("elle") else -1
            found.append(sign * float(odds[0] - odds[1]) if stands else float("nan"))
            continue
        first, _, start, end = next(one[1:] for one in codes if one[1] <= row < one[2])
        place = min(start + min(row - first, max(end - start, 0)), len(new) - 1)
        found.append(float(logs[row, pair.target_ids[row]] - now[place, pair.target_ids[row]]))
    return found


def pronoun_of(demo: Translator, text: str) -> str:
    return next(one for one in demo.look(text, beam=1).predicted_tokens if one in PRONOUNS)


def losses_by_head(demo: Translator, text: str) -> dict[str, float] | None:
    """What the pronoun loses without each head; None if one of them turns it."""
    token = pronoun_of(demo, text)
    pair = demo.pair(text, beam=1)
    row = pair.predicted_tokens.index(token)
    lost = {}
    for part, kind in (("encoder", "self"), ("decoder", "self"), ("decoder", "cross")):
        for layer in range(2):
            for head in range(4):
                name = f"{'' if kind == 'cross' else part + ' '}{kind}-attention"
                change = f"cut {part}.{layer}.{kind}.{head}"
                after = what_if(pair, [parse_change(change)]).after.tokens
                stands = next((one for one in after if one in PRONOUNS), token)
                if ("elle" in stands) is not ("elle" in token):
                    return None
                lost[f"{name}, layer {layer}, head {head}"] = losses(demo, text, [change])[row]
    return lost


def listed(reader: PageReader) -> dict[str, str]:
    """The number at each word that can be hidden."""
    names = reader.texts(".costs .name")
    return dict(zip(names, (one.strip() for one in reader.texts(".costs .small")), strict=True))


def hide(reader: PageReader, word: str) -> None:
    place = reader.texts(".costs .name").index(word)
    reader.click(".costs button", place)


def factor(text: str) -> float:
    scale = {"million": 1e6, "billion": 1e9}.get(text.split()[-1], 1)
    return scale * float(re.search(r"[\d,.]+", text)[0].replace(",", ""))  # type: ignore[index]


def test_first_screen_says_why_elle_was_written(
    browser: Browser, demo_page: Path, demo: Translator
) -> None:
    reader = measured(PageReader(browser, demo_page))
    assert reader.texts("#question bdi") == ["elle", "il"]
    causes = " and ".join(one.word for one in demo.why(TEXT, "elle", beam=1).reasons)
    assert "pizza" in causes
    assert lead(reader) == f"Because of {causes}. Hide pizza, and the model writes il."
    assert not [one for one in reader.texts(".export pre") if "--change" in one]
    assert " to 1 for elle" in reader.texts(".odds")[0]
    assert "il" in reader.texts(".odds b")
    assert reader.is_quiet, (browser.requests, browser.problems)


def test_bar_of_each_word_is_what_the_package_finds_without_it(
    browser: Browser, demo_page: Path, demo: Translator
) -> None:
    reader = measured(PageReader(browser, demo_page))
    trace = demo.look(TEXT, beam=1)
    row = trace.predicted_tokens.index("elle")
    reader.run(
        "URL.createObjectURL = (blob) => { blob.text().then((t) => (window.saved = t));"
        " return 'blob:none'; }"
    )
    reader.click_text("CSV")
    reader.wait("window.saved")
    lines = reader.run("window.saved").split("\n")[1:]
    shown = [float(line.rsplit(",", 1)[1]) for line in lines]
    expected = [
        losses(demo, TEXT, hidden_by(position))[row]
        for position in range(len(trace.source_tokens) - 1)
    ]
    assert np.isnan(expected[trace.source_tokens.index("it")])
    np.testing.assert_allclose(shown, expected, atol=1e-3)
    # The command and Python have the same numbers.
    hidden = demo.why(TEXT, "elle", beam=1).hidden
    np.testing.assert_allclose(shown, [one.fall for one in hidden], atol=1e-3)


@pytest.mark.parametrize("way", ["mouse", "keyboard", "touch"])
def test_word_that_is_struck_out_changes_the_french_in_its_place(
    browser: Browser, demo_page: Path, demo: Translator, way: str
) -> None:
    reader = measured(PageReader(browser, demo_page))
    words = "[...document.querySelectorAll('.costs button')]"
    pizza = f"{words}.find((one) => one.textContent.includes('pizza'))"
    reader.run(f"{pizza}.scrollIntoView(); {pizza}.focus()")
    box = reader.run(f"(({{ x, y }}) => [x + 9, y + 9])({pizza}.getBoundingClientRect())")
    point = dict(zip("xy", box, strict=True))
    if way == "keyboard":
        reader.press(" ")
    elif way == "touch":
        browser.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[point])
        browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    else:
        for kind in ("mousePressed", "mouseReleased"):
            click = {"type": kind, "button": "left", "clickCount": 1}
            browser.call("Input.dispatchMouseEvent", **click, **point)
    reader.wait("document.querySelector('.out .fresh')")
    reader.settle()
    assert reader.target == demo.pair(TEXT, beam=1).what_if(hidden_by(1)).after.text
    fresh = reader.texts(".out .fresh")
    assert "il" in fresh
    assert not {*fresh} & {*demo.translate(TEXT).text.split()} - {"four"}
    assert lead(reader).startswith("Without pizza, the model writes il instead of elle.")
    assert " to 1 for il" in reader.texts(".odds")[0]
    assert reader.texts(".costs [aria-pressed=true] .name") == ["pizza"]
    assert "change=word+1" in reader.link
    (command,) = [
        one for one in reader.texts(".export pre") if one.startswith("pellucid look demo")
    ]
    assert all(f"--change '{one}'" in command for one in hidden_by(1))
    reader.click_text("Put it back")
    assert "elle" in reader.target
    assert lead(reader).startswith("Because of")


def test_switch_and_french_word_ask_again(browser: Browser, demo_page: Path) -> None:
    reader = measured(PageReader(browser, demo_page))
    for other, pronoun in (("closed badly", "il"), ("tasted good", "elle"), ("cake", "il")):
        reader.click_text(other, "[role=radio]")
        measured(reader)
        assert reader.texts("#question bdi")[0] == pronoun
        assert pronoun in reader.target.split()
    reader.click(".out .word", 1)
    assert reader.texts("#question bdi") == [reader.texts(".out .word")[1]]
    assert "cell=1" in reader.link


def test_every_head_has_the_verdict_of_the_package(
    browser: Browser, demo_page: Path, demo: Translator
) -> None:
    reader = measured(PageReader(browser, demo_page))
    reader.click_text("Where inside the model?")
    reader.wait("/ of 24 heads/.test(document.querySelector('.heads').textContent)")
    pair = make_pair(demo.bundle, TEXT, demo.look(TEXT, beam=1).predicted_ids)
    before = str(demo.look(TEXT, beam=1).decoding["text"])
    expected = {}
    for part, kind in (("encoder", "self"), ("decoder", "self"), ("decoder", "cross")):
        for layer in range(2):
            for head in range(4):
                change = f"cut {part}.{layer}.{kind}.{head}"
                after = what_if(pair, [parse_change(change)]).after.text
                name = f"{'' if kind == 'cross' else part + ' '}{kind}-attention"
                fate = "vain" if after == before else "elsewhere" if " elle " in after else "needed"
                expected[f"{name}, layer {layer}, head {head}"] = fate
    shown = dict(
        reader.run(
            "[...document.querySelectorAll('button.head')].map((one) => [one.title.split(':')[0],"
            " ['needed', 'elsewhere', 'vain'].find((fate) => one.classList.contains(fate))])"
        )
    )
    assert shown == expected
    # Few heads carry it, each by itself, and the page shows one of them.
    needed = [name for name, fate in shown.items() if fate == "needed"]
    assert 0 < len(needed) < 4
    assert {*needed} <= {*reader.texts(".heads .link")}
    (opened,) = reader.texts("#panel h2")
    assert opened in needed


def test_lines_of_a_head_are_tried_and_a_line_names_its_verdict(
    browser: Browser, demo_page: Path, demo: Translator
) -> None:
    reader = measured(PageReader(browser, demo_page))
    reader.click_text("Where inside the model?")
    # The lines of the head that is found are tried at once, with no button in between.
    reader.wait("/lines (is|are) needed/.test(document.querySelector('#panel').textContent)")
    said = next(one for one in reader.texts("[role=status]") if " lines " in one)
    needed, of = [int(word) for word in said.replace(",", "").split() if word.isdigit()][:2]
    assert 0 < needed < of / 4
    assert len(reader.texts("path.link.needed")) == needed
    assert len(reader.texts("path.link")) == of
    head = reader.link.split("head=")[1].split("&")[0]
    pair = make_pair(demo.bundle, TEXT, demo.look(TEXT, beam=1).predicted_ids)
    layer, number = int(head.split(".")[1]), int(head.split(".")[3])
    weights = demo.look(TEXT, everything=True, beam=1)[f"encoder.{layer}.self"][number]
    cut = [
        what_if(pair, [parse_change(f"cut {head}:{row}>{column}")]).after.text
        for row, column in np.argwhere(weights >= 0.08)
    ]
    assert sum(" elle " not in text for text in cut) == needed
    # The needed line is in view; the pronoun's own one may not be what carries the word.
    row = read_outputs()["cells"]["pronoun"].partition(":")[2].partition(">")[0]
    words = demo.look(TEXT, beam=1).source_tokens
    place = f"cell={words.index(row)}%2C{words.index('pizza')}"
    # The line of the pronoun is in view before any is tried, and needs no place in the link.
    assert (place in reader.link) is (row != "it")
    detour = f"pizza reaches the French through {row}, not through the line from “it”."
    assert (detour in " ".join(said.split())) is (row != "it")
    assert "needed: il" in " ".join(reader.texts(".card [aria-pressed=true]"))


def test_trying_can_be_stopped(browser: Browser, demo_page: Path) -> None:
    reader = PageReader(browser, demo_page, "#view=look")
    reader.click_text("Try all heads")
    reader.wait("document.querySelector('progress')")
    reader.click_text("Stop")
    time.sleep(0.5)
    assert not reader.texts("progress")
    assert not [text for text in reader.texts(".heads") if " of 24 heads" in text]
    reader.click_text("Try all heads")
    reader.wait("/ of 24 heads/.test(document.querySelector('.heads').textContent)")


def test_score_counts_rows_whose_largest_weight_names_the_needed_word(
    browser: Browser, demo_page: Path, demo: Translator
) -> None:
    reader = PageReader(browser, demo_page, "#view=look&head=decoder.1.cross.0")
    reader.wait("/its largest weight names/.test(document.querySelector('#panel').textContent)")
    said = next(one for one in reader.texts("[role=status]") if "largest weight names" in one)
    named, of = [int(word) for word in said.split("In ")[-1].split() if word.isdigit()]
    trace = demo.look(TEXT, everything=True, beam=1)
    pair = demo.pair(TEXT, beam=1)
    lost = np.zeros((len(trace.source_tokens) - 1, len(trace.predicted_tokens)))
    agreement = RivalForms(pair.tokenizer.vocabulary("target"))
    for row, token in enumerate(trace.predicted_tokens[:-1]):
        (rival, *others) = agreement.rivals(token) or ("",)
        assert not others
        hidden = hide_each(WordChoice(pair, row, token, rival, is_form=bool(rival)))
        lost[:, row] = np.nan_to_num([one.fall for one in hidden])
    rows = [
        row
        for row, token in enumerate(trace.predicted_tokens)
        if not token.startswith("<") and lost[:, row].max() >= np.log(2)
    ]
    most = trace["decoder.1.cross.0"].argmax(axis=-1)
    assert of == len(rows)
    assert named == sum(most[row] == lost[:, row].argmax() for row in rows)


def test_picture_starts_high_and_text_is_large(browser: Browser, demo_page: Path) -> None:
    size = {"width": 1024, "height": 768, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    top = "document.querySelector({}).getBoundingClientRect().top"
    small = (
        "[...document.querySelectorAll('p, label, li, button, td, th, h2, h3')].filter((one) =>"
        " one.getClientRects().length && one.textContent.trim() && parseFloat("
        "getComputedStyle(one).fontSize) < {}).map((one) => one.className + one.textContent)"
    )
    try:
        for link, picture in (
            ("why", ".composer"),
            ("look", ".picture"),
            ("look&show=map", ".picture"),
        ):
            reader = PageReader(browser, demo_page, f"#view={link}")
            reader.wait(f"document.querySelector({json.dumps(picture)})")
            assert reader.run(top.format(json.dumps(picture))) < 300, link
            reader.run("document.querySelectorAll('details').forEach((one) => (one.open = false))")
            assert reader.run(small.format(14 if "map" in link else 14.4)) == [], link
        reader = measured(PageReader(browser, demo_page, "#view=why"))
        assert reader.run(top.format("'.costs'")) < 400
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


def test_question_of_a_pronoun_is_why_not_the_other_one(browser: Browser, demo_page: Path) -> None:
    reader = measured(PageReader(browser, demo_page, f"#text={SHORT.replace(' ', '+')}"))
    assert reader.texts("#question") == ["Why “qu'elle” and not “qu'il”?"]
    assert lead(reader).startswith("Because of pizza")
    assert lead(reader).endswith("Hide pizza, and the model writes qu'il.")
    shown = listed(reader)
    assert shown["it"] == "neither"
    assert max((one for one in shown if "÷" in shown[one]), key=lambda one: factor(shown[one])) == (
        "pizza"
    )
    # The number is what a click does: the odds before, times the odds that stand there after it.
    before = factor(reader.texts(".odds .soft")[0])
    hide(reader, "pizza")
    assert reader.texts("#question") == ["Why “qu'il” and not “qu'elle”?"]
    after = factor(reader.texts(".odds .soft")[0])
    assert before * after == pytest.approx(factor(shown["pizza"]), rel=0.1)
    reader.click_text("Put it back")
    hide(reader, "it")
    assert "Without it, the model writes que instead of qu'elle." in lead(reader)
    assert "other words have" in reader.texts(".odds .soft")[0]
    assert "que" in reader.texts(".odds .soft b")
    widths = reader.run(
        "[...document.querySelectorAll('.track i')].map((one) => parseFloat(one.style.width))"
    )
    assert widths[1] > 90


@pytest.mark.parametrize(
    ("text", "asked", "reason"),
    [
        ("The dog found some pizza next to the baby and ate it.", ["mangée", "mangé"], "pizza"),
        ("The soup is cold.", ["froide", "froid"], "soup"),
        ("The pizza is good.", ["bonne", "bon"], "pizza"),
    ],
)
def test_page_opens_on_a_word_that_agrees_and_says_why(
    browser: Browser, demo_page: Path, demo: Translator, text: str, asked: list[str], reason: str
) -> None:
    reader = measured(PageReader(browser, demo_page, f"#text={text.replace(' ', '+')}"))
    assert reader.texts("#question bdi") == asked
    causes = [one.word for one in demo.why(text, asked[0], beam=1).reasons]
    assert reason in causes
    listed_causes = re.sub(r", (?=[^,]*\Z)", " and ", ", ".join(causes))
    said = f"Because of {listed_causes}. Hide {causes[0]}, and the model writes "
    assert lead(reader).startswith(said)


def test_page_never_asks_about_a_sign_of_the_model(browser: Browser, demo_page: Path) -> None:
    reader = PageReader(browser, demo_page, "#text=%D7%A9%D7%9C%D7%95%D7%9D")
    reader.wait("/no word that it knows|Why “/.test(document.querySelector('.lead').textContent)")
    assert not [one for one in reader.texts("#question bdi") if one.startswith("<")]


def test_no_head_alone_turns_the_pronoun_and_the_page_says_so(
    browser: Browser, demo_page: Path, demo: Translator
) -> None:
    text, lost = next(
        (text, lost) for text in CARRIED if (lost := losses_by_head(demo, text)) is not None
    )
    token = pronoun_of(demo, text)
    other = token.replace("elle", "il") if "elle" in token else token.replace("il", "elle")
    reader = measured(PageReader(browser, demo_page, f"#text={text.replace(' ', '+')}"))
    reader.run("document.querySelector('.button.main').click()")
    reader.run("new Promise((done) => setTimeout(done, 60))")
    # No picture stands there that would change under the reader.
    assert not reader.texts(".picture")
    assert any("Searching" in text for text in reader.texts("[role=status]"))
    reader.settle()
    said = " ".join(reader.texts(".heads p[role=status]")[0].split())
    assert said == (
        f"No single head turns {token} into {other}: several carry it together. "
        "These lower its odds most:"
    )
    assert not reader.texts("button.head.needed")
    most = sorted(lost, key=lambda one: -lost[one])[:3]
    assert reader.texts(".heads p .link") == most
    assert reader.texts("#panel .look > section h2") == most[:1]
    shown = [factor(one.split("÷")[1]) for one in reader.texts(".heads p .soft")]
    assert shown == pytest.approx([np.exp(lost[one]) for one in most], rel=0.06)


def test_every_needed_head_is_listed_and_opens(browser: Browser, page: Path) -> None:
    reader = PageReader(browser, page, "#view=look")
    counts = []
    for place in range(len(reader.texts(".out .word"))):
        reader.click(".out .word", place)
        if reader.texts(".heads .button.main"):
            reader.click_text("Try all heads")
        reader.wait("/ heads/.test(document.querySelector('.heads [role=status]')?.textContent)")
        counts.append(len(reader.texts("button.head.needed")))
        assert len(reader.texts(".heads p .link")) == counts[-1]
    assert max(counts) > 3
    reader.click(".out .word", counts.index(max(counts)))
    last = reader.texts(".heads p .link")[-1]
    reader.click(".heads p .link", max(counts) - 1)
    assert reader.texts("#panel .look > section h2") == [last]
