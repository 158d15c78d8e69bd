"""A beginner's course: sentences drawn from a written list of constructions and words."""
