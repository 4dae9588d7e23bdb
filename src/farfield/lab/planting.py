"""Near-duplicates: the same query again, a little changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["EDITS", "edited", "normal"]

EDITS = ("exact", "reordered", "typo", "paraphrase")
"""How a planted test query differs from its training query.

``exact``: in nothing but case and punctuation. ``reordered``: the same words in another order.
``typo``: one letter slip. ``paraphrase``: a small word more, less or exchanged.
"""

_SMALL = (
    (" the ", " "),
    ("anyone know", "anybody know"),
    ("can you explain", "could you explain"),
    ("my kids are asking", "my kids keep asking"),
    ("trying to find out", "i am trying to find out"),
    ("need to know", "i need to know"),
    ("short answer", "a short answer"),
    ("just the facts", "only the facts"),
    ("what is ", "what's "),
    ("who is ", "who's "),
)
_ATTEMPTS = 100
_NOT_WORD = re.compile(r"[^\w\s]+")


def normal(text: str) -> str:
    """Return a text without case, punctuation and extra spaces."""
    return " ".join(_NOT_WORD.sub(" ", text.lower()).split())


def edited(
    rng: np.random.Generator, edit: str, text: str, mention: str, taken: Callable[[str], bool]
) -> str:
    """Return a near-duplicate of a query that is not another query: no text that is ``taken``."""
    result = _EDITS[edit](rng, text, mention)
    for attempt in range(_ATTEMPTS):
        if edit == "exact" or not taken(normal(result)):
            break
        # Slips of the pen add up, so that in the end there is one nobody else has made.
        result = _typo(rng, result, "") if attempt > 8 else _EDITS[edit](rng, text, mention)
    return result


def _exact(rng: np.random.Generator, text: str, mention: str) -> str:
    changed = (
        text,
        text.lower(),
        text[0].upper() + text[1:],
        text.removesuffix("?") if text.endswith("?") else text + "?",
        text.removesuffix("?") + ".",
    )
    return changed[rng.integers(len(changed))]


def _reordered(rng: np.random.Generator, text: str, mention: str) -> str:
    """Move the name of the entity to the front or the end, or turn the words around."""
    plain = text.rstrip("?")
    at = plain.lower().find(mention.lower())
    if at >= 0:
        name = plain[at : at + len(mention)]
        rest = f"{plain[:at]} {plain[at + len(mention) :]}".split()
        moves = [" ".join([name, *rest]), " ".join([*rest, name])]
        moves = [move for move in moves if move != plain]
        return moves[rng.integers(len(moves))].lower()
    words = plain.split()
    at = len(words) // 2 + int(rng.integers(2))
    return " ".join(words[at:] + words[:at]).lower()


def _typo(rng: np.random.Generator, text: str, mention: str) -> str:
    words = text.split()
    long = [at for at, word in enumerate(words) if len(word) >= 6 and word.isalpha()]
    at = long[rng.integers(len(long))] if long else len(words) - 1
    word = words[at]
    slip = int(rng.integers(1, max(len(word) - 2, 2)))
    how = rng.integers(3)
    if how == 0 and word[slip : slip + 1] != word[slip + 1 : slip + 2]:
        word = word[:slip] + word[slip + 1 : slip + 2] + word[slip] + word[slip + 2 :]
    elif how == 1:
        word = word[:slip] + word[slip + 1 :]
    else:
        word = word[:slip] + word[slip] + word[slip:]
    return " ".join([*words[:at], word, *words[at + 1 :]])


def _paraphrase(rng: np.random.Generator, text: str, mention: str) -> str:
    lowered = text.lower()
    fitting: Sequence[tuple[str, str]] = [pair for pair in _SMALL if pair[0] in lowered]
    choice = int(rng.integers(len(fitting) + 1))
    if choice < len(fitting):
        return lowered.replace(*fitting[choice], 1)
    extra = ("please", "again", "thanks")[rng.integers(3)]
    return f"{lowered.rstrip('?')} {extra}"


_EDITS = {
    "exact": _exact,
    "reordered": _reordered,
    "typo": _typo,
    "paraphrase": _paraphrase,
}
