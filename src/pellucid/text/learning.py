"""Learning a SentencePiece model, in a process that can be ended at any time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pellucid.config import TokenizerRecipe
from pellucid.errors import ConfigurationError, DataError, PellucidError
from pellucid.text.tokenizer import SPACE_SIGN, SPECIAL_TOKENS, Lines, prepare_lines

__all__ = ["STAND_INS", "train_model"]

# SentencePiece writes a space as U+2581 and cannot tell it from a real U+2581. A real one
# therefore passes through as a noncharacter that the text does not use, and then gets the byte
# tokens of U+2581 itself.
STAND_INS = "".join(map(chr, range(0xFDD0, 0xFDF0)))

# A trained model's bytes depend on the number of threads (unigram sums in their order, and the
# file records it), so it is fixed rather than taken from the machine.
_NUM_THREADS = 4

# Longer lines are cut for training. The trainer silently drops lines over 4192 bytes unless told
# otherwise, and its unigram model needs seconds for one unbroken word of 100,000 letters.
_MAX_LINE_CHARACTERS = 2000

# What never reaches the trainer: it skips whole lines with NUL or U+2585.
_NOT_LEARNED = re.compile(f"[\0\u2585{SPACE_SIGN}{STAND_INS}]")

_REFUSED = 3
"""The exit code of a training that SentencePiece refused; it wrote why."""

_PROGRAM = f"""
import json, sys
told = json.loads(sys.argv[1])
sys.path[:] = told["path"]
from sentencepiece import SentencePieceTrainer
lines = (line[:-1].decode() for line in sys.stdin.buffer)
try:
    SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=sys.stdout.buffer, **told["options"]
    )
except RuntimeError as error:
    sys.stdout.write(str(error))
    sys.exit({_REFUSED})
"""


def train_model(recipe: TokenizerRecipe, *sides: Lines) -> bytes:
    """Train one SentencePiece model.

    The same text and recipe give the same bytes, on any number of cores. The trainer keeps its
    text in memory: at most ``recipe.max_training_lines`` lines, evenly spaced over all where
    there are more.

    Args:
        recipe: the recipe's tokenizer section.
        sides: what gives the lines to learn from.

    Returns:
        The serialized model.

    Raises:
        ConfigurationError: the vocabulary size is impossible for this text.
        DataError: there is no text.
        PellucidError: the process that learns it was ended, as happens when memory runs out.
    """
    feed = _Feed(_sample(recipe, sides))
    answer, code = _trained(_options(recipe), feed)
    if code == 0:
        return answer
    if code == _REFUSED:
        raise _training_error(recipe, feed, answer.decode())
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    raise PellucidError(
        f"Learning a vocabulary must go on to its end, but its process {how}, as happens when "
        "memory runs out. Lower tokenizer.max_training_lines, which is "
        f"{recipe.max_training_lines}."
    )


def _trained(options: Mapping[str, Any], lines: Iterable[str]) -> tuple[bytes, int]:
    """Let SentencePiece train in a process of its own; what that wrote, and its exit code.

    SentencePiece does not return before it is done, so that a signal would wait for minutes; a
    process can be ended at once.
    """
    told = json.dumps({"path": [str(place) for place in sys.path], "options": options})
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Ctrl-C at a terminal is for the parent alone, which then ends it.
            process_group=0,
        )
    except OSError as error:
        raise PellucidError(
            "A process that learns the vocabulary must be able to start, but the system refused: "
            f"{error.strerror or error}. Free some memory."
        ) from error
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        # A broken pipe means that it ended early: its exit code says how.
        with suppress(BrokenPipeError), process.stdin as pipe:
            for line in lines:
                pipe.write(line.replace("\n", " ").encode() + b"\n")
        answer = process.stdout.read()
        return answer, process.wait()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _options(recipe: TokenizerRecipe) -> dict[str, Any]:
    return {
        "model_type": recipe.model_type,
        "vocab_size": recipe.vocabulary_size,
        "character_coverage": recipe.character_coverage,
        "byte_fallback": recipe.byte_fallback,
        "split_by_unicode_script": recipe.split_by_script,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": True,
        "pad_id": 0,
        "unk_id": 1,
        "bos_id": 2,
        "eos_id": 3,
        "pad_piece": SPECIAL_TOKENS[0],
        "unk_piece": SPECIAL_TOKENS[1],
        "bos_piece": SPECIAL_TOKENS[2],
        "eos_piece": SPECIAL_TOKENS[3],
        "unk_surface": SPECIAL_TOKENS[1],
        "max_sentence_length": _MAX_LINE_CHARACTERS * 4,
        "input_sentence_size": 0,  # all it is given; its own sample differs at each start
        "num_threads": _NUM_THREADS,
        "minloglevel": 2,
    }


def _sample(recipe: TokenizerRecipe, sides: Sequence[Lines]) -> Iterator[str]:
    """All prepared lines, or as many as the recipe allows, evenly spaced."""
    limit = recipe.max_training_lines
    count = sum(1 for side in sides for _ in side())
    for place, line in enumerate(prepare_lines(recipe, *sides)):
        if count <= limit or (place + 1) * limit // count > place * limit // count:
            yield line


class _Feed:
    """Lines for the trainer, cut so that it drops none of them, and counted."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.count = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            for part in _NOT_LEARNED.split(line):
                for start in range(0, len(part), _MAX_LINE_CHARACTERS):
                    self.count += 1
                    yield part[start : start + _MAX_LINE_CHARACTERS]


def _training_error(recipe: TokenizerRecipe, feed: _Feed, message: str) -> Exception:
    """Word what the trainer said."""
    size = recipe.vocabulary_size
    if feed.count == 0:
        return DataError(
            "The training text must hold text to learn a vocabulary from, but every line is "
            "empty. Check the files in the recipe's data section."
        )
    if most := re.search(r"too high .*<= (\d+)", message):
        return ConfigurationError(
            f"tokenizer.vocabulary_size must be at most {most[1]} for so little text, but is "
            f"{size}. Lower it, or give more text."
        )
    if least := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return ConfigurationError(
            f"tokenizer.vocabulary_size must be at least {least[1]} for the characters of this "
            f"text, but is {size}. Raise it, or lower tokenizer.character_coverage."
        )
    return ConfigurationError(
        f"The tokenizer section must suit the training text, but SentencePiece says: {message}. "
        "Change tokenizer.vocabulary_size or tokenizer.model_type."
    )
