"""Words on a terminal: counts, paragraphs, tables, visible control characters, progress."""
