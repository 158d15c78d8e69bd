"""Docstrings open with what a thing does or is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

QUESTION = re.compile(r"(?:What|How|Which|Where|Who|Whether)\b")
MOST_QUESTIONS = 0.01
"""Share of docstrings that may open with a question word."""


def find_questions(source: str) -> tuple[int, list[str]]:
    """Count a module's docstrings, and list those that open with a question word."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    docstrings = [text for node in nodes if (text := ast.get_docstring(node))]
    return len(docstrings), [text for text in docstrings if QUESTION.match(text)]


def test_docstrings_open_with_a_verb_or_a_noun(modules: dict[str, Path]) -> None:
    total, questions = 0, []
    for module, path in modules.items():
        count, found = find_questions(path.read_text(encoding="utf-8"))
        total += count
        questions += [f"{module}: {text.splitlines()[0]}" for text in found]
    assert len(questions) <= MOST_QUESTIONS * total, "\n".join(questions)


def test_guard_question_is_found() -> None:
    assert find_questions('"""How much memory training takes."""\n') == (
        1,
        ["How much memory training takes."],
    )
    assert find_questions('"""Predict the memory that training needs."""\n') == (1, [])
