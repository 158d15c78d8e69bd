"""The page that a server sends asks it for a model of six layers, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser
from page_reader import PageReader
from served import Live
from small_fairseq import write_model as write_fairseq
from small_marian import write_theirs as write_marian
from small_words import SENTENCES, make_words_bundle

from pellucid import convert
from pellucid.serve.models import Models, load_models
from pellucid.serve.routes.page_route import make_service_page

LARGE = {
    "d_model": 224,
    "d_ff": 896,
    "num_heads": 8,
    "d_key": 28,
    "d_value": 28,
    "num_encoder_layers": 6,
    "num_decoder_layers": 6,
    "norm": "pre",
}


class Address:
    """An address in the place of a file."""

    def __init__(self, url: str) -> None:
        self._url = url

    def as_uri(self) -> str:
        return self._url


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """A model that a page cannot hold."""
    folder = make_words_bundle(tmp_path_factory.mktemp("models") / "large", seed=2, **LARGE)
    return load_models({"large": str(folder)})


@pytest.fixture(scope="module")
def served(models: Models) -> Iterator[Live]:
    with Live(models) as server:
        yield server


def test_page_of_the_server_streams_tokens_and_shows_a_head_of_layer_5(
    browser: Browser, served: Live, models: Models
) -> None:
    (model,) = models
    reader = PageReader(browser, Address(f"{served.url}/"), "#view=change&show=decoding")  # type: ignore[arg-type]
    browser.requests.clear()
    expected = model.translator.translate([SENTENCES[0]], beam=1, clean=False, split="none")[0].text
    # Every text that the page shows while the answer arrives.
    reader.run(
        "(() => { window.shown = []; new MutationObserver(() => window.shown.push("
        "document.querySelector('.out .big').textContent)).observe("
        "document.querySelector('.out'), { subtree: true, childList: true, characterData: true });"
        "})()"
    )
    reader.type(SENTENCES[0])
    assert reader.target == expected, (reader.texts("[role=alert]"), browser.problems)
    shown = list(dict.fromkeys(reader.run("window.shown")))
    assert len(shown) > 5
    assert any(text and text != expected and expected.startswith(text) for text in shown)
    asked = [address.removeprefix(served.url) for address in browser.requests]
    assert {"/v1/translate", "/v1/look"} <= set(asked)
    assert all(address.startswith("/") for address in asked)
    assert len(reader.texts(".token")) == len(model.translator.look(SENTENCES[0]).predicted_tokens)

    place = "#view=arithmetic&head=decoder.5.cross.7&text=The%20pizza%20tasted%20good."
    reader = PageReader(browser, Address(f"{served.url}/"), place)  # type: ignore[arg-type]
    reader.wait("document.querySelector('#panel').textContent.includes('decoder.5.cross')"
                " || document.querySelector('#panel').textContent.includes('layer 5')")  # fmt: skip
    reader.settle()
    assert reader.run("document.body.textContent.includes('computed by this server')")
    assert not browser.problems


def test_page_of_a_server_with_keys_holds_no_weights() -> None:
    page = make_service_page(
        load_models({"demo": "demo"}), has_keys=True, lessons=lambda _: ([], "")
    )
    assert b'"weights":"' not in page
    assert b"connect-src 'self'" in page
    opened = make_service_page(
        load_models({"demo": "demo"}), has_keys=False, lessons=lambda _: ([], "")
    )
    assert b'"weights":"' in opened
    # A page that asks no server still may not connect to anything.
    assert b"connect-src" not in opened


def test_page_of_the_server_is_open_and_cannot_be_framed(served: Live) -> None:
    answer = served.get("/")
    assert answer.status_code == 200
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert '"name":"large"' in answer.text
    assert str(Path.cwd()) not in answer.text


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Models in the form of OPUS-MT and of NLLB, whose words are pieces."""
    folder = tmp_path_factory.mktemp("foreign")
    write_marian(folder / "their-opus", encoder_layers=2, decoder_layers=1)
    write_fairseq(folder / "their-nllb", "nllb", "narrow")
    for name in ("opus", "nllb"):
        convert(folder / f"their-{name}", folder / name)
    with Live(load_models({name: str(folder / name) for name in ("opus", "nllb")})) as server:
        yield server


@pytest.mark.parametrize("number", [0, 1])
def test_models_of_other_programs_answer_as_demo_does(
    browser: Browser, foreign: Live, number: int
) -> None:
    text = "the cat"
    # The page's own first sentence is longer than these models read.
    place = f"#view=look&source={number}&text=cat"
    reader = PageReader(browser, Address(f"{foreign.url}/"), place)  # type: ignore[arg-type]
    reader.type(text)
    translator = list(foreign.service.models)[number].translator
    to = ("fra", "eng_Latn:fra_Latn")[number]
    (expected,) = translator.translate([text], to=to, beam=1, clean=False, split="none")
    assert reader.target.strip() == expected.text, reader.texts("[role=alert]")
    config = translator.config
    layers = config.num_encoder_layers + 2 * config.num_decoder_layers
    assert len(reader.texts("button.head")) == layers * config.num_heads

    reader.click_text("Why")
    reader.wait("document.querySelector('.costs li')")
    # Each piece, and what names the language, was hidden in turn.
    source = translator.look(text, to=to).source_tokens
    shown = [word.removeprefix("▁").strip() for word in source[:-1]]
    assert reader.texts(".costs .name") == shown

    change = "cut decoder.0.cross.0"
    reader.run(f"location.hash += '&change={change.replace(' ', '+')}'")
    reader.wait("document.body.textContent.includes('With these changes')")
    reader.settle()
    how = {"beam": 1, "clean": False, "split": "none"}
    changed = translator.changed(change).translate(text, to=to, **how)
    assert reader.target.strip() == changed.text

    if number:
        # Who chooses the language of the other side exchanges them.
        choose = "document.querySelector('[aria-label=\"{}\"]')"
        field = choose.format("To")
        reader.run(
            f"{field}.value = 'eng_Latn';"
            f" {field}.dispatchEvent(new Event('change', {{ bubbles: true }}))"
        )
        reader.settle()
        (expected,) = translator.translate(
            [text], to="fra_Latn:eng_Latn", beam=1, clean=False, split="none"
        )
        assert reader.target.strip() == expected.text
        assert reader.run(f"{choose.format('From')}.value") == "fra_Latn"
        assert any("--from fra_Latn --to eng_Latn" in one for one in reader.texts("code, pre"))
    assert not browser.problems
