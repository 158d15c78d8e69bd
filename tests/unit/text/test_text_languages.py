"""The data check tells languages: swapped pairs, foreign files, mixed sides, and no false alarm."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pellucid.check.data_check import check_data
from pellucid.check.findings import DataReport, Finding
from pellucid.check.line_languages import LanguageJudge, are_kindred, identify_surely, known_code
from pellucid.config import DataConfig
from pellucid.corpora import iterate_split

Pairs = Sequence[tuple[str, str]]

GERMAN = (
    "der Hund hat heute {} Stunden im Garten geschlafen",
    "ich habe gestern {} Briefe an meine Schwester geschrieben",
    "die Kinder spielen seit {} Minuten mit dem neuen Ball",
    "wir haben auf dem Markt {} Äpfel und etwas Brot gekauft",
)
SPANISH = (
    "el perro ha dormido {} horas en el jardín de la casa",
    "ayer escribí {} cartas a mi hermana que vive en el campo",
    "los niños juegan desde hace {} minutos con la pelota nueva",
    "hemos comprado {} manzanas y un poco de pan en el mercado",
)


def pairs_of(count: int, split: str = "train") -> list[tuple[str, str]]:
    examples = islice(iterate_split(split), count)  # type: ignore[arg-type]
    return [(example.source, example.target) for example in examples]


def sentences(templates: Sequence[str], count: int) -> list[str]:
    return [templates[number % len(templates)].format(number) for number in range(count)]


def check(
    folder: Path, corpora: Sequence[Pairs], validation: Pairs | None = None, **data: Any
) -> DataReport:
    """Check corpora of parallel files, with English and French declared unless told otherwise."""
    names: list[tuple[str, str]] = []
    texts = [*corpora, pairs_of(200, "validation") if validation is None else validation]
    for number, pairs in enumerate(texts):
        names.append((f"{number}.src", f"{number}.tgt"))
        for side, name in enumerate(names[-1]):
            (folder / name).write_text("".join(f"{pair[side]}\n" for pair in pairs))
    config = {
        "source_language": "en",
        "target_language": "fr",
        "train": [list(pair) for pair in names[:-1]],
        "validation": [list(names[-1])],
    }
    return check_data(DataConfig.model_validate(config | data), folder)


def about_languages(report: DataReport) -> list[Finding]:
    return [f for f in report.findings if f.kind == "swapped" or f.kind.endswith(" language")]


def swap(pairs: Pairs) -> list[tuple[str, str]]:
    return [(target, source) for source, target in pairs]


def lines_of(finding: Finding) -> set[int]:
    found: set[int] = set()
    for stretch in finding.lines:
        first, _, last = stretch.rpartition(":")[2].partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize("declared", [("en", "fr"), ("eng_Latn", "fr-CA"), ("", ""), ("en", "")])
def test_right_text_is_not_suspected(tmp_path: Path, declared: tuple[str, str]) -> None:
    report = check(
        tmp_path, [pairs_of(600)], source_language=declared[0], target_language=declared[1]
    )
    assert not about_languages(report), report.lines()


@pytest.mark.parametrize("languages", [("en", "fr"), ("", "")])
def test_swapped_pairs_are_found_and_listed_by_line(
    tmp_path: Path, languages: tuple[str, str]
) -> None:
    pairs = pairs_of(1000)
    places = set(random.Random(7).sample(range(1000), 200))
    mixed = [swap([pair])[0] if n in places else pair for n, pair in enumerate(pairs)]
    report = check(tmp_path, [mixed], source_language=languages[0], target_language=languages[1])
    (finding,) = [f for f in about_languages(report) if f.kind == "swapped"]
    assert finding.severity == "warning"
    assert "source and target exchanged" in finding.sentence
    found = lines_of(finding)
    assert len(found & {place + 1 for place in places}) > 180  # some lines are too short to tell
    # A stretch may hold lines between two swapped ones that nothing tells.
    assert len(found - {place + 1 for place in places}) < 10
    assert any("lines: 0.src:" in line for line in report.lines())


def test_swapped_corpus_among_others_is_named_by_its_files(tmp_path: Path) -> None:
    pairs = pairs_of(900)
    report = check(tmp_path, [pairs[:600], swap(pairs[600:])])
    (finding,) = about_languages(report)
    assert (finding.severity, finding.kind, finding.split) == ("error", "swapped", "train")
    assert "the two sides of 1.src and 1.tgt are exchanged" in finding.sentence
    assert report.has_errors


def test_swapped_validation_text_is_an_error(tmp_path: Path) -> None:
    report = check(tmp_path, [pairs_of(400)], swap(pairs_of(100, "validation")))
    (finding,) = about_languages(report)
    assert (finding.severity, finding.split) == ("error", "validation")
    assert "1.src and 1.tgt are exchanged" in finding.sentence


@pytest.mark.parametrize(("templates", "language"), [(GERMAN, "de"), (SPANISH, "es")])
def test_corpus_in_another_language_is_named(
    tmp_path: Path, templates: Sequence[str], language: str
) -> None:
    pairs = pairs_of(400)
    foreign = [(s, t) for (s, _), t in zip(pairs[:120], sentences(templates, 120), strict=True)]
    report = check(tmp_path, [pairs, foreign])
    (finding,) = about_languages(report)
    assert (finding.severity, finding.kind) == ("error", "target language")
    assert f"the targets of 1.tgt are in '{language}'" in finding.sentence
    assert "not in 'fr' (data.target_language)" in finding.sentence


def test_foreign_validation_text_is_an_error(tmp_path: Path) -> None:
    validation = pairs_of(60, "validation")
    foreign = [(s, t) for (s, _), t in zip(validation, sentences(GERMAN, 60), strict=True)]
    (finding,) = about_languages(check(tmp_path, [pairs_of(400)], foreign))
    assert (finding.severity, finding.split) == ("error", "validation")
    assert "are in 'de'" in finding.sentence


def test_wrong_declaration_is_an_error(tmp_path: Path) -> None:
    report = check(tmp_path, [pairs_of(300)], target_language="de")
    findings = about_languages(report)
    assert {f.split for f in findings} == {"train", "validation"}
    assert all("in 'fr'" in f.sentence and "not in 'de'" in f.sentence for f in findings)


def test_single_foreign_lines_are_listed_with_their_language(tmp_path: Path) -> None:
    pairs = pairs_of(500)
    for number, (german, spanish) in enumerate(
        zip(sentences(GERMAN, 12), sentences(SPANISH, 6) * 2, strict=True)
    ):
        pairs[20 + 30 * number] = (pairs[20 + 30 * number][0], german)
        if number < 6:
            pairs[400 + 10 * number] = (spanish, pairs[400 + 10 * number][1])
    report = check(tmp_path, [pairs])
    target, source = sorted(about_languages(report), key=lambda f: f.kind, reverse=True)
    assert (target.kind, target.count, source.kind, source.count) == (
        *("target language", 12),
        *("source language", 6),
    )
    assert "(12 in 'de')" in target.sentence
    assert "(6 in 'es')" in source.sentence
    assert lines_of(target) == {21 + 30 * number for number in range(12)}
    assert target.examples[0].target_where == "0.tgt:21"


def test_side_of_two_languages_is_found_where_one_is_declared(tmp_path: Path) -> None:
    pairs = pairs_of(400)
    german = sentences(GERMAN, 400)
    mixed = [(s, german[n] if n % 3 == 0 else t) for n, (s, t) in enumerate(pairs)]
    (finding,) = about_languages(check(tmp_path, [mixed]))
    assert finding.kind == "target language"
    assert 125 <= finding.count <= 134


def test_copies_and_short_lines_are_left_to_other_findings(tmp_path: Path) -> None:
    pairs = pairs_of(400)
    pairs[5] = (pairs[5][0], pairs[5][0])
    pairs[9] = ("Hotel", "Auto")
    assert not about_languages(check(tmp_path, [pairs]))


def test_text_in_no_known_language_is_not_judged(tmp_path: Path) -> None:
    draw = random.Random(3)
    words = ["".join(draw.choices("abdegiklmnoprstuvz", k=draw.randint(2, 9))) for _ in range(400)]
    pairs = [
        (" ".join(draw.choices(words, k=9)), " ".join(draw.choices(words, k=9))) for _ in range(400)
    ]
    report = check(tmp_path, [pairs], pairs[:50], source_language="", target_language="")
    assert not about_languages(report), report.lines()


def test_more_lines_than_the_sample_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pellucid.check import foreign_text

    monkeypatch.setattr(foreign_text, "SAMPLE", {"train": 150, "validation": 50, "test": 50})
    pairs = pairs_of(1200)
    swapped = [swap([pair])[0] if 500 <= n < 560 else pair for n, pair in enumerate(pairs)]
    (finding,) = about_languages(check(tmp_path, [swapped]))
    assert finding.kind == "swapped"
    assert finding.count > 52
    assert lines_of(finding) <= set(range(495, 566))


@pytest.mark.parametrize(
    ("code", "known"),
    [("en", "en"), ("EN_us", "en"), ("fra_Latn", "fr"), ("zho-Hant", "zh"), ("tlh", None)],
)
def test_codes_of_languages_are_known_in_several_forms(code: str, known: str | None) -> None:
    assert known_code(code) == known


def test_kindred_languages_count_as_one() -> None:
    assert are_kindred("no", "da")
    assert are_kindred("fr", "fr")
    assert not are_kindred("fr", "de")
    sample = [
        (line, code) for line, code in zip(sentences(GERMAN, 9), ["de", "lb"] * 5, strict=False)
    ]
    assert LanguageJudge(sample, ["de"]).names == ("de",)


@pytest.mark.parametrize("line", ["", "Hotel", "42 17 38 2001 44 x 71 9 25 66 12", "zxq wvu"])
def test_short_lines_and_numbers_have_no_language(line: str) -> None:
    assert identify_surely(line) == ""


UNNAMED = {"source_language": "", "target_language": ""}


@pytest.mark.sample(3)
@pytest.mark.parametrize("in_one_file", [True, False])
@pytest.mark.parametrize("tag", ["", "<2{}>", "{}"])
def test_one_source_with_targets_in_two_languages_needs_a_tag(
    tmp_path: Path, in_one_file: bool, tag: str
) -> None:
    corpora = [
        [
            (f"{tag.format(code)} {source}".strip(), target)
            for (source, _), target in zip(pairs_of(300), targets, strict=True)
        ]
        for code, targets in (
            ("fr", [target for _, target in pairs_of(300)]),
            ("es", sentences(SPANISH, 300)),
        )
    ]
    report = check(tmp_path, [corpora[0] + corpora[1]] if in_one_file else corpora, **UNNAMED)
    errors = [finding for finding in report.findings if finding.severity == "error"]
    assert len(errors) == (not tag), report.lines()
    for finding in errors:
        assert finding.kind == "several languages"
        assert finding.count >= 250
        assert "sources have several targets: 5" in finding.sentence
        assert "in 'es'" in finding.sentence
        assert "<2fr>" in finding.sentence
        assert finding.examples[0].other


def test_other_sources_in_a_second_target_language_are_a_warning_without_tags(
    tmp_path: Path,
) -> None:
    spanish = [*zip((a for a, _ in pairs_of(600)[300:]), sentences(SPANISH, 300), strict=True)]
    report = check(tmp_path, [[*pairs_of(300), *spanish]], **UNNAMED)
    kinds = {finding.kind: finding.severity for finding in report.findings}
    assert kinds.get("target languages") == "warning", report.lines()
    tagged = [
        *((f"<2fr> {a}", b) for a, b in pairs_of(300)),
        *((f"<2es> {a}", b) for a, b in spanish),
    ]
    report = check(tmp_path, [tagged], **UNNAMED)
    assert {f.kind for f in report.findings if f.severity != "note"} <= {"numbers"}, report.lines()
