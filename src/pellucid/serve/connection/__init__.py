"""The way of a request in and of its answer out: sockets, limits of time and size, the door."""

from __future__ import annotations
