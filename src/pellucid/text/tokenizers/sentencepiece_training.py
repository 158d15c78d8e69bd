"""Training of a SentencePiece model, in a process that can be ended at any time."""

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
from pellucid.text.tokenizers.tokenizer import (
    SPACE_SIGN,
    SPECIAL_TOKENS,
    Lines,
    prepare_symbols,
    prepare_training_lines,
)

# SentencePiece writes a space as U+2581 and cannot tell it from a real U+2581. Encoding therefore
# replaces a real one by one of these noncharacters, whose byte tokens are then replaced by those
# of U+2581.
STAND_INS = "".join(map(chr, range(0xFDD0, 0xFDF0)))

# A trained model's bytes depend on the number of threads (a unigram model adds up in their order,
# and the file records the number), so it is fixed and not taken from the machine.
_NUM_THREADS = 4

# Longer lines are cut for training. By default the trainer silently drops lines over 4192 bytes,
# and its unigram model needs seconds for one unbroken word of 100,000 letters.
_MAX_LINE_CHARACTERS = 2000

# Characters that are kept from the trainer, which skips whole lines with NUL or U+2585.
NOT_LEARNED = re.compile(f"[\0\u2585{SPACE_SIGN}{STAND_INS}]")

NUM_BYTES = 256
"""Tokens of byte fallback."""

_REFUSED = 3
"""The exit code if SentencePiece refused to train; its output then says why."""

_PROGRAM = f"""
import json, sys
given = json.loads(sys.argv[1])
sys.path[:] = given["path"]
from sentencepiece import SentencePieceTrainer
lines = (line[:-1].decode() for line in sys.stdin.buffer)
try:
    SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=sys.stdout.buffer, **given["options"]
    )
except RuntimeError as error:
    sys.stdout.write(str(error))
    sys.exit({_REFUSED})
"""


def train_model(recipe: TokenizerRecipe, *sides: Lines) -> bytes:
    """Train one SentencePiece model.

    The same text and recipe give the same bytes, on any number of cores. The trainer keeps its
    text in memory, so it gets at most ``recipe.max_training_lines`` lines: evenly spaced ones if
    there are more.

    Args:
        recipe: the recipe's tokenizer section.
        sides: functions that yield the lines to learn from.

    Returns:
        The serialized model.

    Raises:
        ConfigurationError: the vocabulary size is impossible for this text.
        DataError: the text is empty.
        PellucidError: the training process could not start or was ended from outside, as happens
            when memory runs out.
    """
    feed = _Feed(_sample(recipe, sides))
    output, code = _run_trainer(_options(recipe), feed)
    if code == 0:
        return output
    if code == _REFUSED:
        raise _training_error(recipe, feed, output.decode())
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    raise PellucidError(
        f"The process that learns the vocabulary {how} before it was done, as happens when memory "
        "runs out. Lower tokenizer.max_training_lines, which is "
        f"{recipe.max_training_lines}."
    )


def _run_trainer(options: Mapping[str, Any], lines: Iterable[str]) -> tuple[bytes, int]:
    """Let SentencePiece train in another process; return its output and its exit code.

    SentencePiece does not return before it is done, so that a signal would wait for minutes. A
    process can be ended at once.
    """
    given = json.dumps({"path": [str(place) for place in sys.path], "options": options})
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # In its own group, so that Ctrl-C at a terminal reaches only the parent, which ends it.
            process_group=0,
        )
    except OSError as error:
        raise PellucidError(
            "The process that learns the vocabulary must be able to start, but the system refused: "
            f"{error.strerror or error}. Free some memory."
        ) from error
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        # A broken pipe means that the process ended early: its exit code says how.
        with suppress(BrokenPipeError), process.stdin as pipe:
            for line in lines:
                pipe.write(line.replace("\n", " ").encode() + b"\n")
        output = process.stdout.read()
        return output, process.wait()
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
        "user_defined_symbols": list(prepare_symbols(recipe)),
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
        "input_sentence_size": 0,  # every line: SentencePiece's own sample differs at each start
        "num_threads": _NUM_THREADS,
        "minloglevel": 2,
    }


def _sample(recipe: TokenizerRecipe, sides: Sequence[Lines]) -> Iterator[str]:
    """Yield all prepared lines, or as many as the recipe allows, evenly spaced."""
    limit = recipe.max_training_lines
    count = sum(1 for side in sides for _ in side())
    for place, line in enumerate(prepare_training_lines(recipe, *sides)):
        if count <= limit or (place + 1) * limit // count > place * limit // count:
            yield line


class _Feed:
    """Lines for the trainer, counted, and cut so that it drops none of them."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.count = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            for part in NOT_LEARNED.split(line):
                for start in range(0, len(part), _MAX_LINE_CHARACTERS):
                    self.count += 1
                    yield part[start : start + _MAX_LINE_CHARACTERS]


def _training_error(recipe: TokenizerRecipe, feed: _Feed, message: str) -> Exception:
    """Translate the trainer's message into an error of this package."""
    size = recipe.vocabulary_size
    if feed.count == 0:
        return DataError(
            "The training text must not be empty to learn a vocabulary from it, but every line is "
            "empty. Check the files in the recipe's data section."
        )
    if most := re.search(r"too high .*<= (\d+)", message):
        return ConfigurationError(
            f"tokenizer.vocabulary_size must be at most {most[1]} for so little text, but is "
            f"{size}. Lower it, or give more text."
        )
    if found := re.search(r"required_chars\. \d+ vs (\d+)", message):
        least = int(found[1])
        advice = "Raise it, or lower tokenizer.character_coverage."
        if recipe.byte_fallback:
            advice = (
                f"{NUM_BYTES} of these are bytes: raise it, or set tokenizer.byte_fallback=false, "
                f"which needs {least - NUM_BYTES} (characters that no line has are then unknown)."
            )
        return ConfigurationError(
            f"tokenizer.vocabulary_size must be at least {least} for the characters of this "
            f"text, but is {size}. {advice}"
        )
    return ConfigurationError(
        f"The tokenizer section must fit the training text, but SentencePiece reports: {message}. "
        "Change tokenizer.vocabulary_size or tokenizer.model_type."
    )
