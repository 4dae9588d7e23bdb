"""Models that guess words: what masked-language training and SPLADE start from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from farfield.neural.models import local_folder, quietly
from farfield.training.scratch import making, untouched

__all__ = ["has_head", "settle", "with_head"]

_ACTIVE = 10  # words that a token stands for at first


def has_head(base: str) -> bool:
    """Can this base guess words already?"""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(str(local_folder(base) or base))
    return any(str(name).endswith("ForMaskedLM") for name in config.architectures or [])


def with_head(base: str, folder: Path, seed: int) -> str:
    """Give a base the head that guesses words, unless it has one; return the folder.

    A new head passes on what the encoder says: its matrix is the identity, and words are compared
    with their own embeddings. A random one would have to be learned first.
    """
    if has_head(base):
        return base
    if folder.exists():
        return str(folder)
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    source = str(local_folder(base) or base)
    with quietly():
        model = untouched(
            lambda: AutoModelForMaskedLM.from_pretrained(source, dtype="float32"), seed
        )
        _pass_on(model)
        with making(folder) as place:
            model.save_pretrained(place)
            AutoTokenizer.from_pretrained(source).save_pretrained(place)
    return str(folder)


def _pass_on(model: Any) -> None:
    import torch

    inner = {id(one) for one in model.base_model.modules()}
    words = model.get_output_embeddings()
    with torch.no_grad():
        for module in model.modules():
            if id(module) in inner or not isinstance(module, torch.nn.Linear | torch.nn.LayerNorm):
                continue
            if isinstance(module, torch.nn.LayerNorm):
                module.weight.fill_(1.0)
                module.bias.zero_()
            elif module is not words and module.in_features == module.out_features:
                torch.nn.init.eye_(module.weight)
                module.bias.zero_()


def settle(model: Any, features: dict[str, Any]) -> None:
    """Move the level of all words so that a token stands for a few of them.

    Guessing words leaves their level open, and SPLADE takes what is above 0.
    """
    import torch

    words = model[0].auto_model.get_output_embeddings()
    with torch.inference_mode():
        logits = model[0](dict(features))["token_embeddings"]
        real = features["attention_mask"].bool()
        level = logits[real].topk(_ACTIVE, dim=1).values[:, -1].mean().item()
    with torch.no_grad():
        words.bias -= level
