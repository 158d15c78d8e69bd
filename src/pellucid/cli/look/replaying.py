"""A line to look at: what to know of it, its replay, and the checks of that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pellucid.bundle import Bundle
from pellucid.cli.ending import CHECK_FAILED, note, say_error, warn
from pellucid.cli.lines.decoding_options import given_decoding, useless_options
from pellucid.cli.lines.notices import EXCEEDS_VECTOR
from pellucid.corpora.seen import shipped_seen_sentences
from pellucid.decode.constraints.request import Constraints
from pellucid.documents.placeholder_masks import mask
from pellucid.inside.changes.written_changes import parse_changes
from pellucid.inside.line_traces import Replaying, look_at_given
from pellucid.inside.traces import Trace
from pellucid.languages.negations import lost_negations
from pellucid.text.language_tokens import CodeFaults, find_fault, with_codes
from pellucid.text.outside import say_unknown_words, unknown_words
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.attended_words import GivenPair, unlinked_words
from pellucid.translate.text_translator import examine
from pellucid.translate.translator import Translator


@dataclass(frozen=True)
class LookedLine:
    """A line to look at.

    Attributes:
        text: the source.
        target: the translation to look at, or None to decode one.
        prefix: the beginning of the decoded translation.
        language: that to write, such as ``fr`` or ``en:fr``, for a model with language codes.
    """

    text: str
    target: str | None
    prefix: str | None
    language: str | None = None

    def coded(self, tokenizer: Tokenizer) -> LookedLine:
        """Begin the line with the code of its languages, if the model has codes.

        Raises:
            InputError: the model does not have them, or cannot do without.
        """
        (text,) = with_codes(tokenizer, self.language, [self.text])
        return replace(self, text=text)

    def as_read(self, tokenizer: Tokenizer) -> LookedLine:
        """Write the line as a model reads it, maybe with symbols for placeholders."""
        text, target = tokenizer.masked_pair(self.text, self.target or "")
        prefix = tokenizer.masked_pair(self.text, self.prefix or "")[1]
        return replace(
            self, text=text, target=self.target and target, prefix=self.prefix and prefix
        )


def remarks_on(translator: Translator, text: str) -> Iterator[tuple[Callable[[str], None], str]]:
    """Yield what a reader should know about a line before a model's answer, and how to say it."""
    codes = CodeFaults()
    codes.add(0, find_fault(translator.tokenizer, text))
    if sentence := codes.sentence(translator.tokenizer):
        yield warn, sentence
    if translator.tokenizer.has_masks:
        text, copies = mask(text, wanted=translator.tokenizer.maskable)
        if shown := ", ".join(f"{symbol} for {copy}" for symbol, copy in copies.items()):
            yield note, f"The model reads symbols in the place of placeholders: {shown}."
    if words := unknown_words(translator.tokenizer, text):
        said = say_unknown_words(words, translator.tokenizer)
        yield warn, f"The model does not know these words and reads them as <unk>: {said}."
    if was_in_training(translator.bundle, text):
        yield note, "This sentence is in the text that the model learned from."
    # Only such a model forgets the beginning of a long line.
    has_vector = not translator.model.config.has_attention
    if has_vector and examine(translator, text, clean=False, split="none").exceeds_vector:
        yield warn, f"This line has {EXCEEDS_VECTOR}"


def replay_line(
    translator: Translator, line: LookedLine, how: Replaying, options: Mapping[str, Any]
) -> list[Trace]:
    """Decode a line, unless its target is given, and replay each hypothesis."""
    line = line.as_read(translator.tokenizer)
    if line.target is not None:
        trace = look_at_given(translator.bundle, line.text, line.target, how)
        if unknown := trace.decoding.get("unknown"):
            warn(
                f"The model's vocabulary cannot write {', '.join(unknown)}, which the target has. "
                "It is looked at as <unk>."
            )
        return [trace]
    if options.get("changed"):
        ids = translator.tokenizer.encode_source(line.text)
        changes = parse_changes(options["changed"], translator.tokenizer, line.text, ids)
        # In this one sentence, whose words they may name.
        translator = translator.changed(changes)
    given = given_decoding(options)
    decoding = translator.options(**given)
    for sentence in useless_options(given, decoding, is_score_shown=True):
        warn(sentence)
    constraints = Constraints(prefix=line.prefix) if line.prefix else Constraints()
    (traces,) = translator.look_at_each([line.text], how, constraints=constraints, **given)
    if translator.changes is not None:
        return traces
    if decoding.precision != translator.own_precision:
        texts = [str(trace.decoding["text"]) for trace in traces]
        _compare_precisions(translator, line.text, constraints, given, decoding.precision, texts)
    _warn_of_words_left_out(translator, line.text, traces[0])
    return traces


def _compare_precisions(
    translator: Translator,
    text: str,
    constraints: Constraints,
    given: Mapping[str, Any],
    computed: str,
    texts: Sequence[str],
) -> None:
    """Say what the model writes in its own precision, where another one was asked for."""
    own = translator.own_precision
    said = f"Computed in {computed}. In {own}, the model's own precision, it writes"
    how = {**given, "precision": own}
    if translator.options(**how).precision != own:
        note(f"Computed in {computed}: {own}, the model's own precision, needs the engine in C.")
        return
    (found,) = translator.translate(
        [text], constraints=constraints, clean=False, split="none", **how
    )
    others = [one.text for one in found.hypotheses]
    differing = [two for one, two in zip(texts, others, strict=False) if one != two]
    note(f"{said} {'; '.join(differing)}" if differing else f"{said} the same words.")


def _warn_of_words_left_out(translator: Translator, text: str, trace: Trace) -> None:
    """Name the words of a line that no word of its translation is linked to, or that it denies."""
    bundle = translator.bundle
    languages = bundle.config.languages
    denied = lost_negations(
        text,
        str(trace.decoding["text"]),
        source_language=languages.source,
        target_language=languages.target,
    )
    words = dict.fromkeys(denied)
    head = bundle.guided_head
    if head is not None:
        logs = trace.log_probabilities
        pair = GivenPair(text, trace.source_ids, trace.predicted_ids, logs)
        reader = translator.attention_reader()
        (unlinked,) = unlinked_words(reader, head, bundle.guided_convention, [pair])
        words |= dict.fromkeys(unlinked)
    if words:
        named = ", ".join(f'"{word}"' for word in words)
        warn(f"The translation may leave words out: nothing in it is linked to {named}.")


def report_problems(traces: Sequence[Trace]) -> int:
    """Write the checks that failed to standard error, and return the exit code."""
    problems = [problem for trace in traces for problem in trace.problems]
    for problem in problems:
        say_error(problem)
    return CHECK_FAILED if problems else 0


def was_in_training(bundle: Bundle, sentence: str) -> bool:
    """Tell whether a sentence was in a model's training text, as far as is known.

    It is known of the packaged model ``demo``.
    """
    seen = shipped_seen_sentences()
    return seen.model_hash == bundle.model_hash and sentence in seen
