"""One loop for every model: AdamW, warm-up and linear decay, checks, the best kept, and resume.

Before every step the random numbers are set by the seed and the step. So there is no state of a
generator to keep: model, optimiser and the number of the step are all that a checkpoint needs. A
checkpoint is one file that replaces the last; the weights of the best check lie beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from farfield.errors import FarfieldError, FileError
from farfield.io.files import replacing
from farfield.progress import counting

__all__ = ["Plan", "Task", "Trace", "fit", "step_seed"]

_CHECKPOINT = "checkpoint.pt"
_FORMAT = 1
_NOTES = 100  # losses are noted so many times


class Task(Protocol):
    """What is trained: a model, what a step costs, and how good the model is."""

    model: Any

    def loss(self, step: int) -> Any:
        """Return the loss of a step as a tensor; it may depend on the step and the model alone."""

    def examples(self, step: int) -> int:
        """Return how many examples a step has."""

    def check(self) -> float | None:
        """Say how good the model is (higher is better), if that is known."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to train: ``checks`` times on the way the model is checked, and the best one is kept."""

    steps: int
    lr: float
    warmup: float = 0.1  # share of the steps
    decay: float = 0.01  # of weights
    clip: float = 1.0  # of the gradient's length
    checks: int = 4
    seed: int = 0
    compiled: bool = False
    save_every: float = 120.0  # seconds

    def rate(self, step: int) -> float:
        """The learning rate of a step: up to ``lr``, then down to 0, both linearly."""
        rising = max(1, round(self.warmup * self.steps))
        if step < rising:
            return self.lr * (step + 1) / rising
        return self.lr * (self.steps - step) / max(1, self.steps - rising)

    def is_check(self, done: int) -> bool:
        """Is the model checked after so many steps?"""
        return done * self.checks // self.steps > (done - 1) * self.checks // self.steps


@dataclass
class Trace:
    """What happened: everything that the record of a model says about its training."""

    steps: int = 0
    examples: int = 0
    seconds: float = 0.0  # without checks
    losses: list[tuple[int, float]] = field(default_factory=list)
    checks: list[tuple[int, float]] = field(default_factory=list)
    best: int | None = None  # after so many steps
    peak_memory: int = 0  # bytes
    resumed: int = 0  # how many times

    def to_dict(self) -> dict[str, Any]:
        """Return it for a record."""
        rate = self.examples / self.seconds if self.seconds else None
        return {**asdict(self), "examples_per_second": rate}


def fit(task: Task, plan: Plan, folder: Path) -> Trace:
    """Train a task's model, going on from the checkpoint in the folder if there is one.

    The model has the weights of its best check at the end, or the last where there are no checks.
    """
    import torch

    model = task.model
    device = next(model.parameters()).device
    optimiser = _optimiser(model, plan, device.type)
    state = _State(folder, model, optimiser)
    trace, pending = state.load()
    if plan.compiled and device.type == "cuda":
        _compile(model)
    every = max(1, plan.steps // _NOTES)
    total, count = torch.tensor(pending[0], device=device), pending[1]
    clock = _Clock(trace, device)
    with _own_numbers(device), counting(plan.steps, "training", done=trace.steps) as advance:
        model.train()
        clock.start()
        while (step := trace.steps) < plan.steps:
            total, count = total + _step(task, plan, optimiser, step, device), count + 1
            trace.steps, trace.examples = step + 1, trace.examples + task.examples(step)
            done = trace.steps
            if done % every == 0 or done == plan.steps:
                trace.losses.append((done, _finite(float(total) / count, done, plan)))
                total, count = torch.zeros_like(total), 0
                advance(0, f"training, loss {trace.losses[-1][1]:.3f}")
            advance(1)
            if plan.is_check(done):
                clock.stop()
                _check(task, trace, state, done)
                model.train()
                clock.start()
            if plan.is_check(done) or clock.since_saved > plan.save_every:
                clock.stop()
                state.save(trace, (float(total), count))
                clock.start(saved=True)
        clock.stop()
    state.restore_best(trace)
    model.eval()
    return trace


def _step(task: Task, plan: Plan, optimiser: Any, step: int, device: Any) -> Any:
    """Go one step; return its loss, which is still on the device."""
    import torch

    torch.manual_seed(step_seed(plan.seed, step))
    for group in optimiser.param_groups:
        group["lr"] = plan.rate(step)
    half = torch.autocast("cuda", dtype=torch.bfloat16) if device.type == "cuda" else nullcontext()
    with half:
        loss = task.loss(step)
    loss.backward()
    if plan.clip:
        torch.nn.utils.clip_grad_norm_(task.model.parameters(), plan.clip)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return loss.detach().float()


def _finite(loss: float, done: int, plan: Plan) -> float:
    if not np.isfinite(loss):
        raise FarfieldError(
            f"the loss is {loss} after {done} steps: training diverged. Set lr lower (it is "
            f"{plan.lr:g}), or start again with another seed."
        )
    return loss


def step_seed(seed: int, step: int) -> int:
    """Return the seed of the random numbers of a step."""
    return int(np.random.SeedSequence([seed, 3, step]).generate_state(1)[0])


def _check(task: Task, trace: Trace, state: _State, done: int) -> None:
    task.model.eval()
    value = task.check()
    if value is None:
        return
    best = max((value for _, value in trace.checks), default=-np.inf)
    trace.checks.append((done, value))
    if value > best:
        trace.best = done
        state.save_best(done)


def _optimiser(model: Any, plan: Plan, device: str) -> Any:
    """AdamW; what is no matrix (biases, norms) is not pulled towards 0."""
    import torch

    trained = [one for one in model.parameters() if one.requires_grad]
    groups = [
        {"params": [one for one in trained if one.ndim > 1], "weight_decay": plan.decay},
        {"params": [one for one in trained if one.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=plan.lr, fused=device == "cuda")


def _compile(model: Any) -> None:
    """Compile the transformer, for batches of any shape."""
    import torch

    inner = getattr(model[0], "auto_model", model) if hasattr(model, "__getitem__") else model
    # The method itself, because sentence-transformers calls it and not the module.
    inner.forward = torch.compile(inner.forward, dynamic=True)


@contextmanager
def _own_numbers(device: Any) -> Iterator[None]:
    """Leave the random numbers of the program as they were."""
    import torch

    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        yield


class _Clock:
    """Adds up the time of the steps alone, and notes how much memory they take."""

    def __init__(self, trace: Trace, device: Any) -> None:
        import torch

        self._trace, self._device = trace, device
        if device.type == "cuda":  # what this process trained before does not count
            torch.cuda.reset_peak_memory_stats(device)
        self._started = self._saved = perf_counter()

    def start(self, *, saved: bool = False) -> None:
        self._started = perf_counter()
        self._saved = self._started if saved else self._saved

    def stop(self) -> None:
        import torch

        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self._trace.seconds += perf_counter() - self._started
        self._trace.peak_memory = max(self._trace.peak_memory, _peak(self._device))
        self._started = perf_counter()

    @property
    def since_saved(self) -> float:
        return perf_counter() - self._saved


def _peak(device: Any) -> int:
    """Return the most memory that was used: of the GPU, or of this process."""
    import torch

    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # Windows
        return 0
    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class _State:
    """What is kept in the folder: the last checkpoint, and the weights of the best check."""

    def __init__(self, folder: Path, model: Any, optimiser: Any) -> None:
        self.folder, self.model, self.optimiser = folder, model, optimiser

    def load(self) -> tuple[Trace, tuple[float, int]]:
        """Take up the checkpoint, if there is one; else start."""
        import torch

        path = self.folder / _CHECKPOINT
        if not path.exists():
            return Trace(), (0.0, 0)
        try:
            found = torch.load(path, map_location="cpu", weights_only=True)
            if found["format"] != _FORMAT:
                raise ValueError(f"format {found['format']}")
            self.model.load_state_dict(found["model"])
            self.optimiser.load_state_dict(found["optimiser"])
        except Exception as error:  # torch raises what it likes
            raise FileError(
                path, f"this checkpoint cannot be continued ({error}). Delete it to start again."
            ) from error
        trace = Trace(**found["trace"])
        trace.resumed += 1
        return trace, tuple(found["pending"])

    def save(self, trace: Trace, pending: tuple[float, int]) -> None:
        """Put the checkpoint in the place of the last."""
        import torch

        content = {
            "format": _FORMAT,
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "trace": asdict(trace),
            "pending": list(pending),
        }
        with replacing(self.folder / _CHECKPOINT) as file:
            torch.save(content, file)
        for old in self.folder.glob("best-*.pt"):
            if old != self._best(trace.best):
                old.unlink(missing_ok=True)

    def save_best(self, done: int) -> None:
        """Keep the weights as they are."""
        import torch

        with replacing(self._best(done)) as file:
            torch.save(self.model.state_dict(), file)

    def restore_best(self, trace: Trace) -> None:
        """Give the model the weights of its best check."""
        import torch

        if trace.best is not None and trace.best != trace.steps:
            path = self._best(trace.best)
            try:
                found = torch.load(path, map_location="cpu", weights_only=True)
            except OSError:
                raise FileError(path, "the best weights are gone. Train again.") from None
            self.model.load_state_dict(found)

    def _best(self, done: int | None) -> Path:
        return self.folder / f"best-{done}.pt"
