"""The languages of a model that must be told both, in every command, in Python and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from served import Live
from small_fairseq import write_model

from pellucid import convert, load
from pellucid.errors import InputError
from pellucid.inside import study
from pellucid.serve.models import load_models

Run = Callable[..., Any]
LINE = "the cat sleeps here"
TARGET = "le chat dort"
CODED = f">>eng_Latn:fra_Latn<< {LINE}"
NAMED = ("--from", "English", "--to", "fr")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("nllb")
    write_model(folder / "theirs", "nllb", "narrow")
    convert(folder / "theirs", folder / "ours")
    return str(folder / "ours")


@pytest.mark.parametrize(
    ("command", "rest"),
    [
        ("look", ("--set", "decoding.max_length=9", "--show", "heads")),
        ("look", ("--translation", TARGET, "--show", "links")),
        ("look", ("--set", "decoding.max_length=9", "--compare-text", f"{CODED} now")),
        ("why", ("chat", "--translation", TARGET, "--not", "chien", "--json")),
        ("why", ("chat", "--translation", TARGET, "--measure", "norms")),
    ],
)
def test_a_line_gets_the_code_of_the_languages_that_are_named(
    ours: str, run_here: Run, command: str, rest: tuple[str, ...]
) -> None:
    named = run_here(command, ours, LINE, *rest, *NAMED)
    coded = run_here(command, ours, CODED, *rest)
    assert named.returncode == coded.returncode == 0, named.stderr
    assert named.stdout == coded.stdout
    assert named.stdout.strip()
    refused = run_here(command, ours, LINE, *rest)
    assert refused.returncode == 2
    assert "Give --from LANGUAGE and --to LANGUAGE" in refused.stderr


def test_files_get_the_code_of_the_languages_that_are_named(
    ours: str, run_here: Run, tmp_path: Path
) -> None:
    lines = [LINE, "", "the dog sleeps"]
    (tmp_path / "en").write_text("".join(f"{one}\n" for one in lines))
    (tmp_path / "coded").write_text(
        "".join(f">>eng_Latn:fra_Latn<< {one}\n" if one else "\n" for one in lines)
    )
    (tmp_path / "fr").write_text(f"{TARGET}\nle\nle chien dort\n")
    for command, rest in (("align", ()), ("study", ("--csv",)), ("patch", ("--json",))):
        named, coded = (
            run_here(
                *(command, ours, "--source", str(tmp_path / name)),
                *("--target", str(tmp_path / "fr"), *rest, *languages),
            )
            for name, languages in (("en", NAMED), ("coded", ()))
        )
        assert named.returncode == coded.returncode, (command, named.stderr)
        assert named.stdout == coded.stdout
        assert "code" not in named.stderr
    wrong = run_here(
        *("align", ours, "--source", str(tmp_path / "en"), "--target", str(tmp_path / "fr")),
        *("--from", "en", "--to", "frb_Latn"),
    )
    assert wrong.returncode == 2
    assert "Did you mean 'fra_Latn'?" in wrong.stderr


def test_links_of_two_directions_read_the_languages_both_ways(ours: str) -> None:
    translator = load(ours)
    named = translator.align(
        [LINE], [TARGET], source_language="en", to="fr", reverse=translator, symmetrize="union"
    )[0]
    forth = translator.align(CODED, TARGET)
    back = translator.align(f">>fra_Latn:eng_Latn<< {TARGET}", LINE)
    assert named.error is None
    assert named.source == LINE
    assert forth.source_words == tuple(LINE.split())
    assert len(named.alignment) >= max(len(forth.alignment), len(back.alignment)) > 0


def test_python_takes_the_languages_wherever_lines_are_read(ours: str) -> None:
    translator = load(ours)
    both: dict[str, Any] = {"source_language": "en", "to": "fr"}
    (traces,) = translator.look_at_each([LINE], **both, max_length=9)
    assert traces[0].predicted_ids == translator.translate(LINE, **both, max_length=9).ids
    found = translator.why(LINE, "chat", "chien", translation=TARGET, **both)
    assert repr(found) == repr(translator.why(CODED, "chat", "chien", translation=TARGET))
    heads = ["decoder.0.cross"]
    studied = study(translator, [LINE], [TARGET], heads=heads, **both)
    coded = study(translator, [CODED], [TARGET], heads=heads)
    assert studied.heads.records() == coded.heads.records()
    assert studied.left_out == ()
    with pytest.raises(InputError, match="one that the model has a code for"):
        translator.align(LINE, TARGET, source_language="Klingon", to="fr")


def test_the_service_links_words_of_named_languages(ours: str) -> None:
    with Live(load_models({"nllb": ours})) as server:
        fields = {"pairs": [{"source": LINE, "target": TARGET}]}
        both = {"source_language": "eng_Latn", "target_language": "French"}
        (answer,) = server.post("/v1/align", fields | both).json()["alignments"]
        (bare,) = server.post("/v1/align", fields).json()["alignments"]
        looked = server.post("/v1/look", {"text": LINE, **both})
    assert answer["error"] is None
    assert answer["source_words"] == LINE.split()
    assert json.dumps(bare["error"]).count("5 languages") == 1
    assert looked.status_code == 200
