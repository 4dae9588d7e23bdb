"""Neural models at speed: encode texts, score pairs, search vectors; on one GPU, or right on a CPU.

Takes lists of texts and numpy arrays, so that it serves every family above. torch and
sentence-transformers are loaded when a model is.
"""

from __future__ import annotations

from farfield.neural.encoding import encode, encode_multi, encode_sparse
from farfield.neural.late import maxsim, search_multi
from farfield.neural.models import device_of, fingerprint, load, prompt_of
from farfield.neural.scoring import score_pairs
from farfield.neural.storing import Stored, encode_to, open_stored
from farfield.neural.topk import search
from farfield.neural.vectors import SparseVectors, TokenVectors

__all__ = [
    "SparseVectors",
    "Stored",
    "TokenVectors",
    "device_of",
    "encode",
    "encode_multi",
    "encode_sparse",
    "encode_to",
    "fingerprint",
    "load",
    "maxsim",
    "open_stored",
    "prompt_of",
    "score_pairs",
    "search",
    "search_multi",
]
