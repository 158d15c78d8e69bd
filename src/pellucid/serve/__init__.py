"""The service: translation over HTTP, for several models and many clients, in one process."""

from __future__ import annotations
