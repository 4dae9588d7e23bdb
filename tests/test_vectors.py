"""Rankings and groups of vectors: by hand, against plain numpy and brute force, and bad input."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield.errors import InputError
from farfield.similarity import clusters, nearest_by_vectors, vectors
from farfield.similarity.clusters import farthest_group, kmeans
from farfield.similarity.vectors import best_ranks, top_k

shapes = st.tuples(*(st.integers(1, largest) for largest in (9, 40, 4, 12)), st.integers(0, 99))


def whole_numbers(seed: int, *shape: int) -> np.ndarray:
    """Vectors of small whole numbers: their products are exact, and many are equal."""
    return np.random.default_rng(seed).integers(-2, 3, size=shape).astype(np.float32)


def ranking(queries, items):
    """Every query's full ranking in plain numpy: equals by their number."""
    similar = queries @ items.T
    return np.argsort(-similar, axis=1, kind="stable"), similar


@pytest.fixture
def small_blocks(monkeypatch):
    """Many blocks and threads, as a large job has."""
    monkeypatch.setattr(vectors, "_ITEMS", 8)
    monkeypatch.setattr(vectors, "_QUERIES", 3)
    monkeypatch.setattr(vectors, "_ITEMS_ON_GPU", 8)
    monkeypatch.setattr(vectors, "_HELD", 50)
    monkeypatch.setattr(vectors, "_MANY", 0)
    monkeypatch.setattr(vectors, "_processors", lambda: 3)


# -- the best of every query --------------------------------------------------------------------


def test_the_best_by_hand():
    items = np.array([[1, 0], [0, 1], [3, 3], [1, 0]], dtype=np.float32)
    rows, values = top_k(np.array([[1, 0], [-1, 1]], dtype=np.float32), items, 3)
    # 1, 0, 3, 1 and -1, 1, 0, -1: of the equals 0 and 3 the first comes first.
    assert rows.tolist() == [[2, 0, 3], [1, 2, 0]]
    assert values.tolist() == [[3.0, 1.0, 1.0], [1.0, 0.0, -1.0]]
    assert (rows.dtype, values.dtype) == (np.int64, np.float32)


@settings(max_examples=60)
@given(shapes)
def test_the_best_are_those_of_a_full_ranking(shape):
    n, m, d, k, seed = shape
    queries, items = whole_numbers(seed, n, d), whole_numbers(seed + 1, m, d)
    order, similar = ranking(queries, items)
    rows, values = top_k(queries, items, k)
    np.testing.assert_array_equal(rows, order[:, :k])
    np.testing.assert_array_equal(values, np.take_along_axis(similar, order[:, :k], axis=1))


@pytest.mark.parametrize("k", [1, 2, 7, 8, 9, 40, 1000])
def test_blocks_and_threads_change_nothing(small_blocks, k):
    queries, items = whole_numbers(1, 10, 3), whole_numbers(2, 203, 3)
    order, similar = ranking(queries, items)
    rows, values = top_k(queries, items, k)
    np.testing.assert_array_equal(rows, order[:, :k])
    np.testing.assert_array_equal(values, np.take_along_axis(similar, order[:, :k], axis=1))


def test_a_large_job_finds_the_same_as_faiss():
    faiss = pytest.importorskip("faiss")
    rng = np.random.default_rng(5)
    items = rng.standard_normal((20_000, 48), dtype=np.float32)
    queries = rng.standard_normal((1_100, 48), dtype=np.float32)
    index = faiss.IndexFlatIP(48)
    index.add(items)
    theirs, numbers = index.search(queries, 20)
    rows, values = top_k(queries, items, 20)
    np.testing.assert_allclose(values, theirs, rtol=1e-5)
    assert (rows == numbers).mean() > 0.999  # neighbours that differ in the last digit may swap


@pytest.mark.parametrize("k", [1, 8, 30, 500])
def test_torch_finds_the_same(small_blocks, k):
    pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    queries, items = rng.standard_normal((7, 5)), rng.standard_normal((100, 5))
    rows, values = top_k(queries, items, k)
    by_torch = top_k(queries, items, k, device="cpu")
    np.testing.assert_array_equal(by_torch[0], rows)
    np.testing.assert_allclose(by_torch[1], values, atol=1e-6)
    # Of equals it may keep others at the end of the list, but never with another similarity.
    equal = whole_numbers(1, 10, 3), whole_numbers(2, 203, 3)
    np.testing.assert_array_equal(top_k(*equal, k, device="cpu")[1], top_k(*equal, k)[1])


def test_a_gpu_that_is_not_there():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(InputError, match="torch finds no GPU"):
        top_k(np.ones((1, 2)), np.ones((1, 2)), 1, device="cuda")


@pytest.mark.parametrize(
    ("queries", "items", "k", "message"),
    [
        (np.ones((2, 3)), np.ones((2, 4)), 1, r"shapes \(2, 3\) and \(2, 4\)"),
        (np.ones(3), np.ones((2, 3)), 1, "cannot be compared"),
        (np.ones((2, 3)), np.ones((2, 3)), 0, "k is 0, expected 1, 2, 3"),
        (np.array([[np.nan, 1]]), np.ones((2, 2)), 1, "a query's vector holds NaN"),
        (np.ones((2, 2)), np.array([[1, 1], [1, np.nan]]), 1, "item 1 "),
        (np.zeros((2, 2)), np.array([[1, -np.inf], [1, 1]]), 1, "item 0 "),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_cannot_be_ranked(queries, items, k, message):
    with pytest.raises(InputError, match=message):
        top_k(queries, items, k)


def test_an_item_that_is_no_number_is_found_in_every_block(small_blocks):
    items = np.ones((100, 2), dtype=np.float32)
    items[77, 1] = np.nan
    for rank in (lambda: top_k(items[:1], items, 3), lambda: best_ranks(items[:1], items)):
        with pytest.raises(InputError, match="item 77 "):
            rank()


def test_nothing_to_rank():
    none = np.empty((0, 3), dtype=np.float32)
    assert top_k(none, np.ones((4, 3)), 2)[0].shape == (0, 2)
    assert top_k(np.ones((4, 3)), none, 2)[0].shape == (4, 0)
    with pytest.raises(InputError, match="no queries"):
        best_ranks(none, np.ones((4, 3)))


def test_equals_are_listed_by_their_id():
    axes = np.eye(2, dtype=np.float32)
    ids, same = pl.Series(["c", "a", "b"]), axes[[0, 0, 1]]
    found = nearest_by_vectors(pl.Series(["t"]), axes[:1], ids, same, k=5)
    assert found.rows() == [("t", "a", 1.0, 1), ("t", "c", 1.0, 2), ("t", "b", 0.0, 3)]


# -- the best rank of every item ----------------------------------------------------------------


def test_best_ranks_by_hand():
    items = np.array([[1, 0], [0, 1], [3, 3], [1, 0]], dtype=np.float32)
    ranks, values = best_ranks(np.array([[1, 0], [-1, 1]], dtype=np.float32), items)
    # Ranked 2, 0, 3, 1 by the one and 1, 2, 0, 3 by the other.
    assert ranks.tolist() == [2, 1, 1, 3]
    assert values.tolist() == [1.0, 1.0, 3.0, 1.0]
    assert (ranks.dtype, values.dtype) == (np.int32, np.float32)


@pytest.mark.parametrize("seed", range(5))
def test_best_ranks_are_those_of_full_rankings(small_blocks, seed):
    queries, items = whole_numbers(seed, 10, 3), whole_numbers(seed + 9, 30 + 11 * seed, 3)
    items[0] = -0.0  # equal to 0
    order, similar = ranking(queries, items)
    expected = np.empty_like(order)
    np.put_along_axis(expected, order, np.arange(1, len(items) + 1)[None], axis=1)
    ranks, values = best_ranks(queries, items)
    np.testing.assert_array_equal(ranks, expected.min(axis=0))
    np.testing.assert_array_equal(values, similar.max(axis=0))


# -- k-means ------------------------------------------------------------------------------------


def blobs(sizes, d=6, spread=0.05, seed=0):
    rng = np.random.default_rng(seed)
    centres = 3 * rng.standard_normal((len(sizes), d))
    truth = np.repeat(np.arange(len(sizes)), sizes)
    points = centres[truth] + spread * rng.standard_normal((len(truth), d))
    order = rng.permutation(len(truth))
    return points[order].astype(np.float32), truth[order]


def test_clusters_are_found_and_numbered_by_size():
    points, truth = blobs([40, 70, 20, 55])
    found = kmeans(points, 4, seed=1)
    by_size = np.array([2, 0, 3, 1])  # 70, 55, 40, 20
    np.testing.assert_array_equal(found.labels, by_size[truth])
    assert found.sizes.tolist() == [70, 55, 40, 20]
    assert found.settled
    means = [points[found.labels == number].mean(axis=0) for number in range(4)]
    np.testing.assert_allclose(found.centroids, means, atol=1e-6)
    apart = points - found.centroids[found.labels]
    assert found.inertia == pytest.approx(float((apart.astype(float) ** 2).sum()), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 2, 7, 30])
def test_laws_of_clusters(monkeypatch, k, seed):
    monkeypatch.setattr(clusters, "_SHARE", 64)
    monkeypatch.setattr(vectors, "_MANY", 0)
    points = np.random.default_rng(seed).standard_normal((700, 5), dtype=np.float32)
    found = kmeans(points, k, seed=seed, iterations=8)
    apart = ((points[:, None].astype(float) - found.centroids[None]) ** 2).sum(axis=2)
    nearest = apart[np.arange(len(points)), found.labels]
    np.testing.assert_allclose(nearest, apart.min(axis=1), atol=1e-5)
    assert found.sizes.min() > 0
    assert (np.diff(found.sizes) <= 0).all()
    assert found.inertia == pytest.approx(nearest.sum(), rel=1e-5)
    assert kmeans(points, k, seed=seed, iterations=9).inertia <= found.inertia * (1 + 1e-6)
    assert kmeans(points, k, seed=seed, iterations=8, restarts=3).inertia <= found.inertia
    # The same with another number of threads, to the last bit.
    monkeypatch.setattr(vectors, "_processors", lambda: 3)
    again = kmeans(points, k, seed=seed, iterations=8)
    np.testing.assert_array_equal(again.centroids, found.centroids)
    np.testing.assert_array_equal(again.labels, found.labels)


def test_a_settled_result_is_as_good_as_that_of_scikit_learn():
    from sklearn.cluster import KMeans

    points = np.random.default_rng(4).standard_normal((2_000, 8), dtype=np.float32)
    theirs = KMeans(10, n_init=5, random_state=0).fit(points)
    found = kmeans(points, 10, seed=0, restarts=5, iterations=300)
    assert found.settled
    assert found.inertia <= theirs.inertia_ * 1.01
    # Started from our centroids it finds nothing better.
    further = KMeans(10, n_init=1, init=found.centroids, tol=0).fit(points)
    assert found.inertia == pytest.approx(further.inertia_, rel=1e-5)


def test_no_cluster_is_empty_though_most_points_are_the_same():
    points = np.zeros((500, 3), dtype=np.float32)
    points[:4] = np.eye(4, 3) * [[5], [7], [9], [0]]
    found = kmeans(points, 4, seed=0)
    assert found.sizes.tolist() == [497, 1, 1, 1]
    assert found.inertia == pytest.approx(0.0, abs=1e-9)


def test_a_cluster_that_loses_all_its_points_gets_the_farthest_one(monkeypatch):
    points, _ = blobs([30, 30, 30])
    # All start in one place: two of them are empty after the first step.
    monkeypatch.setattr(clusters, "_first_centroids", lambda p, k, rng: np.repeat(p[:1], k, axis=0))
    for iterations in (1, 20):
        assert kmeans(points, 3, seed=0, iterations=iterations).sizes.min() > 0


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        (np.repeat(np.eye(3), 5, axis=0), {"k": 4}, "of 15 vectors 3 differ"),
        (np.eye(3), {"k": 4}, r"4 clusters of vectors of shape \(3, 3\)"),
        (np.eye(3), {"k": 0}, "cannot make 0 clusters"),
        (np.ones(3), {"k": 1}, "of shape"),
        (np.eye(3), {"k": 2, "restarts": 0}, "restarts is 0"),
        (np.eye(3), {"k": 2, "iterations": 0}, "iterations is 0"),
        (np.array([[1.0], [np.nan]]), {"k": 1}, "vector 1 "),
    ],
)
def test_what_cannot_be_clustered(points, options, message):
    with pytest.raises(InputError, match=message):
        kmeans(points.astype(np.float32), **options, seed=0)


def test_the_points_are_left_as_they_are():
    points, _ = blobs([20, 20])
    before = points.copy()
    kmeans(points, 2, seed=0)
    np.testing.assert_array_equal(points, before)


def test_one_thread_for_algebra_changes_nothing():
    program = (
        "import numpy as np\n"
        "from farfield.similarity.clusters import kmeans\n"
        "from farfield.similarity.vectors import top_k\n"
        "x = np.random.default_rng(0).standard_normal((30_000, 16), dtype=np.float32)\n"
        "print(top_k(x[:300], x, 5)[0].sum(), kmeans(x, 9, seed=0).inertia)\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads},
        ).stdout
        for threads in ("1", "2")
    }
    assert len(found) == 1


# -- far apart ----------------------------------------------------------------------------------


def test_the_farthest_by_hand():
    # The corners of a right triangle, 3 + 4 + 5 = 12, and not the point inside it.
    found = farthest_group(np.array([[1.0, 1.0], [0.0, 0.0], [4.0, 0.0], [0.0, 3.0]]), 3)
    assert found.members.tolist() == [1, 2, 3]
    assert found.distance == pytest.approx(12.0)
    assert found.exact


@settings(max_examples=80)
@given(st.integers(1, 11), st.integers(1, 11), st.integers(1, 3), st.integers(0, 999))
def test_the_farthest_are_those_of_all_groups(m, n, d, seed):
    n = min(n, m)
    points = np.random.default_rng(seed).integers(-4, 5, size=(m, d)).astype(float)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    totals = [apart[np.ix_(group, group)].sum() / 2 for group in combinations(range(m), n)]
    found = farthest_group(points, n)
    assert found.exact
    assert found.distance == pytest.approx(max(totals), abs=1e-6)
    assert len(set(found.members.tolist())) == n
    chosen = apart[np.ix_(found.members, found.members)].sum() / 2
    assert found.distance == pytest.approx(chosen, abs=1e-6)


def test_five_of_a_hundred_are_exact_and_better_than_greedy():
    rng = np.random.default_rng(2)
    points = np.concatenate([rng.normal(size=(50, 16)) * 0.2 + side for side in (0, 1)])
    found = farthest_group(points, 5)
    assert found.exact
    hurried = farthest_group(points, 5, limit=10)
    assert not hurried.exact
    assert hurried.distance <= found.distance
    # No swap of one member for another makes it larger.
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    for leaves in range(5):
        rest = np.delete(found.members, leaves)
        gains = apart[rest].sum(axis=0)
        gains[rest] = 0
        others = apart[np.ix_(rest, rest)].sum() / 2
        assert others + gains.max() <= found.distance * (1 + 1e-9)


def test_what_cannot_be_chosen():
    for n in (0, 4):
        with pytest.raises(InputError, match=f"cannot choose {n}"):
            farthest_group(np.eye(3), n)
