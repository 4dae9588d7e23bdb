"""``farfield audit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farfield.cli import show
from farfield.cli.options import FigureFile, HtmlFile, Json, Level, Output, Seed, table_to_write

if TYPE_CHECKING:
    import polars as pl

    from farfield.questions.audit import Audit


def audit(
    more_labels: Annotated[
        list[Path] | None, typer.Argument(metavar="", help="", hidden=True, show_default=False)
    ] = None,
    collection: Annotated[
        Path | None,
        typer.Option(help="A BEIR folder with qrels/train.tsv and qrels/test.tsv: all in one."),
    ] = None,
    train_queries: Annotated[
        str | None, typer.Option(help="Training queries: a file, a BEIR folder or ir:NAME.")
    ] = None,
    test_queries: Annotated[str | None, typer.Option(help="Test queries, likewise.")] = None,
    train_qrels: Annotated[str | None, typer.Option(help="Training judgements.")] = None,
    test_qrels: Annotated[str | None, typer.Option(help="Test judgements.")] = None,
    encoder: Annotated[
        str, typer.Option(help="Makes vectors of queries, like lsa(dimensions=64); none: without.")
    ] = "lsa()",
    candidates: Annotated[
        int, typer.Option(help="Training queries to look at, per method and test query.", min=1)
    ] = 10,
    entities: Annotated[str, typer.Option(help="Entity finder: terms or spacy.")] = "terms",
    threshold: Annotated[
        float, typer.Option(help="N-gram similarity from which queries are near-duplicates.")
    ] = 0.75,
    min_shared: Annotated[
        list[int] | None,
        typer.Option(
            help="Shared passages that make a label overlap; may be repeated.", show_default="1, 2"
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(help="Draw so many training queries: leak rates depend on their number."),
    ] = None,
    sheet: Annotated[
        Path | None,
        typer.Option(help="Write a sheet (csv) for people to annotate.", callback=table_to_write),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Sheets that were filled in: --labels a.csv b.csv c.csv"),
    ] = None,
    clean: Annotated[
        Path | None, typer.Option(help="Write the data without the leaks into this folder.")
    ] = None,
    clean_side: Annotated[str, typer.Option(help="Which side to clean: train or test.")] = "train",
    output: Output = None,
    figure: FigureFile = None,
    level: Level = 0.95,
    seed: Seed = 0,
    html: HtmlFile = None,
    json: Json = False,
) -> None:
    """How much of the test set was seen in training? Labels, queries, entities, intents.

    Give both qrels for the overlap of labels, both sets of queries for the rest. --output writes
    every test query with its nearest training queries and the evidence.
    """
    from farfield import figures
    from farfield.errors import InputError
    from farfield.io import beir
    from farfield.questions import audit as question

    if more_labels and labels is None:
        raise InputError(f"unexpected argument {str(more_labels[0])!r}. See farfield audit --help.")
    if clean_side not in ("train", "test"):
        raise InputError(f"--clean-side is {clean_side!r}, expected train or test.")
    if collection is not None:
        train_queries, test_queries = (
            train_queries or str(collection),
            test_queries or str(collection),
        )
        splits = beir.splits(collection)
        train_qrels = train_qrels or _split(collection, splits, "train")
        test_qrels = test_qrels or _split(collection, splits, "test")
    answer = question.audit(
        train_queries=train_queries,
        test_queries=test_queries,
        train_qrels=train_qrels,
        test_qrels=test_qrels,
        encoder=None if encoder == "none" else encoder,
        candidates_each=candidates,
        entities=entities,
        labels=[] if labels is None else [labels, *(more_labels or [])],
        threshold=threshold,
        min_shared=min_shared or (1, 2),
        sample=sample,
        level=level,
        seed=seed,
    )
    if sheet is not None or output is not None:
        if answer.pairs is None:
            raise InputError("--sheet and --output need the training and the test queries.")
        if sheet is not None:
            from farfield.overlap.annotation import sheet as to_annotate

            show.write_frame(to_annotate(answer.pairs), sheet)
        if output is not None:
            show.write_frame(answer.pairs, output)
    if figure is not None:
        figures.save(answer.figure(), figure)
    cleaned = None
    if clean is not None:
        cleaned = _clean(answer, clean, clean_side)
    show.write_report(answer, html)
    if json:
        found = answer.to_dict()
        show.print_json(found | {"clean": cleaned} if cleaned else found)
        return
    _print(answer)
    if cleaned is not None:
        print(f"\n{clean}: " + ", ".join(f"{name} {n:,} rows" for name, n in cleaned.items()))


def _split(folder: Path, splits: dict[str, Path], name: str) -> str:
    from farfield.errors import FileError

    if name not in splits:
        raise FileError(
            folder, f"it has no qrels/{name}.tsv (but {', '.join(splits)}). Say --{name}-qrels."
        )
    return str(splits[name])


def _print(answer: Audit) -> None:
    print(f"{answer.queries:,} test queries")
    if answer.label_overlap is not None:
        rows = [
            [f">= {row['relevance']}", f"{row['min_shared']}", *_share(row)]
            for row in answer.label_overlap.iter_rows(named=True)
        ]
        show.table(
            ["relevance", "passages shared", "share", "interval", "queries"],
            rows,
            title="\nTest queries with relevant passages that are relevant in training",
            notes=[
                "At least 1 is what Zhan et al. state; at least 2 is what their Table 3 counts."
            ],
        )
    tables = {
        "Test queries by their nearest training query": answer.query_overlap,
        "Entities of test queries known from training": answer.entity_overlap,
        "Intents of test queries known from training": answer.intent_overlap,
    }
    for title, table in tables.items():
        if table is not None:
            source = f" ({table['source'][0]})" if "source" in table.columns else ""
            rows = [[row["overlap"], *_share(row)] for row in table.iter_rows(named=True)]
            header = ["overlap", "share", "interval", "queries"]
            show.table(header, rows, title=f"\n{title}{source}")
    if answer.leak_curve is not None:
        _print_curve(answer.leak_curve)
    if answer.vocabulary is not None:
        found = answer.vocabulary
        print(
            f"\nWords in common: weighted Jaccard {found.jaccard:.3f} (± {found.sd:.3f} over "
            f"{found.draws} draws of {found.size:,} queries from each side; two samples of one "
            f"side reach {found.ceiling:.3f}, so {found.ratio:.0%} of what is possible)."
        )
    if answer.annotation is not None:
        kappas = ", ".join(
            f"{question} {'—' if value is None else format(value, '.2f')}"
            for question, value in answer.annotation.kappa.items()
        )
        print(f"\nCohen's kappa of {answer.annotation.annotators} annotators: {kappas}")
    print(
        f"\n{len(answer.leaked):,} test queries were seen in training (near-duplicate or shared "
        f"label). {answer.power()}"
    )


def _print_curve(curve: pl.DataFrame) -> None:
    methods = curve["method"].unique(maintain_order=True).to_list()
    rows = [
        [f"{threshold:.2f}", *(f"{share:.1%}" for share in group["share"])]
        for (threshold,), group in curve.group_by("threshold", maintain_order=True)
    ]
    show.table(
        ["similarity >=", *methods],
        rows,
        title="\nLeak rate: share of test queries with a training query at least so similar",
        notes=[
            "There is no natural threshold: read the whole curve. It rises with the number of",
            "training queries; --sample compares training sets at equal size.",
        ],
    )


def _share(row: dict[str, Any]) -> list[str]:
    low, high = row["low"], row["high"]
    span = "[—]" if low is None else f"[{low:.1%}, {high:.1%}]"
    return [f"{row['share']:.1%}", span, f"{row['queries']:,}"]


def _clean(answer: Audit, folder: Path, side: str) -> dict[str, int]:
    """Write queries and judgements of one side without those that leak."""
    from farfield import io
    from farfield.errors import FileError
    from farfield.overlap.cleaning import without
    from farfield.tables import Qrels, Queries

    leaks = answer.leaking if side == "train" else answer.leaked
    texts = answer.train if side == "train" else answer.test
    qrels = answer.train_qrels if side == "train" else answer.test_qrels
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(folder, f"cannot be made: {error.strerror}.") from error
    written: dict[str, int] = {}
    if texts is not None:
        kept = without(texts, leaks)
        io.write(Queries.trusted(kept), folder / f"{side}-queries.jsonl")
        written[f"{side}-queries.jsonl"] = len(kept)
    if qrels is not None:
        kept = without(qrels, leaks)
        io.write(Qrels.trusted(kept), folder / f"{side}-qrels.tsv")
        written[f"{side}-qrels.tsv"] = len(kept)
    show.write_frame(leaks.to_frame("query_id"), folder / "removed.csv")
    written["removed.csv"] = len(leaks)
    return written
