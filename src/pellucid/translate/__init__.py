"""A translator: lines made ready for a search before it, and judged after it."""
