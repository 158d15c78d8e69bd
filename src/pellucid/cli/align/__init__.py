"""``pellucid align``: links of lines, the errors of views, and the history of a run's heads."""
