"""The model that grows in the page: PyTorch's numbers, the corpus's sentences, a reader's way."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from browser import Browser
from page_in_node import WEB, compare, learning_page_computes
from page_reader import PageReader
from torch import nn

from pellucid.config import ModelConfig
from pellucid.model import Transformer, initialize
from pellucid.page.filled_page import make_page

SIZES = {"width": 14, "inner": 11, "heads": 2, "sourceWords": 13, "targetWords": 17}
SOURCE, READS, WANTED = [3, 7, 3, 12, 5, 1], [0, 4, 9, 16, 4], [4, 9, 16, -1, 1]
RATE, FACTOR = 0.015, 1 / 3
WHOLE = {
    **{"hasScale": True, "hasMask": True, "hasResidual": True, "hasNorm": True},
    **{"hasPositions": True, "without": "", "cut": None},
}
FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "whole": ({}, {}),
    "scale": ({"hasScale": False}, {"scale_scores": False}),
    "mask": ({"hasMask": False}, {"look_ahead_mask": False}),
    "residual": ({"hasResidual": False}, {"residual": False}),
    "norm": ({"hasNorm": False}, {"norm": "none"}),
    "positions": ({"hasPositions": False}, {"positions": "none"}),
    **{name: ({"without": name}, {}) for name in ("query", "key", "value")},
    "head": ({"cut": 1}, {}),
}
"""What is taken away: as the page names it, and as fields of the package's configuration."""


def make_model(form: dict[str, Any], config: dict[str, Any]) -> Transformer:
    """Make the package's model of the same form, in double precision."""
    sizes = {"d_model": SIZES["width"], "d_ff": SIZES["inner"], "num_heads": SIZES["heads"]}
    sizes |= {"num_encoder_layers": 1, "num_decoder_layers": 1}
    sizes |= {"source_vocabulary_size": 13, "target_vocabulary_size": 17}
    model = Transformer(
        ModelConfig.model_validate({**sizes, "tied_embeddings": "decoder", **config})
    )
    initialize(model, 5)
    model.double()
    torch.manual_seed(7)
    for name, parameter in model.named_parameters():
        # Biases and gains differ from 0 and 1, so that a forgotten one shows.
        parameter.data += 0.3 * torch.randn_like(parameter)
        if form.get("without") and name.endswith(f"attention.{form['without']}.weight"):
            parameter.data = torch.eye(SIZES["width"], dtype=torch.float64)
            parameter.requires_grad = False
    if "cut" in form:
        kept = torch.arange(SIZES["width"]) // (SIZES["width"] // SIZES["heads"]) != form["cut"]
        for name, module in model.named_modules():
            if name.endswith("attention.output"):
                assert isinstance(module, nn.Linear)
                module.register_forward_pre_hook(lambda _, inputs: (inputs[0] * kept,))
    return model


def write_fixture(path: Path, name: str) -> Path:
    """Write a model, its loss, its gradients, and its weights after each of three updates."""
    form, config = FORMS[name]
    model = make_model(form, config)

    def flat(tensors: dict[str, torch.Tensor]) -> dict[str, list[float]]:
        return {key: tensor.detach().flatten().tolist() for key, tensor in tensors.items()}

    found: dict[str, Any] = {"sizes": SIZES, "form": WHOLE | form, "source": SOURCE}
    found |= {"reads": READS, "wanted": WANTED, "rate": RATE, "factor": FACTOR}
    found |= {"weights": flat(dict(model.named_parameters())), "updates": []}
    learning = {key: one for key, one in model.named_parameters() if one.requires_grad}
    adam = torch.optim.Adam(learning.values(), lr=RATE, betas=(0.9, 0.98), eps=1e-9)
    for _ in range(3):
        adam.zero_grad()
        logits = model(torch.tensor([SOURCE]), torch.tensor([READS]))[0]
        loss = FACTOR * nn.functional.cross_entropy(
            logits, torch.tensor(WANTED), ignore_index=-1, reduction="sum"
        )
        loss.backward()
        if "loss" not in found:
            found["loss"] = loss.item()
            found["probabilities"] = logits.softmax(-1).flatten().tolist()
            gradients = {key: one.grad for key, one in learning.items() if one.grad is not None}
            found["gradients"] = flat(gradients)
        adam.step()
        found["updates"].append(flat(dict(model.named_parameters())))
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


def test_forward_backward_and_adam_in_the_page_are_those_of_pytorch_in_every_form(
    node: str, tmp_path: Path
) -> None:
    fixtures = [write_fixture(tmp_path / f"{name}.json", name) for name in FORMS]
    for name, found in zip(FORMS, compare(node, fixtures, tmp_path, "grow"), strict=True):
        assert not found["wrong"], (name, found["wrong"])
        differences = found["differences"]
        largest = max(differences, key=lambda stage: differences[stage])
        mean = sum(differences.values()) / len(differences)
        assert differences[largest] <= 1e-9, (
            f"{name}: {largest} differs by {differences[largest]:.1e}, the mean is {mean:.1e}"
        )
        assert {"loss", "gradient of encoder.layers.0.self_attention.output.weight"} <= set(
            differences
        )


def test_what_the_page_lists_is_what_is_compared_with_pytorch() -> None:
    configs = [make_model(*form).config for form in FORMS.values()]
    for name, values in learning_page_computes().items():
        assert {getattr(config, name) for config in configs} == set(values), name


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [name for name in FORMS if name != "whole"])
def test_guard_another_form_is_found(node: str, tmp_path: Path, name: str) -> None:
    fixture = write_fixture(tmp_path / "changed.json", name)
    values = json.loads(fixture.read_text(encoding="utf-8"))
    fixture.write_text(json.dumps(values | {"form": WHOLE}), encoding="utf-8")
    (found,) = compare(node, [fixture], tmp_path, "grow")
    assert max(found["differences"].values()) > 1e-3


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("grow_sentences", WEB / "grow_sentences.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_first_sentences_in_the_page_are_the_first_that_the_script_draws() -> None:
    script = load_script()
    learned = json.loads(script.FILE.read_text(encoding="utf-8"))["learned"]
    others = (written for written, is_watched in script.draw() if not is_watched)
    found: list[str] = []
    while len(found) < 20:
        written = next(others)
        if written not in found:
            found.append(written)
    assert found == learned[:20]


@pytest.mark.sample(0)  # Most draws bring what was drawn before.
def test_sentences_in_the_page_are_those_that_the_script_draws_from_the_corpus() -> None:
    script = load_script()
    chosen = script.choose(script.draw())
    assert script.FILE.read_text(encoding="utf-8") == script.to_text(chosen)
    assert {name: len(pairs) for name, pairs in chosen.items()} == {
        "learned": 200,
        "fresh": 40,
        "watched": 4,
    }
    assert len({pair.split("|")[0] for pairs in chosen.values() for pair in pairs}) == 244


def test_without_the_mask_the_loss_falls_and_the_translations_fail(
    node: str, tmp_path: Path
) -> None:
    # Removal 1 is the mask.
    (found,) = compare(node, [Path("1,1")], tmp_path, "grow_runs")
    assert found["without"] == "the look-ahead mask"
    assert found["lastLoss"] < 0.1
    assert found["right"] == 0


@pytest.fixture
def bare_page(tmp_path: Path) -> Path:
    """A page without a model: it grows one all the same."""
    path = tmp_path / "page.html"
    path.write_text(make_page("Grow", without_lessons="No lessons."), encoding="utf-8")
    return path


def read_shares(reader: PageReader) -> str:
    """Read the share of *elle* at the slider, in percent."""
    return reader.texts(".key .share")[0].rsplit(": ", 1)[1].removesuffix(" %")


def test_reader_sees_il_become_elle_and_takes_the_mask_away(
    browser: Browser, bare_page: Path, node: str
) -> None:
    assert node, "axe-core is installed with the page's libraries"
    reader = PageReader(browser, bare_page, "#view=learn")
    reader.click_text("Grow a Transformer")
    assert reader.link == "#view=learn&lesson=grow"
    reader.wait("document.querySelector('.pronoun')?.textContent === 'elle'")
    reader.wait("/is elle for good/.test(document.querySelector('#panel').textContent)")
    (moment,) = re.findall(r"From update (\d+) on it is elle for good", reader.texts("#panel")[0])
    reader.click_text("Go there")
    slider = "document.querySelector('[aria-label=Update]')"
    assert reader.run(f"{slider}.getAttribute('aria-valuetext')") == f"after {moment} updates"
    assert float(read_shares(reader)) >= 50
    move = f"{slider}.value -= 1; {slider}.dispatchEvent(new Event('input', {{ bubbles: true }}))"
    reader.run(move)
    reader.settle()
    assert float(read_shares(reader)) <= 50
    # A weight, and the gradient: the sum is that of its products.
    reader.click(".bars button", 9)
    assert "query · key with tasted" in " ".join(reader.texts("h3"))
    *products, total = [
        float(one.replace("\u2212", "-")) for one in reader.texts("tr td.number:last-child")[3:]
    ]
    assert sum(products) == pytest.approx(total, abs=1e-4)
    for width in (390, 1400):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.call("Emulation.setDeviceMetricsOverride", **size)
        assert reader.run("document.documentElement.scrollWidth") <= width
    browser.call("Emulation.clearDeviceMetricsOverride")
    reader.run((WEB / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8") + "; 0")
    found = reader.run("axe.run().then((it) => it.violations)")
    assert not [one for one in found if one["impact"] in ("serious", "critical")]
    assert reader.run("document.querySelector('.take .main').disabled")
    reader.run(
        "(() => { const list = document.querySelector('.take select'); list.value = '1';"
        " list.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )
    reader.settle()
    reader.click_text("The loss falls", "[role=radio]")
    reader.click_text("Train it 3 times")
    assert reader.is_quiet, (browser.requests, browser.problems)


def test_slow_browser_says_so_and_trains_when_asked(browser: Browser, bare_page: Path) -> None:
    slow = "const now = performance.now.bind(performance); performance.now = () => 40 * now();"
    script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=slow)["identifier"]
    try:
        reader = PageReader(browser, bare_page, "#view=learn&lesson=grow")
        reader.wait("document.querySelector('[role=alert]')")
        (alert,) = reader.texts("#panel [role=alert]")
        assert "This browser is too slow: one training would take about" in alert
        assert not reader.texts(".course")
        reader.click_text("Train all the same")
        reader.wait("document.querySelector('.course')")
        assert not reader.texts("#panel [role=alert]")
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
