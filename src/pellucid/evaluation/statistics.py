"""Scores from sufficient statistics, so that resampling never reads a sentence twice.

BLEU, chrF and TER of a corpus depend on sums over its sentences (matched n-grams, edits, lengths).
sacreBLEU counts these once a sentence; a bootstrap sample is then one weighted sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from pellucid.errors import ConfigurationError, DataError, InputError
from pellucid.evaluation.form import NFC, Form
from pellucid.evaluation.resampling import check_resampling, draw_resamples
from pellucid.evaluation.ter import BoundedTER
from pellucid.evaluation.tokenization import (
    choose_tokenizer,
    has_no_spaces,
    lowercase_and_tokenize,
    make_bleu,
    moses_signature,
)

Floats: TypeAlias = NDArray[np.float64]
Metric: TypeAlias = BLEU | CHRF | BoundedTER

References: TypeAlias = Sequence[str] | Sequence[Sequence[str]]
"""One text made by people, or several of equally many lines."""


@dataclass(frozen=True)
class Scoring:
    """The choices of a score: one form for both sides, a way to cut words, and samples.

    Attributes:
        lowercased_tokenized: None scores the text as it is, with sacreBLEU's defaults. A language
            code first lower-cases and tokenizes both sides with the Moses chain and scores the
            result without further tokenization, for comparison with figures published that way.
        is_tokenized: True if both sides are tokenized already; BLEU then counts the words between
            spaces.
        tokenize: sacreBLEU's tokenizer for BLEU, by its name (`TOKENIZERS`). None takes the one
            that suits the references' script and the language: ``zh``, ``ja-mecab`` and
            ``ko-mecab`` if they are installed, ``char``, otherwise ``13a``.
        language: the code of the target language; ``""`` looks at the script only.
        form: the form into which both sides are brought before they are compared.
        num_resamples: the number of samples.
        seed: of the draws; the same seed gives the same interval and the same p-values.

    Raises:
        ConfigurationError: there are too few resamples, the seed is negative, or the text would
            be tokenized twice.
    """

    lowercased_tokenized: str | None = None
    is_tokenized: bool = False
    tokenize: str | None = None
    language: str = ""
    form: Form = NFC
    num_resamples: int = 1000
    seed: int = 12345

    def __post_init__(self) -> None:
        check_resampling(self.num_resamples, self.seed)
        given = {
            "lowercased_tokenized": self.lowercased_tokenized is not None,
            "is_tokenized": self.is_tokenized,
            "tokenize": self.tokenize is not None,
        }
        names = [name for name, is_given in given.items() if is_given]
        if "tokenize" in names and len(names) > 1:
            raise ConfigurationError(
                f"{names[0]} cannot be combined with tokenize: text is tokenized once. Leave one "
                "of them out."
            )

    def bleu(self, references: Sequence[str]) -> BLEU:
        """Make the BLEU that suits these references.

        The effective order is used if most of them have fewer than four tokens: BLEU counts
        sequences of four, and would be 0 whatever the translation.
        """
        name = self.tokenize
        if self.is_tokenized or self.lowercased_tokenized is not None:
            name = "none"  # Tokenized text must not be tokenized again.
        bleu = make_bleu(name or choose_tokenizer(references, self.language))
        # Counted in BLEU's own tokens, of which a line without spaces has many.
        num_long = sum(
            len(bleu._preprocess_segment(line).split()) >= bleu.max_ngram_order
            for line in references
        )
        bleu.effective_order = 2 * num_long < len(references)
        return bleu

    def ter(self, references: Sequence[str]) -> BoundedTER:
        """Make the TER that suits these references: of characters if they have no spaces."""
        is_cut = self.is_tokenized or self.lowercased_tokenized is not None
        return BoundedTER(in_characters=not is_cut and has_no_spaces(references))


PLAIN = Scoring()
"""Text as it is, with sacreBLEU's defaults."""


@dataclass(frozen=True)
class Resampled:
    """One metric of one system or several, on a corpus and on samples drawn from it.

    Attributes:
        scores: the corpus score of each system.
        samples: (systems, samples): the score of each system on each sample, in the order drawn.
            All systems are scored on the same samples, so they are paired.
        signature: how the scores were computed: sacreBLEU's, and the Moses chain and the
            normalization if they changed something.
    """

    scores: list[float]
    samples: Floats
    signature: str


@dataclass(frozen=True)
class Normalized:
    """The lines that one normalization of both sides changed.

    Attributes:
        form: its name, as in signatures: ``nfc``, ``nfkc+lc``.
        hypotheses: how many lines of the hypotheses it changed.
        references: how many lines of the references.
    """

    form: str
    hypotheses: int
    references: int


def resample_scores(
    systems: Mapping[str, Sequence[str]], references: References, scoring: Scoring
) -> tuple[dict[str, Resampled], Normalized | None]:
    """Score systems on their corpus, and on corpora of the same size drawn from its sentences.

    Args:
        systems: the lines of each system, with a name for messages (such as ``"hypotheses"``).
        references: as many lines, made by people; or several such texts.
        scoring: the form, the words and the samples.

    Returns:
        ``bleu``, ``chrf`` and ``ter``; and the lines that the normalization changed, None if it
        changed none.

    Raises:
        InputError: a text is not a sequence of strings.
        DataError: the texts have no lines, or not equally many.
        ConfigurationError: the language or the tokenizer is unknown.
    """
    several = split_references(references)
    texts = {**systems, **several}
    check_lines(texts)
    changed = {}
    for name, lines in texts.items():
        texts[name] = scoring.form.apply(lines)
        changed[name] = sum(map(str.__ne__, lines, texts[name]))
        if scoring.lowercased_tokenized is not None:
            texts[name] = lowercase_and_tokenize(texts[name], scoring.lowercased_tokenized)
    normalized = Normalized(
        str(scoring.form),
        hypotheses=sum(changed[name] for name in systems),
        references=sum(changed[name] for name in several),
    )
    known = [texts[name] for name in several]
    metrics: dict[str, Metric] = {
        "bleu": scoring.bleu(known[0]),
        "chrf": CHRF(),
        "ter": scoring.ter(known[0]),
    }
    found = {}
    for name, metric in metrics.items():
        # For each system (sentences, counts); a sample weights the sentences.
        statistics = [count_statistics(metric, texts[system], known) for system in systems]
        samples = np.empty((len(systems), scoring.num_resamples))
        # From the same seed for each metric, so that all three see the same samples.
        draws = draw_resamples(len(known[0]), scoring.num_resamples, scoring.seed)
        for index, times in enumerate(draws):
            samples[:, index] = [corpus_score(metric, times @ rows) for rows in statistics]
        scores = [corpus_score(metric, rows.sum(axis=0)) for rows in statistics]
        # Only now, because counting tells the metric the number of references.
        signature = metric.get_signature()
        signature.update("bs", scoring.num_resamples)
        signature.update("seed", scoring.seed)
        text = signature.format()
        # Text that was in this form already keeps sacreBLEU's own signature.
        if any(changed.values()):
            text += f"|form:{scoring.form}"
        if scoring.lowercased_tokenized is not None:
            text += f"|{moses_signature(scoring.lowercased_tokenized)}"
        found[name] = Resampled(scores, samples, text)
    return found, normalized if any(changed.values()) else None


def split_references(references: References) -> dict[str, Sequence[str]]:
    """Name each of several references; one is called ``references``."""
    # A string or nothing is passed on, and `check_lines` says what is wrong with it.
    if isinstance(references, str) or not references or isinstance(references[0], str):
        return {"references": references}  # type: ignore[dict-item]
    if len(references) == 1:
        return {"references": references[0]}
    return {f"references {number}": lines for number, lines in enumerate(references, start=1)}


def check_lines(texts: Mapping[str, Sequence[str]]) -> None:
    """Check texts that belong together line by line.

    Args:
        texts: the lines of each text, with a name for messages.

    Raises:
        InputError: a text is not a sequence of strings.
        DataError: the texts have no lines, or not equally many.
    """
    for name, lines in texts.items():
        # A string is a sequence of strings too, of its letters.
        kinds = {type(lines)} if isinstance(lines, str) else {type(line) for line in lines}
        if isinstance(lines, str) or not all(issubclass(kind, str) for kind in kinds):
            found = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise InputError(
                f"The {name} must be a sequence of strings, one a line, but hold {found}. "
                f"Give a list of strings."
            )
    counts = {name: len(lines) for name, lines in texts.items()}
    if len(set(counts.values())) > 1:
        listed = " and ".join(f"{count} {name}" for name, count in counts.items())
        raise DataError(
            f"Texts that are compared must have equally many lines, but there are {listed}. "
            f"Give texts that belong together line by line."
        )
    if not all(counts.values()):
        raise DataError(
            f"Texts that are compared must have at least one line, but {' and '.join(counts)} "
            f"have 0. Give at least one pair of lines."
        )


def count_statistics(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> Floats:
    """Count what the metric needs: one row a sentence, whose sums decide the corpus score.

    Args:
        metric: it keeps the number of references for its signature.
        hypotheses: one line a sentence.
        references: several texts. A sentence that is empty in some of them has fewer references.

    Differs:
        sacreBLEU has no public name for this step, and its own bootstrap keeps only half the
        width of the interval, takes its seed from the environment and holds every resample in
        memory at once. Parity tests watch that the numbers stay the same.
    """
    given: Any = references  # sacreBLEU leaves out None, which its annotation does not say.
    if len(references) > 1:
        rows = zip(*references, strict=True)
        given = list(zip(*map(_leave_out_empty, rows), strict=True))
    return np.array(metric._extract_corpus_statistics(hypotheses, given), dtype=np.float64)


def _leave_out_empty(references: tuple[str, ...]) -> list[str | None]:
    """Replace the empty references of a sentence by None, unless all are empty."""
    if not any(map(str.strip, references)):
        # sacreBLEU needs at least one reference for each sentence.
        return [references[0], *[None] * (len(references) - 1)]
    return [reference if reference.strip() else None for reference in references]


def corpus_score(metric: Metric, sums: Floats) -> float:
    """Compute the score of a corpus whose statistics add up to ``sums``."""
    return float(metric._compute_score_from_stats(sums.tolist()).score)
