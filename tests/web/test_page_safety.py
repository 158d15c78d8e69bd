"""The page runs no foreign script, loads nothing, serves everybody, and says what is wrong."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from browser import Browser
from case_samples import Some
from made_up_traces import make_trace
from page_in_node import WEB
from page_reader import PageReader
from small_words import SENTENCES

from pellucid import Translator
from pellucid.errors import InputError
from pellucid.inside.record.trace_data import TraceData
from pellucid.inside.show import model_page as pages
from pellucid.inside.show.model_page import carry_model, carry_trace, model_page, trace_page
from pellucid.page.filled_page import make_page, read_built_page

MOST_BYTES = 110_000
"""The most that the page may have, compressed and without a model."""

NAMESPACES = {
    "http://www.w3.org/2000/svg",
    "http://www.w3.org/1998/Math/MathML",
    "http://www.w3.org/1999/xhtml",
    "http://www.w3.org/1999/xlink",
    "http://www.w3.org/XML/1998/namespace",
}

PIECES = (
    "<script>window.taken = 1</script>",
    "</script><script>window.taken = 1</script>",
    "<img src=x onerror='window.taken = 1'>",
    "<svg onload=window.taken=1>",
    "javascript:window.taken=1",
    "${window.taken = 1}",
    "{@html '<b>'}",
    "<!--",
    "-->",
    "<iframe srcdoc='<script>parent.taken=1</script>'>",
    '"><b>',
    "'); window.taken = 1; ('",
    "\u202e\u2066\u2028\u2029\x00\x1b[31m",
    "\ud800",
    "&lt;script&gt;",
    "</title><script>window.taken = 1</script>",
    "#view=heads&text=<b>",
    "<style>*{display:none}</style>",
)


def hostile(count: int) -> list[str]:
    """Make strings that try to leave their place."""
    draw = random.Random(11)
    return ["".join(draw.choices(PIECES, k=draw.randint(1, 4))) for _ in range(count)]


def write(path: Path, html: str) -> Path:
    path.write_text(html, encoding="utf-8")
    return path


def is_untouched(reader: PageReader) -> bool:
    foreign = "document.querySelectorAll('img, iframe, b [onerror], svg[onload], object').length"
    return (
        not reader.run("window.taken")
        and not reader.run(foreign)
        and reader.run("document.scripts.length") == 2
        and len(reader.browser.requests) == 1
    )


def test_template_is_small_names_no_address_and_allows_only_its_own_script() -> None:
    template = read_built_page()
    assert len(gzip.compress(template.encode())) <= MOST_BYTES
    assert set(re.findall(r"https?://[^\s\"'`<>)\\]+", template)) <= NAMESPACES
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', template)[0]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        (content,) = re.findall(rf"<{kind}>(.*?)</{kind}>", template, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_guard_foreign_script_in_the_file_is_forbidden(
    browser: Browser, page: Path, tmp_path: Path
) -> None:
    foreign = "<script>document.title = 'taken'</script><img src='http://localhost:9/x.png'>"
    text = page.read_text(encoding="utf-8").replace('<div id="app">', f'{foreign}<div id="app">')
    browser.open(write(tmp_path / "changed.html", text))
    assert browser.run("document.title") != "taken"
    assert browser.problems


def test_hostile_lines_and_links_run_no_script(
    browser: Browser, page: Path, some: Some[str]
) -> None:
    reader = PageReader(browser, page)
    for text in some(hostile(100), 25):
        reader.run(f"location.hash = {json.dumps('#view=look&text=' + text)}")
        reader.settle()
    for text in some(hostile(50), 10):
        reader.type(text)
    assert is_untouched(reader), (browser.requests, browser.problems)
    reader.type(SENTENCES[0])
    assert reader.target


def test_hostile_tokens_names_and_titles_stay_words(
    browser: Browser, translator: Translator, tmp_path: Path
) -> None:
    texts = hostile(150)
    words = (*(text.replace("\ud800", "?") for text in texts[:12]), "</s>")
    trace = make_trace(words, words, model={"name": texts[13], "model_hash": texts[14]})
    reader = PageReader(browser, write(tmp_path / "trace.html", trace_page(trace)))
    for view in ("why", "change", "look"):
        reader.click(f"#tab-{view}")
    assert is_untouched(reader), (browser.requests, browser.problems)

    model = carry_model(translator.bundle, texts[15])
    size = len(model["target_vocabulary"])
    for start in range(0, 120, 30):
        names = [f"{text} {index}" for index, text in enumerate(texts[start : start + size])]
        model["target_vocabulary"] = [*model["target_vocabulary"][:4], *names][:size]
        html = make_page(texts[start + 16], models=[model], remarks=texts[start + 17 : start + 19])
        reader = PageReader(browser, write(tmp_path / "model.html", html))
        reader.click(".out .word")
        reader.click("#tab-change")
        reader.click_text("Decoding", "[role=radio]")
        reader.click(".token")
        assert is_untouched(reader), (browser.requests, browser.problems)


def test_recorded_sentence_is_shown_without_a_model(browser: Browser, tmp_path: Path) -> None:
    trace = make_trace(checks={"decode": 3.0})
    reader = PageReader(browser, write(tmp_path / "trace.html", trace_page(trace)))
    assert [text for text in reader.texts(".remark") if "log-probabilities" in text]
    assert "a recorded sentence" in reader.texts(".about")[0]
    reader.click_text("Map", "[role=radio]")
    assert len(reader.texts("[role=gridcell]")) == 20
    reader.click("[role=gridcell]")
    assert "Recomputed: equal" in " ".join(reader.recomputed())
    reader.click("#tab-change")
    # No model to change.
    assert reader.texts("[aria-label='What to change'] button") == ["Decoding"]
    reader.click("#tab-why")
    assert "no model to ask" in reader.texts(".lead")[0]
    assert not reader.texts(".costs")
    assert reader.is_quiet, browser.problems


@pytest.mark.parametrize("stage", ["scores", "context"])
def test_recording_without_weights_says_so(browser: Browser, tmp_path: Path, stage: str) -> None:
    name = f"decoder.0.cross.{stage}"
    trace = make_trace(arrays={name: make_trace()[name]})
    reader = PageReader(browser, write(tmp_path / "part.html", trace_page(trace)))
    assert "Look again without" in " ".join(reader.texts(".remark"))
    reader.click("#tab-look")
    assert bool(reader.texts("[role=gridcell]")) == (stage == "scores")
    assert reader.is_quiet, browser.problems


def test_trace_of_another_format_is_named_and_the_rest_stays_usable(
    browser: Browser, translator: Translator, tmp_path: Path
) -> None:
    later = {**carry_trace(make_trace()), "format": 7}
    html = make_page("x", models=[carry_model(translator.bundle)], traces=[later])
    reader = PageReader(browser, write(tmp_path / "later.html", html))
    assert "has format 7" in " ".join(reader.texts(".remark"))
    assert reader.target


@pytest.mark.parametrize("damage", ["data", "weights", "nothing"])
def test_damaged_file_says_so_in_one_sentence(
    browser: Browser, translator: Translator, tmp_path: Path, damage: str
) -> None:
    model = carry_model(translator.bundle)
    if damage == "weights":
        model["weights"] = model["weights"][:4000]
    html = make_page("x", models=[] if damage == "nothing" else [model])
    if damage == "data":
        html = html.replace('"vocab', '"vocab"')
        html = re.sub(r'"tensors"', '"tensors', html)
    reader = PageReader(browser, write(tmp_path / "damaged.html", html))
    said = " ".join([*reader.texts("[role=alert]"), *reader.texts(".remark")])
    expected = "holds no model and no trace" if damage == "nothing" else "cut off. Copy it again"
    assert expected in said


def test_model_that_a_page_cannot_run_is_shown_from_its_trace(
    browser: Browser, translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MODEL_LIMIT", 1000)
    trace = translator.look(SENTENCES[0], beam=1)
    html = model_page(translator.bundle, trace, SENTENCES[0])
    reader = PageReader(browser, write(tmp_path / "large.html", html))
    assert "models of at most" in " ".join(reader.texts(".remark"))
    assert reader.texts("svg .link") is not None


def test_given_target_comes_as_a_recording_next_to_the_model(
    browser: Browser, translator: Translator, tmp_path: Path
) -> None:
    trace: TraceData = translator.look(SENTENCES[0], translation="La pizza est sortie du four")
    reader = PageReader(
        browser,
        write(tmp_path / "given.html", model_page(translator.bundle, trace, SENTENCES[0])),
    )
    assert "La pizza est sortie du four" in reader.target
    reader.run("location.hash = '#view=change&show=decoding&source=0'")
    reader.settle()
    assert reader.texts(".token")


def test_page_that_is_too_large_is_refused_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match="Ask for fewer layers, heads or stages"):
        trace_page(make_trace())


def test_changed_replay_says_so(browser: Browser, tmp_path: Path) -> None:
    trace = make_trace()
    trace = replace(trace, decoding={**trace.decoding, "changes": "cut decoder.1.cross.0"})
    reader = PageReader(browser, write(tmp_path / "changed.html", trace_page(trace)))
    assert "CHANGED on the way: cut decoder.1.cross.0." in reader.texts(".remark")


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "link",
    [
        *("why", "why&change=word+1", "why&show=measures", "learn"),
        *("look", "look&head=encoder.0.self.1&show=map&open=1"),
        *("change&change=cut+decoder.1.cross.0", "change&show=words", "change&show=formula"),
        *("change&show=decoding&decode=beam", "learn&lesson=slides&screen=2"),
    ],
)
def test_axe_finds_nothing_serious_in_a_view(browser: Browser, page: Path, link: str) -> None:
    axe = WEB / "node_modules" / "axe-core" / "axe.min.js"
    if not axe.exists():
        assert not os.environ.get("CI"), "with CI=1 the page's libraries must be there: make web"
        pytest.skip("axe-core is missing: make web")
    # In dark only the colors are others.
    for scheme, rules in (("light", "{}"), ("dark", "{ runOnly: ['color-contrast'] }")):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.call("Emulation.setEmulatedMedia", features=features)
        try:
            reader = PageReader(browser, page, f"#view={link}")
            # Tokens that are still fading in have too little contrast.
            reader.run("document.getAnimations().forEach((one) => one.finish())")
            reader.run(axe.read_text(encoding="utf-8") + "; 0")
            found = reader.run(f"axe.run({rules}).then((found) => found.violations)")
        finally:
            browser.call("Emulation.setEmulatedMedia", features=[])
        serious = [
            (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert not serious, (scheme, serious)
