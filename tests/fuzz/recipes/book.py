"""All recipes, by the operations that they are for."""

from fuzz.recipes import chat, people, staff, trade
from fuzz.recipes.recipe import RECIPES, Ready

__all__ = ["RECIPES", "Ready", "chat", "people", "staff", "trade"]
