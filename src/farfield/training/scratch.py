"""What training starts from: a model there is, or one made at random for the documents."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from farfield.errors import InputError, SpecError
from farfield.neural.models import quietly
from farfield.spec import Member, build, parse

__all__ = ["base_of", "digest_of", "making", "scratch", "untouched"]

_ALIKE = 0.08  # how strongly like tokens see each other at first
_MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@dataclass(frozen=True, kw_only=True)
class scratch(Member):
    """An encoder with random weights, and a tokeniser of pieces of the documents' words.

    ``layers`` of width ``dim`` with ``heads`` of attention (by default one for every 32
    dimensions), at most ``vocabulary`` pieces of words, texts of at most ``length`` tokens. The
    same documents and seed give the same model.
    """

    layers: int = 2
    dim: int = 128
    heads: int | None = None
    vocabulary: int = 4000
    length: int = 128
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for name in ("layers", "dim", "length"):
            if getattr(self, name) < 1:
                raise SpecError(f"{name} is {getattr(self, name)}, expected 1, 2, 3 …")
        if self.vocabulary < 100:
            raise SpecError(f"vocabulary is {self.vocabulary}, expected at least 100 pieces.")
        if self.heads is not None and self.heads < 1:
            raise SpecError(f"heads is {self.heads}, expected 1, 2, 3 …")
        if self.dim % self._heads:
            raise SpecError(f"dim is {self.dim}, which {self._heads} heads cannot share.")
        if not 0 <= self.dropout < 1:
            raise SpecError(f"dropout is {self.dropout}, expected a number from 0, below 1.")

    @property
    def _heads(self) -> int:
        return self.heads or max(1, self.dim // 32)

    def make(self, folder: Path, documents: list[str], seed: int, *, writes: bool = False) -> None:
        """Make the model in a folder: an encoder, or one that ``writes`` (encoder and decoder)."""
        if folder.exists():
            return
        with making(folder) as place:
            tokenizer = self._tokenizer(documents, writes=writes)
            model = self._model(tokenizer, seed, writes=writes)
            with quietly():
                tokenizer.save_pretrained(place)
                model.save_pretrained(place)

    def _tokenizer(self, documents: list[str], *, writes: bool) -> Any:
        from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
        from tokenizers.models import BPE
        from tokenizers.trainers import BpeTrainer
        from transformers import PreTrainedTokenizerFast

        # Not WordPiece, whose trainer gives other pieces in every process.
        core = Tokenizer(BPE(unk_token="[UNK]"))
        core.normalizer = normalizers.BertNormalizer(lowercase=True)
        core.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Metaspace()]
        )
        trainer = BpeTrainer(
            vocab_size=self.vocabulary, special_tokens=_MARKS, show_progress=False, min_frequency=2
        )
        core.train_from_iterator(documents, trainer)
        core.decoder = decoders.Metaspace()
        marks = [(mark, core.token_to_id(mark)) for mark in ("[CLS]", "[SEP]")]
        single, pair = "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"
        if writes:  # a text that is written starts with the padding token, and ends with [SEP]
            single = "$A [SEP]"
        core.post_processor = processors.TemplateProcessing(
            single=single, pair=pair, special_tokens=marks
        )
        made: Any = PreTrainedTokenizerFast
        return made(
            tokenizer_object=core,
            model_max_length=self.length,
            pad_token="[PAD]",
            unk_token="[UNK]",
            cls_token="[CLS]",
            sep_token="[SEP]",
            mask_token="[MASK]",
            eos_token="[SEP]",
            model_input_names=["input_ids", "attention_mask"]
            if writes
            else ["input_ids", "token_type_ids", "attention_mask"],
        )

    def _model(self, tokenizer: Any, seed: int, *, writes: bool) -> Any:
        import torch

        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            return self._writer(tokenizer) if writes else self._encoder(tokenizer)

    def _encoder(self, tokenizer: Any) -> Any:
        import transformers

        library: Any = transformers  # parts of it have no types
        config = library.BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=self.dim,
            num_hidden_layers=self.layers,
            num_attention_heads=self._heads,
            intermediate_size=2 * self.dim,
            max_position_embeddings=self.length,
            hidden_dropout_prob=self.dropout,
            attention_probs_dropout_prob=self.dropout,
            pad_token_id=tokenizer.pad_token_id,
        )
        model = library.BertModel(config)
        _attend_to_alike(model)
        return model

    def _writer(self, tokenizer: Any) -> Any:
        import transformers

        library: Any = transformers
        config = library.T5Config(
            vocab_size=len(tokenizer),
            d_model=self.dim,
            d_kv=self.dim // self._heads,
            d_ff=2 * self.dim,
            num_layers=self.layers,
            num_decoder_layers=self.layers,
            num_heads=self._heads,
            dropout_rate=self.dropout,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.sep_token_id,
            decoder_start_token_id=tokenizer.pad_token_id,
        )
        return library.T5ForConditionalGeneration(config)


def _attend_to_alike(model: Any) -> None:
    """Let queries and keys of attention start as the same, so that like tokens see each other.

    Whether a word of the query is in the document is the first thing to learn for a model that
    reads both together, and random attention takes very long to find it.
    """
    import torch

    with torch.no_grad():
        for layer in model.encoder.layer:
            attention = layer.attention.self
            torch.nn.init.normal_(attention.query.weight, std=_ALIKE)
            attention.key.weight.copy_(attention.query.weight)


def base_of(text: str | scratch) -> str | scratch:
    """Read what training starts from: ``scratch(layers=2)``, a path, or the name of a model."""
    if not isinstance(text, str):
        return text
    name = text.strip()
    if name != "scratch" and not name.startswith("scratch("):
        if not name:
            raise InputError("no base is given. Give a folder, a name, or scratch().")
        return name

    def none_inside(base: type[Member], spec: Any) -> Member:
        raise SpecError(f"{spec} has no place in scratch().")

    return build(scratch, parse(name), none_inside)


def digest_of(base: str | scratch) -> str:
    """Name what is in a base by 32 hex digits: of its files, or of what it is called."""
    digest = blake2b(digest_size=16)
    folder = Path(str(base))
    if isinstance(base, scratch) or not folder.is_dir():
        digest.update(str(base).encode())
        return digest.hexdigest()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in (".json", ".safetensors", ".bin", ".txt", ".model"):
            digest.update(str(path.relative_to(folder)).encode())
            with path.open("rb") as file:
                while part := file.read(1 << 22):
                    digest.update(part)
    return digest.hexdigest()


class making:
    """A new folder that gets its name when all went well: ``with making(folder) as place``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder.with_name(f".{folder.name}-{os.getpid()}.tmp")

    def __enter__(self) -> Path:
        for left in self.folder.parent.glob(f".{self.folder.name}-*.tmp"):
            shutil.rmtree(left, ignore_errors=True)
        self.place.mkdir(parents=True)
        return self.place

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            os.replace(self.place, self.folder)
        else:
            shutil.rmtree(self.place, ignore_errors=True)


def untouched(make: Callable[[], Any], seed: int) -> Any:
    """Make something whose random parts depend on the seed alone."""
    import torch

    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return make()
