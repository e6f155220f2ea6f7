"""All recipes by operation."""

from fuzz.recipes import admin, finance, merchants, messenger, subscribers
from fuzz.recipes.recipe import RECIPES, Prerequisites, find_records

__all__ = [
    "RECIPES",
    "Prerequisites",
    "admin",
    "finance",
    "find_records",
    "merchants",
    "messenger",
    "subscribers",
]
