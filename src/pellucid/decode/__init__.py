"""Token ids in, token ids out: search and scoring."""
