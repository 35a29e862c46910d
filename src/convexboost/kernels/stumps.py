"""The search over all stumps, from the histogram of the vector that is projected.

A stump splits one feature into two leaves; rows where the feature is missing have a third leaf of their own.
With L, R, M the sums of the vector over the leaves and P_L, P_R, P_M their weights, a candidate's score is
the squared length of its projection:

    VECTOR  a free vector per leaf               ‖L‖²/P_L + ‖R‖²/P_R + ‖M‖²/P_M
    CLASS   1 for one class per leaf, −1/(K−1)   (K (L_a + R_b + M_c) − Σ)² / (K (K−1)),  all argmax or argmin
    SIGN    one vector times ±1 per leaf         max over signs of ‖L ± R ± M‖²
"""

import numpy as np
from numba import njit

VECTOR, CLASS, SIGN = 0, 1, 2
LEFT, RIGHT, MISSING = 0, 1, 2

#: A split must beat the best one so far by this much, relatively: rounding must not decide.
TIE = 1e-9

#: A length this much shorter than the first one counts as zero (core.ROUNDING).
ROUNDING = 1e-13

#: A weight that is only the rounding of a difference.
NOTHING = 1e-15


# Inlined, because the call costs more than the work for one output; reassociated, because sums in the order
# of k are not vectorised.  The order is fixed when it is compiled: the same for any number of threads.
@njit(cache=True, nogil=True, forceinline=True, fastmath={"reassoc"})
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


@njit(cache=True, nogil=True)
def best_split(table, mass, offsets, categorical, kind, leaves):
    """Find the stump with the longest projection; fill `leaves` (the leaf of each bin of its feature).

    Returns (feature, score); feature −1 if nothing can be split.  The last bin of a feature is the missing
    one.  Numeric features are cut between bins.  A categorical feature offers each category against the
    rest, and the prefixes of its categories sorted by their mean in the output that varies most between
    them (for one output this holds the best of all subsets).
    """
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
                if score > best * (1.0 + TIE):
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
            if score > best * (1.0 + TIE):
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


@njit(cache=True, nogil=True)
def project(table, mass, offsets, categorical, kind, leaves, values):
    """Find the best stump and its leaf values, (3, K); return (feature, coefficient, projected length).

    Leaves without weight (no value was missing, or nothing is on one side) copy the heaviest one.
    """
    K = table.shape[1]
    j, score = best_split(table, mass, offsets, categorical, kind, leaves)
    if j < 0:
        return j, 0.0, 0.0
    sums, weights = np.zeros((3, K)), np.zeros(3)
    for b in range(offsets[j + 1] - offsets[j]):
        leaf = leaves[b]
        weights[leaf] += mass[offsets[j] + b]
        for k in range(K):
            sums[leaf, k] += table[offsets[j] + b, k]
    coefficient = _leaf_values(kind, sums, weights, values)
    heaviest = np.argmax(weights)
    for leaf in range(3):
        if weights[leaf] <= 0.0:
            values[leaf] = values[heaviest]
    return j, coefficient, np.sqrt(score)


@njit(cache=True, nogil=True)
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
        sign = 1.0 if high >= -low * (1.0 - TIE) else -1.0
        close = TIE * np.abs(sums).max()  # rounding must not choose between classes
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


@njit(cache=True, nogil=True)
def leaf_counts(sums, first, leaves, n_bins, counts):
    """counts[leaf, b] = weight that bin b shares with the leaf, from the running sums of the pair table.

    Row first + i of `sums` holds, for every bin, the weight it shares with bins 0 … i of the feature.
    """
    counts[:] = 0
    for i in range(n_bins):
        if i + 1 == n_bins or leaves[i + 1] != leaves[i]:  # the end of a run of equal leaves
            for b in range(counts.shape[1]):
                counts[leaves[i], b] += sums[first + i, b]
            if i + 1 < n_bins:
                for b in range(counts.shape[1]):
                    counts[leaves[i + 1], b] -= sums[first + i, b]


@njit(cache=True, nogil=True)
def subtract(table, counts, unit, weight, values):
    """Table −= weight · (histogram of the function with these leaf values)."""
    n_leaves, K = values.shape
    for leaf in range(n_leaves):
        for b in range(len(table)):
            share = counts[leaf, b] / unit
            if share != 0.0:
                for k in range(K):
                    table[b, k] -= share * (weight * values[leaf, k])


@njit(cache=True, nogil=True)
def pursue(
    table, mass, offsets, categorical, kind, sums, ready, unit, rest, floor, features, leaves, values, sizes
):
    """Project and subtract until `features` is full, the length falls to `floor`, or a block is missing.

    Fills, per projection, its feature, leaves, leaf values and (coefficient, length).  Returns how many there
    are and the feature whose pair-table block must be counted before going on (−1: none).
    """
    counts = np.empty((3, len(table)), np.int64)
    for i in range(rest, len(features)):
        j, coefficient, norm = project(table, mass, offsets, categorical, kind, leaves[i], values[i])
        if i == 0:
            floor = max(floor, ROUNDING * norm)
        if j < 0 or norm <= (floor if i > 0 else 0.0):
            return i, -1
        if not ready[j]:
            return i, j
        features[i], sizes[i, 0], sizes[i, 1] = j, coefficient, norm
        leaf_counts(sums, offsets[j], leaves[i], offsets[j + 1] - offsets[j], counts)
        subtract(table, counts, unit, coefficient, values[i])
    return len(features), -1


@njit(cache=True, nogil=True)
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
        if energy > best_energy * (1.0 + TIE):
            best_k, best_energy = k, energy
    means = np.empty(last - first)
    for b in range(first, last):
        means[b - first] = table[b, best_k] / mass[b] if mass[b] > 0 else np.inf
    largest = 0.0
    for mean in means:
        if np.isfinite(mean):
            largest = max(largest, abs(mean))
    if largest > 0.0:
        means = np.rint(means / (TIE * largest))  # rounding must not decide the order
    return np.argsort(means, kind="mergesort")
