"""``pellucid evaluate`` on files."""

from __future__ import annotations

import gzip
import json
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from pellucid.bundle import save_bundle
from pellucid.config import BundleConfig, LanguagesConfig, ModelConfig, TokenizerRecipe
from pellucid.model import Transformer, initialize
from pellucid.text.tokenizers.kinds import learn_tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]

REFERENCES = [
    "Une pizza est sortie du four et elle était bonne.",
    "Le chien a trouvé de la pizza à côté du bébé.",
    "Un homme fait du vélo dans la rue avec son chien.",
    "Deux enfants jouent au ballon dans un grand parc.",
    "La banque a dit à l’homme qu’il était en faillite.",
]
WORSE = [line.replace("une", "un").replace("du", "de le") for line in REFERENCES]


def test_evaluate_perfect_hypothesis_scores_100_with_interval_and_signature(
    run_here: Run, write_lines: WriteLines
) -> None:
    path = write_lines("reference.txt", *REFERENCES)
    done = run_here("evaluate", "--hypothesis", path, "--reference", path, "--json")
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)
    assert set(scores) == {"bleu", "chrf", "ter"}
    for name, best in {"bleu": 100.0, "chrf": 100.0, "ter": 0.0}.items():
        assert set(scores[name]) == {"score", "low", "high", "signature"}
        assert scores[name]["score"] == pytest.approx(best)
        assert scores[name]["low"] <= scores[name]["score"] + 1e-9
        assert "version:" in scores[name]["signature"]


def test_evaluate_as_text_has_one_line_a_metric(run_cli: Run, write_lines: WriteLines) -> None:
    hypothesis = write_lines("hypothesis.txt", *WORSE)
    reference = write_lines("reference.txt", *REFERENCES)
    done = run_cli("evaluate", "--hypothesis", hypothesis, "--reference", reference)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["BLEU", "chrF", "TER"]


def test_evaluate_baseline_adds_differences_and_p_values(
    run_here: Run, write_lines: WriteLines
) -> None:
    reference = write_lines("reference.txt", *REFERENCES)
    worse = write_lines("worse.txt", *WORSE)
    arguments = ("--hypothesis", reference, "--reference", reference, "--against", worse)
    found = json.loads(run_here("evaluate", *arguments, "--json").stdout)
    assert set(found) == {"bleu", "chrf", "ter", "against"}
    bleu = found["against"]["bleu"]
    assert bleu["difference"] == pytest.approx(found["bleu"]["score"] - bleu["score"])
    assert bleu["difference"] > 0
    assert 0 < bleu["p_value"] < 1
    done = run_here("evaluate", *arguments)
    assert len(done.stdout.splitlines()) == 6
    assert done.stdout.count("(two tails, but too few lines to tell)") == 3
    many = [write_lines(f"{n}.txt", *lines * 50) for n, lines in enumerate((REFERENCES, WORSE))]
    of_many = ("--hypothesis", many[0], "--reference", many[0], "--against", many[1])
    assert run_here("evaluate", *of_many).stdout.count("(two tails)") == 3


def test_evaluate_lowercased_tokenized_forgives_case(
    run_here: Run, write_lines: WriteLines
) -> None:
    hypothesis = write_lines("hypothesis.txt", *[line.upper() for line in REFERENCES])
    reference = write_lines("reference.txt", *REFERENCES)
    arguments = ("--hypothesis", hypothesis, "--reference", reference, "--json")
    plain = json.loads(run_here("evaluate", *arguments).stdout)
    lowered = json.loads(run_here("evaluate", *arguments, "--moses", "fr").stdout)
    assert plain["bleu"]["score"] < 10
    assert lowered["bleu"]["score"] == pytest.approx(100)


def test_evaluate_tokenized_cuts_at_spaces_alone(run_here: Run, write_lines: WriteLines) -> None:
    files = ("--hypothesis", write_lines("h.txt", "a b c d e,"), "--reference")
    files = (*files, write_lines("r.txt", "a b c d e ."), "--json")
    found = {}
    for option in ((), ("--tokenize", "none")):
        done = run_here("evaluate", *files, *option)
        found[option] = json.loads(done.stdout)["bleu"]
    assert "tok:none" in found["--tokenize", "none"]["signature"]
    assert found["--tokenize", "none"]["score"] < found[()]["score"]


def test_evaluate_gzip_and_standard_input_equal_plain_files(
    run_here: Run, write_lines: WriteLines, tmp_path: Path
) -> None:
    reference = write_lines("reference.txt", *REFERENCES)
    worse = write_lines("worse.txt", *WORSE)
    packed = tmp_path / "worse.txt.gz"
    packed.write_bytes(gzip.compress(Path(worse).read_bytes()))
    expected = run_here("evaluate", "--hypothesis", worse, "--reference", reference).stdout
    assert expected
    for hypothesis in (str(packed), "-"):
        done = run_here(
            *("evaluate", "--hypothesis", hypothesis, "--reference", reference),
            stdin=Path(worse).read_bytes(),
        )
        assert done.stdout == expected


def test_evaluate_different_lengths_names_both_counts(
    run_here: Run, write_lines: WriteLines
) -> None:
    short = write_lines("short.txt", *REFERENCES[:3])
    reference = write_lines("reference.txt", *REFERENCES)
    done = run_here("evaluate", "--hypothesis", short, "--reference", reference)
    assert done.returncode == 2
    assert "short.txt has 3" in done.stderr
    assert "reference.txt has 5" in done.stderr


def test_evaluate_invalid_utf8_names_file_and_line(
    run_here: Run, write_lines: WriteLines, tmp_path: Path
) -> None:
    reference = write_lines("reference.txt", "one", "two", "three")
    broken = tmp_path / "broken.txt"
    broken.write_bytes(b"one\ntw\xff\nthree\n")
    done = run_here("evaluate", "--hypothesis", str(broken), "--reference", reference)
    assert done.returncode == 2
    assert "broken.txt:2" in done.stderr
    assert "0xff" in done.stderr


def test_evaluate_separators_of_unicode_do_not_shift_lines(
    run_here: Run, write_lines: WriteLines
) -> None:
    path = write_lines("odd.txt", "a\u2028b c d e", "f\x0cg\x85h i j k", "\u202eשלום 🍕")
    done = run_here("evaluate", "--hypothesis", path, "--reference", path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "neither is"),
        (["model", "--hypothesis", "FILE"], "both are"),
        (["model"], "--source"),
        (["--hypothesis", "missing.txt"], "missing.txt"),
        (["--hypothesis", "FILE", "--moses", "xx"], "'xx'"),
        (
            ["--hypothesis", "FILE", "--moses", "fr", "--tokenize", "none"],
            "cannot be combined",
        ),
        (["--hypothesis", "EMPTY"], "empty"),
        (["--hypothesis", "FILE", "--to", "fr"], "--to needs MODEL"),
        (
            ["--hypothesis", "FILE", "--set", "decoding.strict=true"],
            "--set decoding.strict ne",
        ),
        (["--hypothesis", "FILE", "--change", "cut decoder.0.cross.0"], "--change needs MODEL"),
        (
            ["model", "--change", "no-mask", "--against", "FILE"],
            "--change cannot be combined with --against",
        ),
    ],
)
def test_evaluate_wrong_arguments_give_one_sentence_and_2(
    run_here: Run, write_lines: WriteLines, arguments: list[str], expected: str
) -> None:
    paths = {"FILE": write_lines("file.txt", "a b c d"), "EMPTY": write_lines("empty.txt")}
    reference = paths["EMPTY" if "EMPTY" in arguments else "FILE"]
    given = [paths.get(argument, argument) for argument in arguments]
    done = run_here("evaluate", *given, "--reference", reference)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert expected in done.stderr


def test_evaluate_takes_several_references(run_here: Run, write_lines: WriteLines) -> None:
    first = write_lines("first.txt", *REFERENCES)
    second = write_lines("second.txt", *WORSE)
    files = ("--hypothesis", second, "--reference", first, "--reference", second)
    done = run_here("evaluate", *files, "--json")
    found = json.loads(done.stdout)
    assert found["bleu"]["score"] == pytest.approx(100)
    assert found["bleu"]["signature"].startswith("nrefs:2|")
    short = write_lines("short.txt", *WORSE[:2])
    done = run_here("evaluate", *files, "--reference", short)
    assert done.returncode == 2
    assert "--reference 3" in done.stderr
    assert "short.txt has 2" in done.stderr


def test_evaluate_compares_in_one_form_and_counts_what_differed(
    run_here: Run, write_lines: WriteLines
) -> None:
    hypothesis = write_lines("h.txt", *REFERENCES)
    reference = write_lines("r.txt", *(unicodedata.normalize("NFD", line) for line in REFERENCES))
    files = ("--hypothesis", hypothesis, "--reference", reference, "--json")
    done = run_here("evaluate", *files)
    found = json.loads(done.stdout)
    assert found["bleu"]["score"] == pytest.approx(100)
    assert found["bleu"]["signature"].endswith("|form:nfc")
    assert found["normalized"] == {"form": "nfc", "hypotheses": 0, "references": 4}
    assert "(nfc), which changed 0 of 5 translations and 4 of 5 references" in done.stderr
    plain = run_here("evaluate", *files, "--no-normalize")
    found = json.loads(plain.stdout)
    assert found["bleu"]["score"] < 90
    assert set(found) == {"bleu", "chrf", "ter"}
    assert plain.stderr == ""


def test_evaluate_with_a_model_compares_in_its_form(
    run_here: Run, write_lines: WriteLines, tmp_path: Path
) -> None:
    lines = ["un chien noir dort"]
    recipe = TokenizerRecipe(kind="words", lowercase=True, vocabulary_size=17)
    tokenizer = learn_tokenizer(recipe, lambda: lines, lambda: lines)
    sizes = {
        f"{side}_vocabulary_size": getattr(tokenizer, f"{side}_vocabulary_size")
        for side in ("source", "target")
    }
    config = BundleConfig(
        languages=LanguagesConfig(source="en", target="fr"),
        model=ModelConfig(d_model=8, d_ff=11, num_heads=2, **sizes),
        tokenizer=tokenizer.config,
    )
    model = Transformer(config.model)
    initialize(model, seed=3)
    folder = tmp_path / "lowercase"
    save_bundle(
        folder,
        config=config,
        weights=model.state_dict(),
        tokenizer=tokenizer,
        recipe_toml="",
        provenance={},
    )
    source = write_lines("s.txt", "un chien")
    reference = write_lines("r.txt", "UN chien")
    done = run_here("evaluate", str(folder), "--source", source, "--reference", reference)
    assert done.returncode == 0, done.stderr
    assert all(line.endswith("|form:nfc+lc") for line in done.stdout.splitlines()[:3])
    assert "1 of 1 references" in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "expected"),
    [
        (["--tokenize", "char"], 0, ""),
        (["--tokenize", "chars"], 2, "Did you mean 'char'?"),
        (["--tokenize", "zh", "--moses", "fr"], 2, "--tokenize cannot be combined"),
    ],
)
def test_evaluate_tokenize_takes_a_name_of_sacrebleu(
    run_here: Run, write_lines: WriteLines, options: list[str], code: int, expected: str
) -> None:
    path = write_lines("a.txt", "今天天气很好。")
    done = run_here("evaluate", "--hypothesis", path, "--reference", path, *options)
    assert done.returncode == code
    assert expected in done.stderr
    assert not code or done.stderr.count("\n") == 1
    assert code or "|tok:char|" in done.stdout


def test_evaluate_notices_tokenized_text(run_here: Run, write_lines: WriteLines) -> None:
    path = write_lines("tokenized.txt", *["Un chien noir dort ici ."] * 100)
    files = ("--hypothesis", path, "--reference", path)
    done = run_here("evaluate", *files)
    assert "100 of 100 translations end in ' .'" in done.stderr
    assert "add --tokenize none" in done.stderr
    assert done.stderr.count("\n") == 1
    for option in (("--tokenize", "none"), ("--moses", "fr")):
        assert run_here("evaluate", *files, *option).stderr == ""


def test_evaluate_counts_lines_that_lose_their_placeholders(
    run_here: Run, write_lines: WriteLines
) -> None:
    sources = write_lines("source.txt", "Open %s", "Save", "Copy {n} to {m}", "%d of %d")
    hypothesis = write_lines("hypothesis.txt", "Ouvrir %d", "Garder", "De {n} en {m}", "%d de")
    arguments = ("--hypothesis", hypothesis, "--reference", hypothesis, "--source", sources)
    done = run_here("evaluate", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["placeholders"] == {"lines": 3, "kept": 1, "lost": [1, 4]}
    assert "kept in 1 of 3 lines that have some; not in lines 1, 4." in done.stderr


def test_evaluate_without_sources_takes_the_placeholders_of_the_reference(
    run_here: Run, write_lines: WriteLines
) -> None:
    reference = write_lines("reference.txt", *[f"%s est vide ({n})" for n in range(13)])
    hypothesis = write_lines("hypothesis.txt", *[f"%d est vide ({n})" for n in range(13)])
    done = run_here("evaluate", "--hypothesis", hypothesis, "--reference", reference)
    assert "kept in 0 of 13 lines that have some" in done.stderr
    assert "9, 10 and 3 more" in done.stderr
    done = run_here("evaluate", "--hypothesis", reference, "--reference", reference)
    assert done.stderr == ""


def test_evaluate_searches_as_asked_and_says_how(run_here: Run, write_lines: WriteLines) -> None:
    files = (
        *("--source", write_lines("source", "The soup was cold.", "They ate because of it.")),
        *("--reference", write_lines("reference", "La soupe était froide.", "Ils ont mangé.")),
    )
    wide = run_here("evaluate", "demo", *files, "--beam", "5", "--precision", "int8")
    assert wide.returncode == 0, wide.stderr
    last = wide.stdout.splitlines()[-1]
    assert last == "Searched with a beam of 5, length penalty gnmt (alpha 0.6), in int8."
    plain = run_here("evaluate", "demo", *files)
    assert plain.stdout.splitlines()[-1].startswith("Searched with a beam of 1 (greedy) in ")
    rare = ("--set", "decoding.max_length=2")
    record = json.loads(run_here("evaluate", "demo", *files, *rare, "--json").stdout)
    assert record["decoding"]["max_length"] == 2
    done = run_here("evaluate", "--hypothesis", *files[3:4], *files[2:], "--beam", "5")
    assert (done.returncode, "--beam needs MODEL" in done.stderr) == (2, True)
