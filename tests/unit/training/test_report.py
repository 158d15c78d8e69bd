"""The report of a run: a page and a picture from whatever the run folder holds."""

from __future__ import annotations

import json
import math
import re
import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib as mpl
import numpy as np
import pytest
from forked import Forked
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from pellucid.training.report.curves import PALETTES, CurvePanel, panels_of, render_svg
from pellucid.training.report.report_page import render_page, write_report
from pellucid.training.report.run_history import read_run, speeds

RECIPE = """
[data]
folder = "$WORDS"
source_language = "en"
target_language = "fr"
train = [["train.en", "train.fr"]]

[model]
d_model = 26

[training]
learning_rate = 0.0007
dropout = 0.1
"""
MANIFEST = {
    "data": {"fingerprint": "abc123", "pairs": 1009, "dropped": {"empty source": 3}}
    | {"text": {"source": {"rare_tokens": "oAAAAAAAAA=="}}},
    "training": {"step": 40, "seed": 5},
    "machine": "riscv64, 3 of 7 threads",
    "library": {"pellucid": "0.1.0"},
}


def train_line(step: int, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "train",
        "step": step,
        "epoch": step // 30,
        "seconds": 0.5 * step,
        "target_tokens": 100 * step,
        "loss": 5 / (1 + step / 20),
        "learning_rate": 1e-4 * step,
        "gradient_norm": 1.5,
    } | changes


def validation_line(step: int, bleu: float, **changes: Any) -> dict[str, Any]:
    line = {"kind": "validation", "step": step, "seconds": 0.5 * step}
    return line | {"loss": 2.5, "bleu": bleu, "chrf": bleu + 17} | changes


def sample_line(step: int, source: str, translation: str) -> dict[str, Any]:
    return {"step": step, "source": source, "reference": "ref", "translation": translation}


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A whole run folder: 5 validations, the best at step 40, two sentences followed."""
    run = tmp_path / "first run"
    (run / "bundle").mkdir(parents=True)
    metrics = []
    for step in range(5, 51, 5):
        metrics.append(train_line(step))
        if step % 10 == 0:
            metrics.append(validation_line(step, bleu=30.5 - abs(40 - step)))
    write_lines(run / "metrics.jsonl", metrics)
    samples = [
        sample_line(step, source, f"{source} after {step}")
        for step in range(10, 51, 10)
        for source in ("one", "two")
    ]
    write_lines(run / "samples.jsonl", samples)
    (run / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    (run / "bundle" / "manifest.json").write_text(json.dumps(MANIFEST), encoding="utf-8")
    log = "step 5 loss 4\nSkipped update 7: its loss is nan.\nContinuing after step 20.\nDone.\n"
    (run / "log.txt").write_text(log, encoding="utf-8")
    return run


class Page(HTMLParser):
    """The page as a browser sees it: its elements and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def attributes(self, name: str) -> list[str]:
        return [value for _, attrs in self.elements if (value := attrs.get(name)) is not None]


draw_once = cache(render_svg)


def report_of(run: Path) -> Page:
    """Render a page with figures that are drawn once for all tests with the same numbers."""
    with mock.patch("pellucid.training.report.report_page.render_svg", draw_once):
        return Page(render_page(read_run(run)))


def panel_named(run: Path, name: str) -> CurvePanel:
    return next(panel for panel in panels_of(read_run(run)) if panel.name == name)


def test_report_of_whole_run_says_everything(run: Path) -> None:
    words = report_of(run).words
    assert "Training report: en → fr" in words
    assert "Best validation BLEU 30.5 at step 40; 50 steps in 25 s." in words
    for fact in ("riscv64, 3 of 7 threads", "1,009", "empty source 3", "abc123", "0.0007"):
        assert fact in words
    assert "pellucid train 'first run/recipe.toml' -o 'first run-again'" in words
    assert "here it was $WORDS" in words
    # Packed counts are for the model.
    assert "oAAAA" not in words


def test_report_of_a_run_from_a_model_names_it_in_the_command(run: Path) -> None:
    assert "start.model" not in report_of(run).words
    with (run / "recipe.toml").open("a", encoding="utf-8") as recipe:
        recipe.write('\n[start]\nmodel = "runs/old"\n')
    words = report_of(run).words
    assert "--set data.folder=FOLDER --set start.model=MODEL" in words
    assert "MODEL the model to start from (runs/old)" in words


def test_report_of_a_run_with_a_time_limit_promises_no_same_bits(run: Path) -> None:
    assert "bit for bit" in report_of(run).words
    recipe = (run / "recipe.toml").read_text(encoding="utf-8")
    timed = recipe.replace("[training]", "[training]\nmax_minutes = 5\nwarmup_steps = 300")
    (run / "recipe.toml").write_text(timed, encoding="utf-8")
    (run / "plan.json").write_text('{"course": {"warmup_steps": 43}}')
    with (run / "log.txt").open("a", encoding="utf-8") as log:
        log.write("Next: more text helps.\n")
    words = report_of(run).words
    assert "bit for bit" not in words
    assert "had a limit of 5 minutes" in words
    assert (
        "--set training.max_minutes= --set training.max_steps=50 --set training.warmup_steps=43"
        in words
    )
    assert re.search(r"warmup steps\s*43", words)
    assert "Next: more text helps." in words


def test_report_page_needs_no_network_and_no_script(run: Path) -> None:
    page = report_of(run)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed"}
    leading_out = ("src", "href", "xlink:href", "srcset", "data")
    targets = [target for name in leading_out for target in page.attributes(name)]
    assert targets
    assert all(target.startswith("#") for target in targets)
    text = render_page(read_run(run))
    assert "@import" not in text
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))


def test_report_page_every_reference_has_one_target(run: Path) -> None:
    page = report_of(run)
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    targets = [*page.attributes("href"), *page.attributes("xlink:href")]
    assert {target.removeprefix("#") for target in targets} <= set(ids)


def test_report_figures_are_described_and_follow_the_colors_of_the_page(run: Path) -> None:
    page = report_of(run)
    pictures = [attrs for tag, attrs in page.elements if tag == "svg"]
    assert [attrs["role"] for attrs in pictures] == ["img"] * 6
    labels = [str(attrs["aria-label"]) for attrs in pictures]
    assert "BLEU from 0.5 at step 10 to 20.5 at step 50, between 0.5 and 30.5" in labels[2]
    for panel in panels_of(read_run(run)):
        svg = render_svg(panel)
        tree = ElementTree.fromstring(svg.replace("xlink:href", "href"))
        assert any("step" in "".join(text.itertext()) for text in tree.iter() if "text" in text.tag)
        used = set(re.findall(r"var\(--([a-z]+)\)", svg))
        assert {"ink", "faint", "line"} < used <= PALETTES["light"].keys()
        assert not re.search(r"#fe01", svg)


def test_report_text_from_files_is_never_markup(run: Path) -> None:
    evil = '<script>alert("1")</script>&amp;\x00\x1b[31m'
    write_lines(run / "samples.jsonl", [sample_line(10, evil, evil + "\ud800")])
    (run / "log.txt").write_text(f"Stopped {evil}\n", encoding="utf-8")
    language = 'en" onclick="alert(1)'
    recipe = RECIPE.replace('"en"', json.dumps(language)).replace("$WORDS", "<i>$WORDS</i>")
    (run / "recipe.toml").write_text(recipe, encoding="utf-8")
    manifest = MANIFEST | {"machine": "<b>fast</b>"}
    (run / "bundle" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    write_report(run)
    page = Page((run / "report.html").read_text(encoding="utf-8"))
    assert not {tag for tag, _ in page.elements} & {"script", "b", "i"}
    assert not page.attributes("onclick")
    assert page.words.count('<script>alert("1")</script>&amp;') >= 3
    assert not re.search("[\x00-\x08\x0b-\x1f]", page.words)
    assert "<b>fast</b>" in page.words


def test_report_says_what_was_used_where_the_recipe_left_it_open(run: Path) -> None:
    training = {"precision": "bfloat16", "processes": 3}
    manifest = json.dumps(MANIFEST | {"training": training})
    (run / "bundle" / "manifest.json").write_text(manifest, encoding="utf-8")
    write_report(run)
    page = (run / "report.html").read_text(encoding="utf-8")
    for name, value in training.items():
        assert re.search(rf">{name}</th>\s*<td[^>]*>{value}</td>", page), name


def test_report_samples_first_middle_and_last_are_shown(run: Path) -> None:
    words = report_of(run).words
    shown = re.findall(r"(one|two) after (\d+)", words)
    assert shown == [(source, step) for source in ("one", "two") for step in ("10", "30", "50")]


def test_report_sample_of_best_step_is_marked(run: Path) -> None:
    write_lines(run / "samples.jsonl", [sample_line(step, "one", "un") for step in (10, 40)])
    words = report_of(run).words
    assert "step 40 (best)" in words
    assert "step 10 (best)" not in words


def test_report_events_are_lines_of_the_log_that_begin_so(run: Path) -> None:
    assert read_run(run).events == (
        "Skipped update 7: its loss is nan.",
        "Continuing after step 20.",
    )
    words = report_of(run).words
    assert "Continuing after step 20." in words
    assert "step 5 loss 4" not in words


def test_report_equal_records_give_equal_bytes_whatever_the_user_draws_with(run: Path) -> None:
    write_report(run)
    first = [(run / name).read_bytes() for name in ("report.html", "report.png")]
    with mpl.rc_context({"lines.linewidth": 9, "font.size": 30, "svg.fonttype": "path"}):
        before = dict(mpl.rcParams)
        write_report(run)
        assert dict(mpl.rcParams) == before
    assert [(run / name).read_bytes() for name in ("report.html", "report.png")] == first


def test_report_of_empty_folder_says_so(tmp_path: Path) -> None:
    write_report(tmp_path)
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "Not validated yet; 0 steps" in page.words
    assert page.words.count("nothing measured yet") == 6


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "lines",
    [
        [train_line(5)],
        [train_line(5), validation_line(5, bleu=0.0)],
        [train_line(5, loss=math.nan, gradient_norm=math.inf), train_line(10, loss=1e308)],
        [train_line(5, gradient_norm=0.0), train_line(10, gradient_norm=1e9)],
        [train_line(5, gradient_norm=-1.0), train_line(10, gradient_norm=-30.0)],
        [train_line(2**52), train_line(2**53 - 1)],
        [{"kind": "train", "step": 5}, {"kind": "validation", "step": 5}],
        [train_line(5, loss=None, seconds="x", target_tokens=True, learning_rate=10**400)],
    ],
    ids=["one", "one-each", "no-numbers", "zero", "negative", "huge-steps", "bare", "wrong-types"],
)
def test_report_of_odd_records_is_written(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    write_lines(tmp_path / "metrics.jsonl", lines)
    assert f"{lines[-1]['step']:,} steps" in report_of(tmp_path).words


def test_report_values_that_are_no_numbers_are_counted(run: Path) -> None:
    lines = [train_line(5), train_line(10, loss=math.nan), train_line(15, loss=-math.inf)]
    write_lines(run / "metrics.jsonl", lines)
    assert panel_named(run, "loss").num_left_out == 2
    assert "(2 not finite, left out)" in report_of(run).words


def test_read_run_damaged_lines_are_left_out(run: Path) -> None:
    whole = (run / "metrics.jsonl").read_bytes()
    expected = read_run(run)
    damage = b'{"kind": "tr\n[]\n5\n\xff\xfe\n{"kind": "train", "step": -1}\n{"step": 3}\n'
    damage += b'{"kind": "train", "step": 1.5}\n{"kind": "train", "step": true}\n' + b"[" * 99999
    (run / "metrics.jsonl").write_bytes(damage + b"\n" + whole + b'{"kind": "validation", "st')
    assert read_run(run) == expected


def test_read_run_steps_made_again_replace_the_earlier_ones(tmp_path: Path) -> None:
    first = [train_line(step) for step in (5, 10, 15)] + [validation_line(15, bleu=99.0)]
    second = [train_line(step, loss=1.25) for step in (10, 15)] + [validation_line(15, bleu=7.0)]
    write_lines(tmp_path / "metrics.jsonl", first + second)
    again = [sample_line(5, "a", "x"), sample_line(15, "a", "y"), sample_line(10, "a", "z")]
    write_lines(tmp_path / "samples.jsonl", again)
    found = read_run(tmp_path)
    assert [line["step"] for line in found.train] == [5, 10, 15]
    assert [line["loss"] for line in found.train][1:] == [1.25, 1.25]
    assert [line["bleu"] for line in found.validation] == [7.0]
    assert [sample.translation for sample in found.samples] == ["x", "z"]


def test_read_run_best_is_the_first_of_the_highest_bleu(tmp_path: Path) -> None:
    scores = {10: 3.0, 20: 8.0, 30: math.nan, 40: 8.0}
    write_lines(tmp_path / "metrics.jsonl", [validation_line(*pair) for pair in scores.items()])
    best = read_run(tmp_path).best
    assert best is not None
    assert best["step"] == 20


def test_read_run_without_best_bundle_takes_the_newest_checkpoint(tmp_path: Path) -> None:
    for step in (7, 11):
        folder = tmp_path / "checkpoints" / f"step-{step:08d}"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"machine": f"machine {step}"}))
    assert read_run(tmp_path).manifest == {"machine": "machine 11"}


def test_read_run_weights_are_counted_by_part(run: Path) -> None:
    tensors = {
        "source_embedding.weight": np.zeros((11, 13), dtype=np.float32),
        "target_embedding.weight": np.zeros((17, 13), dtype=np.int8),
        "target_embedding.weight_scale": np.zeros(17, dtype=np.float32),
        "decoder.layers.0.x": np.zeros((3, 5), dtype=np.float32),
    }
    weights = run / "bundle" / "model.safetensors"
    save_file(tensors, weights)
    expected = {"embedding": 28 * 13, "encoder": 0, "decoder": 15, "output": 0}
    assert read_run(run).parameters == expected
    for damaged in (b"", b"\xff" * 40, struct.pack("<Q", 4) + b"[]  "):
        weights.write_bytes(damaged)
        assert sum(read_run(run).parameters.values()) == 0


def test_speeds_intervals_with_a_validation_are_left_out(tmp_path: Path) -> None:
    lines = [
        train_line(10, seconds=1.0, target_tokens=100),
        train_line(20, seconds=2.0, target_tokens=300),
        validation_line(20, bleu=1.0),
        train_line(30, seconds=9.0, target_tokens=500),
        train_line(40, seconds=10.0, target_tokens=800),
    ]
    write_lines(tmp_path / "metrics.jsonl", lines)
    assert speeds(read_run(tmp_path)) == [(20, 200.0), (40, 300.0)]


def test_speeds_validation_in_every_interval_shows_all(tmp_path: Path) -> None:
    lines = [
        train_line(10, seconds=1.0, target_tokens=100),
        validation_line(10, bleu=1.0),
        train_line(20, seconds=3.0, target_tokens=300),
    ]
    write_lines(tmp_path / "metrics.jsonl", lines)
    assert speeds(read_run(tmp_path)) == [(20, 100.0)]


def test_panels_perplexity_is_the_exponential_of_the_loss(run: Path) -> None:
    for loss, perplexity in zip(
        panel_named(run, "loss").curves, panel_named(run, "perplexity").curves, strict=True
    ):
        assert [math.log(value) for _, value in perplexity.points] == pytest.approx(
            [value for _, value in loss.points]
        )


def paths_of(panel: CurvePanel) -> list[str]:
    return re.findall(r'<path d="([^"]*)"', render_svg(panel))


def test_panel_of_long_run_is_thinned_and_keeps_its_extremes(run: Path) -> None:
    lines = [train_line(step, gradient_norm=1 + (step % 7) / 7) for step in range(1, 20_001)]
    lines[13_456]["gradient_norm"] = 18.5
    write_lines(run / "metrics.jsonl", lines)
    panel = panel_named(run, "gradient")
    svg = render_svg(panel)
    assert len(svg) < 100_000
    assert "and 18.5" in panel.describe()
    line = max(paths_of(panel), key=len)
    highest, second = sorted(float(y) for y in re.findall(r"L [\d.]+ ([\d.]+)", line))[:2]
    assert highest < second - 100


def test_panel_of_long_run_has_a_gap_where_values_are_no_numbers(run: Path) -> None:
    lines = [train_line(step, loss=1.5) for step in range(1, 5001)]
    for line in lines[2000:3000]:
        line["loss"] = math.nan
    write_lines(run / "metrics.jsonl", lines)
    line = max(paths_of(panel_named(run, "loss")), key=len)
    assert line.count("M ") == 2


def test_report_long_tables_are_thinned_and_end_with_the_last_line(run: Path) -> None:
    write_lines(run / "metrics.jsonl", [train_line(step) for step in range(1, 998)])
    page = report_of(run)
    assert len([tag for tag, _ in page.elements if tag == "tr"]) < 120
    assert "Training, 997 records, one of 17 shown" in page.words
    assert "997" in page.words.rpartition("tokens/s")[2]


ODD: list[Any] = [
    None,
    True,
    -1,
    3,
    8,
    10**400,
    2.5,
    math.nan,
    -math.inf,
    "train",
    "validation",
    "",
    [],
    {},
]


@settings(
    max_examples=settings.default.max_examples * 2 // 5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    metrics=st.lists(
        st.fixed_dictionaries(
            {"kind": st.sampled_from(["train", "validation", 7]), "step": st.integers(-1, 9)},
            optional={
                name: st.sampled_from(ODD) for name in ("epoch", "loss", "seconds", "bleu", "chrf")
            },
        ),
        max_size=8,
    ),
    raw=st.binary(max_size=40),
)
def test_read_run_whatever_the_files_hold_gives_ordered_numbers(
    tmp_path: Path, metrics: list[dict[str, Any]], raw: bytes
) -> None:
    write_lines(tmp_path / "metrics.jsonl", metrics)
    for name in ("samples.jsonl", "recipe.toml", "log.txt"):
        (tmp_path / name).write_bytes(raw)
    found = read_run(tmp_path)
    for lines in (found.train, found.validation):
        steps = [line["step"] for line in lines]
        assert steps == sorted(set(steps))
        assert all(type(value) in (int, float) for line in lines for value in line.values())
    assert all(panel.describe().startswith(panel.title) for panel in panels_of(found))


def test_write_report_leaves_global_drawing_alone(
    run: Path, run_python: Callable[..., Any]
) -> None:
    code = (
        "import sys, warnings\nfrom pathlib import Path\n"
        "warnings.simplefilter('error')\n"
        "from pellucid.training.report.report_page import write_report\n"
        "write_report(Path(sys.argv[1]))\nprint('matplotlib.pyplot' in sys.modules)"
    )
    done = run_python("-c", code, str(run), kind=Forked)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False"
