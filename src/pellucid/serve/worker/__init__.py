"""A process beside the server that reads and writes the documents of clients."""

from __future__ import annotations
