"""Losses, as formulas over tables of scores: a row for each query, a column for each document."""

from __future__ import annotations

from typing import Any

__all__ = [
    "cross_entropy",
    "flops",
    "lambda_rank",
    "margin_error",
    "maxsim_table",
    "pairwise",
    "rising",
    "teacher_divergence",
]


def cross_entropy(scores: Any, own: Any) -> Any:
    """-log softmax of each row at its own column; what is -inf takes no part."""
    import torch

    return torch.nn.functional.cross_entropy(scores.float(), own)


def pairwise(scores: Any, own: Any) -> Any:
    """log(1 + exp(negative - positive)), averaged over all pairs; what is -inf is no negative.

    Equal to a softmax over the two, which is how STAR has it.
    """
    import torch

    scores = scores.float()
    positive = scores.gather(1, own[:, None])
    counted = torch.isfinite(scores).scatter(1, own[:, None], False)
    losses = torch.nn.functional.softplus(torch.where(counted, scores - positive, 0.0))
    return (losses * counted).sum() / counted.sum().clamp_min(1)


def lambda_rank(scores: Any, relevant: Any) -> Any:
    """Pairwise losses weighted by |1/i - 1/j|, what swapping the two would change of 1 / rank.

    Rows of ``scores`` are in descending order, ``relevant`` says which of them are; the ranks are
    their places. Averaged over all pairs of a relevant and another document (ADORE).
    """
    import torch

    scores = scores.float()
    ranks = 1.0 / torch.arange(1, scores.shape[1] + 1, device=scores.device)
    swapped = (ranks[:, None] - ranks[None, :]).abs()
    pairs = relevant[:, :, None] & ~relevant[:, None, :]
    margins = scores[:, None, :] - scores[:, :, None]  # the other minus the relevant one
    losses = torch.nn.functional.softplus(margins) * swapped * pairs
    return losses.sum() / pairs.sum().clamp_min(1)


def flops(weights: Any) -> Any:
    """Sum over dimensions of the squared mean weight: what searching a list costs (FLOPS)."""
    return (weights.float().abs().mean(0) ** 2).sum()


def rising(step: int, until: int) -> float:
    """(step / until)^2, then 1: how regularisers come in."""
    return min(1.0, (step / max(1, until)) ** 2)


def teacher_divergence(student: Any, teacher: Any, temperature: float) -> Any:
    """KL(softmax(teacher / temperature) || softmax(student)), averaged over rows (TCT-ColBERT)."""
    import torch

    wanted = torch.log_softmax(teacher.float() / temperature, 1)
    found = torch.log_softmax(student.float(), 1)
    return torch.nn.functional.kl_div(found, wanted, reduction="batchmean", log_target=True)


def margin_error(student: Any, teacher: Any) -> Any:
    """Mean squared difference of the margins between columns 0 and 1 (MarginMSE)."""
    margins = student.float()[:, 0] - student.float()[:, 1]
    return ((margins - (teacher[:, 0] - teacher[:, 1])) ** 2).mean()


def maxsim_table(queries: Any, documents: Any) -> Any:
    """Score all queries with all documents: the best product of each query token, added up.

    Both are (vectors, mask), padded. Masked tokens of a query add nothing, those of a document
    are nobody's best.
    """
    import torch

    (asked, asked_mask), (held, held_mask) = queries, documents
    products = torch.einsum("qid,njd->qnij", asked, held)
    products = products.masked_fill(~held_mask[None, :, None, :], -torch.inf)
    best = products.amax(3).float()
    return (best * asked_mask[:, None, :]).masked_fill(~asked_mask[:, None, :], 0.0).sum(2)
