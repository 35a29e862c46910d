"""The best split of a node."""

from typing import NamedTuple

import numpy as np

from convexboost.core.bits import local_array
from convexboost.core.compiling import part
from convexboost.kernels.hashing import draw
from convexboost.kernels.trees.cuts import Cuts, draw_cut, scan, sort_categories, write_mask
from convexboost.kernels.trees.data import CHUNK, SIDES
from convexboost.kernels.trees.few_rows import copy_codes, draw_sides, tabulate
from convexboost.kernels.trees.histograms import weight_of


class Place(NamedTuple):
    """A node."""

    path: int  #: from the root
    begin: int  #: its rows are order[begin:end]
    end: int
    slot: int  #: of its histogram, where it has one


@part
def find_split(features, rows, room, rules, place, categorical, seed, used, mask):
    """Return the gain and the feature of a node's best split; `mask` receives the bins that go left.

    A numeric split sends a prefix of the bins left and the missing values to the better side.  A categorical
    one sends a prefix of the categories left, missing values being one of them, in the order of their means.
    Without `category_l2` the best set of categories is such a prefix for one output, unless a leaf would be
    too light.

    The sums of the bins come from the histogram, or from the rows where there are few of them.  A cut that is
    drawn needs the sum of one side only.  `categorical`, `seed` and `used` are those of `features`, `rules`
    and `room`: an argument that is None removes code.
    """
    codes, n_bins, total, order = features.codes, features.n_bins, room.total, rows.order
    (path, begin, end, slot), shift = place, np.int64(features.shift)
    has_few, copied, sorted_, hist = end - begin <= rules.few, 0, local_array(257, np.int64), room.hists[slot]
    base, best_gain, best_feature = 0.0, 0.0, -1
    for k in range(1, len(total)):
        base += total[k] * total[k]
    base /= total[0] + rules.l2
    for j in range(len(n_bins)):
        missing = n_bins[j] - 1
        table, first, bins, count, lost, only, top = room.table, 0, room.plain, missing, missing, -1, -1
        is_category, chance = False, 0.0
        if categorical is not None:
            is_category = categorical[j]
        if seed is not None:
            chance = draw(seed, path, j) if seed >= 0 else 0.0
            if seed >= 0 and has_few and not is_category:
                if j >= copied:
                    copied = j - j % CHUNK + CHUNK
                    copy_codes(codes, order, begin, end, copied - CHUNK, room.codes)
                top = draw_sides(room.codes, j % CHUNK, end - begin, missing, chance, room.values, table)
                if top < 0:
                    continue
                first, lost, only, count = SIDES, 1, 0, 2 if top < missing - 1 else 1
        if top < 0 and not has_few:
            table, first = hist, j << shift  # type: ignore[assignment]
        elif top < 0 and used is not None:
            bins, count = used, tabulate(rows.values, codes, order, begin, end, j, table, used)
            count -= weight_of(table, missing) > 0
        l2 = rules.l2
        if categorical is not None and is_category:
            more = rules.category_l2
            l2 += more
            bins, count = sorted_, sort_categories(table, first, n_bins[j], sorted_, room.sums, more)
        has_missing = weight_of(table, first + lost) > 0 and not is_category
        if seed is not None and seed >= 0 and only < 0:
            only = draw_cut(table, first, bins, count, chance)
            if only < 0 and has_missing:
                only = count - 1
            if only < 0:
                continue
        for side in range(2 if has_missing and only < count - 1 else 1):  # missing values: right, then left
            size = count if has_missing and side == 0 else count - 1
            cuts = Cuts(first, bins, size, features.monotone[j], only, lost, side == 1, l2)
            gain, cut = scan(table, cuts, total, room.sums[0], base, rules, best_gain)
            if cut >= 0:
                best_gain, best_feature = gain, j
                highest = -1 if is_category else (top if top >= 0 else bins[cut])
                write_mask(table, cuts, cut, highest, n_bins[j], total[0], mask)
    return best_gain, best_feature
