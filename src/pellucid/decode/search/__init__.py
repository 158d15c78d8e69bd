"""The search: one loop for greedy, beam and sampling."""
