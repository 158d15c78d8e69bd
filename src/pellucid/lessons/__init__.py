"""The five texts: `walks` shows what they say, `why` measures what they claim."""
