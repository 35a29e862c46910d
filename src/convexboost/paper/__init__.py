"""The paper's examples and experiments, one per file."""
