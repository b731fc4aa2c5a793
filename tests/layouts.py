"""Values in, the same values as YAML in a random layout out: what people's files look like, and worse."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from render.yaml.scalar import double_quoted, is_plain_string
from tests.services import yaml_of

_COMMENTS = ("", "", "", " # tag: 1.2.3", "   #", " # \"'{[ é 😀")
_BETWEEN = ("", "", "", "", "\n", "# a: 'b\n", "\n\n# é\n  # c\n")


@st.composite
def layouts(draw: st.DrawFn, value: dict[str, Any]) -> str:
    """Write a mapping as a document, its entries in any order; every line ends in `\\n`."""
    return draw(_blocks(value, "", draw(st.sampled_from(["  ", "    "]))))


@st.composite
def _blocks(draw: st.DrawFn, value: dict[str, Any], indent: str, step: str) -> str:
    made = ""
    for key in draw(st.permutations(list(value))):
        inner = value[key]
        made += draw(st.sampled_from(_BETWEEN)) + f"{indent}{_key(key)}:"
        comment = draw(st.sampled_from(_COMMENTS))
        if isinstance(inner, dict) and inner and draw(st.booleans()):
            made += comment + "\n" + draw(_blocks(inner, indent + step, step))
        else:
            blank = draw(st.sampled_from([" ", "  ", f"\n{indent}{step} "]))
            made += blank + draw(_scalars(inner)) + comment + "\n"
    return made


@st.composite
def _scalars(draw: st.DrawFn, value: Any) -> str:
    if not isinstance(value, str):
        return yaml_of(value)
    forms = [double_quoted(value)]
    if is_plain_string(value):
        forms += [value, value]
    if value.isprintable():
        forms.append("'" + value.replace("'", "''") + "'")
    return draw(st.sampled_from(forms))


def _key(key: str) -> str:
    return key if is_plain_string(key) and key.isalnum() else double_quoted(key)
