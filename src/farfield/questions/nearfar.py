"""How much is lost from near to far, when models were trained on the folds of a shift?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from farfield import stats
from farfield.encoders import Encoder
from farfield.errors import InputError
from farfield.indicators import Indicator
from farfield.io import read, read_qrels
from farfield.io.files import PathLike
from farfield.measures import Measure
from farfield.questions._nearfar_differences import differences, who_loses_less
from farfield.questions._nearfar_runs import Trained, check_runs, read_trained
from farfield.questions._nearfar_similarity import (
    Bins,
    Similarities,
    adjusted,
    comparable,
    correlate,
    in_words,
)
from farfield.questions._nearfar_values import Floats, Values, loss_of, named, rel_loss
from farfield.questions._query_sets import Given
from farfield.questions.distance import fold_distances
from farfield.questions.evaluate import evaluate, parse_measures
from farfield.stats.checks import whole
from farfield.tables import Partition, Qrels

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["INDICATORS", "NearFar", "Trained", "near_far", "read_trained"]

#: Indicators of similarity that are read unless others are asked for: cheap, and one of each level.
INDICATORS = ("jaccard", "r")

_AVERAGES = ("micro", "macro")
_BOX = {"p5": 0.05, "q1": 0.25, "median": 0.5, "q3": 0.75, "p95": 0.95}


@dataclass(frozen=True, eq=False)
class NearFar(Values):
    """Every system near and far, from runs of all test queries by models trained on each fold.

    ``values`` has a row for each system, fold, seed, measure and test query. A query is far in the
    fold that left its group out, and near in the others: both are averages over the same queries,
    so that a system that is not trained has no change at all.
    """

    seen: pl.DataFrame | None  # query_id, seen: was a relevant document trained on?
    similarities: Similarities | None = None  # of far queries to what was trained on
    bins: int = 5

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
        return adjusted(frame, ["measure", "average"])

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
        return adjusted(pl.DataFrame(rows), ["measure", "average", "seen"])

    @cached_property
    def differences(self) -> pl.DataFrame:
        """Every two systems compared: near, far, and in how much they change.

        measure, system, other, queries, near, far and delta of the system less those of the other,
        each with low and high, p of the difference of the deltas, p_adjusted (Holm, over pairs).
        Empty where no query is both near and far.
        """
        rows = []
        for measure in self.measures:
            changes = {
                system: (sides[0], stats.relative_change(*sides[1:], **self._options))
                for system in self.systems
                if (sides := self._sides(system, measure)) is not None
            }
            rows += [{"measure": str(measure)} | row for row in differences(changes)]
        return adjusted(pl.DataFrame(rows), ["measure"]) if rows else pl.DataFrame()

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
                    row: dict[str, Any] = {"system": system, "measure": str(measure)}
                    row |= {"group": group, "queries": len(near), "seeds": near.shape[1]}
                    row |= named("avg_in", change.before) | named("out", change.after)
                    rows.append(row | rel_loss(measure, change) | {"p": test.p})
        return adjusted(pl.DataFrame(rows), ["measure"]) if rows else pl.DataFrame()

    # -- loss against similarity ------------------------------------------------------------

    @cached_property
    def by_similarity(self) -> pl.DataFrame:
        """Losses in bins of queries, by every indicator that has a value for each query.

        indicator, nearer (is a higher value nearer?), and what :meth:`losses_by` has. Empty if
        nothing is known of similarities, or no query is both near and far.
        """
        return self._by_indicator(self.losses_by)

    @cached_property
    def boxes(self) -> pl.DataFrame:
        """How the losses of single queries are distributed in the same bins.

        indicator, nearer, and what :meth:`boxes_by` has.
        """
        return self._by_indicator(self.boxes_by)

    @cached_property
    def points(self) -> pl.DataFrame:
        """Each group's relative loss beside how similar it is to what was trained on.

        system, measure, group, queries, rel_loss with low and high, indicator, nearer (is a higher
        value nearer?), value with low and high, same, relative (value / same), and similarity: the
        relative value if all groups have one, for values of sets of different sizes cannot be
        compared, or else the value.
        """
        if self.similarities is None or not len(self.losses):
            return pl.DataFrame()
        names = ["rel_loss", "rel_loss_low", "rel_loss_high"]
        losses = self.losses.select("system", "measure", "group", "queries", *names)
        return comparable(losses.join(self.similarities.sets, on="group", maintain_order="left"))

    @cached_property
    def correlations(self) -> pl.DataFrame:
        """How loss goes with similarity, over queries and over groups.

        over (queries, groups), system, measure, indicator, nearer, kind (spearman, pearson), value,
        low, high, n, p, p_adjusted (Holm, over systems and indicators). Over queries the loss is
        near less far, over groups rel_loss. A negative value of a similarity says that what is
        farther loses more. There are none over fewer than three groups, and none of systems that
        lose nothing.
        """
        parts = [
            correlate(frame, over, **self._options)
            for over, frame in (("queries", self._query_points()), ("groups", self.points))
            if len(frame)
        ]
        return pl.concat(parts) if parts else pl.DataFrame()

    @cached_property
    def reading(self) -> list[str]:
        """Who loses less, and how loss goes with similarity, in words, for the first measure."""
        said = who_loses_less(self.table, self.differences)
        if self.similarities is not None:
            said += in_words(self.by_similarity, self.correlations, len(self._groups))
        return said

    def losses_by(self, similarity: Mapping[str, float], *, bins: int = 5) -> pl.DataFrame:
        """Loss by how similar a query is to what was trained on, in bins of equally many queries.

        ``similarity`` has a number for each query (R of the fold in which it is far). system,
        measure, bin, similarity_from, similarity_to, queries, near, far, delta (far / near - 1)
        and rel_loss (with the sign of a loss) with intervals: a ratio of means, for a query that
        scores 0 near has no relative loss.
        """
        rows = []
        for head, measure, near, far in self._binned(similarity, bins):
            change = stats.relative_change(near, far, **self._options)
            row = head | named("near", change.before) | named("far", change.after)
            rows.append(row | named("delta", change.relative) | rel_loss(measure, change))
        return pl.DataFrame(rows)

    def boxes_by(self, similarity: Mapping[str, float], *, bins: int = 5) -> pl.DataFrame:
        """How much single queries lose (near less far), in the bins of :meth:`losses_by`.

        system, measure, bin, similarity_from, similarity_to, queries, mean with low and high, p5,
        q1, median, q3, p95: what a box is drawn of. A loss is positive, also for measures of which
        less is better.
        """
        rows = []
        for head, measure, near, far in self._binned(similarity, bins):
            loss = loss_of(measure, near, far)
            quantiles = np.quantile(loss, list(_BOX.values())).tolist()
            row = head | named("mean", stats.mean(loss, **self._options))
            rows.append(row | dict(zip(_BOX, quantiles, strict=True)))
        return pl.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``farfield nearfar --json`` prints."""
        tables = {"near_far": self.table, "differences": self.differences}
        tables |= {"by_memory": self.by_memory, "losses": self.losses}
        tables |= {"matrix": self.matrix, "by_similarity": self.by_similarity}
        tables |= {"boxes": self.boxes, "points": self.points, "correlations": self.correlations}
        document = {name: frame.fill_nan(None).to_dicts() for name, frame in tables.items()}
        return document | {"reading": self.reading, "level": self.level}

    def figure(self) -> go.Figure:
        """Draw near and far of every system, what groups lose, and loss against similarity."""
        from farfield.questions._nearfar_figures import draw

        return draw(self)

    # -- inside -----------------------------------------------------------------------------

    def _binned(
        self, similarity: Mapping[str, float], bins: int
    ) -> Iterator[tuple[dict[str, Any], Measure, Floats, Floats]]:
        """Values near and far in every bin, with the columns that say of what."""
        whole("bins", bins, 1)
        known = next(iter(self._paired.values()), (pl.Series(dtype=pl.String),))[0]
        found = Bins.of(similarity, known, bins)
        for measure in self.measures:
            for system in self.systems:
                for number, members in enumerate(found.members):
                    sides = self._sides(system, measure, members)
                    if sides is None:  # like values share a bin, and leave another empty
                        continue
                    head = {"system": system, "measure": str(measure), "bin": number}
                    head |= {"similarity_from": found.edges[number]}
                    head |= {"similarity_to": found.edges[number + 1], "queries": len(sides[1])}
                    yield head, measure, sides[1], sides[2]

    def _by_indicator(self, table: Callable[..., pl.DataFrame]) -> pl.DataFrame:
        """A table of :meth:`losses_by` or :meth:`boxes_by` for each indicator, in as many bins."""
        if self.similarities is None or not self._paired:
            return pl.DataFrame()
        known = set(next(iter(self._paired.values()))[0])
        frames = []
        for (indicator, nearer), values in self.similarities.of_queries.items():
            bins = min(self.bins, len(known & set(values)) // 2)
            if bins:
                head = pl.lit(indicator).alias("indicator"), pl.lit(nearer).alias("nearer")
                frames.append(table(values, bins=bins).select(*head, pl.all()))
        return pl.concat(frames) if frames else pl.DataFrame()

    def _query_points(self) -> pl.DataFrame:
        """Every query's loss beside its similarity, for :attr:`correlations`."""
        if self.similarities is None:
            return pl.DataFrame()
        frames = []
        for measure in self.measures:
            for system in self.systems:
                sides = self._sides(system, measure)
                if sides is None:
                    continue
                loss = pl.Series("loss", loss_of(measure, *sides[1:]))
                frames.append(
                    pl.DataFrame([sides[0], loss]).with_columns(
                        system=pl.lit(system), measure=pl.lit(str(measure))
                    )
                )
        if not frames:
            return pl.DataFrame()
        told = self.similarities.per_query.rename({"value": "similarity"})
        return pl.concat(frames).join(told, on="query_id", maintain_order="left")

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
            row |= named("near", change.before) | named("far", change.after)
            rows.append(row | named("delta", change.relative) | {"p": test.p})
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
        row |= named("near", change.before) | named("far", change.after)
        return [row | named("delta", change.relative) | {"p": p}]


def near_far(
    partition: Partition | PathLike,
    qrels: Qrels | PathLike,
    runs: Iterable[Trained] | PathLike,
    measures: Iterable[str | Measure] = ("nDCG@10", "RR@10", "R@100"),
    *,
    train_qrels: Qrels | PathLike | None = None,
    collection: Given | None = None,
    indicators: Sequence[str | Indicator] = INDICATORS,
    encoder: str | Encoder = "lsa()",
    bins: int = 5,
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

    With ``collection``, which holds the texts of all queries of the partition, loss is held against
    similarity to what was trained on, by ``indicators``, in ``bins`` of equally many queries (fewer
    where there are not two for each); ``encoder`` makes the vectors of queries.
    """
    whole("bins", bins, 1)
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
    check_runs(listed, folds)
    similarities = None
    if collection is not None:
        found = fold_distances(
            collection, parts, indicators=indicators, encoder=encoder, level=level, seed=seed
        )
        similarities = Similarities.of(found)
    frames = []
    for system, fold, number, run in listed:
        per_query = evaluate(kept, {system: run}, chosen, ties=ties).per_query.frame
        frames += [
            per_query.with_columns(fold=pl.lit(each), seed=pl.lit(number))
            for each in (folds if fold is None else [fold])
        ]
    values = pl.concat(frames).select("system", "measure", "fold", "seed", "query_id", "value")
    systems = tuple(dict.fromkeys(system for system, *_ in listed))
    seen = _seen(parts, kept, train_qrels)
    options = level, resamples, seed
    return NearFar(values, roles, chosen, systems, *options, seen, similarities, bins)


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
