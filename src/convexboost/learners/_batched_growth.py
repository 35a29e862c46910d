"""Growing a tree on rows that are spread over processes, with few additions of histograms.

A tree is grown best leaf first, and each split needs the histogram of a child.  Here some leaves are split
ahead of their turn: the best one and others that will probably be split later, whose histograms travel
together.  The tree is the same as if leaves were split one by one; what was split ahead in vain is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexboost.core.communicator import Communicator
from convexboost.core.tolerances import BETTER
from convexboost.kernels.trees.data import CHILD, FEATURE, SLOT, SPLIT, Features, Nodes, Room, Rows, Rules
from convexboost.kernels.trees.growth import divide, grow
from convexboost.learners._growth import Growth

#: There is room for this many times as many leaves as a tree has.
AHEAD = 2


class BatchedGrowth(Growth):
    """A tree in the making, of which some leaves are split ahead of their turn."""

    def __init__(
        self,
        features: Features,
        rows: Rows,
        rules: Rules,
        room: Room,
        n_threads: int,
        communicator: Communicator,
    ) -> None:
        self.max_leaves = rules.max_leaves
        more = rules._replace(max_leaves=AHEAD * rules.max_leaves)
        super().__init__(features, rows, more, room, n_threads, communicator)
        self.n_nodes = 1  #: so far, with those that were made ahead

    def run(self) -> Nodes:
        """Split the best leaf until the rules forbid it; return the nodes."""
        self._add_histograms([0])
        numbers = self.nodes.numbers
        tree = [0]  #: the nodes of the tree, in the order in which it was grown
        child: dict[int, int] = {}  #: of a node that is split, its left child's place in `tree`
        while len(child) + 1 < self.max_leaves:
            best = self._best_leaf([node for node in tree if node not in child])
            if best < 0:
                break
            if numbers[best, CHILD] < 0:
                self._split_ahead([node for node in tree if node not in child], best, len(child))
            child[best] = len(tree)
            tree += [numbers[best, CHILD], numbers[best, CHILD] + 1]
        return self._in_order(tree, child)

    def _best_leaf(self, leaves: list[int]) -> int:
        """Return the leaf with the largest gain above a limit, −1 if there is none."""
        best, bar = -1, self.rules.min_gain
        for node in leaves:
            if self.nodes.gains[node] > bar:
                best, bar = node, self.nodes.gains[node] * (1.0 + BETTER)
        return best

    def _split_ahead(self, leaves: list[int], best: int, n_splits: int) -> None:
        """Split the best leaf, and of the others the better ones, as many as half of the splits to come."""
        numbers, gains = self.nodes.numbers, self.nodes.gains
        others = [node for node in leaves if numbers[node, CHILD] < 0 and gains[node] > self.rules.min_gain]
        others = sorted((node for node in others if node != best), key=lambda node: -gains[node])
        to_come = self.max_leaves - 1 - n_splits
        spare = self.rules.max_leaves - (self.n_nodes + 1) // 2 - to_come  # leaves, if these are in vain
        smaller = []
        for node in [best, *others[: max(min(to_come // 2 - 1, spare), 0)]]:
            feature = self.features.numbers[numbers[node, SPLIT]]
            middle, left_is_small = self._partition(node, feature), self._left_is_small(node)
            few = self.rules.few
            smaller.append(divide(numbers, node, self.n_nodes, middle, feature, few, left_is_small))
            self.n_nodes += 2
        self._add_histograms(smaller)

    def _add_histograms(self, nodes: list[int]) -> None:
        """Make the histograms of some nodes, together; find the best splits of these and their siblings."""
        here = [self._histogram(node) for node in nodes]
        for node, hist in zip(nodes, self.communicator.add(np.stack(here)), strict=True):
            self.room.hists[self.nodes.numbers[node, SLOT]][:] = hist
            grow(self.features, self.rows, self.nodes, self.room, self.rules, self.n_nodes, node)

    def _in_order(self, tree: list[int], child: dict[int, int]) -> Nodes:
        """Return the nodes of the tree, numbered in the order in which it was grown."""
        chosen: NDArray[Any] = np.array(tree)
        numbers = self.nodes.numbers[chosen]
        numbers[:, CHILD] = [child.get(node, -1) for node in tree]
        numbers[numbers[:, CHILD] < 0, FEATURE] = -1
        return Nodes(numbers, self.nodes.gains[chosen], self.nodes.masks[chosen])
