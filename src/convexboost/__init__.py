"""Boosting for any convex loss."""

__version__ = "0.1.0"
