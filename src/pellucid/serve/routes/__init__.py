"""The routes under ``/v1``, one file for each group."""

from __future__ import annotations
