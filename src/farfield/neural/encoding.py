"""Texts become vectors: dense, sparse, or one for every token.

The values are those of the model's own ``encode_query`` and ``encode_document``, because its own
modules compute them; only tokenising, batching and copying are done here. Work goes in chunks:
while a chunk is computed the next ones are tokenised, and within a chunk texts of like length
share a batch. Memory is that of a few chunks, whatever the number of texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError
from farfield.neural.models import Task, kind_of
from farfield.neural.tokens import Chunk, batches, chunked, prepared
from farfield.neural.vectors import Ints, Matrix, SparseVectors, TokenVectors, in_order, starts_of
from farfield.progress import track

__all__ = [
    "CHUNK",
    "Encoded",
    "Precision",
    "computing",
    "encode",
    "encode_chunks",
    "encode_multi",
    "encode_sparse",
    "forward",
    "joined",
    "precision_of",
    "tokens_per_batch",
]

Encoded = Matrix | SparseVectors | TokenVectors
Precision = Literal["auto", "float32", "bfloat16", "float16"]

CHUNK = 8_192  # texts at a time: enough of each length for full batches, seconds of work on a GPU
# A GPU is busy from about 100,000 tokens on; the logits of a sparse model need 30,000 values each.
_GPU_TOKENS = {"dense": 131_072, "multi": 65_536, "sparse": 16_384, "cross": 131_072}
_CPU_TOKENS = 4_096  # what fits into the caches of a core


def encode(
    model: Any,
    texts: Sequence[str],
    *,
    task: Task | None = None,
    dtype: npt.DTypeLike = np.float32,
    precision: Precision = "auto",
    tokens: int | None = None,
) -> Matrix:
    """Return a row for every text from a SentenceTransformer, in the order given.

    ``task`` is ``query`` or ``document``, as the model has prompts for them. ``precision`` is what
    the model computes in (``auto``: bfloat16 on a GPU, float32 on a CPU), ``dtype`` what is
    returned, ``tokens`` how many a batch has at most.
    """
    return cast(Matrix, _all_of(model, "dense", texts, task, dtype, precision, tokens))


def encode_sparse(
    model: Any,
    texts: Sequence[str],
    *,
    task: Task | None = None,
    dtype: npt.DTypeLike = np.float32,
    precision: Precision = "auto",
    tokens: int | None = None,
) -> SparseVectors:
    """Return the weighted dimensions of every text from a SparseEncoder (SPLADE and its kin)."""
    return cast(SparseVectors, _all_of(model, "sparse", texts, task, dtype, precision, tokens))


def encode_multi(
    model: Any,
    texts: Sequence[str],
    *,
    task: Task | None = None,
    dtype: npt.DTypeLike = np.float32,
    precision: Precision = "auto",
    tokens: int | None = None,
) -> TokenVectors:
    """Return the token vectors of every text from a MultiVectorEncoder (ColBERT and its kin)."""
    return cast(TokenVectors, _all_of(model, "multi", texts, task, dtype, precision, tokens))


def _all_of(
    model: Any,
    kind: str,
    texts: Sequence[str],
    task: Task | None,
    dtype: npt.DTypeLike,
    precision: Precision,
    tokens: int | None,
) -> Encoded:
    if (found := kind_of(model)) != kind:
        raise InputError(f"this model is {found}, expected one that is {kind}.")
    chunks = chunked(texts, CHUNK)
    parts = encode_chunks(model, chunks, task=task, dtype=dtype, precision=precision, tokens=tokens)
    steps = track(range(-(-len(texts) // CHUNK)), "encoding")
    made = [part for _, part in zip(steps, parts, strict=True)]
    return joined(made) if made else cast(Encoded, _PUT[kind](model, [], np.dtype(dtype)))


def encode_chunks(
    model: Any,
    chunks: Iterable[list[str]],
    *,
    task: Task | None = None,
    dtype: npt.DTypeLike = np.float32,
    precision: Precision = "auto",
    tokens: int | None = None,
) -> Iterator[Encoded]:
    """Yield what a model of any kind gives for each list of texts, tokenising ahead.

    What a list gives does not depend on the lists before it.
    """
    if task not in ("query", "document", None):
        raise InputError(f"the task is {task!r}, expected query or document.")
    budget = tokens_per_batch(model, tokens)
    for chunk in prepared(model, task, chunks):
        with computing(model, precision):
            found = _computed(model, chunk, budget, dtype, task)
        yield found


def _computed(
    model: Any, chunk: Chunk, tokens: int, dtype: npt.DTypeLike, task: Task | None
) -> Encoded:
    kind = kind_of(model)
    taken = [
        part
        for rows in batches(chunk.lengths, tokens)
        for part in forward(model, chunk, rows, task, _TAKE[kind])
    ]
    return cast(Encoded, _PUT[kind](model, taken, np.dtype(dtype)))


def forward(
    model: Any, chunk: Chunk, rows: Ints, task: Task | None, take: Any
) -> Iterator[tuple[Ints, Any]]:
    """Run a batch through the model's modules; one that is too large for the GPU goes in halves."""
    import torch

    given: dict[str, Any] = {} if task is None and kind_of(model) != "multi" else {"task": task}
    if getattr(model, "max_active_dims", None) is not None:
        given["max_active_dims"] = model.max_active_dims  # some modules stop there themselves
    try:
        found = take(model, model(chunk.features(rows), **given))
    except torch.cuda.OutOfMemoryError:
        if len(rows) == 1:
            raise InputError(
                f"a text of {chunk.lengths[rows[0]]} tokens is too long for the GPU's memory. "
                "Set the model's max_seq_length lower, or use a GPU with more memory."
            ) from None
        found = None  # the halves are run outside, where the failed try holds no memory
    if found is not None:
        yield rows, found
        return
    torch.cuda.empty_cache()
    for half in np.array_split(rows, 2):
        yield from forward(model, chunk, half, task, take)


def computing(model: Any, precision: Precision = "auto") -> AbstractContextManager[Any]:
    """Compute without gradients or dropout and in this precision while the context lasts."""
    import torch

    device = model.device.type
    name = precision_of(model, precision)
    stack = ExitStack()
    if model.training:  # as trainers leave it
        stack.callback(model.train)
        model.eval()
    stack.enter_context(torch.inference_mode())
    if name != "float32":
        stack.enter_context(torch.autocast(device, dtype=getattr(torch, name)))
    return stack


def precision_of(model: Any, precision: Precision = "auto") -> str:
    """Return what a model computes in: bfloat16 on a GPU and float32 elsewhere, unless told."""
    if precision == "auto":
        return "bfloat16" if model.device.type == "cuda" else "float32"
    if precision not in ("float32", "bfloat16", "float16"):
        raise InputError(
            f"the precision is {precision!r}, expected auto, float32, bfloat16 or float16."
        )
    return precision


def tokens_per_batch(model: Any, tokens: int | None = None) -> int:
    """Return how many tokens a batch has at most."""
    if tokens is None:
        return _GPU_TOKENS[kind_of(model)] if model.device.type == "cuda" else _CPU_TOKENS
    if tokens < 1:
        raise InputError(f"a batch of {tokens} tokens cannot be, expected 1, 2, 3 …")
    return tokens


# -- dense ----------------------------------------------------------------------------------------


def _take_dense(model: Any, out: dict[str, Any]) -> Any:
    found = out["sentence_embedding"]
    return found if model.truncate_dim is None else found[..., : model.truncate_dim]


def _put_dense(model: Any, taken: list[tuple[Ints, Any]], dtype: np.dtype[Any]) -> Matrix:
    if not taken:
        return np.zeros((0, model.get_embedding_dimension() or 0), dtype=dtype)
    import torch

    found = _numpy(torch.cat([part for _, part in taken]), dtype)
    placed = np.empty_like(found)
    placed[np.concatenate([rows for rows, _ in taken])] = found
    return placed


# -- sparse ---------------------------------------------------------------------------------------


def _take_sparse(model: Any, out: dict[str, Any]) -> Any:
    found = out["sentence_embedding"]
    if model.max_active_dims is not None:
        from sentence_transformers.util import select_max_active_dims

        found = select_max_active_dims(found, max_active_dims=model.max_active_dims)
    rows, columns = found.nonzero(as_tuple=True)
    return (found != 0).sum(1), columns, found[rows, columns]


def _put_sparse(model: Any, taken: list[tuple[Ints, Any]], dtype: np.dtype[Any]) -> SparseVectors:
    texts, counts, (columns, weights) = _runs(taken, [np.dtype(np.int32), dtype])
    starts, (columns, weights) = in_order(texts, counts, [columns, weights])
    return SparseVectors(columns, weights, starts)


# -- a vector for every token -----------------------------------------------------------------


def _take_multi(model: Any, out: dict[str, Any]) -> Any:
    kept = out["attention_mask"].bool()
    return kept.sum(1), out["token_embeddings"][kept]


def _put_multi(model: Any, taken: list[tuple[Ints, Any]], dtype: np.dtype[Any]) -> TokenVectors:
    if not taken:
        width = model.get_embedding_dimension() or 0
        return TokenVectors(np.zeros((0, width), dtype=dtype), starts_of(np.zeros(0)))
    texts, counts, (vectors,) = _runs(taken, [dtype])
    starts, (vectors,) = in_order(texts, counts, [vectors])
    return TokenVectors(vectors, starts)


_TAKE = {"dense": _take_dense, "sparse": _take_sparse, "multi": _take_multi}
_PUT: dict[str, Any] = {"dense": _put_dense, "sparse": _put_sparse, "multi": _put_multi}


def _runs(
    taken: list[tuple[Ints, Any]], dtypes: list[np.dtype[Any]]
) -> tuple[Ints, Ints, list[npt.NDArray[Any]]]:
    """Join batches of (how many values each text has, values …)."""
    import torch

    if not taken:
        return (
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            [np.zeros(0, dtype) for dtype in dtypes],
        )
    texts = np.concatenate([rows for rows, _ in taken])
    counts = _numpy(torch.cat([part[0] for _, part in taken]), np.dtype(np.int64))
    values = [
        _numpy(torch.cat([part[at] for _, part in taken]), dtype)
        for at, dtype in enumerate(dtypes, start=1)
    ]
    return texts, counts, values


def _numpy(found: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    import torch

    return found.to(getattr(torch, dtype.name)).cpu().numpy()  # type: ignore[no-any-return]


def joined(parts: Sequence[Encoded]) -> Encoded:
    """Join what was encoded chunk by chunk."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, SparseVectors):
        sparse = cast(Sequence[SparseVectors], parts)
        return SparseVectors(
            np.concatenate([part.indices for part in sparse]),
            np.concatenate([part.weights for part in sparse]),
            starts_of(np.concatenate([part.nonzeros for part in sparse])),
        )
    if isinstance(first, TokenVectors):
        multi = cast(Sequence[TokenVectors], parts)
        return TokenVectors(
            np.concatenate([part.vectors for part in multi]),
            starts_of(np.concatenate([part.lengths for part in multi])),
        )
    return np.concatenate(cast(Sequence[Matrix], parts))
