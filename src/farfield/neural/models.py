"""Models by path or name: this machine first, in single precision, on the device there is.

A checkpoint in half precision is loaded as float32: encoding on a GPU rounds on its own, and
training in plain float16 goes wrong.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from farfield.errors import InputError, MissingDependency, did_you_mean

__all__ = [
    "KINDS",
    "Kind",
    "Task",
    "device_of",
    "fingerprint",
    "kind_of",
    "load",
    "local_folder",
    "prompt_of",
    "quietly",
]

Kind = Literal["dense", "sparse", "multi", "cross"]
Task = Literal["query", "document"]

#: What sentence-transformers calls them.
KINDS: dict[str, str] = {
    "dense": "SentenceTransformer",
    "sparse": "SparseEncoder",
    "multi": "MultiVectorEncoder",
    "cross": "CrossEncoder",
}
# What a folder without a word on its kind must hold, so that no part of the model is made up: the
# end of an architecture's name in config.json, or a word in the names of its modules.
_HEADS = {
    "sparse": ("ForMaskedLM", ("sparse_encoder", "splade", "sparse")),
    "multi": ("HF_ColBERT", ("multi_vector_encoder", "pylate", "colbert")),
    "cross": ("ForSequenceClassification", ("cross_encoder",)),
}
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")


def device_of(device: str = "auto") -> str:
    """Return the device to work on: ``auto`` is the GPU if there is one, else the CPU.

    The environment variable FARFIELD_DEVICE says what ``auto`` is instead.
    """
    torch = _library("torch", f"the device {device}")
    if device == "auto":
        device = os.environ.get("FARFIELD_DEVICE") or device
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        wanted = torch.device(device)
    except RuntimeError:
        raise InputError(
            f"no device is called {device!r}.{did_you_mean(device, ['auto', 'cpu', 'cuda'])} "
            "Expected auto, cpu, cuda or cuda:1."
        ) from None
    gpus = torch.cuda.device_count()
    if wanted.type == "cuda" and (wanted.index or 0) >= gpus:
        raise InputError(
            f"the device {device} is not there: torch sees {gpus or 'no'} GPU{'s' * (gpus != 1)}. "
            "Give auto or cpu, or install a torch that fits the GPU's driver."
        )
    return str(wanted)


def load(name: str, kind: Kind = "dense", *, device: str = "auto", fresh: bool = False) -> Any:
    """Load a model from a folder, or by a name that was fetched before or can be fetched now.

    ``kind`` says what for: ``dense`` (SentenceTransformer), ``sparse`` (SparseEncoder), ``multi``
    (MultiVectorEncoder), ``cross`` (CrossEncoder). A folder that holds a model of another kind is
    refused, because the missing parts would be made up at random; ``fresh`` allows it, which is
    what training starts from.
    """
    if kind not in KINDS:
        raise InputError(f"no kind of model is called {kind!r}. Known: {', '.join(KINDS)}.")
    torch = _library("torch", f"the model {name}")
    library = _library("sentence_transformers", f"the model {name}")
    where = device_of(device)
    folder = local_folder(name)
    if folder is None and _offline():
        raise InputError(_not_here(name, "and this machine works offline"))
    if folder is not None and not fresh:
        _check_kind(name, folder, kind)
    try:
        with quietly():
            model = getattr(library, KINDS[kind])(
                name if folder is None else str(folder),
                device=where,
                local_files_only=folder is not None,
                model_kwargs={"dtype": torch.float32},
            )
    except Exception as error:  # a broken file, no network, code of the model's own
        reason = f"{type(error).__name__}: {[*str(error).strip().splitlines(), ''][0]}"
        if folder is None:
            raise InputError(_not_here(name, f"and it cannot be fetched ({reason})")) from error
        raise InputError(
            f"the model in {folder} cannot be loaded ({reason}). Expected a folder saved by "
            f"sentence-transformers or transformers, with config.json, weights and tokeniser."
        ) from error
    if folder is None and not fresh and (folder := local_folder(name)) is not None:
        _check_kind(name, folder, kind)
    return model.float().eval()


def kind_of(model: Any) -> Kind:
    """Return what kind of model this is."""
    names = {base.__name__ for base in type(model).__mro__}
    for kind, name in KINDS.items():
        if name in names:
            return kind  # type: ignore[return-value]
    raise InputError(
        f"this is a {type(model).__name__}, expected one of {', '.join(KINDS.values())}."
    )


def prompt_of(model: Any, task: Task | None) -> str | None:
    """Return what the model wants before every query or document, as its configuration says."""
    prompts = model.prompts or {}
    names = {"query": ("query",), "document": _DOCUMENT_PROMPTS, None: ()}[task]
    for name in (*names, model.default_prompt_name):
        if name in prompts:
            return str(prompts[name]) or None
    return None


def fingerprint(model: Any) -> str:
    """Name what a model computes by 32 hex digits: of its weights, tokeniser and settings."""
    from hashlib import blake2b

    digest = blake2b(digest_size=16)
    settings = {
        "class": type(model).__name__,
        "modules": [
            [type(module).__name__, getattr(module, "get_config_dict", dict)()] for module in model
        ],
        "length": model.max_seq_length,
        "prompts": model.prompts,
        "default_prompt": model.default_prompt_name,
        "dimensions": [getattr(model, name, None) for name in ("truncate_dim", "max_active_dims")],
        "tokeniser": _tokeniser_as_text(model),
    }
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    for name, weights in sorted(model.state_dict().items()):
        array = weights.detach().cpu().contiguous()
        digest.update(f"\n{name} {array.dtype} {tuple(array.shape)}\n".encode())
        digest.update(array.reshape(-1).view(_library("torch", "a fingerprint").uint8).numpy())
    return digest.hexdigest()


def _tokeniser_as_text(model: Any) -> str:
    from tokenizers import Tokenizer

    backend = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
    if not isinstance(backend, Tokenizer):  # one without a compiled core
        vocabulary: dict[str, int] = getattr(backend, "get_vocab", dict)()
        return json.dumps([type(backend).__name__, vocabulary], sort_keys=True)
    plain = Tokenizer.from_str(backend.to_str())
    plain.no_truncation()  # both are the last call's, not the tokeniser's
    plain.no_padding()
    return str(plain.to_str())


def _library(name: str, needed_for: str) -> Any:
    """Import one of the libraries of the extra; one that is there but broken says so itself."""
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec(name) is None:
        raise MissingDependency(name.replace("_", "-"), needed_for, extra="neural")
    return import_module(name)


@contextmanager
def quietly() -> Iterator[None]:
    """No bars and no remarks while a model is loaded; what goes wrong is raised."""
    from transformers.utils import logging as its_logging

    logging: Any = its_logging  # it has no types
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _offline() -> bool:
    return any(
        os.environ.get(name, "").upper() in {"1", "ON", "YES", "TRUE"}
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def _not_here(name: str, why: str) -> str:
    full = name if "/" in name else f"sentence-transformers/{name}"
    return (
        f"the model {name!r} is not on this machine, {why}. It is neither a folder nor in the "
        f"cache of the model hub. Fetch it where there is a network with: hf download {full} "
        f"--local-dir {full.rpartition('/')[2]}; then give the path of that folder."
    )


def local_folder(name: str) -> Path | None:
    """Return the folder that holds a model, if this machine has it."""
    path = Path(name).expanduser()
    if path.is_dir():
        if not any((path / file).is_file() for file in ("config.json", "modules.json")):
            raise InputError(
                f"{name}: this folder holds no model (neither config.json nor modules.json)."
            )
        return path
    if path.exists() or name.count("/") > 1 or name.startswith((".", "/", "~")):
        what = "this is a file" if path.exists() else "there is no such folder"
        raise InputError(f"{name}: {what}. Expected a folder that holds a model, or its name.")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    for full in [name] if "/" in name else [f"sentence-transformers/{name}", name]:
        try:
            folder = Path(snapshot_download(full, local_files_only=True))
        except LocalEntryNotFoundError:
            continue
        except HFValidationError as error:
            raise InputError(f"{name!r} cannot be the name of a model: {error}") from None
        if any(folder.rglob("*.safetensors")) or any(folder.rglob("*.bin")):
            return folder
    return None


def _check_kind(name: str, folder: Path, kind: Kind) -> None:
    """Refuse a folder whose model would need parts that are not in it."""
    said = _json(folder / "config_sentence_transformers.json").get("model_type")
    if said in KINDS.values():
        right = said == KINDS[kind]
    elif kind == "dense":
        right = True  # a plain encoder is pooled by its mean: nothing is made up
    else:
        ending, words = _HEADS[kind]
        architectures = _json(folder / "config.json").get("architectures") or []
        modules = json.dumps(_json(folder / "modules.json")).lower()
        right = any(str(a).endswith(ending) for a in architectures)
        right = right or any(word in modules for word in words)
        right = right or (kind == "multi" and (folder / "artifact.metadata").is_file())
    if not right:
        raise InputError(
            f"{name} does not hold a trained {KINDS[kind]}"
            + (f" but a {said}" if said else "")
            + ": parts of it would be made up at random. Give a model of that kind, or train one."
        )


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}). Get the model again.") from None
