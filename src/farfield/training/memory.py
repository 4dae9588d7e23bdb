"""Memory of a process that trains on a CPU."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["keep_freed_memory"]

# Parameters of glibc's mallopt.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_MOST = 2**31 - 1


def keep_freed_memory() -> None:
    """Let this process keep what it frees, to use it again; where that can be asked for.

    Every step asks for the same large blocks, and glibc gives such blocks back to the system at
    once: a fifth of the time of training goes into pages that are touched for the first time.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _MOST), (_TOP_PAD, 64 << 20)):
            mallopt(parameter, value)
