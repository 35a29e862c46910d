"""The problems on which the theorems are checked."""

import pytest

from tests.paper.problems import CONVEX, STRONGLY_CONVEX, make

#: One problem for each loss and set in `make test`, with and without weights; all in `make test-slow`.
PARAMETERS = [
    pytest.param(case, marks=[] if case[2] == (i // 4) % 2 else [pytest.mark.slow])
    for i, case in enumerate(CONVEX)
]


@pytest.fixture(scope="module", params=PARAMETERS, ids=[str(case) for case in CONVEX])
def convex(request):
    return make(*request.param)


@pytest.fixture(scope="module", params=STRONGLY_CONVEX, ids=str)
def strongly_convex(request):
    return make(*request.param)
