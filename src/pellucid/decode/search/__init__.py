"""The search: one loop for greedy, beam and sampling."""

__all__: list[str] = []
