"""BLEU of a trained model in each precision, when training ends."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.bundle import Bundle
from pellucid.config import Precision
from pellucid.evaluate.corpus import bleu_for_ranking
from pellucid.evaluate.form import Form
from pellucid.machine.precision import FASTEST_FIRST, LOSS_ALLOWED, fastest_precision
from pellucid.text.reading.corpus import Pair
from pellucid.train.validation import bleu_tokenizer
from pellucid.translate.translator import Translator


def measure_precisions(bundle: Bundle, pairs: Sequence[Pair]) -> dict[Precision, float]:
    """Translate the validation text as the bundle does by default, in each precision.

    Args:
        bundle: the trained model.
        pairs: the validation text.

    Returns:
        BLEU by precision; empty if the engine in C does not compute this model, since the fewer
        bits would save no time.
    """
    translator = Translator(bundle.model, bundle.tokenizer, decoding=bundle.config.decoding)
    if bundle.config.decoding.strict or any(
        translator.decoder.find_obstacle(precision) is not None for precision in FASTEST_FIRST
    ):
        return {}
    form = Form.of_model(bundle.tokenizer.config)
    references = form.apply([pair.target for pair in pairs])
    sources = [pair.source for pair in pairs]
    found: dict[Precision, float] = {}
    for precision in FASTEST_FIRST:
        translations = translator.translate(sources, precision=precision)
        texts = form.apply([one.text for one in translations])
        found[precision], _ = bleu_for_ranking(
            texts, references, tokenize=bleu_tokenizer(references)
        )
    return found


def describe_precisions(bleu: dict[Precision, float]) -> str:
    """Describe what was measured, and what ``--precision auto`` will do, in a line of the log."""
    figures = ", ".join(f"{one} {value:.2f}" for one, value in sorted(bleu.items()))
    return (
        f"Validation BLEU by precision: {figures}. --precision auto takes "
        f"{fastest_precision(bleu)}, the fastest that loses at most {LOSS_ALLOWED}."
    )
