"""The problems on which the theorems are checked."""

import pytest

from tests.paper.problems import CONVEX, STRONGLY_CONVEX, make


@pytest.fixture(scope="module", params=CONVEX, ids=str)
def convex(request):
    return make(*request.param)


@pytest.fixture(scope="module", params=STRONGLY_CONVEX, ids=str)
def strongly_convex(request):
    return make(*request.param)
