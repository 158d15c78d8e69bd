"""Behind `pellucid bulk`: workers and jobs."""
