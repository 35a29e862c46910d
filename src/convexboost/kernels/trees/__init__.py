"""Growing a tree with vector leaves on binned rows, best leaf first.

`data` says how a tree in the making is stored, `histograms` adds up the rows of each bin, `few_rows` does so
for nodes that need no histogram, `cuts` tries the cuts of a column, `splits` finds the best split of a node
and `growth` splits node after node.  `kernels.descent` predicts.

Compile time is kept low by types.  With one output `Rows.values` and all tables have one dimension less, and
what does not apply is None: `Features.categorical` without categories, `Rules.seed` where no cut is drawn.
Numba removes the branches that such an argument rules out before it compiles them, so a fit pays for the
code that it uses.
"""
