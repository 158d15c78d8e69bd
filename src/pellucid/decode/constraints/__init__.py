"""Constraints on a translation: prefix, forbidden and required phrases, glossary."""
