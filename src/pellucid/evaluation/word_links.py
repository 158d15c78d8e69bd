"""Word links: reading and writing them, joining two directions, and the alignment error rate.

A link joins a source word and a target word, both counted from 0. In the Pharaoh format ``i-j``
is a sure link, and ``ipj`` a possible one, of which the annotators were not sure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pellucid.errors import DataError, InputError, suggestion
from pellucid.evaluation.resampling import check_resampling, draw_resamples
from pellucid.terminal.text import count_of
from pellucid.text.link_choices import SYMMETRIZATIONS, Symmetrization

Link = tuple[int, int]
Links = frozenset[Link]

# 18 digits at most: NumPy holds them, and Python refuses to read thousands.
_LINK = re.compile(r"([0-9]{1,18})([-p])([0-9]{1,18})")
# In the order of Koehn's own script: straight neighbors before diagonal ones.
_NEIGHBORS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


@dataclass(frozen=True)
class GoldLinks:
    """The gold links of one pair.

    Attributes:
        sure: links that must be found.
        possible: links that may be found, the sure ones included.
    """

    sure: Links
    possible: Links


@dataclass(frozen=True)
class LinkScore:
    """The quality of links, as shares from 0 to 1.

    Attributes:
        precision: the share of the links found that is possible.
        recall: the share of the sure links that was found.
        error: the alignment error rate.
        low: lower end of the error's 95 % bootstrap interval over sentences.
        high: upper end of it.
        num_sentences: the number of sentences.
    """

    precision: float
    recall: float
    error: float
    low: float
    high: float
    num_sentences: int


def parse_links(line: str, place: str, sizes: tuple[int, int] | None = None) -> GoldLinks:
    """Read one line of the Pharaoh format: ``0-0 1-2 3p2``.

    Args:
        line: links separated by white space, in any order; an empty line has none.
        place: the file and the line, for the message.
        sizes: the number of words of the source and the target; None does not check.

    Raises:
        DataError: something is not a link, or names a word that does not exist.
    """
    sure = set()
    possible = set()
    for word in line.split():
        match = _LINK.fullmatch(word)
        if match is None:
            raise DataError(
                f"A link must be written i-j (sure) or ipj (possible) with numbers from 0, but is "
                f"{word!r} ({place}). Separate links by spaces."
            )
        link = (int(match[1]), int(match[3]))
        if sizes is not None:
            _check_words(link, sizes, place)
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldLinks(frozenset(sure), frozenset(possible))


def _check_words(link: Link, sizes: tuple[int, int], place: str) -> None:
    for side, index, size in zip(("source", "target"), link, sizes, strict=True):
        if index >= size:
            raise DataError(
                f"A link must join existing words, but {link[0]}-{link[1]} names word {index} of a "
                f"{side} that has {size} ({place}). Count the pieces between spaces, from 0."
            )


def parse_gold(
    lines: Sequence[str], lengths: Sequence[tuple[int, int]], path: str
) -> list[GoldLinks]:
    """Read gold links, and check that the words that they join exist.

    Args:
        lines: one for each pair.
        lengths: the number of words of the source and the target of each pair.
        path: the file of the lines, for messages.

    Raises:
        DataError: there are not as many lines as pairs, a line has something other than links, or
            a link names a word that does not exist.
    """
    if len(lines) != len(lengths):
        raise DataError(
            f"There must be one line of gold links for each of {count_of(len(lengths), 'pair')}, "
            f"but {path} has {len(lines)}. Check which lines are missing."
        )
    return [
        parse_links(line, f"{path}:{number}", sizes)
        for number, (line, sizes) in enumerate(zip(lines, lengths, strict=True), start=1)
    ]


def write_links(links: Collection[Link], possible: Collection[Link] = ()) -> str:
    """Write links as one line of the Pharaoh format, sorted.

    Args:
        links: sure links, written ``i-j``.
        possible: further links, written ``ipj``.
    """
    sure = set(links)
    return " ".join(
        f"{i}{'-' if (i, j) in sure else 'p'}{j}" for i, j in sorted(sure | set(possible))
    )


def count_links(links: Collection[Link], gold: GoldLinks) -> tuple[int, int, int, int]:
    """Count the links of one pair, for `score_counts`.

    Returns:
        The number of links found, of sure links, of sure links found, of possible links found.
    """
    found = frozenset(links)
    return len(found), len(gold.sure), len(found & gold.sure), len(found & gold.possible)


def score_links(
    hypotheses: Sequence[Collection[Link]],
    golds: Sequence[GoldLinks],
    *,
    num_resamples: int = 1000,
    seed: int = 12345,
) -> LinkScore:
    """Score the links of a text; see `score_counts`.

    Args:
        hypotheses: the links found in each pair.
        golds: the gold links of each pair.
        num_resamples: as in `score_counts`.
        seed: as in `score_counts`.

    Raises:
        DataError: ``hypotheses`` is empty, or not as long as ``golds``.
    """
    if len(hypotheses) != len(golds):
        raise DataError(
            f"Every pair must have gold links, but there are {len(golds)} for {len(hypotheses)} "
            "pairs."
        )
    counts = np.array(
        [[count_links(*pair)] for pair in zip(hypotheses, golds, strict=True)]
    ).reshape(len(golds), 1, 4)
    return score_counts(counts, num_resamples=num_resamples, seed=seed)[0]


def score_counts(
    counts: np.ndarray, *, num_resamples: int = 1000, seed: int = 12345
) -> list[LinkScore]:
    r"""Score several ways of linking one text, from counts of each sentence.

    $$\text{precision} = \frac{|A \cap P|}{|A|} \quad \text{recall} = \frac{|A \cap S|}{|S|}
    \quad \text{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}$$

    with the links found $A$, the sure links $S$ and the possible links $P \supseteq S$, added up
    over the sentences. If the denominator is 0, nothing is wrong, and the share is 1.

    Args:
        counts: (sentences, ways, 4), the last axis as `count_links` returns it.
        num_resamples: the number of samples: texts of the same size, drawn with replacement.
        seed: of the draws, which are the same for all ways.

    Returns:
        One score for each way.

    Raises:
        DataError: ``counts`` is empty.
        ConfigurationError: too few resamples or a negative seed.

    Source:
        Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models",
        section 5; Koehn 2004 for the interval.
    """
    check_resampling(num_resamples, seed)
    num_sentences = len(counts)
    if not num_sentences:
        raise DataError("Scoring links needs at least one pair, but no pair was given.")
    errors = np.empty((num_resamples, counts.shape[1]))
    # One draw serves all ways of linking, so that their errors can be compared.
    for index, times in enumerate(draw_resamples(num_sentences, num_resamples, seed)):
        # Weighted sum over the sentences: (ways, 4).
        errors[index] = _shares(np.tensordot(times, counts, axes=1))[2]
    # Each way by itself: the interval is that of one error.
    errors.sort(axis=0)
    cut = num_resamples // 40  # 2.5 % of the samples at either end
    rows = np.stack([*_shares(counts.sum(axis=0)), errors[cut], errors[-1 - cut]], axis=1)
    return [
        LinkScore(precision, recall, error, low, high, num_sentences)
        for precision, recall, error, low, high in rows.tolist()
    ]


def _shares(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute precision, recall and error from summed counts (ways, 4)."""
    found, sure, found_sure, found_possible = sums.astype(np.float64).T
    return _share(found_possible, found), _share(found_sure, sure), error_of_counts(sums)


def error_of_counts(counts: ArrayLike) -> np.ndarray:
    """Compute the alignment error from the last axis, as `count_links` gives it."""
    found, sure, found_sure, found_possible = np.moveaxis(np.asarray(counts, float), -1, 0)
    return 1 - _share(found_sure + found_possible, found + sure)


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    shares = np.ones_like(part)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares


def symmetrize(
    forward: Collection[Link], backward: Collection[Link], method: Symmetrization
) -> Links:
    """Join the links of two directions.

    ``intersection`` and ``union`` do as they say. ``grow-diag`` starts from the intersection and
    repeatedly adds links of the union that are next to a joined link, also diagonally, and reach a
    word without a link. ``grow-diag-final`` then adds the links of either direction that reach
    such a word, ``grow-diag-final-and`` those that join two such words.

    Args:
        forward: links as (source, target) of a model that translates source to target.
        backward: links of a model that translates back, also as (source, target).
        method: the way to join them.

    Raises:
        InputError: the method is unknown.

    Source:
        Koehn, Axelrod, Birch Mayne, Callison-Burch, Osborne and Talbot 2005, "Edinburgh System
        Description for the 2005 IWSLT Speech Translation Evaluation", section 2; Och and Ney
        2003, section 4.
    """
    one = frozenset(forward)
    other = frozenset(backward)
    if method == "intersection":
        return one & other
    if method == "union":
        return one | other
    if method not in SYMMETRIZATIONS:
        raise InputError(
            f"The method of joining links must be known, but is {method!r}. "
            + suggestion(method, SYMMETRIZATIONS)
        )
    joined = set(one & other)
    _grow(joined, one | other)
    if method != "grow-diag":
        # The order matters: a word that the forward links reach is not free for the backward ones.
        for links in (one, other):
            _finish(joined, links, needs_both=method == "grow-diag-final-and")
    return frozenset(joined)


def _grow(joined: set[Link], union: Links) -> None:
    """Add links of the union next to joined ones, until no more can be added."""
    sources = {i for i, _ in joined}
    targets = {j for _, j in joined}
    is_growing = True
    while is_growing:
        is_growing = False
        # Sorted, because the order decides which links are taken, and sets have none.
        for link in sorted(joined):
            for down, right in _NEIGHBORS:
                # The neighbor above, below, to a side, or diagonal.
                i = link[0] + down
                j = link[1] + right
                # At least one of its words must still be without a link.
                if (i, j) in union - joined and (i not in sources or j not in targets):
                    joined.add((i, j))
                    sources.add(i)
                    targets.add(j)
                    is_growing = True


def _finish(joined: set[Link], links: Links, *, needs_both: bool) -> None:
    """Add links that reach a word without a link, or (``needs_both``) two such words."""
    sources = {i for i, _ in joined}
    targets = {j for _, j in joined}
    # Each link that is added takes its words from those that follow, so the order counts.
    for i, j in sorted(links - joined):
        is_free = (i not in sources, j not in targets)
        if all(is_free) if needs_both else any(is_free):
            joined.add((i, j))
            sources.add(i)
            targets.add(j)
