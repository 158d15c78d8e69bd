"""The page in a real browser: everything a reader can do, by mouse and by keyboard."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from browser import Browser
from page_reader import PageReader
from small_words import SENTENCES

from pellucid import Translator
from pellucid.inside import measure
from pellucid.inside.changes.change import parse_change
from pellucid.inside.changes.what_if import what_if
from pellucid.inside.pair import make_pair
from pellucid.inside.show.model_page import model_page

NEW = "The good pizza came out, isn't it?"


@pytest.fixture
def reader(browser: Browser, page: Path) -> PageReader:
    return PageReader(browser, page, "#view=change&show=decoding")


def best(translator: Translator, text: str, **options: int) -> str:
    return str(translator.look(text, **options).decoding["text"])


def continue_greedily(translator: Translator, text: str, ids: list[int]) -> str:
    """Continue target ids with the likeliest tokens, without padding and start."""
    bundle = translator.bundle
    source = torch.tensor([bundle.tokenizer.encode_source(text)])
    with torch.inference_mode():
        while ids[-1] != 3 and len(ids) < bundle.config.model.max_target_length:
            logits = bundle.exact_model(source, torch.tensor([[2, *ids]]))[0, -1]
            logits[[0, 2]] = -torch.inf
            ids.append(int(logits.argmax()))
    return bundle.tokenizer.decode_target(ids)


def test_page_opens_from_disk_asks_for_nothing_and_translates_without_a_network(
    browser: Browser, reader: PageReader, translator: Translator
) -> None:
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    browser.call("Network.emulateNetworkConditions", **offline)
    try:
        assert reader.target == best(translator, SENTENCES[0], beam=1)
        reader.type(NEW)
        assert reader.target == best(translator, NEW, beam=1)
        assert reader.is_quiet, (browser.requests, browser.problems)
    finally:
        online = {**offline, "offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
        browser.call("Network.emulateNetworkConditions", **online)


def test_tokens_have_the_probabilities_of_the_model(
    reader: PageReader, translator: Translator
) -> None:
    trace = translator.look(SENTENCES[0], beam=1)
    shares = [float(re.sub(r"[^\d.]", "", text)) for text in reader.texts(".token .share")]
    expected = 100 * np.exp(trace.log_probabilities)
    np.testing.assert_allclose(shares, expected, atol=0.51)


def test_chosen_alternative_is_decoded_from_as_a_forced_prefix(
    reader: PageReader, translator: Translator
) -> None:
    reader.click(".token", 1)
    words = reader.texts(".choice bdi")
    first = reader.texts(".token .word")[0]
    place = next(i for i, word in enumerate(words) if word.isalpha() and len(word) > 1 and i > 0)
    reader.click(".choice", place)
    assert reader.texts(".token .word")[:2] == [first, words[place]]
    assert reader.texts(".token.pinned .word") == [words[place]]
    assert "chosen by you" in reader.texts(".token.pinned")[0]
    assert " ".join(reader.texts(".token")).count("chosen by you") == 1
    assert reader.texts(".composer .changed") == ["changed"]
    for view in ("why", "look", "change", "learn"):
        reader.click(f"#tab-{view}")
        assert f"“{words[place]}” as word 2 of the" in reader.texts("[role=note] p")[0]
        if view == "why":
            assert f"{words[place]}, because you chose it." in " ".join(
                reader.texts(".lead")[0].split()
            )
    reader.click("#tab-change")
    reader.click_text("Decoding", "[role=radio]")
    assert "prefix=" in reader.link
    ids = [int(text) for text in re.findall(r"prefix=([\d%C]+)", reader.link)[0].split("%2C")]
    assert reader.target.split() == continue_greedily(translator, SENTENCES[0], ids).split()
    reader.click_text("Decode freely again")
    assert "prefix=" not in reader.link


def test_beam_shows_its_tree_and_the_models_best(
    browser: Browser, page: Path, translator: Translator
) -> None:
    reader = PageReader(browser, page, "#view=change&show=decoding&decode=beam&beam=4")
    found = translator.translate([SENTENCES[0]], beam=4, n_best=4, precision="float32")[0]
    assert reader.target == best(translator, SENTENCES[0], beam=4)
    scores = [float(t.replace("−", "-")) for t in reader.texts("td.number")[1::2]]
    finished = [h.score for h in found.hypotheses][: len(scores)]
    np.testing.assert_allclose(scores[: len(finished)], finished, atol=2e-3)
    fates = set(reader.run("[...document.querySelectorAll('svg g')].map((g) => g.classList[0])"))
    assert {"live", "dropped"} <= fates


def test_keyboard_opens_a_head_reads_a_cell_and_unfolds_it(
    reader: PageReader, translator: Translator
) -> None:
    reader.run("document.getElementById('tab-change').focus()")
    reader.press("ArrowLeft")
    assert reader.run("document.activeElement.id") == "tab-look"
    reader.click_text("Map", "[role=radio]")
    reader.run("document.querySelector('[role=gridcell][tabindex=\"0\"]').focus()")
    start = int(reader.run("document.activeElement.dataset.cell").split(",")[0])
    move, row = ("ArrowDown", start + 1) if start == 0 else ("ArrowUp", start - 1)
    reader.press("Home", move, "ArrowRight", "ArrowRight", "ArrowLeft")
    said = reader.run("document.activeElement.getAttribute('aria-label')")
    name = reader.run("document.querySelector('[role=grid]').getAttribute('aria-label')")
    head = re.search(r"cross-attention, layer (\d), head (\d)", name)
    assert head is not None
    layer, number = int(head[1]), int(head[2])
    trace = translator.look(SENTENCES[0], everything=True, beam=1)
    column = 1
    weight = trace[f"decoder.{layer}.cross"][number, row, column]
    reads, predicts = trace.target_tokens[row], trace.predicted_tokens[row]
    words = f"{reads} → predicts {predicts}, {trace.source_tokens[column]}: ".replace("￭", "")
    assert said.startswith(words)
    assert said.endswith(f"{weight:.4f}")
    assert f"cell={row}%2C{column}" in reader.link
    reader.press("Enter")
    assert "open=1" in reader.link
    assert reader.run("document.activeElement.classList.contains('drawer')")
    marks = reader.recomputed()
    assert len(marks) >= 9
    assert all("Recomputed: equal" in mark for mark in marks), marks
    reader.run("document.querySelector('.drawer').focus()")
    reader.press("Escape")
    assert "open=" not in reader.link
    assert reader.run("document.activeElement.dataset.cell") == f"{row},{column}"


@pytest.mark.parametrize("place", ["encoder.0.self.2", "decoder.1.self.0", "decoder.0.cross.1"])
def test_arithmetic_of_every_kind_of_attention_is_recomputed(
    browser: Browser, page: Path, place: str
) -> None:
    reader = PageReader(browser, page, f"#view=arithmetic&head={place}&cell=2,1")
    marks = reader.recomputed()
    assert len(marks) >= 8
    assert all("Recomputed: equal" in mark for mark in marks), marks
    assert not reader.browser.problems


def test_cut_head_is_decoded_again_and_has_the_effect_that_the_package_finds(
    browser: Browser, page: Path, translator: Translator
) -> None:
    reader = PageReader(browser, page, "#view=change&head=decoder.1.cross.0")
    reader.click_text("Cut this head")
    assert "change=cut+decoder.1.cross.0" in reader.link
    reader.wait("document.querySelector('.effect [data-gained]')")
    ids = translator.look(SENTENCES[0], beam=1).predicted_ids
    pair = make_pair(translator.bundle, SENTENCES[0], ids)
    found = what_if(pair, [parse_change("cut decoder.1.cross.0")])
    shown = float(reader.run("document.querySelector('.effect [data-gained]').dataset.gained"))
    assert "log-probability" not in reader.texts(".effect")[0]
    assert shown == pytest.approx(found.effect, abs=6e-3)
    assert reader.target == found.after.text
    reader.click_text("Undo all")
    assert "change=" not in reader.link


def test_moved_word_is_read_at_its_new_place(
    browser: Browser, page: Path, translator: Translator
) -> None:
    reader = PageReader(browser, page, "#view=change&show=words")
    for _ in range(2):
        reader.click_text("Later")
    assert "change=move+1%3E3" in reader.link
    moved = "The came out pizza of the oven, and it tasted good."
    assert "".join(reader.texts(".order li")).replace(",", "") == (
        moved.replace(" ", "").replace(",", "")
    )
    assert reader.target == best(translator, moved, beam=1)
    reader.wait("document.querySelector('.effect [data-gained]')")
    shown = float(reader.run("document.querySelector('.effect [data-gained]').dataset.gained"))
    assert "log-probability" not in reader.texts(".effect")[0]
    ids = translator.look(SENTENCES[0], beam=1).predicted_ids
    before, after = (
        make_pair(translator.bundle, text, ids).log_probabilities().sum().item()
        for text in (SENTENCES[0], moved)
    )
    assert shown == pytest.approx(after - before, abs=6e-3)
    for _ in range(2):
        reader.click_text("Earlier")
    assert "change=" not in reader.link


def test_views_say_that_the_model_is_changed(browser: Browser, page: Path) -> None:
    changes = "&change=word+1&change=cut+encoder.0.self.2:4>1"
    reader = PageReader(browser, page, f"#view=look{changes}")
    words = reader.run("document.getElementById('sentence').value").split()
    second, fifth = words[1], words[4]
    (note,) = reader.texts("[role=note] p")
    assert f"You changed: the word “{second}” is hidden " in note
    assert f"“{fifth}” → “{second}” in encoder self-attention, layer 0, head 2" in note
    for view in ("why", "change", "learn", "look"):
        reader.click(f"#tab-{view}")
        if view != "learn":
            # A word is marked exactly when the French differs.
            assert bool(reader.texts(".composer .changed")) == bool(reader.texts(".out .fresh"))
        assert reader.texts("[role=note]")
        assert "Undo all" in reader.texts("[role=note] button")
    reader.click_text("Undo all")
    assert not reader.texts("[role=note]")
    assert not reader.texts(".composer .changed")
    assert "change=" not in reader.link


def test_row_of_one_head_is_compared_with_the_other_heads(
    browser: Browser, page: Path, translator: Translator
) -> None:
    row = 3
    reader = PageReader(browser, page, f"#view=look&head=decoder.1.self.0&cell={row}")
    trace = translator.look(SENTENCES[0], everything=True, beam=1)
    weights = np.stack([trace[f"decoder.{layer}.self"][:, row] for layer in (0, 1)])
    likeliest = [
        trace.target_tokens[column].replace("￭", "") for column in weights.argmax(-1).flatten()
    ]
    choose_figure(reader, "most")
    assert reader.texts(".heads .value")[3:9] == likeliest
    reader.click("button.head", 8)
    assert f"head=decoder.1.self.{weights.shape[1] - 1}" in reader.link
    assert f"cell={row}" in reader.link


def choose_figure(reader: PageReader, figure: str) -> None:
    """Let each head show a figure, or the word it looks at most."""
    reader.run(
        "(() => { const one = document.querySelector('.heads select');"
        f" one.value = {json.dumps(figure)};"
        " one.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )
    reader.settle()


def test_row_of_the_encoder_is_no_french_word(browser: Browser, page: Path) -> None:
    usual = PageReader(browser, page, "#view=why").texts("h2 bdi")
    reader = PageReader(browser, page, "#view=look&head=encoder.0.self.1&cell=5")
    chosen = "[...document.querySelectorAll('.out [aria-pressed=true]')].map((o) => o.textContent)"
    assert reader.run(chosen) == usual
    reader.click(".out .word", 4)
    assert "word=" in reader.link
    assert "cell=5" in reader.link
    reader.click("#tab-why")
    assert reader.texts("h2 bdi") == [reader.texts(".out .word")[4]]
    reader.run("location.hash = '#view=look&head=encoder.0.self.1&cell=5,2'")
    reader.settle()
    reader.click("[aria-label='cross-attention, layer 0, head 0']")
    assert "%2C2" not in reader.link


def test_link_reproduces_the_state(browser: Browser, page: Path, reader: PageReader) -> None:
    reader.type(NEW)
    reader.click("#tab-change")
    reader.click_text("Cut this head")
    state, words = reader.link, reader.texts(".out .word.fresh")
    again = PageReader(browser, page, state)
    assert again.link == state
    assert again.texts(".out .word.fresh") == words


def test_all_heads_are_there_with_their_figures_and_open(
    reader: PageReader, translator: Translator
) -> None:
    reader.click("#tab-look")
    assert len(reader.texts("button.head")) == 3 + 2 * 3 + 2 * 3
    choose_figure(reader, "confidence")
    weights = translator.look(SENTENCES[0], everything=True, beam=1)["encoder.0.self"]
    shown = [float(text) for text in reader.texts(".heads .value")[:3]]
    np.testing.assert_allclose(shown, weights.max(axis=-1).mean(axis=-1), atol=5.1e-3)
    reader.click("button.head", 2)
    assert "head=encoder.0.self.2" in reader.link
    assert reader.texts("#panel h2")[0] == "encoder self-attention, layer 0, head 2"


def test_heads_have_their_distance_from_the_head_that_was_taught(
    browser: Browser, page: Path, translator: Translator, tmp_path: Path
) -> None:
    trace = translator.look(SENTENCES[0], everything=True, beam=1)
    bundle = translator.bundle
    manifest = {**bundle.manifest, "imported": {"guided_head": [1, 2]}}
    html = model_page(replace(bundle, manifest=manifest), trace, SENTENCES[0])
    path = tmp_path / "taught.html"
    path.write_text(html, encoding="utf-8")
    reader = PageReader(browser, path, "#view=look")
    choose_figure(reader, "alignment")
    most = [trace[f"decoder.{layer}.cross"].argmax(axis=-1) for layer in range(2)]
    rows = [r for r, token in enumerate(trace.predicted_tokens) if not token.startswith("<")]
    errors = [
        np.mean(most[layer][head][rows] != most[1][2][rows])
        for layer in range(2)
        for head in range(3)
    ]
    shown = [float(text) for text in reader.texts(".heads .value") if text]
    assert "layer 1, head 2, which was shown word links" in reader.texts(".heads")[0]
    np.testing.assert_allclose(shown, errors, atol=5.1e-3)
    assert shown[5] == 0
    # Without such a head there is nothing to measure against.
    reader = PageReader(browser, page, "#view=look")
    assert not reader.texts(".heads option[value=alignment]")


def test_lesson_asks_first_and_then_tells(reader: PageReader) -> None:
    reader.click("#tab-learn")
    reader.click(".text", 2)
    claim = reader.texts("article h2")[0]
    assert not reader.texts("article .number")
    assert not reader.texts("figure pre")
    reader.click_text("Show the answer")
    assert reader.texts("article .number")[0]
    assert "embedding, encoder." in reader.texts("figure pre")[0]
    assert 'pellucid look demo "The pizza"' in reader.texts("figcaption")[0]
    reader.click_text("Next")
    assert reader.texts("article h2")[0] != claim
    assert not reader.texts("article .number")
    assert "screen=1" in reader.link


def times_less_likely(cost: float) -> str:
    """Say a loss of log-probability as the page does: in two digits, and nothing if it is small."""
    factor = float(f"{math.exp(abs(cost)):.2g}")
    return "" if abs(cost) < 0.2 else f"{'÷' if cost > 0 else '×'} {factor:,.15g}"


def test_measures_of_a_word_are_those_of_the_package(
    browser: Browser, page: Path, translator: Translator
) -> None:
    row = 2
    reader = PageReader(browser, page, f"#view=why&show=measures&cell={row}")
    reader.wait("document.querySelectorAll('.measures ol').length === 7")
    pair = make_pair(
        translator.bundle, SENTENCES[0], translator.look(SENTENCES[0], beam=1).predicted_ids
    )
    expected = {
        "Norms": measure(pair, "norms"),
        "ALTI+": measure(pair, "alti"),
        "Occlusion": measure(pair, "occlusion"),
    }
    for title, map_ in expected.items():
        shown = reader.texts(f"section[aria-label={json.dumps(title)}] li .mono")
        if title == "Occlusion":
            assert shown == [times_less_likely(cost) for cost in map_.source_matrix[row]]
            continue
        numbers = [float(text.replace("−", "-")) for text in shown]
        np.testing.assert_allclose(numbers, map_.source_matrix[row], atol=5.1e-3)
    assert len(reader.texts("[role=gridcell]")) == 7 * 7
    reader.click(".out .word", 4)
    assert reader.texts("h2 bdi") == [reader.texts(".out .word")[4]]
    (other,) = re.findall(r"cell=(\d+)", reader.link)  # A blank token is not a word to click.
    assert int(other) != row
    shown = reader.texts("section[aria-label=Occlusion] li .mono")
    wanted = expected["Occlusion"].source_matrix[int(other)]
    assert shown == [times_less_likely(cost) for cost in wanted]


def test_live_view_of_a_lesson_is_the_one_that_its_data_names(browser: Browser, page: Path) -> None:
    for screen, shown in ((2, "svg .link"), (6, "svg .link"), (15, "[role=grid]")):
        reader = PageReader(browser, page, f"#view=learn&lesson=slides&screen={screen}")
        # Before the answer is asked for, the picture would give it away.
        assert not reader.texts(".live")
        reader.click_text("Show the answer")
        assert reader.run(f"Boolean(document.querySelector({json.dumps('.live ' + shown)}))")
    reader = PageReader(browser, page, "#view=learn&lesson=slides&screen=8")
    assert not reader.texts(".live")
    assert not reader.texts("#panel .remark")
    reader.click_text("Show the answer")
    assert "measured on" in reader.texts("figure .note")[0]


def test_export_has_every_number(reader: PageReader, translator: Translator) -> None:
    reader.run(
        "URL.createObjectURL = (blob) => { blob.text().then((t) => (window.saved = t));"
        " return 'blob:none'; }"
    )
    reader.run("location.hash = '#view=look&show=map&head=decoder.1.cross.2'")
    reader.settle()
    reader.click_text("CSV")
    reader.wait("window.saved")
    rows = [line.rsplit(",", 14)[1:] for line in reader.run("window.saved").split("\n")[1:]]
    trace = translator.look(SENTENCES[0], beam=1)
    weights = trace["decoder.1.cross.2"]
    assert weights.shape[1] == 14
    np.testing.assert_allclose(np.array(rows, dtype=float), weights, atol=1e-5)


def test_unknown_words_are_named_and_long_lines_refused(reader: PageReader) -> None:
    reader.type("The zyzzyva came out")
    assert "zyzzyva" in " ".join(reader.texts(".remark"))
    reader.type(" ".join(["word"] * 60))
    (problem,) = reader.texts("[role=alert]")
    assert "at most 36 words" in problem
    assert "has 60" in problem
    reader.type("")
    # An empty line is not an error.
    assert not reader.texts("[role=alert]")
    assert "Type a sentence" in reader.texts(".remark")[0]
    assert not reader.texts(".token")
    reader.type("The pizza.")
    assert not reader.texts("[role=alert]")


@pytest.mark.sample(width=390)
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize(
    "view",
    [
        *("why", "why&show=measures", "look", "look&show=map&open=1", "change", "learn"),
        *("change&show=words&change=word+1", "change&show=formula", "change&show=decoding"),
        "learn&lesson=slides&screen=2",
    ],
)
def test_no_view_is_wider_than_the_window(
    browser: Browser, page: Path, view: str, width: int
) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    try:
        reader = PageReader(browser, page, f"#view={view}")
        assert reader.run("document.documentElement.scrollWidth") <= width
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")
