"""Recipes: how a retriever is trained on a collection, or on one fold of it.

``parse("contrastive(negatives=bm25)")`` makes one from its spec, ``names()`` lists them, ``@add``
adds one; ``recipe.train(base, collection, out=folder)`` gives a retriever with the trained model.
"""

from __future__ import annotations

from farfield.recipes.base import Job, Recipe, Trained
from farfield.registry import Family

__all__ = ["Job", "Recipe", "Trained", "add", "get", "names", "parse"]

family: Family[Recipe] = Family("recipes", Recipe)

add = family.add
get = family.get
names = family.names
parse = family.parse
