"""Lessons of the five texts: so far `why`, which measures what they claim."""
