"""What somebody types first who knows other libraries: it works, or says the right name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pellucid
from pellucid.translate.translator import Translator

SOUP = "The soup was cold."
COLD = "La soupe était froide."


@pytest.fixture(scope="module")
def translator() -> Translator:
    return pellucid.load("demo")


GUESSES: dict[str, tuple[Callable[[Any], Any], str]] = {
    # Hugging Face Transformers
    "pipeline": (lambda t: pellucid.pipeline("translation"), "Write pellucid.load(model)"),
    "a call": (lambda t: t(SOUP), "Write translator.translate(texts)"),
    "generate": (lambda t: t.generate(SOUP), "Write translate(texts)"),
    "output_attentions": (lambda t: t.translate(SOUP, output_attentions=True), "look(text)"),
    "attentions": (lambda t: t.look(SOUP).cross_attentions, "trace['decoder.1.cross.0']"),
    "head_mask": (lambda t: t.translate(SOUP, head_mask=0), "cut decoder.1.cross.0"),
    "translation_text": (lambda t: t.translate(SOUP).translation_text, "Write text"),
    "epochs": (lambda t: pellucid.train("a.tsv", num_train_epochs=3), "training.max_steps"),
    "output_dir": (lambda t: pellucid.train("a.tsv", output_dir="r"), "'output'"),
    "from_pretrained": (lambda t: pellucid.from_pretrained("demo"), "pellucid.load(model)"),
    # CTranslate2
    "Translator": (lambda t: Translator("demo"), "Write pellucid.load('demo')"),  # type: ignore[call-arg, arg-type]
    "translate_batch": (lambda t: t.translate_batch([SOUP]), "Write translate(texts)"),
    "score_batch": (lambda t: t.score_batch([SOUP], [COLD]), "Write score(sources, targets)"),
    "compute_type": (lambda t: pellucid.load("demo", compute_type="int8"), "'precision'"),  # type: ignore[call-arg]
    "quantization": (lambda t: pellucid.export("demo", "x", quantization="int8"), "'precision'"),  # type: ignore[call-arg]
    # spaCy, sentence-transformers
    "pipe": (lambda t: t.pipe([SOUP]), "Write translate(texts)"),
    "encode": (lambda t: t.encode(SOUP), "Write translate(texts)"),
    "device": (lambda t: pellucid.load("demo", device="cuda"), "threads=N"),  # type: ignore[call-arg]
    # TransformerLens
    "run_with_cache": (lambda t: t.run_with_cache(SOUP), "translator.look(text)"),
    "run_with_hooks": (lambda t: t.run_with_hooks(SOUP), "changes=probe"),
    "a function as a probe": (lambda t: t.look(SOUP, changes=print), "see(site, stage, tensor)"),
    "patch": (lambda t: t.patch(SOUP, SOUP), "pair(first).patch(pair(second))"),
    "ablate": (lambda t: t.ablate("decoder.1.cross.0"), "changes='cut decoder.1.cross.0'"),
    # Our own, almost
    "make_app": (lambda t: pellucid.make_app("demo"), "pellucid.serve.make_app(model)"),
    "stream": (lambda t: t.translate(SOUP, stream=True), "stream(text) yields"),
    "links": (lambda t: t.align(SOUP, COLD).links, "Write alignment"),
    "two files": (lambda t: pellucid.train("a.en", "a.fr"), "several of one kind as a list"),  # type: ignore[misc]
    "nothing": (lambda t: t.translate(), "translate needs texts"),
    "convert": (lambda t: pellucid.convert("folder"), "convert needs output"),  # type: ignore[call-arg]
    "attend": (lambda t: pellucid.attend(q=1, k=2, v=3), "Did you mean 'query'"),  # type: ignore[call-arg]
    "evaluate": (lambda t: pellucid.evaluate(t, [SOUP], [COLD]), "Name the others"),  # type: ignore[misc]
    "bytes": (lambda t: t.translate(b"x"), "Decode it first"),
}


@pytest.mark.parametrize("guess", GUESSES)
def test_guess_is_answered_with_the_right_name(translator: Translator, guess: str) -> None:
    call, right = GUESSES[guess]
    with pytest.raises((pellucid.PellucidError, AttributeError)) as refused:
        call(translator)
    assert right in str(refused.value)
    assert len(str(refused.value)) < 300


def test_objects_are_copied_and_asked_for_attributes_as_any_other(translator: Translator) -> None:
    for one in (translator, translator.translate(SOUP), translator.look(SOUP)):
        assert not hasattr(one, "nonsense")
        assert getattr(one, "_ipython_display_", None) is None
