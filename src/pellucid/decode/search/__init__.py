"""One search loop for greedy, beam and sampling."""

__all__: list[str] = []
