"""A model has one precision: what computes in it, what says so, and what another one changes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from coarse_lines import Coarse, coarse_lines

import pellucid
from pellucid.bundle import load_bundle, resolve_model
from pellucid.decode.native import NativePath
from pellucid.errors import ConfigurationError
from pellucid.formats.exporting import export_bundle
from pellucid.native.loading import instruction_sets
from pellucid.serve.models import load_models
from pellucid.serve.routes.page_route import make_service_page

Run = Callable[..., subprocess.CompletedProcess[str]]
needs_engine = pytest.mark.skipif(not instruction_sets(), reason="the engine in C was not built")


@pytest.fixture(scope="module")
def turned() -> Coarse:
    """A line that the packaged model translates with other words in int8."""
    return coarse_lines()[0]


@pytest.fixture
def coarse(tmp_path: Path) -> str:
    """The packaged model, which computes in int8 by default."""
    export_bundle(load_bundle(resolve_model("demo")), tmp_path / "int8", "int8", computes="int8")
    return str(tmp_path / "int8")


def precisions(bundle: Path) -> tuple[str, str]:
    config = load_bundle(bundle).config
    return config.precision, config.decoding.precision


@needs_engine
def test_model_computes_in_its_own_precision_unless_a_call_names_another(
    coarse: str, turned: Coarse
) -> None:
    plain = pellucid.load("demo")
    fewer = pellucid.load(coarse)

    assert (plain.computes, plain.translate(turned.line).text) == ("float32", turned.own)
    assert (fewer.computes, fewer.translate(turned.line).text) == ("int8", turned.other)
    assert plain.translate(turned.line, precision="int8").text == turned.other
    assert pellucid.load("demo", precision="int8").computes == "int8"
    assert fewer.options(precision="float32").precision == "float32"
    assert plain.options(strict=True).precision == "float32"


@needs_engine
def test_notes_name_the_precision_only_if_it_is_not_the_models_own(
    coarse: str, turned: Coarse
) -> None:
    plain = pellucid.load("demo")

    assert plain.translate(turned.line).notes.precision == ""
    assert plain.translate(turned.line, precision="float32").notes.precision == ""
    assert plain.translate(turned.line, precision="int8").to_dict()["notes"]["precision"] == "int8"
    assert pellucid.load("demo", precision="int8").translate(turned.line).notes.precision == "int8"
    assert pellucid.load(coarse).translate(turned.line).notes.precision == ""
    stream = plain.stream(turned.line, precision="int8")
    assert "".join(stream) == turned.other
    assert stream.translation.notes.precision == "int8"


def test_auto_is_no_precision() -> None:
    with pytest.raises(ConfigurationError, match="precision must be 'float32', 'bfloat16' or"):
        pellucid.load("demo", precision="auto")  # type: ignore[call-arg, arg-type]


def test_int8_without_the_engine_is_float32_and_says_so(
    coarse: str, monkeypatch: pytest.MonkeyPatch, run_here: Run, turned: Coarse
) -> None:
    monkeypatch.setattr(NativePath, "find_obstacle", lambda *_: "the engine was not built")
    fewer = pellucid.load(coarse)

    assert fewer.computes == "float32"
    assert fewer.translate(turned.line).notes.precision == "float32"
    assert fewer.look(turned.line).decoding["precision"] == "float32"
    assert (
        "Computed in float32. The model's own precision is int8"
        in run_here("translate", coarse, stdin=f"{turned.line}\n").stderr
    )
    assert "needs the engine in C" in run_here("look", coarse, turned.line).stderr


@needs_engine
def test_translate_says_that_another_precision_may_give_other_words(
    run_here: Run, turned: Coarse
) -> None:
    other = run_here("translate", "demo", "--precision", "int8", stdin=f"{turned.line}\n")
    same = run_here("translate", "demo", "--precision", "float32", stdin=f"{turned.line}\n")

    assert (other.stdout, same.stdout) == (f"{turned.other}\n", f"{turned.own}\n")
    said = "note: Computed in int8. The model's own precision is float32, which may give other"
    assert said in other.stderr
    assert same.stderr == ""


@needs_engine
def test_look_in_another_precision_says_what_the_model_writes_in_its_own(
    run_here: Run, turned: Coarse
) -> None:
    other = run_here("look", "demo", turned.line, "--precision", "int8").stderr
    same = run_here("look", "demo", "Pizza is awesome", "--precision", "int8").stderr

    assert f"In float32, the model's own precision, it writes {turned.own}" in other
    assert "In float32, the model's own precision, it writes the same words." in same
    assert "Computed in" not in run_here("look", "demo", turned.line).stderr


@needs_engine
def test_replay_is_exact_and_follows_the_words_of_an_int8_decode(
    coarse: str, turned: Coarse
) -> None:
    trace = pellucid.load(coarse).look(turned.line)

    assert trace.decoding["text"] == turned.other
    assert trace.decoding["precision"] == "int8"
    assert trace.checks["weights"] < 1e-6
    assert trace.checks["decode"] > 1e-4


@needs_engine
def test_page_never_computes_in_float32_what_a_model_writes_in_int8(
    coarse: str, run_here: Run, tmp_path: Path, turned: Coarse
) -> None:
    run_here("look", coarse, turned.line, "-o", str(tmp_path / "own.html"))
    run_here("look", "demo", turned.line, "--precision", "int8", "-o", str(tmp_path / "asked.html"))
    served = make_service_page(load_models({"m": coarse}), has_keys=False, lessons=no_lessons)
    asked = load_models({"m": "demo"}, precision="int8")

    own = data_of((tmp_path / "own.html").read_text(encoding="utf-8"))
    assert (own["models"], own["traces"][0]["text"]) == ([], turned.other)
    assert any("this model in int8" in remark for remark in own["remarks"])
    shown = data_of((tmp_path / "asked.html").read_text(encoding="utf-8"))
    assert (shown["start"]["source"], shown["traces"][0]["text"]) == ("1", turned.other)
    for page in (served, make_service_page(asked, has_keys=False, lessons=no_lessons)):
        assert data_of(page.decode())["models"] == []
        assert len(data_of(page.decode())["services"]) == 1


def no_lessons(_: Any) -> tuple[list[dict[str, Any]], str]:
    return [], ""


def data_of(page: str) -> dict[str, Any]:
    start = page.index('<script type="application/json"')
    text = page[page.index(">", start) + 1 : page.index("</script>", start)]
    found: dict[str, Any] = json.loads(text)
    return found


@needs_engine
def test_export_that_was_measured_computes_in_its_precision_and_names_other_words(
    tmp_path: Path, run_here: Run, write_lines: Callable[..., str], turned: Coarse
) -> None:
    lines = write_lines("en.txt", turned.line, "Pizza is awesome")
    right = write_lines("fr.txt", turned.own, "La pizza est géniale")
    export = ("export", "demo", "--format", "pellucid", "--precision", "int8", "-o")

    measured = run_here(*export, str(tmp_path / "m"), lines, right)
    stored = run_here(*export, str(tmp_path / "s"))

    assert precisions(tmp_path / "m") == ("int8", "int8")
    assert "1 line with other words:" in measured.stdout
    assert f"{turned.line} → before: {turned.own} → after: {turned.other}" in measured.stdout
    manifest = load_bundle(tmp_path / "m").manifest
    assert manifest["exported"]["bleu"]["lines_changed"] == 1
    assert precisions(tmp_path / "s") == ("int8", "float32")
    assert "stores int8 and computes in float32" in stored.stderr


def test_export_keeps_what_a_model_stores_and_computes_in_unless_a_precision_is_named(
    coarse: str, tmp_path: Path
) -> None:
    same = pellucid.export(coarse, tmp_path / "same", format="pellucid")
    whole = pellucid.export(coarse, tmp_path / "whole", format="pellucid", precision="float32")

    assert (same.precision, same.computes) == precisions(tmp_path / "same") == ("int8", "int8")
    assert (whole.precision, whole.computes) == ("float32", "float32")


def test_inspect_says_what_is_stored_and_what_computes(run_here: Run, tmp_path: Path) -> None:
    pellucid.export("demo", tmp_path / "stored", format="pellucid", precision="bfloat16")

    record = json.loads(run_here("inspect", str(tmp_path / "stored"), "--json").stdout)

    assert (record["stored"], record["computes"]) == ("bfloat16", "float32")
