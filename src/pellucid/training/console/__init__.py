"""Messages and progress for people while a model trains."""
