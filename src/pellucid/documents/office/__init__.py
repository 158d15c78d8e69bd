"""Office files and books: archives of XML, whose paragraphs are runs of text."""

from __future__ import annotations
