"""How much is lost from near to far, when models were trained on the folds of a shift?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from farfield import stats
from farfield.errors import FileError, InputError, did_you_mean
from farfield.io import read, read_qrels
from farfield.io.files import PathLike
from farfield.measures import Measure
from farfield.questions._small_files import read_rows
from farfield.questions.evaluate import evaluate, parse_measures
from farfield.tables import Partition, Qrels, Run

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["NearFar", "Trained", "near_far", "read_trained"]

Floats = npt.NDArray[np.float64]

#: A run of a system trained on one fold; ``fold`` is ``None`` for one that no fold changes.
Trained = tuple[str, str | None, int, Run | PathLike]

_AVERAGES = ("micro", "macro")


@dataclass(frozen=True, eq=False)
class NearFar:
    """Every system near and far, from runs of all test queries by models trained on each fold.

    ``values`` has a row for each system, fold, seed, measure and test query. A query is far in the
    fold that left its group out, and near in the others: both are averages over the same queries,
    so that a system that is not trained has no change at all.
    """

    values: pl.DataFrame  # system, measure, fold, seed, query_id, value
    roles: pl.DataFrame  # fold, query_id, role (near, far)
    measures: tuple[Measure, ...]
    systems: tuple[str, ...]
    seen: pl.DataFrame | None  # query_id, seen: was a relevant document trained on?
    level: float
    resamples: int
    seed: int

    # -- near against far -------------------------------------------------------------------

    @cached_property
    def table(self) -> pl.DataFrame:
        """Near and far of every system: one row for each system, measure and average.

        system, measure, average (micro: over queries; macro: over groups), queries, seeds, near,
        far and delta (far / near - 1), each with low and high, p of a paired test of far against
        near (of two samples where no query is both), p_adjusted (Holm, over systems). For a measure
        of which less is better a positive delta is a loss.
        """
        rows = []
        for measure in self.measures:
            for system in self.systems:
                rows += self._change(system, measure, None)
        frame = pl.DataFrame(rows)
        return _adjusted(frame, ["measure", "average"])

    @cached_property
    def by_memory(self) -> pl.DataFrame:
        """The same, apart for queries of which a relevant document was trained on, and others.

        Part of what is lost are memorised documents, not similar queries. Empty if nothing is known
        of the training judgements.
        """
        if self.seen is None:
            return self.table.clear().with_columns(pl.Series("seen", [], pl.Boolean))
        rows = []
        for measure in self.measures:
            for system in self.systems:
                for seen in (True, False):
                    chosen = self.seen.filter(pl.col("seen") == seen)["query_id"]
                    found = self._change(system, measure, chosen)
                    rows += [row | {"seen": seen} for row in found if row["average"] == "micro"]
        if not rows:
            return self.table.clear().with_columns(pl.Series("seen", [], pl.Boolean))
        return _adjusted(pl.DataFrame(rows), ["measure", "average", "seen"])

    # -- leave one out ----------------------------------------------------------------------

    @cached_property
    def matrix(self) -> pl.DataFrame:
        """Means by what training left out and what is tested.

        system, measure, left_out, group (the far queries of a fold), mean, low, high, queries.
        """
        groups = self._groups
        rows = []
        for (system, measure, fold), part in self.values.group_by(
            "system", "measure", "fold", maintain_order=True
        ):
            per_query = part.group_by("query_id").agg(pl.col("value").mean()).sort("query_id")
            for group, members in groups.items():
                found = per_query.filter(pl.col("query_id").is_in(members.implode()))
                if not len(found):
                    continue
                one = stats.mean(found["value"].to_numpy(), **self._options)
                row = {"system": system, "measure": measure, "left_out": fold, "group": group}
                row |= {"mean": one.value, "low": one.low, "high": one.high}
                rows.append(row | {"queries": one.n})
        return pl.DataFrame(rows)

    @cached_property
    def losses(self) -> pl.DataFrame:
        """What each group loses when it is left out.

        system, measure, group, queries, seeds, avg_in, out and rel_loss with low and high, p
        (paired t), p_adjusted (Holm, over groups and systems).

        rel_loss = (avg_in - out) / avg_in, as in MS-Shift; with the sign turned for measures of
        which less is better, so that a loss is positive.
        """
        rows = []
        for measure in self.measures:
            for system in self.systems:
                for group, members in self._groups.items():
                    sides = self._sides(system, measure, members)
                    if sides is None:
                        continue
                    _, near, far = sides
                    change = stats.relative_change(near, far, **self._options)
                    test = stats.paired_test(far.mean(axis=1), near.mean(axis=1))
                    sign = -1.0 if measure.higher_is_better else 1.0
                    ends = sorted((sign * change.relative.low, sign * change.relative.high))
                    row: dict[str, Any] = {"system": system, "measure": str(measure)}
                    row |= {"group": group, "queries": len(near), "seeds": near.shape[1]}
                    row |= _named("avg_in", change.before) | _named("out", change.after)
                    row |= {"rel_loss": sign * change.relative.value}
                    row |= {"rel_loss_low": ends[0], "rel_loss_high": ends[1]}
                    rows.append(row | {"p": test.p})
        return _adjusted(pl.DataFrame(rows), ["measure"]) if rows else pl.DataFrame()

    # -- loss against similarity ------------------------------------------------------------

    def losses_by(self, similarity: Mapping[str, float], *, bins: int = 5) -> pl.DataFrame:
        """Loss by how similar a query is to what was trained on, in bins of equally many queries.

        ``similarity`` has a number for each query (R of the fold in which it is far). system,
        measure, bin, similarity_from, similarity_to, queries, near, far and delta with intervals:
        a ratio of means, for a query that scores 0 near has no relative loss.
        """
        ids = sorted(similarity)
        values = np.array([similarity[query] for query in ids], dtype=np.float64)
        if len(ids) < 2 * bins or bins < 1:
            raise InputError(f"{len(ids)} queries for {bins} bins, expected two for each at least.")
        edges = np.quantile(values, np.linspace(0, 1, bins + 1))
        place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, bins - 1)
        rows = []
        for measure in self.measures:
            for system in self.systems:
                for number in range(bins):
                    chosen = pl.Series([ids[at] for at in np.flatnonzero(place == number)])
                    sides = self._sides(system, measure, chosen)
                    if sides is None:
                        continue
                    change = stats.relative_change(sides[1], sides[2], **self._options)
                    row = {"system": system, "measure": str(measure), "bin": number}
                    row |= {"similarity_from": edges[number], "similarity_to": edges[number + 1]}
                    row |= {"queries": len(sides[1])}
                    row |= _named("near", change.before) | _named("far", change.after)
                    rows.append(row | _named("delta", change.relative))
        return pl.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield nearfar --json`` prints."""
        return {
            "near_far": self.table.fill_nan(None).to_dicts(),
            "by_memory": self.by_memory.fill_nan(None).to_dicts(),
            "losses": self.losses.fill_nan(None).to_dicts(),
            "matrix": self.matrix.fill_nan(None).to_dicts(),
            "level": self.level,
        }

    def figure(self) -> go.Figure:
        """Draw near and far of every system, and what each group loses."""
        from farfield.questions._nearfar_figures import draw

        return draw(self)

    # -- inside -----------------------------------------------------------------------------

    @property
    def _options(self) -> dict[str, Any]:
        return {"level": self.level, "resamples": self.resamples, "seed": self.seed}

    @cached_property
    def _groups(self) -> dict[str, pl.Series]:
        """The far queries of each fold, in the order of the folds."""
        far = self.roles.filter(pl.col("role") == "far")
        return {
            str(fold): part["query_id"].sort()
            for (fold,), part in far.group_by("fold", maintain_order=True)
        }

    def _sides(
        self, system: str, measure: Measure, queries: pl.Series | None = None
    ) -> tuple[pl.Series, Floats, Floats] | None:
        """Queries that are near in some fold and far in one: values near and far, by seed."""
        part = self.values.filter(
            (pl.col("system") == system) & (pl.col("measure") == str(measure))
        )
        if queries is not None:
            part = part.filter(pl.col("query_id").is_in(queries.implode()))
        seeds = part["seed"].unique().sort()
        told = part.join(self.roles, on=["fold", "query_id"], how="inner")
        means = told.group_by("query_id", "role", "seed").agg(pl.col("value").mean())
        wide = {
            role: means.filter(pl.col("role") == role)
            .pivot("seed", index="query_id", values="value")
            .sort("query_id")
            for role in ("near", "far")
        }
        both = wide["near"].select("query_id").join(wide["far"], on="query_id", how="semi")
        if not len(both):
            return None
        names = [str(seed) for seed in seeds]
        found = [
            both.join(wide[role], on="query_id", how="left", maintain_order="left").select(names)
            for role in ("near", "far")
        ]
        return both["query_id"], found[0].to_numpy(), found[1].to_numpy()

    def _change(
        self, system: str, measure: Measure, queries: pl.Series | None
    ) -> list[dict[str, Any]]:
        head = {"system": system, "measure": str(measure)}
        sides = self._sides(system, measure, queries)
        if sides is None:
            return self._unpaired(head, system, measure, queries)
        ids, near, far = sides
        group_of = {query: fold for fold, members in self._groups.items() for query in members}
        groups = [group_of[query] for query in ids]
        test = stats.paired_test(far.mean(axis=1), near.mean(axis=1))
        rows = []
        for average in _AVERAGES:
            change = stats.relative_change(
                near, far, groups=groups if average == "macro" else None, **self._options
            )
            row = head | {"average": average, "queries": len(near), "seeds": near.shape[1]}
            row |= _named("near", change.before) | _named("far", change.after)
            rows.append(row | _named("delta", change.relative) | {"p": test.p})
        return rows

    def _unpaired(
        self, head: dict[str, Any], system: str, measure: Measure, queries: pl.Series | None
    ) -> list[dict[str, Any]]:
        """Near and far are different queries, as in a shift of time."""
        part = self.values.filter(
            (pl.col("system") == system) & (pl.col("measure") == str(measure))
        )
        if queries is not None:
            part = part.filter(pl.col("query_id").is_in(queries.implode()))
        told = part.join(self.roles, on=["fold", "query_id"], how="inner")
        means = told.group_by("query_id", "role").agg(pl.col("value").mean()).sort("query_id")
        near, far = (
            means.filter(pl.col("role") == role)["value"].to_numpy() for role in ("near", "far")
        )
        if not len(near) or not len(far):
            return []
        change = stats.relative_change(near, far, paired=False, **self._options)
        p = stats.two_sample_test(far, near).p if min(len(near), len(far)) > 1 else float("nan")
        row = head | {"average": "micro", "queries": len(near) + len(far)}
        row |= {"seeds": part["seed"].n_unique()}
        row |= _named("near", change.before) | _named("far", change.after)
        return [row | _named("delta", change.relative) | {"p": p}]


def near_far(
    partition: Partition | PathLike,
    qrels: Qrels | PathLike,
    runs: Iterable[Trained] | PathLike,
    measures: Iterable[str | Measure] = ("nDCG@10", "RR@10", "R@100"),
    *,
    train_qrels: Qrels | PathLike | None = None,
    ties: str = "trec",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> NearFar:
    """Compare systems near and far, given their runs of all test queries for each fold of a shift.

    ``runs`` lists (system, fold, seed, run); a fold of ``None`` stands for all folds, for systems
    that are not trained. Or it is a file with the columns system, run (a path, from the file's
    folder) and perhaps fold and seed. With ``train_qrels`` results are also told apart by whether a
    relevant document was trained on.
    """
    parts = partition if isinstance(partition, Partition) else read(partition, Partition)
    judged = qrels if isinstance(qrels, Qrels) else read_qrels(qrels)
    chosen = parse_measures(measures)
    listed = read_trained(runs) if isinstance(runs, str | Path) else list(runs)  # type: ignore[arg-type]
    roles = parts.frame.filter(pl.col("role") != "train")
    folds = roles["fold"].unique(maintain_order=True).to_list()
    tested = roles["query_id"].unique()
    kept = Qrels.trusted(judged.frame.filter(judged.frame["query_id"].is_in(tested.implode())))
    lacking = tested.filter(~tested.is_in(kept.query_ids.implode()))
    if len(lacking):
        raise InputError(
            f"query {lacking.sort()[0]!r} of the partition is not judged ({len(lacking):,} such "
            "queries). Give the judgements of the test queries that the partition was made with."
        )
    _check_runs(listed, folds)
    frames = []
    for system, fold, number, run in listed:
        found = evaluate(kept, {system: run}, chosen, ties=ties).per_query.frame
        frames += [
            found.with_columns(fold=pl.lit(each), seed=pl.lit(number))
            for each in (folds if fold is None else [fold])
        ]
    values = pl.concat(frames).select("system", "measure", "fold", "seed", "query_id", "value")
    systems = tuple(dict.fromkeys(system for system, *_ in listed))
    seen = _seen(parts, kept, train_qrels)
    return NearFar(values, roles, chosen, systems, seen, level, resamples, seed)


def read_trained(path: PathLike) -> list[Trained]:
    """Read a list of runs: system, run (a path), and perhaps fold and seed."""
    frame = read_rows(path)
    for name in ("system", "run"):
        if name not in frame.columns:
            raise FileError(
                path,
                f"no column {name!r}.{did_you_mean(name, frame.columns)} Found "
                f"{', '.join(frame.columns)}; expected system, run, and perhaps fold and seed.",
            )
    folder = Path(path).parent
    found: list[Trained] = []
    for number, row in enumerate(frame.iter_rows(named=True), start=1):
        system, run = row["system"], row["run"]
        if not system or not run:
            raise FileError(path, f"row {number}: system or run is missing. Every row needs both.")
        fold, seed = row.get("fold"), row.get("seed")
        try:
            seed = int(seed) if seed not in (None, "") else 0
        except ValueError:
            raise FileError(path, f"row {number}: the seed {seed!r} is no whole number.") from None
        fold = str(fold) if fold not in (None, "", "*") else None
        found.append((str(system), fold, seed, folder / str(run)))
    return found


def _check_runs(runs: Sequence[Trained], folds: Sequence[str]) -> None:
    """Every system needs a run of every fold, for each of its seeds, once."""
    if not runs:
        raise InputError("no run was given. Give at least one for each fold.")
    there: dict[str, list[tuple[str, int]]] = {}
    for system, fold, seed, _ in runs:
        if fold is not None and fold not in folds:
            raise InputError(
                f"a run of {system} is of fold {fold!r}.{did_you_mean(fold, folds)} The partition "
                f"has {', '.join(folds)}."
            )
        there.setdefault(system, []).extend((f, seed) for f in (folds if fold is None else [fold]))
    for system, pairs in there.items():
        for fold, seed in pairs:
            if pairs.count((fold, seed)) > 1:
                raise InputError(f"{system} has two runs of fold {fold!r} and seed {seed}.")
        for seed in sorted({seed for _, seed in pairs}):
            for fold in folds:
                if (fold, seed) not in pairs:
                    raise InputError(
                        f"{system} has no run of fold {fold!r} and seed {seed}. Every fold needs "
                        "one of all test queries."
                    )


def _seen(
    partition: Partition, qrels: Qrels, train: Qrels | PathLike | None
) -> pl.DataFrame | None:
    """Which test queries have a relevant document that is relevant to a training query?"""
    if train is None:
        return None
    table = train if isinstance(train, Qrels) else read_qrels(train)
    trained = partition.frame.filter(pl.col("role") == "train").select("query_id").unique()
    known = table.relevant().frame.join(trained, on="query_id", how="semi")["doc_id"].unique()
    return (
        qrels.frame.group_by("query_id")
        .agg(
            ((pl.col("relevance") > 0) & pl.col("doc_id").is_in(known.implode()))
            .any()
            .alias("seen")
        )
        .sort("query_id")
    )


def _named(name: str, found: stats.Estimate) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def _adjusted(frame: pl.DataFrame, within: list[str]) -> pl.DataFrame:
    """Correct p-values (Holm) among rows that are alike in some columns."""
    parts = []
    for part in frame.with_row_index("at").partition_by(within, maintain_order=True):
        p = part["p"].fill_nan(None)
        adjusted = np.full(len(part), np.nan)
        known = p.is_not_null().to_numpy()
        if known.any():
            adjusted[known] = stats.adjust(p.drop_nulls().to_numpy(), "holm")
        parts.append(part.with_columns(pl.Series("p_adjusted", adjusted)))
    return pl.concat(parts).sort("at").drop("at")
