"""Safe parsing of handwritten YAML: plain values with limited nesting."""

from __future__ import annotations

import re
from typing import Any

import yaml

from .errors import ConfigError

MAX_DEPTH = 30  # of values in values; configs nest five deep, and each level takes stack


def parse_yaml(text: str | bytes, source: str) -> Any:  # noqa: ANN401 - any value
    """Parse a YAML document and return its value.

    Keys given twice, aliases (a few hundred bytes of which can stand for gigabytes) and tags of
    Python are refused. 1e-3 is a number and 001 a text, unlike in YAML 1.1.

    Parameters
    ----------
    source : str
        Name of the document in messages.

    Raises
    ------
    ConfigError
        If the document is not valid YAML. The message names the line and the column.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a SafeLoader
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date, a number of 5,000 digits
        raise ConfigError(f"{source}: not valid YAML: {_where(error)}") from error


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses aliases, deep nesting, and a key given twice."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401
        mark = self.peek_event().start_mark
        if self.check_event(yaml.AliasEvent):
            what = "aliases (*name) are not accepted; write the value out"
            raise yaml.composer.ComposerError(None, None, what, mark)
        if self._depth == MAX_DEPTH:
            what = f"values are nested more than {MAX_DEPTH} deep"
            raise yaml.composer.ComposerError(None, None, what, mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                what = "the key << (merge) is not accepted; write the keys out"
                raise yaml.constructor.ConstructorError(None, None, what, key_node.start_mark)
            key = repr(self.construct_object(key_node, deep=True))
            if key in seen:
                what = f"key {key} is given twice"
                raise yaml.constructor.ConstructorError(None, None, what, key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)$")
_EXPONENT = re.compile(r"[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, _INTEGER if tag.endswith(":int") else pattern) for tag, pattern in resolvers]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789"))


def yaml_text(values: Any) -> str:  # noqa: ANN401 - any value
    """Return values as YAML that `parse_yaml` reads as the same values."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Quotes texts such as 1e5, too, which are numbers here, and not in YAML 1.1."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789"))


def _where(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return str(error)
