from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.redact import has_credential, printable, redact, redact_line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("password: hunter2", "password: …"),
        ("  adminPassword: 'hunter2'", "  adminPassword: …"),
        ('- "apiKey": "hunter2"', '- "apiKey": …'),
        ("db_passwd : hunter2", "db_passwd : …"),
        ("token: !!str hunter2", "token: …"),
        ("token: &t hunter2", "token: …"),
        ('password: "hunter2', "password: …"),
        ("{user: a, secret-key: hunter2}", "{user: a, secret-key: …"),
        ("clientSecret: hunter2", "clientSecret: …"),
        ("SESSION_SECRET: hunter2", "SESSION_SECRET: …"),
        ("SECRET_KEY_BASE: hunter2", "SECRET_KEY_BASE: …"),
        ("smtp_pass: hunter2", "smtp_pass: …"),
        ("smtpPass: hunter2", "smtpPass: …"),
        ("pass: hunter2", "pass: …"),
        ("- {name: DB_TOKEN, value: hunter2}", "- {name: DB_TOKEN, value: …"),
        ("url: postgres://app:hunter2@db/app", "url: postgres://app:…"),
        ("x: ENC[AES256_GCM,data:aHVudGVyMg==]", "x: …"),
    ],
)
def test_credentials_of_a_line_are_blanked(line: str, shown: str) -> None:
    assert shown == redact_line(line)
    assert has_credential(line) is not line.startswith("x")


@pytest.mark.parametrize(
    "line",
    [
        "password:",
        'password: ""',
        "password: ''",
        "password: |",
        "password: >- # folded",
        "password: *shared",
        "password: &shared",
        "credentials: {secretRef: regcred}",
        "credentials: []",
        "secretKeyRef: {name: db}",
        "existingSecret: db",
        "existing_secret: db",
        "secretName: db",
        "signingKey: {secretRef: {name: gpg}}",
        "bypass: true",
        "{name: A, value: b}",
        "image: registry:5000/a@sha256:b",
        "url: https://example.org:8443/@a",
        "tokens: 3",
    ],
)
def test_a_line_without_the_value_of_a_credential_stays(line: str) -> None:
    assert line == redact_line(line)
    assert not has_credential(line)


SECRETS = [
    """\
    kind: Secret
    metadata: {name: ok}
    data:
      ok: hunter2
    stringData:
      ok: |
        hunter2

        other: hunter2
      "ok": hunter2
    type: ok
    """,
    """\
    apiVersion: v1
    stringData: {a: hunter2,
      b: hunter2}
    kind: "Secret" # ok
    """,
    """\
    kind: List
    items:
    - kind: Secret
      data:
        ok: hunter2
    - stringData: {a: hunter2}
      kind: Secret
    """,
    """\
    {"kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "hunter2"},
     "stringData": {"b": "hunter2"}}
    """,
    """\
    kind: ConfigMap
    ---
    kind: Secret
    data:
        deep: hunter2
        deeper:
            hunter2
    """,
    """\
    env:
    - name: DB_PASSWORD
      value: hunter2
    - name: "CLIENT_SECRET"
      value: |
        hunter2
    - name: OK
      value: ok
    """,
    """\
    password: |
      hunter2

      key: hunter2
    api-key:
      hunter2 and
      hunter2
    token: "hunter2
      hunter2"
    secretKey: >-
      hunter2
    last: ok
    """,
    """\
    secretGenerator:
    - name: ok
      literals:
      - a=hunter2
      - "b=hunter2"
    - name: ok
      literals: [a=hunter2,
        b=hunter2]
    configMapGenerator:
    - literals:
      - a=ok
    """,
    """\
    secretGenerator: [{name: a, literals: [b=hunter2]}]
    last: ok
    """,
]


@pytest.mark.parametrize("text", SECRETS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_secrets_of_a_file_are_blanked(text: str, ending: str, mark: str) -> None:
    shown = redact(mark + textwrap.dedent(text).replace("\n", ending))

    assert "hunter2" not in shown
    assert "…" in shown
    assert text.count("ok") == shown.count("ok")


def test_the_rest_of_a_file_stays() -> None:
    text = "kind: ConfigMap\ndata:\n  a: b\n---\ncredentials:\n  secretRef: a\n---\nenv:\n- name: A\n  value: b\n"

    assert text == redact(text)


@given(st.text("abk: \n-'\"{}[]|>&*#\t\r", max_size=60))
def test_any_text_can_be_redacted(text: str) -> None:
    assert isinstance(redact("kind: Secret\n" + text), str)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("grün → 日本", "grün → 日本"),
        ("\x1b[31mred\x9b0m", "·[31mred·0m"),
        ("a\nb\tc", "a·b·c"),
        ("\u202eevil\u2066", "·evil·"),
        ("caf\udce9.yaml", "caf·.yaml"),
        ("a\x85b\u2028c", "a·b·c"),
    ],
)
def test_what_a_terminal_would_obey_is_a_dot(text: str, shown: str) -> None:
    assert shown == printable(text)
