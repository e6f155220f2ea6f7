"""Translates templates when they are compiled.

A template's texts are found in its syntax tree: the text between tags, some attribute values, texts
that an expression prints, and texts that are passed to macros. Expressions within a text become
placeholders, so `<p>{{ rows | length }} of {{ total }}</p>` has the text `{rows} of {total}`.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final

from jinja2 import Environment, nodes
from jinja2.compiler import CodeGenerator, Frame

from tapgate.sites.console.translation.html_texts import HtmlScanner, Piece

#: Macro and function parameters that are texts.
TEXT_PARAMETERS: Final = frozenset(
    "label title subtitle text hint empty heads placeholder names choices".split()
)
#: Functions that are not macros, with the names of their parameters.
_FUNCTIONS: Final = {"_": ("text",), "plural": ("count", "text", "text")}
_LETTER: Final = re.compile(r"[^\W\d_]{2}")
#: Paths, codes and field names, which are the same in all languages.
_TECHNICAL: Final = re.compile(r"[/\w.-]*[/_=][^\s]*|[a-z]+\.[a-z]+")
_PLACEHOLDER: Final = re.compile(r"{(\w+)}")

Translate = Callable[[str], str]


class TranslatingEnvironment(Environment):
    """Environment whose templates are translated when they are compiled."""

    translate: Translate

    @cached_property
    def macros(self) -> dict[str, tuple[str, ...]]:
        """Macros of all templates, with the names of their parameters."""
        return list_macros(self)

    def translate_tree(self, tree: nodes.Template, name: str | None) -> None:
        """Translate a template. `name: text` in the catalog is a text in this template only."""

        def translate(text: str) -> str:
            key = f"{name}: {text}"
            translated = self.translate(key)
            return self.translate(text) if translated == key else translated

        TemplateTranslator(translate, self.macros).translate_template(tree)


class _TranslatingGenerator(CodeGenerator):
    def visit_Template(self, node: nodes.Template, frame: Frame | None = None) -> None:  # noqa: N802
        assert isinstance(self.environment, TranslatingEnvironment)
        self.environment.translate_tree(node, self.name)
        super().visit_Template(node, frame)


TranslatingEnvironment.code_generator_class = _TranslatingGenerator


def list_macros(environment: Environment) -> dict[str, tuple[str, ...]]:
    """Return the macros of all templates, with the names of their parameters."""
    assert environment.loader is not None
    sources = (
        environment.loader.get_source(environment, name)[0] for name in environment.list_templates()
    )
    return _list_parameters(
        macro
        for source in sources
        if "{% macro" in source
        for macro in environment.parse(source).find_all(nodes.Macro)
    )


def _list_parameters(macros: Iterable[nodes.Macro]) -> dict[str, tuple[str, ...]]:
    return {macro.name: tuple(argument.name for argument in macro.args) for macro in macros}


def parse_template(environment: Environment, name: str) -> nodes.Template:
    assert environment.loader is not None
    return environment.parse(environment.loader.get_source(environment, name)[0])


class TemplateTranslator:
    """Replaces the texts in a template's syntax tree."""

    def __init__(self, translate: Translate, macros: dict[str, tuple[str, ...]]) -> None:
        self._translate = translate
        self._parameters = {**macros, **_FUNCTIONS}

    def translate_template(self, tree: nodes.Template) -> None:
        macros = list(tree.find_all(nodes.Macro))
        self._parameters |= _list_parameters(macros)  # the template's own macros take precedence
        for call in tree.find_all(nodes.Call):
            self._translate_arguments(call)
        for macro in macros:
            for argument, default in zip(
                macro.args[len(macro.args) - len(macro.defaults) :], macro.defaults, strict=True
            ):
                if argument.name in TEXT_PARAMETERS:
                    self._translate_printed(default)
        self._translate_body(tree.body, HtmlScanner())

    def _translate_body(self, body: list[nodes.Node], scanner: HtmlScanner) -> None:
        for node in body:
            match node:
                case nodes.Output():
                    node.nodes = list(self._translate_output(node.nodes, scanner))
                case nodes.If():
                    self._translate_branches(
                        [node.body, *(branch.body for branch in node.elif_), node.else_], scanner
                    )
                case nodes.For():
                    self._translate_branches([node.body, node.else_], scanner)
                case nodes.Macro() | nodes.CallBlock():
                    self._translate_body(node.body, HtmlScanner())
                case nodes.Block() | nodes.With() | nodes.Scope() | nodes.FilterBlock():
                    self._translate_body(node.body, scanner)

    def _translate_branches(self, bodies: list[list[nodes.Node]], scanner: HtmlScanner) -> None:
        """Translate alternatives. All start at the same position, and end at the same one."""
        start = scanner.copy()
        for index, body in enumerate(bodies):
            self._translate_body(body, scanner if index == 0 else start.copy())

    def _translate_output(
        self, parts: Iterable[nodes.Expr], scanner: HtmlScanner
    ) -> Iterator[nodes.Expr]:
        pieces = [part.data if isinstance(part, nodes.TemplateData) else part for part in parts]
        for run in scanner.split(pieces):
            translated = self._translate_run(run.pieces) if run.is_text else run.pieces
            for piece in translated:
                yield nodes.TemplateData(piece) if isinstance(piece, str) else piece

    def _translate_run(self, pieces: list[Piece]) -> list[Piece]:
        """Translate one text with the expressions in it."""
        for piece in pieces:
            if isinstance(piece, nodes.Expr):
                self._translate_printed(piece)
        start, end = 0, len(pieces)
        # Macros such as icons beside a text are not part of it.
        while start < end and isinstance(pieces[start], nodes.Call):
            start += 1
        while start < end and isinstance(pieces[end - 1], nodes.Call):
            end -= 1
        text, values = _join(pieces[start:end], html.unescape)
        if not _is_text(text):
            return pieces
        translated = _split(
            _keep_spaces(text, self._translate(_strip(text))),
            values,
            _escape,
        )
        return [*pieces[:start], *translated, *pieces[end:]]

    def _translate_arguments(self, call: nodes.Call) -> None:
        if not isinstance(call.node, nodes.Name) or call.node.name not in self._parameters:
            return
        names = self._parameters[call.node.name]
        for name, argument in zip(names, call.args, strict=False):
            if name in TEXT_PARAMETERS:
                self._translate_printed(argument)
        for keyword in call.kwargs:
            if keyword.key in TEXT_PARAMETERS and keyword.key in names:
                self._translate_printed(keyword.value)

    def _translate_printed(self, node: nodes.Expr) -> None:
        """Translate the texts that an expression may return."""
        if isinstance(node, nodes.Concat):
            self._translate_concatenation(node)
        elif not isinstance(node, nodes.Const):
            for result in _list_results(node):
                self._translate_printed(result)
        elif isinstance(node.value, str) and _is_text(node.value):
            node.value = _keep_spaces(node.value, self._translate(_strip(node.value)))

    def _translate_concatenation(self, node: nodes.Concat) -> None:
        pieces: list[Piece] = [
            part.value if isinstance(part, nodes.Const) and isinstance(part.value, str) else part
            for part in node.nodes
        ]
        text, values = _join(pieces, str)
        if _is_text(text):
            translated = _keep_spaces(text, self._translate(_strip(text)))
            node.nodes = [
                nodes.Const(part) if isinstance(part, str) else part
                for part in _split(translated, values, str)
            ]


def _list_results(node: nodes.Node) -> list[nodes.Expr]:
    """Return the parts of an expression that it may return."""
    results: list[nodes.Expr | None] = []
    match node:
        case nodes.CondExpr():
            results = [node.expr1, node.expr2]
        case nodes.Or():
            results = [node.left, node.right]
        case nodes.Filter() if node.name != "format":
            results = [node.node]
        case nodes.Dict():
            results = [pair.value for pair in node.items]
        case nodes.Getitem(node=nodes.Dict() as values):
            results = [values]
        case nodes.Call(node=nodes.Getattr(node=nodes.Dict() as values, attr="get")):
            results = [values, *node.args]
        case nodes.List():  # choices: only (value, label) has a text
            results = [item.items[1] for item in node.items if isinstance(item, nodes.Tuple)]
    return [result for result in results if result is not None]


def _join(pieces: Iterable[Piece], unescape: Translate) -> tuple[str, dict[str, nodes.Expr]]:
    """Return a text with placeholders, and the expression of each placeholder."""
    text, values = "", dict[str, nodes.Expr]()
    for piece in pieces:
        if isinstance(piece, str):
            text += unescape(piece)
        else:
            name = _get_name(piece)
            if name in values:
                name += str(len(values) + 1)
            values[name] = piece
            text += f"{{{name}}}"
    return text, values


def _split(text: str, values: dict[str, nodes.Expr], escape: Translate) -> list[Piece]:
    """Return the parts of a text, with its placeholders' expressions."""
    parts: list[Piece] = []
    for index, part in enumerate(_PLACEHOLDER.split(text)):
        if index % 2:
            parts.append(values[part])
        elif part:
            parts.append(escape(part))
    return parts


def _get_name(node: nodes.Node) -> str:
    """Return the name of the value that an expression prints."""
    match node:
        case nodes.Name(name=str(name)) | nodes.Getattr(attr=str(name)):
            return name
        case nodes.Getitem(arg=nodes.Const(value=str(name))):
            return name
        case nodes.Call() | nodes.Filter() | nodes.Getitem():
            inner = node.node
            return _get_name(inner) if isinstance(inner, nodes.Node) else "value"
    return "value"


def _escape(text: str) -> str:
    return html.escape(text, quote=False).replace('"', "&quot;")


def _is_text(text: str) -> bool:
    literal = _PLACEHOLDER.sub("", text)
    return bool(_LETTER.search(literal)) and not _TECHNICAL.fullmatch(literal.strip())


def _strip(text: str) -> str:
    return " ".join(text.split())


def _keep_spaces(text: str, translated: str) -> str:
    """Return a translation with the spaces around the text."""
    before, after = len(text) - len(text.lstrip()), len(text.rstrip())
    return f"{text[:before]}{translated}{text[after:]}"
