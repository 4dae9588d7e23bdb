"""Near-duplicates: the same query again, a little changed."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

__all__ = ["EDITS", "edited", "normal"]

EDITS = ("exact", "reordered", "typo", "paraphrase")
"""How a planted test query differs from its training query.

``exact``: in nothing but case and punctuation. ``reordered``: the same words in another order,
a pronoun in place of a name that moved away. ``typo``: one letter slip. ``paraphrase``: a small
word more or exchanged.
"""

_SMALL = (
    ("anyone", "anybody"),
    ("do you know", "do you happen to know"),
    ("my kids", "the kids"),
    ("remind me", "please remind me"),
    ("can you tell", "could you tell"),
    ("need to know", "i need to know"),
    ("wondering", "i was wondering"),
    ("i forgot", "i forget"),
    ("any idea", "no idea"),
    (" info", " information"),
    ("question about", "quick question about"),
    ("what is ", "what's "),
    ("where is ", "where's "),
)
_ATTEMPTS = 100
_NOT_WORD = re.compile(r"[^\w\s]+")


def normal(text: str) -> str:
    """Return a text without case, punctuation and extra spaces."""
    return " ".join(_NOT_WORD.sub(" ", text.lower()).split())


def edited(
    rng: np.random.Generator, edit: str, text: str, turned: str, taken: Callable[[str], bool]
) -> str:
    """Return a near-duplicate of a query that is not another query: no text that is ``taken``."""
    result = _EDITS[edit](rng, text, turned)
    for attempt in range(_ATTEMPTS):
        if edit == "exact" or not taken(normal(result)):
            break
        # Slips of the pen add up, so that in the end there is one nobody else has made.
        result = _typo(rng, result, "") if attempt > 8 else _EDITS[edit](rng, text, turned)
    return result


def _exact(rng: np.random.Generator, text: str, turned: str) -> str:
    changed = (
        text,
        text.lower(),
        text[0].upper() + text[1:],
        text.removesuffix("?") if text.endswith("?") else text + "?",
        text.removesuffix("?") + ".",
    )
    return changed[rng.integers(len(changed))]


def _reordered(rng: np.random.Generator, text: str, turned: str) -> str:
    return turned


def _typo(rng: np.random.Generator, text: str, turned: str) -> str:
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


def _paraphrase(rng: np.random.Generator, text: str, turned: str) -> str:
    lowered = text.lower().rstrip("?")
    fitting = [lowered.replace(*pair, 1) for pair in _SMALL if pair[0] in lowered]
    fitting = fitting or [f"{lowered} please", f"{lowered}, please", f"{lowered}, thanks"]
    return fitting[rng.integers(len(fitting))]


_EDITS = {
    "exact": _exact,
    "reordered": _reordered,
    "typo": _typo,
    "paraphrase": _paraphrase,
}
