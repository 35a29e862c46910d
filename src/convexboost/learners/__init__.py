"""Weak learners, one per file.  A file whose class has a `name` is found by listing this folder."""
