"""The training core: examples as rows, texts as tokens on the device, one loop that can be stopped.

It knows nothing of recipes. What a step does depends on the seed and the number of the step alone,
so that a run that was killed and continued gives the weights of one that was not (on a CPU).
torch and sentence-transformers are loaded when they are needed.
"""

from __future__ import annotations

from farfield.training.examples import Examples
from farfield.training.loop import Plan, Task, Trace, fit
from farfield.training.order import Order
from farfield.training.scratch import scratch

__all__ = ["Examples", "Order", "Plan", "Task", "Trace", "fit", "scratch"]
