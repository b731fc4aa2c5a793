from __future__ import annotations

import io

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from render.yaml import scalar
from render.yaml.scalar import Resolved

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize("text", ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"])
def test_helm_takes_for_true_what_the_build_takes_for_a_word(text: str) -> None:
    assert Resolved("bool", value=True) == scalar.sigs(text)
    assert Resolved("string", text) == scalar.kyaml(text)
    assert scalar.readers_differ(text)
    assert not scalar.is_plain_string(text)


@pytest.mark.parametrize("text", ["n", "N", "no", "No", "NO", "off", "Off", "OFF"])
def test_helm_takes_for_false_what_the_build_takes_for_a_word(text: str) -> None:
    assert Resolved("bool", value=False) == scalar.sigs(text)
    assert scalar.readers_differ(text)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("true", "bool", True),
        ("FALSE", "bool", False),
        ("", "null", None),
        ("~", "null", None),
        ("Null", "null", None),
        ("0644", "int", 420),
        ("08", "float", 8.0),
        ("0o17", "int", 15),
        ("0X1F", "int", 31),
        ("-0b10", "int", -2),
        ("1__0", "int", 10),
        ("18446744073709551615", "int", 18446744073709551615),
        ("+18446744073709551615", "float", 18446744073709551615.0),
        ("18446744073709551616", "float", 18446744073709551616.0),
        ("-9223372036854775808", "int", -(2**63)),
        ("1.20", "float", 1.2),
        (".5", "float", 0.5),
        ("1e3", "float", 1000.0),
        ("1_0.5", "float", 10.5),
        ("1e-400", "float", 0.0),
    ],
)
def test_both_readers_take_the_text_alike(text: str, kind: str, value: scalar.Value) -> None:
    assert Resolved(kind, value) == scalar.sigs(text) == scalar.kyaml(text)
    assert not scalar.readers_differ(text)
    assert not scalar.is_plain_string(text)


@pytest.mark.parametrize(
    "text",
    [
        "1.2.3", "v1", "yEs", "oN", "nULL", "1e400", "0b12", "0x", "0o8", "0xFFFFFFFFFFFFFFFFF", "._5", "._5_0",
        "1e", "+",
        "190:20:30", "2024-13-01", "2023-02-29", "2100-02-29", "20240701T1200", "nan", "inf", "a b", "a:b", "a#b", "-a",
        "?a", ":a", "é", "2024-02-30", "2024-04-31",
        "٣", "=", "a\tb", "x\u00a0",
    ],
)  # fmt: skip
def test_both_readers_take_the_text_for_the_string_it_spells(text: str) -> None:
    assert Resolved("string", text) == scalar.sigs(text) == scalar.kyaml(text)
    assert scalar.is_plain_string(text)


@pytest.mark.parametrize(
    "text",
    [
        "", " a", "a ", "a: b", "a:", "a #b", "#a", "- a", "-", "?", "? a", ": a", "[a", "{a", "a\nb", "a\x85b",
        "a\u2028b",
        "\ufeffa", "a\x7fb", "\x07", "&a", "*a", "!a", "|", ">", "'a'", '"a"', "%a", "@a", "`a", ",a", "a\t", "a\ud800",
    ],
)  # fmt: skip
def test_what_a_scanner_would_not_spell_back_is_no_plain_scalar(text: str) -> None:
    assert not scalar.is_plain(text)
    assert not scalar.is_plain_string(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-07-01", "2024-07-01T00:00:00Z"),
        ("2024-7-1", "2024-07-01T00:00:00Z"),
        ("2024-02-29", "2024-02-29T00:00:00Z"),
        ("2000-02-29", "2000-02-29T00:00:00Z"),
        ("2024-04-30", "2024-04-30T00:00:00Z"),
        ("2024-12-31", "2024-12-31T00:00:00Z"),
        ("2024-07-01T1:2:3Z", "2024-07-01T01:02:03Z"),
        ("2024-07-01t12:00:00.1234567890Z", "2024-07-01T12:00:00.123456789Z"),
        ("2024-07-01T12:00:00,50Z", "2024-07-01T12:00:00.5Z"),
        ("2024-07-01T12:00:00-05:00", "2024-07-01T12:00:00-05:00"),
        ("2024-07-01T12:00:00+00:00", "2024-07-01T12:00:00Z"),
        ("2024-07-01  12:00:00", "2024-07-01T12:00:00Z"),
        ("2024-07-01T12:00:00+24:00", None),
    ],
)
def test_the_build_respells_a_date_and_helm_does_not(text: str, moment: str | None) -> None:
    assert Resolved("timestamp", text) == scalar.sigs(text)
    assert Resolved("timestamp", moment) == scalar.kyaml(text)
    assert not scalar.is_plain_string(text)


@pytest.mark.parametrize(
    "text",
    [
        "2024-07-01T24:00:00Z", "2024-07-01T12:60:00Z", "2024-07-01T12:00:00", "2024-07-01 12:00:00Z",
        "2024-07-1x", "2024-00-01",
    ],
)  # fmt: skip
def test_what_is_nearly_a_date_is_a_string(text: str) -> None:
    assert scalar.is_plain_string(text)


@pytest.mark.parametrize("text", [".inf", "-.INF", "+.Inf", ".nan", ".NaN"])
def test_infinities_and_nan_fail_in_both_readers(text: str) -> None:
    assert Resolved("error", None) == scalar.sigs(text)
    assert Resolved("float", None) == scalar.kyaml(text)


@pytest.mark.parametrize(
    ("text", "sigs", "kyaml"),
    [
        ("a", "a", "a"),
        ("y", "true", "y"),
        ("off", "false", "off"),
        ("1.0", "1", "1.0"),
        ("010", "8", "010"),
        ("1e3", "1000", "1e3"),
        ("1000000.0", "1e+06", "1000000.0"),
        ("0.00001", "1e-05", "0.00001"),
        ("16777217.0", "1.6777216e+07", "16777217.0"),
        ("3.14159265358979", "3.1415927", "3.14159265358979"),
        ("1e300", ".inf", "1e300"),
        ("-1e300", "-.inf", "-1e300"),
        ("-0.0", "-0", "-0.0"),
        (".NAN", ".nan", ".NAN"),
        ("2024-07-01", "2024-07-01", "2024-07-01"),
        ("~", None, "~"),
        ("<<", None, None),
        ("9223372036854775808", None, "9223372036854775808"),
        ("a" * 1025, None, None),
    ],
)
def test_keys_are_respelled_by_one_reader_only(text: str, sigs: str | None, kyaml: str | None) -> None:
    assert (sigs, kyaml) == (scalar.sigs_key(text), scalar.kyaml_key(text))
    assert (sigs != kyaml) == scalar.keys_differ(text)


@pytest.mark.parametrize(
    "text",
    [
        "a", "pihole", "/etc/x", "_x", "ghcr.io/example/app", "v1", "1h30m", "10m", "0.5s", "15ms",
        "oci://ghcr.io/x/y", "https://github.com/example", "https://a.example:8443/x?y=z&w#top", "s3://bucket/",
    ],
)  # fmt: skip
def test_a_safe_string_is_written_plain(text: str) -> None:
    assert text == scalar.quote(text)
    assert scalar.is_plain_string(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "y", "Yes", "TRUE", "oN", "n", "NULL", "off", "1", "1.20", "./clusters/home/apps",
        "fluxcdbot@example.org", "a b",
        "a:b", "~", "-", "-a", ".inf", "1d", "10", "é", "a\n", "1h\n", "https://x: y", "https://x #y", "https://x:",
        "https://",
        "x://a\n", "abc\n", "https://x/é",
    ],
)  # fmt: skip
def test_any_other_string_is_double_quoted(text: str) -> None:
    assert scalar.double_quoted(text) == scalar.quote(text)
    assert scalar.quote(text).startswith('"')


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("\0\a\b\t\n\v\f\r\x1b", r'"\0\a\b\t\n\v\f\r\e"'),
        ('"\\/', r'"\"\\/"'),
        ("\x01\x7f\x80", r'"\x01\x7F\x80"'),
        ("a\x85\u2028\u2029", r'"a\N\L\P"'),
        ("\u00a0é漢\ud7ff\ue000\ufffd", '"\u00a0é漢\ud7ff\ue000\ufffd"'),
        ("a\ufeff\ufffe\uffff", r'"a\uFEFF\uFFFE\uFFFF"'),
        ("\U0001f600", r'"\U0001F600"'),
        ("\ufeffx é\u00a0", r'"\uFEFF\x78\x20\xE9\_"'),
        ("'$ #", '"\'$ #"'),
    ],
)
def test_double_quoted_text_uses_the_escapes_of_go_yaml(text: str, written: str) -> None:
    assert written == scalar.double_quoted(text)


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(ValueError, match="character 2 is no text"):
        scalar.double_quoted("a\ud800")


@given(TEXTS)
def test_a_double_quoted_string_reads_back(text: str) -> None:
    written = scalar.double_quoted(text)
    assert "\n" not in written
    assert text == yaml.safe_load(written)
    assert text == YAML(typ="safe", pure=True).load(io.StringIO(written))


@given(TEXTS | st.from_regex(r"[a-z]+://[ -~]*", fullmatch=True) | st.from_regex(r"[0-9.]+(ms|s|m|h)", fullmatch=True))
def test_a_quoted_string_reads_back_in_place(text: str) -> None:
    written = scalar.quote(text)
    assert {"k": text} == yaml.safe_load(f"k: {written}\n")
    assert {"k": [{"a": text}]} == yaml.safe_load(f"k:\n- a: {written}\n")
    if not written.startswith('"'):
        assert scalar.is_plain_string(text)


@given(TEXTS)
def test_a_plain_string_is_one_scalar_spelled_as_it_is(text: str) -> None:
    if not scalar.is_plain_string(text) or "\t" in text:
        return
    events = [event for event in yaml.parse(f"k: {text}\n") if isinstance(event, yaml.ScalarEvent)]
    assert ["k", text] == [event.value for event in events]


@given(st.from_regex(r"[-+.0-9_eExXoObBaAfF:TtZ ]{1,12}", fullmatch=True))
def test_every_text_resolves(text: str) -> None:
    sigs, kyaml = scalar.sigs(text), scalar.kyaml(text)
    if sigs.kind in ("int", "float"):
        assert sigs == kyaml
    if kyaml.kind == "string":
        assert text == kyaml.value
    scalar.sigs_key(text)


LIKE_NUMBERS = st.lists(
    st.sampled_from(
        ["0", "1", "9", "12", "2024", "-", "+", ".", ":", "_", "e", "o", "x", "b", "T", "Z", " ", "@", "/", "~"]
    )
    | st.sampled_from(
        ["y", "no", "on", "null", "true", ".inf", "nan", "ghcr.io/a", "é", "\x7f", "\x85", "<<", "#", ": "]
    ),
    max_size=6,
).map("".join)


@given(LIKE_NUMBERS | st.text(max_size=8))
def test_what_is_told_at_a_glance_is_what_the_readers_say(text: str) -> None:
    carried = scalar.is_carried(text, plain=True)
    kinds = {scalar.sigs(text).kind, scalar.kyaml(text).kind}

    assert scalar.SOUND_VALUES[text] == (carried and not scalar.readers_differ(text))
    assert scalar.is_plain_string(text) == (scalar.is_plain(text) and kinds == {"string"})


@given(LIKE_NUMBERS | st.text(max_size=8))
def test_a_string_is_written_so_that_it_is_read_as_itself(text: str) -> None:
    written = scalar.quote(text)

    assert written == text or written == scalar.double_quoted(text)
    if written == text:
        assert scalar.is_plain(text)
        assert (scalar.sigs(text).kind, scalar.kyaml(text).kind) == ("string", "string")
