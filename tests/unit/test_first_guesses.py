"""What somebody types first who knows other libraries: it works, or says the right name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

import pellucid
from pellucid.cli.overview import COMMANDS
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
    "device": (lambda t: t.translate(SOUP, device="cuda"), "load("),
    # TransformerLens
    "run_with_cache": (lambda t: t.run_with_cache(SOUP), "translator.look(text)"),
    "run_with_hooks": (lambda t: t.run_with_hooks(SOUP), "changes=probe"),
    "a function as a probe": (lambda t: t.look(SOUP, changes=print), "see(site, stage, tensor)"),
    "what_if": (lambda t: t.what_if(SOUP, "x"), "pair(text).what_if("),
    "cut=": (lambda t: t.translate(SOUP, cut="decoder.1.cross.0"), "'changes'"),
    "probe=": (lambda t: t.look(SOUP, probe=print), "'changes'"),
    "head": (lambda t: t.look(SOUP).head(0), "trace['decoder.1.cross.0']"),
    "patch": (lambda t: t.patch(SOUP, SOUP), "pair(first).patch(pair(second))"),
    "ablate": (lambda t: t.ablate("decoder.1.cross.0"), "changes='cut decoder.1.cross.0'"),
    # Our own, almost
    "look": (lambda t: pellucid.look("demo", SOUP), "pellucid.load(model).look(text)"),
    "make_app": (lambda t: pellucid.make_app("demo"), "pellucid.serve.make_app(model)"),
    "split_long": (lambda t: t.translate(SOUP, split_long=True), "Did you mean 'split'?"),
    "split=False": (lambda t: t.translate(SOUP, split=False), "'none'"),
    "split of a stream": (lambda t: t.stream(SOUP, split=True), "none"),
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


@pytest.mark.parametrize("name", [one for one in COMMANDS if find_spec(f"pellucid.{one}")])
def test_package_with_the_name_of_a_command_says_what_to_write_when_called(name: str) -> None:
    with pytest.raises(pellucid.InputError) as refused:
        import_module(f"pellucid.{name}")(SOUP)
    assert f"pellucid.{name} is a module, not a function. Write pellucid" in str(refused.value)
    # Before it is imported, it is no attribute; the same is to be written.
    with pytest.raises(AttributeError) as missing:
        pellucid.__getattr__(name)
    assert str(refused.value).partition(". ")[2] in str(missing.value)


def test_package_that_is_called_can_be_imported() -> None:
    import pellucid.translate as package
    from pellucid.translate import translator

    assert pellucid.translate is package
    assert translator.load is pellucid.load


def test_objects_are_copied_and_asked_for_attributes_as_any_other(translator: Translator) -> None:
    for one in (translator, translator.translate(SOUP), translator.look(SOUP)):
        assert not hasattr(one, "nonsense")
        assert getattr(one, "_ipython_display_", None) is None
