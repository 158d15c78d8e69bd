"""The bodies of requests and answers, a look inside as an answer, and refusals."""

from __future__ import annotations
