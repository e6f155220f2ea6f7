"""Icons: the sprite contains those that the pages use, and no others."""

import re
from importlib.resources import files

from tapgate.sites.console.console import ACTIONS
from tapgate.sites.console.icons import get_action_icon

_CONSOLE = files("tapgate.sites.console")


def test_sprite_contains_the_icons_that_pages_use_and_no_others() -> None:
    sprite = set(re.findall(r'<symbol id="([\w-]+)"', (_CONSOLE / "assets/icons.svg").read_text()))
    templates = "".join(path.read_text() for path in (_CONSOLE / "templates").rglob("*.html"))
    named = set(re.findall(r'(?:icon\(|symbol=)"([\w-]+)"', templates))
    actions = {get_action_icon(action.name, action.is_dangerous) for action in ACTIONS} - {None}
    assert (named | actions) - sprite == set()
    navigation = (_CONSOLE / "navigation.py").read_text()
    quoted = set(re.findall(r'"([\w-]+)"', templates + navigation)) | actions
    assert sprite - quoted == set()
