"""The algorithms, their steps, and the driver that runs them."""
