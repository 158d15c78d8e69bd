"""Distillation: a small model learns from the translations of a large one."""
