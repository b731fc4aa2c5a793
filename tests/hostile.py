"""Texts that trip readers and writers of YAML, as lists and as hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from render.yaml import scalar

# fmt: off
TELLING = (
    # Words, numbers and dates of YAML 1.1 and 1.2.
    "y", "n", "yes", "No", "on", "OFF", "true", "False", "null", "Null", "~", "=", "<<", "0", "-0", "+1", "0x1F", "0b1",
    "0o17", "017", "1_000", "1e3", ".5", "1.", "1.20", ".inf", "-.INF", ".nan", "12:30:45", "190:20:30", "2024-07-01",
    "2024-07-01T10:00:00Z", "9007199254740993", "18446744073709551616", "1h30m", "10s",
    # Indicators, alone and where they end or begin something.
    "-", "?", ":", "::", "--", "---", "...", "---x", "*", "&", "!", "|", ">", "%", "@", "`", ",", "[", "]", "{", "}",
    "[]", "{}", "#", '"', "'", "''", "\\", "\\n", "a:b", "a:", ":a", "a#b", "#a", "a: b", "a #b", "- a", "? a", ": a",
    "a:\tb", "a\t#b", "--- a", "... a", "!!str", "!x", "&a", "*a", "key:", ">-", "|+", "%YAML", "'\"'", 'a"b', "it's",
    # Blanks, empty and long.
    "", " ", "  ", "\t", "a ", " a", "a\t", "\ta", "x" * 200, "word " * 60,
    # Line breaks of every kind.
    "\n", "\n\n", "a\n", "a\n\n", "\na", " a\nb", "a\n b\n", "a\n\nb", "a \nb", "a\t\nb\n", "---\na\n", "a\n---\nb",
    "...\n", "# a\n", "a\n#b", "\ta\nb", "a\r\nb", "a\rb", "a\x85b", "a\u2028b", "\u2029", "a\n\x85",
    # Lists inside text, which kyaml's textual scan takes for the document's.
    "- a:\n  - b\n", "a:\n- b\n", "x:\n  - y\n", "k:\n- a\n",
    # Control characters, byte order marks, non-characters, astral characters.
    "\x00", "\x07\x1b", "\x7f", "\x9f", "\xa0", "a\xa0\n", "\ufeff", "\ufeffa", "a\ufeff", "\ufffd", "\ue000", "\ufffe",
    "\uffff", "\U0010ffff", "é", "日本", "😀", "a\n😀\n",
    # Things with a meaning to Flux, Helm and the compiler itself.
    "http://x/y?a=b&c=d#e", "/etc/x", "{{ x }}", "{% x %}", "ENC[AES256_GCM,data:x]",
    '"x" # {"$imagepolicy": "elsewhere:app:tag"}', '{"$imagepolicy": "flux-system:app"}',
    "# registries.imageOverrides", "do not edit. sha256:0123456789abcdef",
)
# fmt: on
LINES = tuple(text for text in TELLING if len(text) <= 128 and not set(text) & set("\n\r\x85\u2028\u2029"))
PLAIN = tuple(text for text in TELLING if scalar.is_plain(text))
"""Those that are one plain scalar on one line, spelled as they are."""


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Any text: a telling one, two of them in a row, or a random one."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return draw(st.text(max_size=12))
    text = draw(st.sampled_from(TELLING))
    return text if kind < 3 else text + draw(st.sampled_from(TELLING))


@st.composite
def keys(draw: st.DrawFn) -> str:
    """A text of one line and at most 128 bytes."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return draw(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\x85\u2028\u2029"), max_size=12))
    text = draw(st.sampled_from(LINES))
    return text if kind < 3 else (text + draw(st.sampled_from(LINES)))[:32]
