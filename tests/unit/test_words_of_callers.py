"""One sentence about an option, in the words of whoever calls: command, Python or HTTP."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import pellucid
from pellucid.errors import InputError, speaking_to, word_options

SENTENCES = {
    "Name two as --source-language and --target-language.": (
        "Name two as source_language and target_language."
    ),
    "Name it: --source FILE --reference FILE.": "Name it: source=FILE, reference=FILE.",
    "Give steps: --set training.max_steps=20, and another folder (-o).": (
        'Give steps: settings={"training.max_steps": 20}, and another folder (output).'
    ),
    "Set data.columns (--set 'data.columns=[2, 1]').": (
        'Set data.columns (settings={"data.columns": [2, 1]}).'
    ),
    "Name a word, but not --with ''.": 'Name a word, but not with="".',
    "Go on with --start /runs/a.": 'Go on with start="/runs/a".',
    "Train one first: pellucid train --help says how.": (
        "Train one first: pellucid train --help says how."
    ),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_options_are_arguments_in_python(sentence: str) -> None:
    assert str(InputError(sentence)) == SENTENCES[sentence]
    with speaking_to("command"):
        assert str(InputError(sentence)) == sentence
    assert InputError(sentence).sentence == sentence


def test_options_are_fields_in_http() -> None:
    assert word_options("Change --to or --n-best.", "http") == "Change target_language or n_best."


def test_training_on_other_languages_advises_in_the_callers_words(
    tmp_path: Path, run_here: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    table = tmp_path / "pairs.jsonl"
    table.write_text('{"en": "The cat.", "de": "Die Katze."}\n' * 20, "utf-8")
    with pytest.raises(InputError) as refused:
        pellucid.train(table, target_language="fr", output=tmp_path / "run")
    assert "source_language and target_language" in str(refused.value)
    done = run_here("train", str(table), "--target-language", "fr", "-o", str(tmp_path / "run"))
    assert "--source-language and --target-language" in done.stderr
    assert done.returncode == 2


def test_old_names_of_arguments_are_refused_with_the_new_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no argument 'out'\. Did you mean 'output'"):
        pellucid.train("pairs.tsv", out=tmp_path)  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"no argument 'out'\. Did you mean 'output'"):
        pellucid.convert("model", "new", out=tmp_path)  # type: ignore[call-arg]
    translator = pellucid.load("demo")
    for call in (translator.look, translator.pair):
        with pytest.raises(InputError, match=r"'target' is unknown\. Did you mean 'translation'"):
            call("The soup was cold.", target="La soupe.")  # type: ignore[operator]


def test_pydantic_is_worded_in_one_place() -> None:
    package = Path(pellucid.__file__).parent
    found = []
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        words = {
            node.value
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        if any("Input should be" in one for one in words):
            found.append(path.relative_to(package).as_posix())
    assert found == ["wording/value_rules.py"]
