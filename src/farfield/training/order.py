"""In which order examples come: a matter of the seed and the number of the step alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from farfield.errors import InputError

__all__ = ["Order"]

Ints = npt.NDArray[np.int64]

_TOGETHER = 32  # batches within which rows are sorted by length


class Order:
    """Rows in batches, anew in each epoch; within some batches' worth, like lengths go together.

    Rows that do not fill a batch at the end of an epoch are left out of it.
    """

    def __init__(self, lengths: Ints, batch: int, seed: int) -> None:
        if not len(lengths):
            raise InputError("there are no examples to train on.")
        self.batch = min(batch, len(lengths))
        self.per_epoch = len(lengths) // self.batch
        self._lengths, self._seed = lengths, seed
        self._epoch, self._rows = -1, np.zeros((0, 0), np.int64)

    def epoch(self, step: int) -> int:
        """Return the epoch of a step, from 0."""
        return step // self.per_epoch

    def rows(self, step: int) -> Ints:
        """Return the rows of a step."""
        epoch, at = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._rows = epoch, self._dealt(epoch)
        found: Ints = self._rows[at]
        return found

    def _dealt(self, epoch: int) -> Ints:
        rng = np.random.default_rng([self._seed, 2, epoch])
        rows = rng.permutation(len(self._lengths))[: self.per_epoch * self.batch]
        size = _TOGETHER * self.batch
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        parts = [part[np.argsort(self._lengths[part], kind="stable")] for part in parts]
        batches = np.concatenate(parts).reshape(self.per_epoch, self.batch)
        found: Ints = batches[rng.permutation(self.per_epoch)]
        return found
