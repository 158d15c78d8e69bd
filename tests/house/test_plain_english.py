"""Prose is plain: few turns of phrase that readers stumble over, and docstrings that open well."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

WHERE = "it|there|they|an?|one|nothing|no|that|its|this|all|some|given|asked"

PHRASES = {
    "where for if": (rf"\bwhere (?:{WHERE})\b", 6.0, "if, when, unless"),
    "alone for only": (r"\balone\b", 1.2, "only"),
    "is no X": (r"\b(?:is|are|was|were|be) no [a-z]+\b", 4.0, "is not a"),
    "is none": (r"\b(?:is|are|was|were|but|be) none\b", 0.2, "missing, not finite, does not exist"),
    # The option --beside is a name, not prose.
    "beside": (r"(?<!--)\bbeside\b", 0.2, "next to, with, compared with"),
    "go on for continue": (r"\b(?:goes|go|going|went|gone) on\b", 0.2, "continue"),
    "nobody": (r"\b(?:[Nn]o|[Ss]ome|[Aa]ny)body\b", 0.2, "no one, an empty slot, a user"),
    "anew": (r"\b(?:anew|once more)\b", 0.4, "again"),
    "is told": (r"\b(?:is|are|was|be|been) (?:told|said)\b", 0.6, "is reported, is logged"),
    "likewise": (r"\b[Ll]ikewise\b", 0.6, "say it again, or leave it out"),
    "but for": (r"\bbut for\b", 0.4, "except"),
    "of its own": (r"\bof (?:its|their|our|the package's) own\b", 1.0, "its own X"),
}
"""Name: a pattern, how often it may occur in 10,000 words, and what to write instead."""

COMMENT = re.compile(r"(?:^ *|  )#.*")
"""The formatter leaves two spaces before a comment behind code."""

QUESTION = re.compile(r"(?:What|How|Which|Where|Who|Whether)\b")
MOST_QUESTIONS = 0.01
"""Share of docstrings that may open with a question word."""


def find_prose(path: Path) -> Iterator[str]:
    """Yield the lines of a page, or of a module's comments and strings of several words."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from text.splitlines()
        return
    in_strings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from node.value.splitlines()
            in_strings.update(range(node.lineno, node.end_lineno or 0))
    # The tokenizer of Python would take longer than all other tests of this folder.
    for number, line in enumerate(text.splitlines(), start=1):
        found = COMMENT.search(line)
        if found and number not in in_strings:
            yield found[0]


def find_phrases(lines: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Find each phrase that occurs more often than it may.

    Args:
        lines: a place and the prose there.

    Returns:
        By phrase, the places and lines.
    """
    num_words = sum(len(line.split()) for _, line in lines)
    found = {}
    for name, (pattern, rate, _) in PHRASES.items():
        expression = re.compile(pattern)
        hits = [f"{place}: {line.strip()}" for place, line in lines if expression.search(line)]
        if len(hits) > rate * num_words / 10_000:
            found[name] = hits
    return found


def find_questions(source: str) -> tuple[int, list[str]]:
    """Count a module's docstrings, and list those that open with a question word."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    docstrings = [text for node in nodes if (text := ast.get_docstring(node))]
    return len(docstrings), [text for text in docstrings if QUESTION.match(text)]


def test_prose_has_few_phrases_that_are_hard_to_read(root: Path) -> None:
    pages = [
        *root.glob("*.md"),
        *(root / "docs").rglob("*.md"),
        *(root / "benchmarks").glob("*.md"),
    ]
    folders = ("src", "tests", "benchmarks", "docs")
    modules = [path for name in folders for path in (root / name).rglob("*.py")]
    own = Path(__file__)
    lines = [
        (str(path.relative_to(root)), line)
        for path in sorted([*pages, *modules])
        if path != own and "__pycache__" not in path.parts
        for line in find_prose(path)
    ]
    found = find_phrases(lines)
    assert not found, "\n".join(
        f"\n{name} (write: {PHRASES[name][2]}):\n  " + "\n  ".join(hits)
        for name, hits in found.items()
    )


def test_docstrings_open_with_a_verb_or_a_noun(modules: dict[str, Path]) -> None:
    total, questions = 0, []
    for module, path in modules.items():
        count, found = find_questions(path.read_text(encoding="utf-8"))
        total += count
        questions += [f"{module}: {text.splitlines()[0]}" for text in found]
    assert len(questions) <= MOST_QUESTIONS * total, "\n".join(questions)


def test_guard_phrase_is_found() -> None:
    plain = [("page.md", "Weights are read in order, and each is checked.")] * 1000
    assert not find_phrases(plain)
    found = find_phrases([*plain, *[("page.md", "Make them anew where there is one.")] * 20])
    assert {"anew", "where for if"} <= set(found)


def test_guard_question_is_found() -> None:
    assert find_questions('"""How much memory training takes."""\n') == (
        1,
        ["How much memory training takes."],
    )
    assert find_questions('"""Predict the memory that training needs."""\n') == (1, [])
