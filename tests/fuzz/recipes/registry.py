"""All recipes by operation."""

from fuzz.recipes import admin, merchants, messenger, subscribers
from fuzz.recipes.recipe import RECIPES, Prerequisites

__all__ = ["RECIPES", "Prerequisites", "admin", "merchants", "messenger", "subscribers"]
