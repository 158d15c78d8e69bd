"""The work of all requests: a queue, one thread that computes, and short pauses."""

from __future__ import annotations
