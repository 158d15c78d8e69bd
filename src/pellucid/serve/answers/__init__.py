"""What requests and answers hold, and how answers and refusals are written."""

from __future__ import annotations
