"""Score translations against a reference: ``pellucid evaluate`` as a function."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pellucid.arguments import checked, list_texts, warn_caller
from pellucid.config import DecodingConfig
from pellucid.config.typed_options import DecodingOptions
from pellucid.errors import InputError, not_together
from pellucid.evaluation.corpus_scores import Comparison, Evaluation, compare, evaluate_corpus
from pellucid.evaluation.form import AS_IT_IS, NFC, Form
from pellucid.evaluation.statistics import References, Scoring
from pellucid.evaluation.tokenization import check_tokenizer, lowercase_and_tokenize
from pellucid.files import expand_home
from pellucid.languages.codes import direction
from pellucid.text.reading.lines import read_lines
from pellucid.translate.call_options import check_names
from pellucid.translate.translator import Translator, load

if TYPE_CHECKING:
    from pellucid.inside.changes.given_changes import GivenChanges
    from pellucid.translate.results import Translation


@dataclass(frozen=True, repr=False)
class ModelEvaluation(Evaluation):
    """The scores of translations, and what was scored.

    Attributes:
        hypotheses: the translations that were scored.
        translations: the same with all that is known of them; none if the texts were given.
        decoding: the options of the search; None if the texts were given.
        comparison: with other translations, or with the model without changes; None without any.
    """

    hypotheses: tuple[str, ...] = ()
    translations: tuple[Translation, ...] = ()
    decoding: DecodingConfig | None = None
    comparison: Comparison | None = None

    def __repr__(self) -> str:
        scores = ", ".join(
            f"{name} {one.score:.2f} [{one.low:.2f}, {one.high:.2f}]"
            for name, one in (("BLEU", self.bleu), ("chrF", self.chrf), ("TER", self.ter))
        )
        return f"<{scores} of {len(self.hypotheses):,} translations>"


@checked
def evaluate(
    model: str | Path | Translator | None = None,
    *,
    reference: GivenLines | Sequence[GivenLines] | None = None,
    source: GivenLines | None = None,
    hypothesis: GivenLines | None = None,
    against: GivenLines | None = None,
    source_language: str | None = None,
    to: str | None = None,
    changes: GivenChanges | None = None,
    tokenize: str | None = None,
    moses: str | None = None,
    normalize: bool = True,
    device: str | None = None,
    **decoding: Unpack[DecodingOptions],
) -> ModelEvaluation:
    """Score translations against a reference: BLEU, chrF and TER, with 95 % intervals.

    Give a model, which translates the source first, or translations. A run folder without any text
    is scored on the test text of its recipe.

    Args:
        model: its name or folder, or a translator.
        reference: translations made by people: a file, a list of lines, or a list of files or
            lists for several references of each line.
        source: the file or the lines to translate.
        hypothesis: the file or the lines of translations to score, in the place of a model.
        against: other translations to compare with (paired bootstrap).
        source_language: as for `Translator.translate`.
        to: as for `Translator.translate`.
        changes: of the model, which is then compared with itself without them.
        tokenize: sacreBLEU's tokenizer, or ``none`` if both sides are tokenized already; chosen
            by the script unless given.
        moses: a language, to lower-case and tokenize both sides as Moses does.
        normalize: compare both sides in the model's normalization, or NFC.
        device: where the model computes, as for `pellucid.load`.
        decoding: decoding options, such as ``beam=5``.

    Raises:
        InputError: an argument is impossible, or texts are missing.
        DataError: the texts have not equally many lines.
    """
    check_names(decoding, evaluate)
    if (model is None) == (hypothesis is None):
        raise InputError("evaluate needs either a model or a hypothesis. Give one of them.")
    if device is not None and not isinstance(model, str | Path):
        raise InputError(
            "device is for a model that is named. A translator has its device already."
        )
    if changes is not None and against is not None:
        raise not_together("changes", "against", "it compares with the unchanged model")
    if reference is None and source is None and isinstance(model, str | Path):
        source, reference = _read_test(model)
    if reference is None:
        raise InputError("evaluate needs a reference to compare with. Give reference=FILE.")
    # An impossible tokenization is refused before anything is translated.
    if tokenize is not None and moses is not None:
        raise not_together("tokenize", "moses", "text is tokenized once")
    is_tokenized = tokenize == "none"
    if tokenize is not None and not is_tokenized:
        check_tokenizer(tokenize)
    if moses is not None:
        # No text, only the check of the language.
        lowercase_and_tokenize([], moses)
    scoring = Scoring(
        lowercased_tokenized=moses,
        is_tokenized=is_tokenized,
        tokenize=None if is_tokenized else tokenize,
        form=NFC if normalize else AS_IT_IS,
    )
    references = _read_references(reference)
    other = None if against is None else read_given("against", against)
    if model is None:
        return _score(read_given("hypothesis", hypothesis), other, references, scoring)
    if source is None:
        raise InputError("A model needs text to translate. Give source=FILE.")
    sources = read_given("source", source)
    to = direction(source_language, to)
    translator = model if isinstance(model, Translator) else load(model, device=device)
    if changes is not None:
        # Both by the same search, so that nothing but the change differs.
        unchanged = copy.copy(translator)
        translator = translator.changed(changes)
        unchanged.decoding = translator.decoding
        other = [one.text for one in unchanged.translate(sources, to=to, **decoding)]
    translations = translator.translate(sources, to=to, **decoding)
    # A model writes in its own normalization, in which references are compared then.
    form = Form.of_model(translator.tokenizer.config) if normalize else AS_IT_IS
    scoring = replace(scoring, language=translator.languages.target, form=form)
    found = _score([one.text for one in translations], other, references, scoring)
    config = translator.options(**decoding)
    return replace(found, translations=tuple(translations), decoding=config)


def _score(
    hypotheses: list[str],
    other: list[str] | None,
    references: References,
    scoring: Scoring,
) -> ModelEvaluation:
    scores = evaluate_corpus(hypotheses, references, scoring)
    return ModelEvaluation(
        bleu=scores.bleu,
        chrf=scores.chrf,
        ter=scores.ter,
        normalized=scores.normalized,
        hypotheses=tuple(hypotheses),
        comparison=None if other is None else compare(hypotheses, other, references, scoring),
    )


def _read_references(given: Any) -> References:
    """Read one reference or several; a list of texts is one."""
    is_list = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    if is_list and given and not any(isinstance(one, str) for one in given):
        return [read_given("reference", one) for one in given]
    return [read_given("reference", given)]


def _read_test(run: str | Path) -> tuple[list[str], list[str]]:
    """Read the test text of the recipe that a run was trained with."""
    from pellucid.training.start.prepare import describe_known, read_test

    pairs, num_known = read_test(Path(expand_home(run)))
    if num_known:
        warn_caller(describe_known(num_known))
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


GivenLines = str | Path | Iterable[str]
"""A text file, or its lines."""


def read_given(name: str, given: object) -> list[str]:
    """Read the lines of a file, or take those that are given.

    Args:
        name: of the argument, for messages.
        given: the file or the lines.

    Raises:
        DataError: they are neither, or the file cannot be read as text.
    """
    return list(read_lines(given)) if isinstance(given, str | Path) else list_texts(name, given)
