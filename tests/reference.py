"""Slow, obvious twins of the kernels: plain loops and brute force on (n, k) arrays."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np
from scipy.optimize import minimize

from convexboost.kernels.hashing import draw
from convexboost.kernels.stumps import CLASS, LEFT, MISSING, RIGHT, VECTOR
from convexboost.learners._dense import DenseHypothesis, DenseSet

TIE = 1e-9


def encode(column, values):
    """The bin of each value: the number of cuts below it, or that of its category; n_bins where missing."""
    codes = []
    for value in values:
        code = column.n_bins
        if column.cuts is not None and not np.isnan(value):
            code = sum(value > cut for cut in column.cuts)
        if column.categories is not None:
            for category, bin_ in zip(column.categories, column.category_codes, strict=True):
                if category == value:
                    code = bin_
        codes.append(code)
    return np.array(codes, np.uint8)


def histogram(codes, offsets, V, weight):
    """Σ p_n V_n over the rows of each bin."""
    out = np.zeros((offsets[-1], V.shape[1]))
    for j, column in enumerate(codes):
        for n, code in enumerate(column):
            out[offsets[j] + code] += weight[n] * V[n]
    return out


def fixed_point_histogram(codes, offsets, V, weight, factor):
    """The same in whole numbers, each entry rounded before it is added."""
    out = [[0] * V.shape[1] for _ in range(offsets[-1])]
    for j, column in enumerate(codes):
        for n, code in enumerate(column):
            for k in range(V.shape[1]):
                out[offsets[j] + int(code)][k] += round(float(V[n, k] * (weight[n] * factor)))
    return np.array(out, np.int64)


def shared_mass(codes, offsets, column, weight, width):
    """Weight that each bin shares with each value of a column."""
    out = np.zeros((offsets[-1], width), weight.dtype)
    for j, own in enumerate(codes):
        for n, code in enumerate(own):
            out[offsets[j] + code, column[n]] += weight[n]
    return out


def add_lookup(F, codes, table):
    """F_n + table[code of n]."""
    return np.array([row + table[code] for row, code in zip(F, codes, strict=True)])


def multiclass_hinge(F, y, ties="mean"):
    """max_k (1[k ≠ y] + f_k − f_y) and e_k − e_y; at a loss of 0 zero, at ties the mean or the first."""
    losses, G = np.zeros(len(y)), np.zeros(F.shape)
    for n, own in enumerate(y):
        rivals = [k for k in range(F.shape[1]) if k != own]
        best = max(F[n, k] for k in rivals)
        losses[n] = max(1.0 + best - F[n, own], 0.0)
        if losses[n] > 0.0:
            tied = [k for k in rivals if F[n, k] == best]
            tied = tied if ties == "mean" else tied[:1]
            G[n, tied] = 1.0 / len(tied)
            G[n, own] = -1.0
    return losses, G


def leaf_values(kind, sums, mass):
    """The hypothesis of one kind with the longest projection, for given leaves, by trying all of them.

    `sums` are the sums of p_n v_n over the leaves and `mass` their weights.  Returns the squared length of
    the projection and the values of the *projection* in the leaves.
    """
    n_leaves, K = sums.shape
    if kind == VECTOR:
        means = [sums[i] / mass[i] if mass[i] > 0 else np.zeros(K) for i in range(n_leaves)]
        return sum(float(sums[i] @ means[i]) for i in range(n_leaves)), np.array(means)
    hypotheses = []
    if kind == CLASS:
        for classes in itertools.product(range(K), repeat=n_leaves):
            h = np.full((n_leaves, K), -1.0 / (K - 1))
            h[np.arange(n_leaves), list(classes)] = 1.0
            hypotheses.append(h)
    else:
        for signs in itertools.product((1.0, -1.0), repeat=n_leaves):
            vector = sum(sign * row for sign, row in zip(signs, sums, strict=True))
            hypotheses.append(np.outer(signs, vector))
    best, values = 0.0, np.zeros((n_leaves, K))
    for h in hypotheses:
        inner, squared = float(np.sum(sums * h)), float(mass @ np.sum(h * h, axis=1))
        if squared > 0 and inner**2 / squared > best * (1 + TIE):
            best, values = inner**2 / squared, inner / squared * h
    return best, values


def splits(table, mass, categorical):
    """Every split of one feature as the leaf of each bin, in the order in which ties are decided.

    `table` and `mass` are the sums over the feature's own bins, the missing one last.
    """
    n_bins = len(mass) - 1
    prefix_order = list(range(n_bins))
    if categorical:
        held = [b for b in range(n_bins) if mass[b] > 0]
        energy = [
            sum(
                mass[b] * (table[b, k] / mass[b] - table[held, k].sum() / mass[held].sum()) ** 2 for b in held
            )
            for k in range(table.shape[1])
        ]
        k = int(np.argmax(energy))
        prefix_order.sort(key=lambda b: table[b, k] / mass[b] if mass[b] > 0 else np.inf)
    lefts = [[b] for b in range(n_bins)] if categorical else []
    lefts += [prefix_order[: i + 1] for i in range(n_bins)]
    for left in lefts:
        if mass[left[-1]] > 0:  # an empty last bin changes nothing
            leaf_of_bin = np.full(n_bins + 1, RIGHT, np.uint8)
            leaf_of_bin[left] = LEFT
            leaf_of_bin[n_bins] = MISSING
            yield leaf_of_bin


def all_subsets(mass):
    """Every way to put the bins of one feature in two leaves, the missing bin apart."""
    n_bins = len(mass) - 1
    for leaves in itertools.product((LEFT, RIGHT), repeat=n_bins):
        yield np.array([*leaves, MISSING], np.uint8)


def over_leaves(rows, leaf_of_bin):
    """Sums over the bins of each leaf."""
    return np.array([rows[leaf_of_bin == leaf].sum(axis=0) for leaf in (LEFT, RIGHT, MISSING)])


def best_split(table, mass, offsets, categorical, kind):
    """(feature, squared projected length, leaf of each of its bins) of the best stump; feature −1 if none."""
    found = -1, 0.0, None
    for j in range(len(offsets) - 1):
        part = slice(offsets[j], offsets[j + 1])
        for leaf_of_bin in splits(table[part], mass[part], categorical[j]):
            score, _ = leaf_values(
                kind, over_leaves(table[part], leaf_of_bin), over_leaves(mass[part], leaf_of_bin)
            )
            if score > found[1] * (1 + TIE):
                found = j, score, leaf_of_bin
    return found


@dataclass(frozen=True, eq=False)
class SlowStump(DenseHypothesis):
    """A stump that bins X when it is evaluated."""

    column: object
    feature: int
    leaf_of_bin: np.ndarray
    values: np.ndarray

    def evaluate(self, X):
        return self.values[self.leaf_of_bin[encode(self.column, X[:, self.feature])]]


class SlowStumps(DenseSet):
    """All stumps of one kind on binned columns: Δ is dense, every split is tried on its rows."""

    def __init__(self, X, space, mapper, kind):
        super().__init__(X, space)
        self.columns, self.categorical, self.kind = mapper.columns, mapper.categorical, kind
        self.codes = [encode(column, X[:, j]) for j, column in enumerate(self.columns)]

    def fit(self, values, rng):
        best, found = 0.0, SlowStump(self.columns[0], 0, np.zeros(256, int), np.zeros((1, values.shape[1])))
        weight = self.space.weight
        for j, (column, codes) in enumerate(zip(self.columns, self.codes, strict=True)):
            offsets = [0, column.n_bins + 1]
            table = histogram([codes], offsets, values, weight)
            mass = histogram([codes], offsets, np.ones((len(codes), 1)), weight)[:, 0]
            for leaf_of_bin in splits(table, mass, self.categorical[j]):
                sums, leaf_mass = over_leaves(table, leaf_of_bin), over_leaves(mass, leaf_of_bin)
                score, leaves = leaf_values(self.kind, sums, leaf_mass)
                if score > best * (1 + TIE):
                    leaves[leaf_mass == 0] = leaves[np.argmax(leaf_mass)]  # nothing was seen there
                    best, found = score, SlowStump(column, j, leaf_of_bin, leaves)
        return found


def add_codes(F, codes, features, tables):
    """F_n + Σ table of feature[bin of n in feature]."""
    out = F.copy()
    for n in range(len(F)):
        for j, table in zip(features, tables, strict=True):
            out[n] += table[codes[j][n]]
    return out


def least_squares(leaves, V, weight):
    """The values of the projection of V on all functions of the leaf, 0 in a leaf without rows."""
    indicators = (leaves[:, None] == np.arange(leaves.max(initial=0) + 1)).astype(float)
    root = np.sqrt(weight)[:, None]
    return np.linalg.lstsq(indicators * root, V * root, rcond=None)[0]


def mean_of_projections(codes, n_bins, V, weight, whole):
    """The mean over all cuts of one feature of the projection on left, right and missing, in each bin.

    Where `whole`, the projection on one leaf per bin.  Where nothing can be cut, on present and missing.
    """
    if whole:
        leaf_of_bin = [np.arange(n_bins + 1)]
    else:
        present = np.unique(codes[codes < n_bins])
        cuts = present[:-1] if len(present) > 1 else [n_bins - 1]
        leaf_of_bin = [np.append(np.where(np.arange(n_bins) <= cut, 0, 1), 2) for cut in cuts]
    found = []
    for leaves in leaf_of_bin:
        values = np.zeros((leaves.max() + 1, V.shape[1]))
        fitted = least_squares(leaves[codes], V, weight)
        values[: len(fitted)] = fitted
        found.append(values[leaves])
    return np.mean(found, axis=0)


def average_projections(codes, offsets, V, weight, whole):
    """The same for all features, as a table; the mean of V is taken off so that the sum has it once."""
    n_features = len(codes)
    parts = [
        mean_of_projections(codes[j], offsets[j + 1] - offsets[j] - 1, V, weight, whole[j])
        for j in range(n_features)
    ]
    constant = least_squares(np.zeros(len(V), int), V, weight)
    return np.concatenate(parts) - (n_features - 1) / n_features * constant


@dataclass(frozen=True, eq=False)
class SlowAdditiveFunction(DenseHypothesis):
    """A table for each feature."""

    columns: list
    tables: list

    def evaluate(self, X):
        codes = [encode(column, X[:, j]) for j, column in enumerate(self.columns)]
        zero = np.zeros((len(X), self.tables[0].shape[1]))
        return add_codes(zero, codes, range(len(codes)), self.tables)


class SlowAdditive(DenseSet):
    """All additive functions of binned columns: conjugate gradients on the rows, with all indicators."""

    def __init__(self, X, space, mapper, n_steps, smooth):
        super().__init__(X, space)
        self.columns, self.n_steps = mapper.columns, n_steps
        self.whole = [smooth is False or bool(is_category) for is_category in mapper.categorical]
        self.codes = [encode(column, X[:, j]) for j, column in enumerate(self.columns)]
        self.offsets = np.cumsum([0] + [column.n_bins + 1 for column in self.columns])
        self.indicators = np.concatenate(
            [
                codes[:, None] == np.arange(c.n_bins + 1)
                for codes, c in zip(self.codes, self.columns, strict=True)
            ],
            axis=1,
        ).astype(float)

    def search(self, rest):
        """The preconditioner: a table from the rows of what is left."""
        return average_projections(self.codes, self.offsets, rest, self.space.weight, self.whole)

    def fit(self, values, rng):
        Z, inner = self.indicators, self.space.inner
        mean = np.average(values, axis=0, weights=self.space.weight)  # is fitted exactly, and first
        table, p, before = np.tile(mean / len(self.columns), (Z.shape[1], 1)), 0.0, np.inf
        for _ in range(self.n_steps):
            rest = values - Z @ table
            z = self.search(rest)
            length = inner(rest, Z @ z)
            p = z + length / before * p
            table = table + length / inner(Z @ p, Z @ p) * p
            before = length
        tables = np.split(table, self.offsets[1:-1])
        for codes, part in zip(self.codes, tables, strict=True):
            seen = np.isin(np.arange(len(part)), codes)
            part[~seen] = np.average(part[codes], axis=0, weights=self.space.weight)
        return SlowAdditiveFunction(self.columns, tables)


def ranking_hinge(f, grades, queries, weight=None, query_weight=None):
    """Σ ω max(0, 1 − f_i + f_j) / Σ ω over all pairs, and its subgradient in L²(P); 0 at the margin."""
    n = len(f)
    w = np.ones(n) if weight is None else weight
    v = np.ones(n) if query_weight is None else query_weight
    value, total, partials = 0.0, 0.0, np.zeros(n)
    for i in range(n):
        for j in range(n):
            if queries[i] == queries[j] and grades[i] > grades[j]:
                pair = v[i] * w[i] * w[j]
                total += pair
                value += pair * max(0.0, 1.0 - f[i] + f[j])
                if 1.0 - f[i] + f[j] > 1e-11:
                    partials[i] -= pair
                    partials[j] += pair
    return value / total, partials / total / (v * w / np.sum(v * w))


def disagreement(grades, f, queries, weight=None, tie=1.0):
    """The weight of the pairs with f_i < f_j, and a share `tie` of those with f_i = f_j."""
    w = np.ones(len(f)) if weight is None else weight
    wrong = total = 0.0
    for i in range(len(f)):
        for j in range(len(f)):
            if queries[i] == queries[j] and grades[i] > grades[j]:
                total += w[i] * w[j]
                wrong += w[i] * w[j] * (1.0 if f[i] < f[j] else tie * (f[i] == f[j]))
    return wrong / total


def tree(codes, offsets, categorical, monotone, V, rules):
    """Grow a tree by trying every split on the rows themselves, the best leaf first.

    `rules`: max_leaves, max_depth, least, l2, category_l2, min_gain, random (a seed or None).  Returns the
    root: a dict with its rows, its best split and, if it was split, its children.
    """
    root = {"rows": np.arange(len(V)), "depth": 0, "number": 0, "way": 1}
    nodes, leaves = [root], [root]
    root["split"] = tree_split(root, codes, offsets, categorical, monotone, V, rules)
    while len(leaves) < rules["max_leaves"]:
        best = None
        for node in sorted(leaves, key=lambda node: node["number"]):
            gain = node["split"][0]
            if gain > (rules["min_gain"] if best is None else best["split"][0] * (1 + TIE)):
                best = node
        if best is None:
            break
        _, j, left = best["split"]
        goes_left = np.isin(codes[best["rows"], j], list(left))
        for bit, side in enumerate((goes_left, ~goes_left)):
            child = {"rows": best["rows"][side], "depth": best["depth"] + 1, "number": len(nodes)}
            child["way"] = 2 * best["way"] + bit
            child["split"] = tree_split(child, codes, offsets, categorical, monotone, V, rules)
            nodes.append(child)
            leaves.append(child)
        best["children"] = nodes[-2:]
        leaves = [leaf for leaf in leaves if leaf is not best]
    return root


def tree_split(node, codes, offsets, categorical, monotone, V, rules):
    """(gain, feature, bins that go left) of a node's best split."""
    found, rows = (0.0, -1, ()), node["rows"]
    total = V[rows].sum(axis=0)
    if node["depth"] >= rules["max_depth"] or total[0] < 2 * rules["least"]:
        return found

    def score(sums, more=0.0):
        return float(sums[1:] @ sums[1:]) / (sums[0] + rules["l2"] + more)

    for j in range(len(offsets) - 1):
        n_bins = offsets[j + 1] - offsets[j] - 1
        sums = np.array([V[rows[codes[rows, j] == b]].sum(axis=0) for b in range(n_bins + 1)])
        more = rules["category_l2"] if categorical[j] else 0.0
        for left in tree_candidates(j, sums, categorical[j], node["way"], rules):
            a = sums[list(left)].sum(axis=0)
            b = total - a
            if a[0] < rules["least"] or b[0] < rules["least"] or min(a[0], b[0]) <= 0.0:
                continue
            gain = score(a, more) + score(b, more) - score(total)
            rise = b[1:] / (b[0] + rules["l2"]) - a[1:] / (a[0] + rules["l2"])
            if gain > found[0] * (1 + TIE) and (monotone[j] * rise >= 0).all():
                found = gain, j, tree_defaults(left, sums, categorical[j])
    return found


def tree_candidates(j, sums, categorical, way, rules):
    """The sets of bins that may go left, in the order in which ties are decided."""
    n_bins = len(sums) - 1
    held = [b for b in range(n_bins + categorical) if sums[b, 0] > 0]
    if categorical and held:
        mean = sums[held, 1:].sum(axis=0) / sums[held, 0].sum()
        means = np.array([sums[b, 1:] / sums[b, 0] - mean for b in held])
        energy = [sums[b, 0] * float(m @ m) for b, m in zip(held, means, strict=True)]
        direction = means[next(i for i, e in enumerate(energy) if e * (1 + TIE) >= max(energy))]
        keys = means @ direction * sums[held, 0] / (sums[held, 0] + rules["category_l2"])
        keys = np.rint(keys / (TIE * max(np.abs(keys).max(), 1e-300)))
        held = [held[i] for i in np.argsort(keys, kind="stable")]
    has_missing = sums[n_bins, 0] > 0 and not categorical
    prefixes = [held[: i + 1] if categorical else range(b + 1) for i, b in enumerate(held)]
    if rules["random"] is not None and len(held) > 1:
        span = len(held) - 1 if categorical else held[-1] - held[0]
        cut = int(draw(rules["random"], way, j) * span)
        prefixes = [held[: cut + 1] if categorical else range(held[0] + cut + 1)]
    for missing in ([], [n_bins]) if has_missing else ([],):
        for left in prefixes:
            yield [*left, *missing]


def tree_defaults(left, sums, categorical):
    """Send left also what this node has no rows of: see `find_split`."""
    n_bins, default = len(sums) - 1, len(sums) - 1 in left
    if sums[n_bins, 0] <= 0:
        weight = sums[left, 0].sum()
        default = weight > (sums[:, 0].sum() - weight) * (1 + TIE)
    empty = [b for b in range(n_bins) if sums[b, 0] <= 0] if categorical else []
    return {*left, *([*empty, n_bins] if default else [])}


def tree_leaf(root, row):
    """The rows of the leaf that a row of codes falls into."""
    while "children" in root:
        _, j, left = root["split"]
        root = root["children"][0 if row[j] in left else 1]
    return root


def nearest_monotone(constraints, values, mass):
    """argmin Σ mass (v − values)² over v_a ≤ v_b for (a, b) in `constraints`, by quadratic programming."""
    result = minimize(
        lambda v: 0.5 * mass @ (v - values) ** 2,
        np.full(len(values), np.average(values, weights=mass)),
        jac=lambda v: mass * (v - values),
        constraints=[{"type": "ineq", "fun": lambda v, a=a, b=b: v[b] - v[a]} for a, b in constraints],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return result.x


# --- the nodes of a model, as anyone would read them -------------------------------------------------------


def leaf_of_row(nodes, tree, x):
    """Return the node where a row, encoded as floats, ends in a tree."""
    at = nodes.roots[tree]
    while nodes.column[at] >= 0:
        at = nodes.left[at] if goes_left(nodes, at, x) else nodes.right[at]
    return at


def goes_left(nodes, at, x):
    """Return whether a row goes left at a split."""
    value = x[nodes.column[at]]
    if np.isnan(value):
        return nodes.missing_left[at]
    if nodes.level_set[at] < 0:
        return value <= nodes.cut[at]
    is_known = value in nodes.levels[nodes.column[at]]
    return value in nodes.levels_of(at) if is_known else nodes.unseen_left[at]


def evaluate_nodes(nodes, X):
    """Return the scores of rows, tree by tree."""
    F = np.repeat(nodes.start[None], len(X), axis=0)
    for tree in range(nodes.n_trees):
        for n, x in enumerate(X):
            F[n] += nodes.values[nodes.leaf[leaf_of_row(nodes, tree, x)]]
    return F


# --- Shapley values, from their definition -----------------------------------------------------------------


def expectation_of_known(nodes, x, known):
    """Return the mean of the trees where only some columns of a row are known, in proportion to the cover."""

    def below(at, row):
        if nodes.column[at] < 0:
            return nodes.values[nodes.leaf[at]]
        left, right = nodes.left[at], nodes.right[at]
        if nodes.column[at] in known:
            return below(left if goes_left(nodes, at, row) else right, row)
        share = nodes.cover[left] / nodes.cover[at] if nodes.cover[at] > 0.0 else 0.5
        return share * below(left, row) + (1.0 - share) * below(right, row)

    return nodes.start + sum(below(root, x) for root in nodes.roots)


def shapley(value, n_columns):
    """Return the Shapley values, (n_columns, …), of a function of sets of columns."""
    values = {s: value(s) for s in _subsets(range(n_columns))}
    out = []
    for i in range(n_columns):
        total = 0.0
        for s in _subsets([j for j in range(n_columns) if j != i]):
            weight = factorial(len(s)) * factorial(n_columns - len(s) - 1) / factorial(n_columns)
            total = total + weight * (values[s | {i}] - values[s])
        out.append(total)
    return np.array(out)


def shapley_interactions(value, n_columns):
    """Return the Shapley interaction values; a row adds up to the Shapley value of its column."""
    values, alone = {s: value(s) for s in _subsets(range(n_columns))}, shapley(value, n_columns)
    out = np.zeros((n_columns, *alone.shape))
    for i, j in combinations(range(n_columns), 2):
        for s in _subsets([k for k in range(n_columns) if k not in (i, j)]):
            weight = factorial(len(s)) * factorial(n_columns - len(s) - 2) / 2 / factorial(n_columns - 1)
            out[i, j] += weight * (values[s | {i, j}] - values[s | {i}] - values[s | {j}] + values[s])
        out[j, i] = out[i, j]
    for i in range(n_columns):
        out[i, i] = alone[i] - out[i].sum(axis=0)
    return out


def _subsets(columns):
    return [frozenset(s) for n in range(len(columns) + 1) for s in combinations(columns, n)]
