"""``pellucid align``: links of lines and the errors of views."""
