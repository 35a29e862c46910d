"""Train on Dask arrays and data frames, on all workers of a cluster, without bringing the rows together."""
