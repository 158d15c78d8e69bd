"""Options that a model brings along, as an imported one does, and the language of ``to``."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_imported import write_imported

from pellucid.config import DecodingConfig
from pellucid.errors import InputError
from pellucid.translate.translator import Translator, load

LINES = ["the black cat eats a red apple", "a dog sleeps near the old door"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported") / "model"
    write_imported(folder, ("fra", "ita"))
    return folder


def with_defaults(translator: Translator, **defaults: object) -> Translator:
    config = DecodingConfig.model_validate(defaults)
    return Translator(translator.model, translator.tokenizer, decoding=config)


@pytest.mark.parametrize("options", [{}, {"beam": 3}, {"sample": True}])
def test_forbidden_tokens_are_in_no_translation(folder: Path, options: dict[str, object]) -> None:
    plain = with_defaults(load(folder))
    first = plain.translate(LINES, max_length=9, **options)
    banned = {id_ for one in first for id_ in one.best.ids[:2]} - {plain.tokenizer.config.eos_id}
    ruled = with_defaults(plain, forbidden_tokens=[[id_] for id_ in banned])
    for one in ruled.translate(LINES, max_length=9, **options):
        assert banned.isdisjoint(one.best.ids)


def test_a_forbidden_sequence_forbids_only_its_end_after_its_beginning(folder: Path) -> None:
    plain = with_defaults(load(folder))
    (found,) = plain.translate(LINES[:1], max_length=9)
    pair = found.best.ids[:2]
    (other,) = with_defaults(plain, forbidden_tokens=[pair]).translate(LINES[:1], max_length=9)
    assert other.best.ids[0] == pair[0]
    assert pair not in list(zip(other.best.ids, other.best.ids[1:], strict=False))


def test_a_search_that_is_asked_for_replaces_sampling_by_default(folder: Path) -> None:
    sampling = with_defaults(load(folder), sample=True, temperature=0.7)
    assert sampling.options().sample
    assert not sampling.options(beam=4).sample
    assert not sampling.options(beam=1).sample
    assert sampling.options(sample=True).temperature == 0.7
    greedy = with_defaults(load(folder)).translate(LINES, max_length=9)
    found = sampling.translate(LINES, beam=1, max_length=9)
    assert [one.text for one in found] == [one.text for one in greedy]


def test_a_language_puts_its_code_before_every_line(folder: Path) -> None:
    translator = load(folder)
    coded = [f">>ita<< {line}" for line in LINES]
    want = translator.translate(coded, max_length=9)
    for texts in (LINES, [f">>fra<< {line}" for line in LINES]):
        found = translator.translate(texts, to="ita", max_length=9)
        assert [one.best.ids for one in found] == [one.best.ids for one in want]
        assert [one.source for one in found] == texts
        assert not any(one.notes.language_code for one in found)
    again = translator.translate(LINES, to="ita", retry=True, max_length=9)
    assert [one.source for one in again] == LINES


def test_scores_streams_and_looks_take_a_language_too(folder: Path) -> None:
    translator = load(folder)
    targets = ["le chat noir", "un chien dort"]
    coded = [f">>ita<< {line}" for line in LINES]
    want = [one.log_probability for one in translator.score(coded, targets)]
    found = translator.score(LINES, targets, to=">>ita<<")
    assert [one.log_probability for one in found] == want
    assert [one.source for one in found] == LINES
    (best,) = translator.translate(coded[:1], max_length=9)
    assert "".join(translator.stream(LINES[0], to="ita", max_length=9)) == best.text
    assert translator.look(LINES[0], to="ita", max_length=9).source_tokens[0] == ">>ita<<"


def test_a_language_without_a_code_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be one that the model has a code for"):
        load(folder).translate(LINES, to="deu")
    write_imported(tmp_path / "plain")
    with pytest.raises(InputError, match="this model has none"):
        load(tmp_path / "plain").score(LINES, LINES, to="fra")


def test_the_models_of_an_ensemble_are_known_by_their_hashes(folder: Path) -> None:
    translator = load(folder, ensemble=[folder, folder])
    assert translator.model_hashes == load(folder).model_hashes * 3
    assert load(folder).model_hashes == (load(folder).bundle.model_hash,)
