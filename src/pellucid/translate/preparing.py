"""Lines made ready for a search: characters that the model knows, parts of its usual length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import final

from pellucid.text.cleaning import Cleaned, Cleaner
from pellucid.text.close import unknown_words
from pellucid.text.learned import LearnedText, byte_or_unknown_ids
from pellucid.text.sentences import may_be_several, split_sentences
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.translate.results import NO_NOTES, Notes

_MANY_RARE = 0.25
"""The share of rare tokens from which a line counts as unlike the training text."""

_FAR_LONGER = 1.5
"""The factor from which a part without sentence ends counts as longer than the training lines."""

_WORD_LETTER = re.compile(r"\w")


@final
class Preparer:
    """Compares lines with the text that a model has learned from.

    Args:
        tokenizer: the model's.
        learned: the text; None if nothing is known about it, so that lines stay as they are.
        has_vector: True if the model puts a source into one vector of fixed length.
    """

    def __init__(
        self, tokenizer: Tokenizer, learned: LearnedText | None, *, has_vector: bool = False
    ) -> None:
        self._tokenizer = tokenizer
        self._has_vector = has_vector
        self.learned = learned
        self._cleaner = None if learned is None else Cleaner(learned.characters, tokenizer)
        self._outside = byte_or_unknown_ids(tokenizer)

    def clean(self, text: str) -> Cleaned:
        """Replace the characters of a line that the model does not know, see `Cleaner`."""
        if self._cleaner is None:
            return Cleaned(text)
        code, body = self._split_code(text)
        cleaned = self._cleaner.clean(body)
        if not code or cleaned.text == body:
            return cleaned if not code else Cleaned(text, unknown=cleaned.unknown)
        return Cleaned(
            code + cleaned.text,
            cleaned.replaced,
            cleaned.dropped,
            cleaned.unknown,
            cleaned.before,
            cleaned.after,
        )

    def split(self, text: str, *, is_too_long: bool) -> list[str]:
        """Split a line at sentence ends if it has more sentences than the model's training lines.

        Args:
            text: the line, cleaned.
            is_too_long: True to split in any case, because the model cannot read it as a whole.

        Returns:
            The parts, each with the line's language code; only the line itself if it is like the
            training lines, or has one sentence.
        """
        learned = self.learned
        if learned is None and not is_too_long:
            return [text]
        if not may_be_several(text):  # nearly always, so this is quick
            return [text]
        code, body = self._split_code(text)
        sentences = _with_words(split_sentences(body))
        most, longest, usual = 1, 0, 1
        if learned is not None:
            most, usual = learned.most_sentences, learned.usual_sentences
            longest = learned.most_characters
        is_like_training = len(sentences) <= most and not 0 < longest < len(text.strip())
        if len(sentences) <= 1 or (is_like_training and not is_too_long):
            return [text]
        return [_with_code(code, part) for part in _pack(sentences, usual, longest)]

    def sentences(self, text: str) -> list[str]:
        """Split a line into its single sentences, each with the line's language code."""
        code, body = self._split_code(text)
        return [_with_code(code, part) for part in _with_words(split_sentences(body))]

    def note(
        self,
        cleaned: Cleaned,
        parts: Sequence[str],
        ids: Sequence[Sequence[int]],
        *,
        num_lines: int = 1,
        is_whole: bool,
    ) -> Notes:
        """Gather what is unusual about a line, or about a text of several lines.

        Args:
            cleaned: the line.
            parts: the parts that are translated.
            ids: their tokens.
            num_lines: the number of lines that the parts belong to.
            is_whole: True if the line was kept whole though it has too many sentences.
        """
        tokens = [id_ for part in ids for id_ in part[:-1]]
        outside = 0.0
        if not self._outside.isdisjoint(tokens):
            outside = sum(map(self._outside.__contains__, tokens)) / len(tokens)
        rare, is_long = 0.0, False
        if self.learned is not None:
            rare_tokens, longest = self.learned.rare_tokens, self.learned.most_characters
            rare = sum(map(rare_tokens.__contains__, tokens)) / len(tokens) if tokens else 0.0
            is_long = 0 < longest * _FAR_LONGER < max(len(part.strip()) for part in parts)
        is_strange = bool(cleaned.unknown) or rare >= _MANY_RARE
        exceeds_vector = self._exceeds_vector(ids)
        is_known = not (cleaned.replaced or cleaned.dropped or outside or is_strange)
        num_parts = len(parts) - num_lines + 1
        if is_known and num_parts == 1 and not (is_long or is_whole or exceeds_vector):
            return NO_NOTES
        share = 0.0
        if is_strange and self._cleaner is not None:
            share = self._cleaner.rare_share(cleaned.text)
        return Notes(
            cleaned.replaced,
            cleaned.dropped,
            cleaned.unknown,
            rare_characters=share,
            rare_tokens=rare if is_strange else 0.0,
            unknown_tokens=outside,
            unknown_words=unknown_words(self._tokenizer, cleaned.text) if outside else (),
            parts=num_parts,
            is_long=is_long,
            is_whole=is_whole,
            exceeds_vector=exceeds_vector,
        )

    def _exceeds_vector(self, ids: Sequence[Sequence[int]]) -> bool:
        """Tell whether a part has more tokens than any source that the vector learned to hold."""
        if not self._has_vector or self.learned is None or not self.learned.longest_targets:
            return False
        return max(map(len, ids)) > max(self.learned.longest_targets)

    def _split_code(self, text: str) -> tuple[str, str]:
        """Split off the code of the target language that a multilingual model's line has."""
        code = self._tokenizer.language_code(text)
        return code, text.removeprefix(code)


def _with_code(code: str, part: str) -> str:
    return f"{code} {part}".lstrip()


def _with_words(sentences: Sequence[str]) -> list[str]:
    """Join what has no letter or digit, such as an emoji, to the sentence before it."""
    found: list[str] = []
    for sentence in sentences:
        if found and _WORD_LETTER.search(sentence) is None:
            found[-1] += f" {sentence}"
        else:
            found.append(sentence)
    return found


def _pack(sentences: Sequence[str], usual: int, longest: int) -> list[str]:
    """Group sentences into parts of the usual number, no longer than lines of the training text.

    Args:
        sentences: the sentences of one line.
        usual: sentences of a usual training line.
        longest: the most characters of a part; 0 for any number.
    """
    parts: list[list[str]] = []
    for sentence in sentences:
        length = sum(len(one) + 1 for one in (*parts[-1], sentence)) if parts else 0
        if parts and len(parts[-1]) < usual and not 0 < longest < length:
            parts[-1].append(sentence)
        else:
            parts.append([sentence])
    return [" ".join(part) for part in parts]
