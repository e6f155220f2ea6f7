"""How the platform is doing: what it moved, what there is, whether the books hold."""
