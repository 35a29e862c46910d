"""A tree that has been grown, as arrays."""

from convexboost.kernels.compiling import kernel
from convexboost.kernels.trees import leaf_of_rows


@kernel
def read_tree(nodes, order, feature, child, leaf_of_node, leaf):
    """Write the nodes as arrays and number the leaves; return how many there are.

    leaf[n] is the leaf of row n, for the rows in `order`.
    """
    n_leaves = 0
    for node in range(len(nodes)):
        feature[node], child[node] = nodes["feature"][node], nodes["child"][node]
        n_leaves += feature[node] < 0
        leaf_of_node[node] = n_leaves - 1
    leaf_of_rows(order, nodes, leaf_of_node, leaf)
    return n_leaves
