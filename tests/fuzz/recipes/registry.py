"""All recipes by operation."""

from fuzz.recipes import admin, finance, merchants, messenger, subscribers
from fuzz.recipes.recipe import RECIPES, Prerequisites

__all__ = ["RECIPES", "Prerequisites", "admin", "finance", "merchants", "messenger", "subscribers"]
