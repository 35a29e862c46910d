"""Splitting the best leaf until a tree is grown."""

from typing import Any

import numpy as np

from convexboost.core.compiling import kernel, part
from convexboost.core.tolerances import BETTER
from convexboost.kernels.descent import part_rows
from convexboost.kernels.trees.data import BEGIN, CHILD, DEPTH, END, FEATURE, PATH, SLOT, SPLIT, WAY
from convexboost.kernels.trees.few_rows import copy_values
from convexboost.kernels.trees.histograms import add_histogram, add_up, clear, subtract
from convexboost.kernels.trees.splits import Place, find_split

index = np.uint64


@kernel(allocates=False)
def partition(column, rows, begin, end, mask):
    """Do what `part_rows` does, for a thread."""
    return part_rows(column, rows.order, rows.spare, begin, end, mask)


def divide(
    numbers: Any, node: int, n_nodes: int, middle: int, feature: int, few: int, left_is_small: bool
) -> int:
    """Give a node two children, whose rows meet at `middle`; return the smaller one.

    The larger child takes over the histogram of its parent, from which that of the smaller one is subtracted.
    """
    begin, end = numbers[node, BEGIN], numbers[node, END]
    small = n_nodes if left_is_small else n_nodes + 1
    large = 2 * n_nodes + 1 - small
    slot = -1
    if min(middle - begin, end - middle) > few:
        for other in range(n_nodes):
            slot = max(slot, numbers[other, SLOT])
        slot += 1
    numbers[n_nodes, BEGIN], numbers[n_nodes, END] = begin, middle
    numbers[n_nodes + 1, BEGIN], numbers[n_nodes + 1, END] = middle, end
    numbers[small, DEPTH] = numbers[large, DEPTH] = numbers[node, DEPTH] + 1
    numbers[large, SLOT], numbers[small, SLOT] = numbers[node, SLOT], slot
    way = 2 * (numbers[node, PATH] & WAY)
    numbers[n_nodes, PATH], numbers[n_nodes + 1, PATH] = way, way + 1
    numbers[node, FEATURE], numbers[node, CHILD] = feature, n_nodes
    return small


_divide = part(divide)


@part
def _best_leaf(numbers, gains, n_nodes, min_gain):
    """Return the leaf with the largest gain above a limit, −1 if there is none."""
    best, bar = -1, min_gain
    for node in range(n_nodes):
        if numbers[node, FEATURE] < 0 and gains[node] > bar:
            best, bar = node, gains[node] * (1.0 + BETTER)
    return best


@kernel(allocates=False)
def grow(features, rows, nodes, room, rules, n_nodes, new):
    """Split the best leaf until the rules forbid it; return (number of nodes, node left to the caller or −1).

    `new` is the root, or the smaller of the two newest nodes; the histogram of its sibling is still the one
    of their parent.  A node of more than `rules.max_rows` rows is left to the caller, who splits it on
    several threads and calls again; the histogram of such a node must be there already.
    """
    codes, columns, kinds, shift = features.codes, features.columns, features.categorical, features.shift
    values, order, spare = rows
    numbers, gains, masks = nodes
    hists, total, few = room.hists, room.total, rules.few
    while (n_nodes + 1) // 2 < rules.max_leaves:
        large = new if new == 0 else (new + 1 if new % 2 == 1 else new - 1)
        begin, end = numbers[new, BEGIN], numbers[new, END]
        if numbers[large, END] - numbers[large, BEGIN] > few:
            own = hists[numbers[new, SLOT] if numbers[new, SLOT] >= 0 else len(hists) - 1]
            if end - begin <= rules.max_rows:
                clear(own, features.n_bins, shift)
                add_histogram(values, codes, order, shift, begin, end, own)
            if new > 0:
                subtract(hists[numbers[large, SLOT]], own, features.n_bins, shift)
        for node in range(min(new, large), max(new, large) + 1):
            gains[node] = 0.0
            begin, end, slot = numbers[node, BEGIN], numbers[node, END], max(numbers[node, SLOT], 0)
            if end - begin > few:
                add_up(hists[slot], features.n_bins[0], total)
            else:
                copy_values(values, order, begin, end, room.values, total)
            if numbers[node, DEPTH] < rules.max_depth and total[0] >= 2.0 * rules.min_weight:
                place = Place(numbers[node, PATH], begin, end, slot)
                gains[node], numbers[node, SPLIT] = find_split(
                    features, rows, room, rules, place, kinds, rules.seed, room.used, masks[node]
                )
        best = _best_leaf(numbers, gains, n_nodes, rules.min_gain)
        if best < 0:
            break
        begin, end = numbers[best, BEGIN], numbers[best, END]
        if end - begin > rules.max_rows:
            return n_nodes, best
        feature = features.numbers[numbers[best, SPLIT]]
        middle = begin + part_rows(columns[feature], order, spare, begin, end, masks[best])
        for i in range(index(end - middle)):
            order[index(middle) + i] = spare[index(begin) + i]
        new = _divide(numbers, best, n_nodes, middle, feature, few, middle - begin <= end - middle)
        n_nodes += 2
    return n_nodes, -1


@kernel(allocates=False)
def read_tree(numbers, order, feature, child, leaf_of_node, leaf):
    """Write the nodes as arrays and number the leaves; return how many there are.

    leaf[n] is the leaf of row n, for the rows in `order`.
    """
    n_leaves = 0
    for node in range(len(feature)):
        feature[node], child[node] = numbers[node, FEATURE], numbers[node, CHILD]
        if feature[node] < 0:
            for i in range(index(numbers[node, BEGIN]), index(numbers[node, END])):
                leaf[index(order[i])] = n_leaves
            n_leaves += 1
        leaf_of_node[node] = n_leaves - 1
    return n_leaves
