"""The search over all stumps, from the histogram of the vector that is projected.

A stump splits one feature into two leaves; rows where the feature is missing have a third leaf of their own.
With L, R, M the sums of the vector over the leaves and P_L, P_R, P_M their weights, a candidate's score is
the squared length of its projection:

    VECTOR  a free vector per leaf               ‖L‖²/P_L + ‖R‖²/P_R + ‖M‖²/P_M
    CLASS   1 for one class per leaf, −1/(K−1)   (K (L_a + R_b + M_c) − Σ)² / (K (K−1)),  all argmax or argmin
    SIGN    one vector times ±1 per leaf         max over signs of ‖L ± R ± M‖²
"""

from typing import Any, NamedTuple

import numpy as np

from convexboost.core.compiling import kernel
from convexboost.core.tolerances import BETTER, NOTHING, ROUNDING

VECTOR, CLASS, SIGN = 0, 1, 2
LEFT, RIGHT, MISSING = 0, 1, 2


class Bins(NamedTuple):
    """What a search over the stumps of one kind reads besides the histogram."""

    mass: Any  #: float64: the weight of each bin
    offsets: Any  #: int64: the bins of feature j are offsets[j] … offsets[j + 1] − 1, the last one "missing"
    categorical: Any  #: bool, for each feature
    kind: int  #: VECTOR, CLASS or SIGN


class PairSums(NamedTuple):
    """The weights that bins share, as running sums over the bins of each feature."""

    running: Any  #: int64, (n_bins, n_bins): row offsets[j] + i has what bins 0 … i of j share with each bin
    ready: Any  #: bool: whether the rows of a feature have been counted
    unit: float  #: the whole number that stands for the weight of all rows


class Projections(NamedTuple):
    """Projections on stumps, one after the other."""

    feature: Any  #: int64
    leaves: Any  #: uint8, (count, 256): the leaf of each bin
    values: Any  #: float64, (count, 3, n_outputs)
    coefficient: Any  #: float64
    norm: Any  #: float64: the projected length


# Inlined, because the call costs more than the work for one output.  Reassociated, because sums in the order
# of k are not vectorised; the order is fixed by the compiler, so it is the same for any number of threads.
@kernel(forceinline=True, fastmath={"reassoc"})
def _score(kind, L, R, M, P_L, P_R, P_M):
    K = len(L)
    if kind == VECTOR:
        left, right, missing = 0.0, 0.0, 0.0
        for k in range(K):
            left += L[k] * L[k]
            right += R[k] * R[k]
            missing += M[k] * M[k]
        score = 0.0
        if P_L > 0:
            score += left / P_L
        if P_R > NOTHING:
            score += right / P_R
        if P_M > 0:
            score += missing / P_M
        return score
    if kind == CLASS:
        total = 0.0
        high_L, high_R, high_M = L[0], R[0], M[0]
        low_L, low_R, low_M = L[0], R[0], M[0]
        for k in range(K):
            total += L[k] + R[k] + M[k]
            high_L, low_L = max(high_L, L[k]), min(low_L, L[k])
            high_R, low_R = max(high_R, R[k]), min(low_R, R[k])
            high_M, low_M = max(high_M, M[k]), min(low_M, M[k])
        high = K * (high_L + high_R + high_M) - total
        low = K * (low_L + low_R + low_M) - total
        best = max(high, -low)
        return best * best / (K * (K - 1.0))
    # ‖L + s R + u M‖² = (all squares) + 2 (s L·R + u L·M + s u R·M), over s, u = ±1
    squares, LR, LM, RM = 0.0, 0.0, 0.0, 0.0
    for k in range(K):
        squares += L[k] * L[k] + R[k] * R[k] + M[k] * M[k]
        LR += L[k] * R[k]
        LM += L[k] * M[k]
        RM += R[k] * M[k]
    return squares + 2.0 * max(LR + LM + RM, LR - LM - RM, -LR + LM - RM, -LR - LM + RM)


@kernel
def best_split(table, bins, leaves):
    """Find the stump with the longest projection; fill `leaves` (the leaf of each bin of its feature).

    Returns (feature, score); feature −1 if nothing can be split.  Numeric features are cut between bins.  A
    categorical feature offers each category against the rest, and the prefixes of its categories sorted by
    their mean in the output that varies most between them (for one output the best subset is among these).
    """
    mass, offsets, categorical, kind = bins
    K = table.shape[1]
    best, best_feature, best_cut, best_single = 0.0, -1, -1, False
    L, R, M, S = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K)
    for j in range(len(offsets) - 1):
        first, last = offsets[j], offsets[j + 1] - 1
        M[:] = table[last]
        P_M = mass[last]
        S[:] = 0.0
        P_S = 0.0
        for b in range(first, last):
            P_S += mass[b]
            for k in range(K):
                S[k] += table[b, k]
        if categorical[j]:
            for b in range(first, last):  # one category against the rest
                if mass[b] <= 0.0:
                    continue
                for k in range(K):
                    R[k] = S[k] - table[b, k]
                score = _score(kind, table[b], R, M, mass[b], P_S - mass[b], P_M)
                if score > best * (1.0 + BETTER):
                    best, best_feature, best_cut, best_single = score, j, b - first, True
        order = _order(table, mass, first, last, categorical[j])
        L[:] = 0.0
        P_L = 0.0
        for i in range(last - first):  # the last prefix is everything: present against missing
            b = first + order[i]
            P_L += mass[b]
            for k in range(K):
                L[k] += table[b, k]
                R[k] = S[k] - L[k]
            if mass[b] <= 0.0:
                continue
            score = _score(kind, L, R, M, P_L, P_S - P_L, P_M)
            if score > best * (1.0 + BETTER):
                best, best_feature, best_cut, best_single = score, j, i, False
    if best_feature >= 0:
        first, last = offsets[best_feature], offsets[best_feature + 1] - 1
        order = _order(table, mass, first, last, categorical[best_feature])
        leaves[: last - first] = RIGHT
        leaves[last - first] = MISSING
        if best_single:
            leaves[best_cut] = LEFT
        else:
            for i in range(best_cut + 1):
                leaves[order[i]] = LEFT
    return best_feature, best


@kernel
def project(table, bins, leaves, values):
    """Find the best stump and its leaf values, (3, K); return (feature, coefficient, projected length).

    Leaves without weight (no value was missing, or nothing is on one side) copy the heaviest one.
    """
    mass, offsets, K = bins.mass, bins.offsets, table.shape[1]
    j, score = best_split(table, bins, leaves)
    if j < 0:
        return j, 0.0, 0.0
    sums, weights = np.zeros((3, K)), np.zeros(3)
    for b in range(offsets[j + 1] - offsets[j]):
        leaf = leaves[b]
        weights[leaf] += mass[offsets[j] + b]
        for k in range(K):
            sums[leaf, k] += table[offsets[j] + b, k]
    coefficient = _leaf_values(bins.kind, sums, weights, values)
    heaviest = np.argmax(weights)
    for leaf in range(3):
        if weights[leaf] <= 0.0:
            values[leaf] = values[heaviest]
    return j, coefficient, np.sqrt(score)


@kernel
def _leaf_values(kind, sums, weights, values):
    """Fill the leaf values of the projection for given leaves; return its coefficient."""
    K = sums.shape[1]
    if kind == VECTOR:
        for leaf in range(3):
            for k in range(K):
                values[leaf, k] = sums[leaf, k] / weights[leaf] if weights[leaf] > 0.0 else 0.0
        return 1.0
    if kind == CLASS:
        high, low = -sums.sum(), -sums.sum()
        for leaf in range(3):
            high += K * sums[leaf].max()
            low += K * sums[leaf].min()
        sign = 1.0 if high >= -low * (1.0 - BETTER) else -1.0
        close = BETTER * np.abs(sums).max()  # rounding must not choose between classes
        for leaf in range(3):
            values[leaf] = -1.0 / (K - 1)
            best = (sign * sums[leaf]).max()
            k = 0
            while sign * sums[leaf, k] < best - close:
                k += 1
            values[leaf, k] = 1.0
        return (high if sign > 0.0 else low) / K
    best, sign_R, sign_M = -1.0, 1.0, 1.0
    for s in (1.0, -1.0):
        for u in (1.0, -1.0):
            square = 0.0
            for k in range(K):
                square += (sums[LEFT, k] + s * sums[RIGHT, k] + u * sums[MISSING, k]) ** 2
            if square > best:
                best, sign_R, sign_M = square, s, u
    for k in range(K):
        vector = sums[LEFT, k] + sign_R * sums[RIGHT, k] + sign_M * sums[MISSING, k]
        if K == 1:  # a ±1 classifier and a coefficient, as in Theorem 1
            vector = 1.0 if vector >= 0.0 else -1.0
        values[LEFT, k], values[RIGHT, k], values[MISSING, k] = vector, sign_R * vector, sign_M * vector
    return np.sqrt(best) if K == 1 else 1.0


@kernel
def leaf_counts(running, first, leaves, n_bins, counts):
    """counts[leaf, b] = weight that bin b shares with the leaf, from the running sums of the pair table.

    Row first + i of `running` holds, for every bin, the weight it shares with bins 0 … i of the feature.
    """
    counts[:] = 0
    for i in range(n_bins):
        if i + 1 == n_bins or leaves[i + 1] != leaves[i]:  # the end of a run of equal leaves
            for b in range(counts.shape[1]):
                counts[leaves[i], b] += running[first + i, b]
            if i + 1 < n_bins:
                for b in range(counts.shape[1]):
                    counts[leaves[i + 1], b] -= running[first + i, b]


@kernel
def subtract(table, counts, unit, weight, values):
    """Subtract weight times the histogram of the function with these leaf values from a table."""
    n_leaves, K = values.shape
    for leaf in range(n_leaves):
        for b in range(len(table)):
            share = counts[leaf, b] / unit
            if share != 0.0:
                for k in range(K):
                    table[b, k] -= share * (weight * values[leaf, k])


@kernel
def pursue(table, bins, pairs, enough, found, done):
    """Project and subtract until `found` is full, nothing is left, or pair sums are missing.

    Ends too when the squares of the projected lengths add up to `enough`: each shortens the square of what is
    left by its own.  The first `done` projections are there already.  Returns how many there are now, and the
    feature whose pair sums must be counted before the next one (−1: none).
    """
    offsets, counts, squares = bins.offsets, np.empty((3, len(table)), np.int64), 0.0
    for i in range(done):
        squares += found.norm[i] * found.norm[i]
    for i in range(done, len(found.feature)):
        j, coefficient, norm = project(table, bins, found.leaves[i], found.values[i])
        if j < 0 or norm <= (ROUNDING * found.norm[0] if i > 0 else 0.0):
            return i, -1
        if not pairs.ready[j]:
            return i, j
        found.feature[i], found.coefficient[i], found.norm[i] = j, coefficient, norm
        leaf_counts(pairs.running, offsets[j], found.leaves[i], offsets[j + 1] - offsets[j], counts)
        subtract(table, counts, pairs.unit, coefficient, found.values[i])
        squares += norm * norm
        if squares >= enough:
            return i + 1, -1
    return len(found.feature), -1


@kernel(fastmath={"reassoc"})
def dot(A, B):
    """Return the inner product of two tables; always in the same order."""
    a, b, total = A.ravel(), B.ravel(), 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel
def _order(table, mass, first, last, categorical):
    """Return the order of a feature's bins: as they are, or categories by their mean gradient."""
    if not categorical:
        return np.arange(last - first)
    K = table.shape[1]
    best_k, best_energy = 0, -1.0
    for k in range(K):
        energy, total, weight = 0.0, 0.0, 0.0  # variance between the categories
        for b in range(first, last):
            if mass[b] > 0:
                energy += table[b, k] * table[b, k] / mass[b]
                total += table[b, k]
                weight += mass[b]
        if weight > 0:
            energy -= total * total / weight
        if energy > best_energy * (1.0 + BETTER):
            best_k, best_energy = k, energy
    means = np.empty(last - first)
    for b in range(first, last):
        means[b - first] = table[b, best_k] / mass[b] if mass[b] > 0 else np.inf
    largest = 0.0
    for mean in means:
        if np.isfinite(mean):
            largest = max(largest, abs(mean))
    if largest > 0.0:
        means = np.rint(means / (BETTER * largest))  # rounding must not decide the order
    return np.argsort(means, kind="mergesort")
