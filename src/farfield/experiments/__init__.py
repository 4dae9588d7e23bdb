"""Experiments: a manifest becomes steps, steps become files, and finished work is never repeated.

``read("experiment.toml")`` gives an :class:`Experiment`; ``plan`` says which steps it takes, and
:func:`farfield.experiments.engine.run` carries them out in a directory.
"""

from __future__ import annotations

from farfield.experiments.manifest import Experiment, Fused, System, read
from farfield.experiments.steps import Step, plan

__all__ = ["Experiment", "Fused", "Step", "System", "plan", "read"]
