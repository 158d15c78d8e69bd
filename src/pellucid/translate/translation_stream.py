"""A translation that is written while it is searched for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.request import Request
from pellucid.decode.decoder import Decoder
from pellucid.decode.hypothesis import Hypothesis
from pellucid.errors import InputError
from pellucid.text.sentences import gap_between
from pellucid.translate.preparing import Ready
from pellucid.translate.results import Translation
from pellucid.translate.written_lines import TranslationWriter, unmet


class TranslationStream(Iterator[str]):
    """The pieces of a translation, each as soon as it is decided.

    Args:
        pieces: yields them.
        finish: makes the whole translation, once all pieces are out.
    """

    translation: Translation | None = None
    """The whole, with its scores and notes; None until the last piece is out."""

    def __init__(self, pieces: Iterator[str], finish: Callable[[], Translation]) -> None:
        self._pieces = pieces
        self._finish = finish

    def __next__(self) -> str:
        piece = next(self._pieces, None)
        if piece is not None:
            return piece
        if self.translation is None:
            self.translation = self._finish()
        raise StopIteration

    def __repr__(self) -> str:
        return "<TranslationStream: iterate over it for the pieces>"


def stream_line(
    decoder: Decoder,
    line: Ready,
    config: DecodingConfig,
    writer: TranslationWriter,
    found: list[tuple[Hypothesis, ...]],
) -> Iterator[str]:
    """Yield the translation of a text piece by piece, as soon as it is decided.

    Args:
        decoder: searches.
        line: the text.
        config: the options of the search.
        writer: writes ids as text.
        found: takes the hypotheses of each part, in order.

    Raises:
        InputError: the text cannot be translated, or nothing obeys the constraints.
    """
    if line.error is not None:
        raise InputError(line.error)
    yield from filter(None, line.gaps[:1])
    said = ""
    for request, gap in zip(line.requests, line.gaps[1:], strict=True):
        begun = ""
        for piece in _stream_text(decoder, request, config, writer, found):
            # The space before a sentence depends on its first letter, hence its first piece.
            joint = "" if begun else gap_between(said, piece)
            yield joint + piece
            begun += joint + piece
        said += begun
        if gap is not None:
            # Here a line ends: the gap holds its break, and the next line begins without a space.
            yield from filter(None, [gap])
            said = ""


def _stream_text(
    decoder: Decoder,
    request: Request,
    config: DecodingConfig,
    writer: TranslationWriter,
    found: list[tuple[Hypothesis, ...]],
) -> Iterator[str]:
    """Yield the text of one request piece by piece, as soon as it is decided.

    Raises:
        InputError: nothing obeys the constraints, or the model's logits are not finite.
    """
    ids: tuple[int, ...] = ()
    said = whole = ""
    for ids, hypotheses in decoder.stream(request, config):
        if hypotheses is not None:
            found.append(hypotheses)
        whole = writer.text(ids)
        # The end may still change: a space, or half of a character's bytes (U+FFFD so far).
        sure = whole.rstrip(" \ufffd")
        # Text that is out cannot be taken back: wait until the tokens agree with it again.
        if sure.startswith(said) and len(sure) > len(said):
            yield sure[len(said) :]
            said = sure
    if not ids:
        raise InputError(unmet(request))
    yield whole[len(said) :]
