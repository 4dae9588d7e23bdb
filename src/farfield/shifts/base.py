"""What all shifts share: a pool of queries is dealt out into folds, and nothing is lost uncounted.

Most shifts sort queries into groups and leave one group after the other out of training
(:class:`Grouped`): they only say which group a query belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield.collection import Collection
from farfield.errors import InputError
from farfield.shifts._pool import Pool
from farfield.spec import Member
from farfield.tables import ROLES, Partition

__all__ = ["Dealt", "Fold", "Grouped", "Groups", "Pool", "Shift", "counted"]

Ints = npt.NDArray[np.int64]

_NONE: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Fold:
    """One experiment: rows of the pool to train on, near and far ones to test with.

    ``dropped`` counts, by reason, the queries of the pool that have no part in it.
    """

    name: str
    train: Ints
    near: Ints = field(default_factory=lambda: _NONE)
    far: Ints = field(default_factory=lambda: _NONE)
    dropped: dict[str, int] = field(default_factory=dict)

    def rows(self, role: str) -> Ints:
        """Return the rows that have a role: train, near or far."""
        found: Ints = getattr(self, role)
        return found


@dataclass(frozen=True)
class Groups:
    """Which group each query of a pool belongs to (-1: to none), and what the groups are called."""

    names: tuple[str, ...]
    of: Ints
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def named(cls, labels: pl.Series, facts: dict[str, Any] | None = None) -> Groups:
        """Number the groups by their labels; a null belongs to no group."""
        texts = labels.cast(pl.String)
        names = texts.drop_nulls().unique().sort()
        if labels.dtype.is_numeric():  # 2 comes before 10
            names = labels.drop_nulls().unique().sort().cast(pl.String)
        number = dict(zip(names, range(len(names)), strict=True))
        of = texts.replace_strict(number, default=-1, return_dtype=pl.Int64)
        return cls(tuple(names), of.fill_null(-1).to_numpy(), facts or {})


@dataclass(frozen=True)
class Dealt:
    """What a shift made of a pool. ``facts`` says what it chose on the way."""

    shift: Shift
    pool: Pool
    folds: tuple[Fold, ...]
    seed: int
    groups: Groups | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def partition(self) -> Partition:
        """The folds as a table."""
        ids = self.pool.queries.frame["query_id"]
        parts = [
            pl.DataFrame(
                {
                    "fold": pl.repeat(fold.name, len(fold.rows(role)), eager=True),
                    "query_id": ids.gather(fold.rows(role)),
                    "role": pl.repeat(role, len(fold.rows(role)), eager=True),
                }
            )
            for fold in self.folds
            for role in ROLES
        ]
        return Partition.trusted(pl.concat(parts))


@dataclass(frozen=True, kw_only=True)
class Shift(Member):
    """The queries of a collection become folds of training, near and far queries."""

    def deal(
        self,
        collection: Collection,
        *,
        train: str | None = None,
        test: str | None = None,
        share: float = 0.2,
        together: str | None = None,
        seed: int = 0,
    ) -> Dealt:
        """Deal out the queries of a collection.

        ``train`` and ``test`` name the splits; for all options see :meth:`Pool.of`. Training
        queries with the text of a test query are left out, and counted.
        """
        pool = Pool.of(
            collection, train=train, test=test, share=share, together=together, seed=seed
        )
        return self.deal_pool(pool, seed)

    def deal_pool(self, pool: Pool, seed: int = 0) -> Dealt:
        """Deal out a pool that is made already."""
        raise NotImplementedError(f"{type(self).__name__} defines no deal_pool")


@dataclass(frozen=True, kw_only=True)
class Grouped(Shift):
    """Queries belong to groups; in each fold one group is left out of training and is far.

    A fold trains on the training queries of all other groups. Their test queries are near, those
    of the group left out are far. ``balance`` trains on equally many queries in every fold: as many
    as the smallest has, drawn at random from the others.
    """

    balance: bool = False

    def grouping(self, pool: Pool, seed: int) -> Groups:
        """Say which group each query belongs to."""
        raise NotImplementedError(f"{type(self).__name__} defines no grouping")

    def deal_pool(self, pool: Pool, seed: int = 0) -> Dealt:
        """Leave out one group after the other."""
        groups = self.grouping(pool, seed)
        folds = [self.leave_out(pool, groups, number) for number in range(len(groups.names))]
        return self._finished(pool, groups, folds, seed)

    def leave_out(self, pool: Pool, groups: Groups, number: int) -> Fold:
        """Make the fold in which the group with this number is far."""
        inside, outside = groups.of == number, (groups.of != number) & (groups.of >= 0)
        return Fold(
            groups.names[number],
            train=np.flatnonzero(outside & ~pool.is_test),
            near=np.flatnonzero(outside & pool.is_test),
            far=np.flatnonzero(inside & pool.is_test),
            dropped=counted(
                {
                    "in no group": int((groups.of < 0).sum()),
                    "training queries of the group left out": int((inside & ~pool.is_test).sum()),
                }
            ),
        )

    def _finished(self, pool: Pool, groups: Groups, folds: Sequence[Fold], seed: int) -> Dealt:
        facts = dict(groups.facts)
        idle = [fold.name for fold in folds if not len(fold.far) or not len(fold.train)]
        folds = [fold for fold in folds if fold.name not in idle]
        if len(groups.names) < 2 or not folds:
            found = ", ".join(groups.names) or "none"
            raise InputError(
                f"{self} finds these groups of queries in {pool.collection.name}: {found}. It "
                "needs at least two that have both training and test queries."
            )
        if idle:
            facts[
                "groups without a fold (no test queries in them, or no training queries beside)"
            ] = idle
        if self.balance:
            folds = _balanced(folds, seed)
        return Dealt(self, pool, tuple(folds), seed, groups, facts)


def _balanced(folds: Sequence[Fold], seed: int) -> list[Fold]:
    size = min(len(fold.train) for fold in folds)
    rng = np.random.default_rng(seed)
    found = []
    for fold in folds:
        kept = np.sort(rng.choice(fold.train, size, replace=False))
        dropped = counted({"to balance training": len(fold.train) - size})
        found.append(replace(fold, train=kept, dropped=fold.dropped | dropped))
    return found


def counted(dropped: dict[str, int]) -> dict[str, int]:
    """Keep the reasons that apply to somebody."""
    return {reason: count for reason, count in dropped.items() if count}
