"""Every head over a corpus: `study`, its table and its page."""
