"""A Go template's text in, its tree out; raises TemplateError where Go's own parser refuses it.

Source: the lexer and parser of Go's text/template/parse, as of Go 1.26. Text is not trimmed: where spaces go is no
question of syntax.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from render.patterns import lazy

_BUILTINS = "and call eq ge gt html index js le len lt ne not or print printf println slice urlquery"
BUILTINS = frozenset(_BUILTINS.split())
"""The functions that every Go template has."""

_KEYWORDS = frozenset(("block", "break", "continue", "define", "else", "end", "if", "nil", "range", "template", "with"))
_SPACES = " \t\r\n"
_ENDS_WORD = frozenset(_SPACES + ".,|:)(")
_OPERANDS = frozenset(
    ("bool", "char", "complex", "dot", "field", "identifier", "number", "nil", "rawstring", "string", "variable", "(")
)
_LITERALS = ("bool", "dot", "nil", "number", "string")
_DEEPEST = 100
"""Levels of nesting that are followed; Go's limit is far beyond what anybody writes."""

_ESCAPE = lazy(
    r"\\(?:[abfnrtv\\]|(?P<quote>['\"])|(?P<octal>[0-7]{3})|x[0-9a-fA-F]{2}"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8}))"
)
_INTEGER = lazy(r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0(?:_?[0-7])*|[1-9](?:_?[0-9])*)")
_DIGITS = r"[0-9](?:_?[0-9])*"
_HEX_DIGITS = r"[0-9a-fA-F](?:_?[0-9a-fA-F])*"
_DECIMAL = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?"
_HEX = rf"0[xX](?:_?{_HEX_DIGITS}(?:\.(?:{_HEX_DIGITS})?)?|\.{_HEX_DIGITS})[pP][+-]?{_DIGITS}"
_FLOAT = lazy(rf"[+-]?(?:{_HEX}|{_DECIMAL})")
_COMPLEX = lazy(rf"([+-]?(?:{_HEX}|{_DECIMAL}))([+-](?:{_HEX}|{_DECIMAL}))i")


class TemplateError(ValueError):
    """What Go would refuse, with the line of the template."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Token(NamedTuple):
    """A token; `kind` is a keyword, one of the characters `( ) | , =`, or a word such as `field`."""

    kind: str
    text: str
    line: int


# The tree


@dataclass(slots=True)
class Operand:
    """A value, and the fields that follow it."""

    kind: str
    """`field` (of the dot), `variable`, `dot`, `nil`, `pipeline`, `identifier` (a function), or a literal."""
    line: int
    name: str = ""
    """Of a variable (with its `$`) or a function."""
    fields: list[str] = field(default_factory=list)
    inner: Pipeline | None = None


@dataclass(slots=True)
class Pipeline:
    """Commands, each with its operands; their result is kept in the variables `declared`."""

    line: int
    declared: list[str] = field(default_factory=list)
    assigns: bool = False
    """Whether the variables are ones that exist."""
    commands: list[list[Operand]] = field(default_factory=list)


@dataclass(slots=True)
class Action:
    """A part of a template that is no text."""

    kind: str
    """`value`, `if`, `range`, `with`, `template`, `break`, `continue`, `else` or `end`."""
    line: int
    pipeline: Pipeline | None = None
    body: list[Action] = field(default_factory=list)
    other: list[Action] = field(default_factory=list)
    """What follows `else`."""
    name: str = ""
    """Of the template that is called."""


@dataclass(slots=True)
class Template:
    """A parsed template: the actions of the text itself, and those of what it defines, by name."""

    actions: list[Action]
    defined: dict[str, list[Action]]


def parse(text: str, functions: Set[str]) -> Template:
    """Return the tree of a template that may call `functions` besides Go's own; raises TemplateError."""
    parser = _Parser(_Lexer(text).run(), BUILTINS | functions, {})
    actions = parser.template()
    return Template(actions, {name: body for name, (body, _) in parser.defined.items()})


# Tokens


def _is_word(char: str) -> bool:
    return char == "_" or char.isalpha() or char.isdecimal()


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.start = 0
        self.counted = 0
        self.line = 1

    def run(self) -> Iterator[Token]:
        """Yield tokens up to `end of text`; raises TemplateError at the first that is none."""
        text = self.text
        while True:
            open_ = text.find("{{", self.at)
            self.start = self.at
            self.at = len(text) if open_ < 0 else open_
            trims = open_ >= 0 and text[open_ + 2 : open_ + 3] == "-" and text[open_ + 3 : open_ + 4] in tuple(_SPACES)
            shown = text[self.start : self.at]
            if shown.rstrip(_SPACES) if trims else shown:
                yield self._token("text")
            if open_ < 0:
                yield Token("end of text", "", self._line(len(text)))
                return
            self.at += 4 if trims else 2
            if text.startswith("/*", self.at):
                self._comment()
                continue
            self.start = open_
            yield self._token("{{")
            yield from self._action()

    def _line(self, at: int) -> int:
        self.line += self.text.count("\n", self.counted, at)
        self.counted = max(self.counted, at)
        return self.line

    def _token(self, kind: str) -> Token:
        return Token(kind, self.text[self.start : self.at], self._line(self.start))

    def _error(self, message: str) -> TemplateError:
        return TemplateError(message, self._line(min(self.at, len(self.text))))

    def _closing(self, at: int) -> int:
        """Return the length of a closing delimiter at a place, with its trim marker; 0 where there is none."""
        if self.text[at : at + 1] in tuple(_SPACES) and self.text.startswith("-}}", at + 1):
            return 4
        return 2 if self.text.startswith("}}", at) else 0

    def _close(self, length: int) -> None:
        self.at += length
        if length == 4:
            while self.at < len(self.text) and self.text[self.at] in _SPACES:
                self.at += 1

    def _comment(self) -> None:
        end = self.text.find("*/", self.at + 2)
        if end < 0:
            raise self._error("a comment is not closed by `*/`")
        self.at = end + 2
        length = self._closing(self.at)
        if not length:
            raise self._error("a comment must be closed by `*/}}`, with nothing between")
        self._close(length)

    def _action(self) -> Iterator[Token]:
        """Yield the tokens of an action, the closing delimiter included."""
        depth = 0
        text = self.text
        while True:
            self.start = self.at
            length = self._closing(self.at)
            if length:
                if depth:
                    raise self._error("a `(` is not closed")
                self.at += length
                yield self._token("}}")
                self.at -= length
                self._close(length)
                return
            if self.at >= len(text):
                raise self._error("an action is not closed by `}}`")
            char = text[self.at]
            self.at += 1
            if char in _SPACES:
                while self.at < len(text) and text[self.at] in _SPACES and not self._closing(self.at):
                    self.at += 1
                yield self._token("space")
            elif char == "(":
                depth += 1
                yield self._token("(")
            elif char == ")":
                depth -= 1
                if depth < 0:
                    raise self._error("a `)` closes nothing")
                yield self._token(")")
            else:
                yield self._other(char)

    def _other(self, char: str) -> Token:
        text = self.text
        if char in "=|":
            return self._token(char)
        if char == ":":
            if text[self.at : self.at + 1] != "=":
                raise self._error("a `:` must be followed by `=`")
            self.at += 1
            return self._token(":=")
        if char in "\"'":
            return self._quoted(char)
        if char == "`":
            end = text.find("`", self.at)
            if end < 0:
                raise self._error("a text in backquotes is not closed")
            self.at = end + 1
            return self._token("rawstring")
        if char == "$" or (char == "." and text[self.at : self.at + 1] not in tuple("0123456789")):
            return self._name("variable" if char == "$" else "field")
        if char in "+-." or char in "0123456789":
            self.at -= 1
            return self._number()
        if _is_word(char):
            return self._word()
        if " " <= char <= "~":
            return self._token(char)
        raise self._error(
            f"`{char}` is no part of an action" if char.isprintable() else "a character is no part of an action"
        )

    def _quoted(self, quote: str) -> Token:
        text = self.text
        while True:
            char = text[self.at : self.at + 1]
            self.at += 1
            if char == "\\":
                char = text[self.at : self.at + 1]
                self.at += 1
                if char and char != "\n":
                    continue
            if char in ("", "\n"):
                raise self._error(f"a text in `{quote}` is not closed on its line")
            if char == quote:
                return self._token("string" if quote == '"' else "char")

    def _take_word(self) -> None:
        while self.at < len(self.text) and _is_word(self.text[self.at]):
            self.at += 1
        char = self.text[self.at : self.at + 1]
        if char and char not in _ENDS_WORD and not self.text.startswith("}}", self.at):
            raise self._error(f"`{char}` must not follow `{self.text[self.start : self.at]}` without a space")

    def _name(self, kind: str) -> Token:
        self._take_word()
        token = self._token(kind)
        return token._replace(kind="dot") if token.text == "." else token

    def _word(self) -> Token:
        self._take_word()
        word = self.text[self.start : self.at]
        if word in _KEYWORDS:
            return self._token(word)
        return self._token("bool" if word in ("true", "false") else "identifier")

    def _number(self) -> Token:
        is_number = self._scan_number()
        if is_number and self.text[self.at : self.at + 1] in ("+", "-"):
            is_number = self._scan_number() and self.text[self.at - 1] == "i"
            if is_number:
                return self._token("complex")
        if not is_number:
            raise self._error(f"`{self.text[self.start : self.at]}` is no number")
        return self._token("number")

    def _scan_number(self) -> bool:
        """Step over what may be a number, as Go's lexer does; whether no letter or digit follows."""
        accept = self._accept
        accept("+-")
        digits, exponent = "0123456789_", "eE"
        if accept("0"):
            if accept("xX"):
                digits, exponent = "0123456789abcdefABCDEF_", "pP"
            elif accept("oO"):
                digits, exponent = "01234567_", ""
            elif accept("bB"):
                digits, exponent = "01_", ""
        self._accept_run(digits)
        if accept("."):
            self._accept_run(digits)
        if exponent and accept(exponent):
            accept("+-")
            self._accept_run("0123456789_")
        accept("i")
        if self.at < len(self.text) and _is_word(self.text[self.at]):
            self.at += 1
            return False
        return True

    def _accept(self, chars: str) -> bool:
        if self.at < len(self.text) and self.text[self.at] in chars:
            self.at += 1
            return True
        return False

    def _accept_run(self, chars: str) -> None:
        while self._accept(chars):
            pass


def _unquote(token: Token) -> str:
    """Return the text of a quoted token with its escapes, which only the check of template names looks into."""
    inner = token.text[1:-1]
    if token.kind != "rawstring":
        _check_escapes(inner, '"', token)
    return inner


def _check_escapes(inner: str, quote: str, token: Token) -> int:
    """Raise unless all escapes are Go's; return the number of characters."""
    at = count = 0
    while at < len(inner):
        count += 1
        if inner[at] != "\\":
            at += 1
            continue
        match = _ESCAPE.match(inner, at)
        code = int((match and (match["short"] or match["long"])) or "0", 16)
        if (
            match is None
            or (match["quote"] or quote) != quote
            or int(match["octal"] or "0", 8) > 0xFF
            or code > 0x10FFFF
            or 0xD800 <= code < 0xE000
        ):
            raise TemplateError(f"`{inner[at : at + 2]}` is no escape that Go has", token.line)
        at = match.end()
    return count


def _check_number(token: Token) -> None:
    text = token.text
    if token.kind == "char":
        if text == "'''" or _check_escapes(text[1:-1], "'", token) != 1:
            raise TemplateError(f"{text} must be one character", token.line)
        return
    if token.kind == "complex":
        match = _COMPLEX.fullmatch(text)
        if match is None or not all(_is_finite(part) for part in match.groups()):
            raise TemplateError(f"`{text}` is no number", token.line)
        return
    is_imaginary = text.endswith("i") and _FLOAT.fullmatch(text[:-1]) is not None and _is_finite(text[:-1])
    if is_imaginary:
        return
    if _INTEGER.fullmatch(text):
        number = _integer(text)
        highest = 2**63 - 1 if text[0] in "+-" else 2**64 - 1
        if not -(2**63) <= number <= highest:
            raise TemplateError(f"`{text}` is too large a number", token.line)
        return
    if _FLOAT.fullmatch(text) is None or not any(char in text for char in ".eEpP") or not _is_finite(text):
        raise TemplateError(f"`{text}` is no number", token.line)


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits, 16)
    if digits[:2] in ("0b", "0B"):
        return sign * int(digits, 2)
    if digits.startswith("0"):
        return sign * int(digits.removeprefix("0o").removeprefix("0O"), 8)
    return sign * int(digits)


def _is_finite(text: str) -> bool:
    digits = text.replace("_", "")
    if "x" not in digits.lower():
        return abs(float(digits)) != float("inf")
    try:
        return abs(float.fromhex(digits)) != float("inf")
    except OverflowError:
        return False


# Trees


class _Parser:
    def __init__(
        self, tokens: Iterator[Token], functions: Set[str], defined: dict[str, tuple[list[Action], bool]]
    ) -> None:
        self.tokens = tokens
        self.functions = functions
        self.defined = defined
        """Bodies of named templates, and whether they hold more than space."""
        self.held: list[Token] = []
        """Tokens that were looked at, the next one last."""
        self.variables = ["$"]
        self.ranges = 0
        self.depth = 0
        self.has_text = False
        """Whether the list that is read holds more than space."""

    # Go's parser looks at no more than three tokens, and so does this one.

    def _next(self) -> Token:
        return self.held.pop() if self.held else next(self.tokens)

    def _back(self, *tokens: Token) -> None:
        """Give back tokens that follow each other."""
        self.held += reversed(tokens)

    def _word(self) -> Token:
        """Return the next token that is no space."""
        token = self._next()
        while token.kind == "space":
            token = self._next()
        return token

    def _peek_word(self) -> Token:
        token = self._word()
        self._back(token)
        return token

    def _peek(self) -> Token:
        token = self._next()
        self._back(token)
        return token

    def _unexpected(self, token: Token, where: str) -> TemplateError:
        text = token.text.strip() or token.kind
        return TemplateError(f"`{text}` has no place {where}", token.line)

    def _expect(self, kind: str, where: str) -> Token:
        token = self._word()
        if token.kind != kind:
            raise self._unexpected(token, where)
        return token

    def _child(self) -> _Parser:
        """Return a parser of a named template: it has no variables but `$`, and is in no range."""
        child = _Parser(self.tokens, self.functions, self.defined)
        child.held, child.depth = self.held, self.depth
        return child

    def template(self) -> list[Action]:
        """Return the actions of the whole text."""
        actions: list[Action] = []
        while self._peek().kind != "end of text":
            if self._peek().kind == "{{":
                opening = self._next()
                token = self._word()
                if token.kind == "define":
                    self._definition()
                    continue
                self._back(opening, token)
            action = self._text_or_action()
            if action is not None and action.kind in ("else", "end"):
                raise TemplateError(f"`{{{{{action.kind}}}}}` ends nothing", action.line)
            if action is not None:
                actions.append(action)
        return actions

    def _definition(self) -> None:
        name = self._name("after `define`")
        self._expect("}}", "after the name of a template")
        child = self._child()
        body, end = child._list()
        if end.kind != "end":
            raise TemplateError("`{{else}}` has no place in a definition", end.line)
        self._define(name, body, end.line, is_filled=child.has_text)

    def _define(self, name: str, body: list[Action], line: int, *, is_filled: bool) -> None:
        known = self.defined.get(name)
        if known is None or not known[1]:
            self.defined[name] = (body, is_filled)
        elif is_filled:
            raise TemplateError(f"the template `{name}` is defined twice", line)

    def _name(self, where: str) -> str:
        token = self._word()
        if token.kind not in ("string", "rawstring"):
            raise self._unexpected(token, f"{where}, where the name of a template in quotes belongs")
        return _unquote(token)

    def _list(self) -> tuple[list[Action], Action]:
        """Return actions up to the `else` or `end` that ends them, and that."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise TemplateError("the template is nested too deep", self._peek().line)
        actions: list[Action] = []
        while True:
            token = self._peek_word()
            if token.kind == "end of text":
                raise TemplateError("an `{{end}}` is missing", token.line)
            action = self._text_or_action()
            if action is None:
                continue
            if action.kind in ("else", "end"):
                self.depth -= 1
                return actions, action
            actions.append(action)

    def _text_or_action(self) -> Action | None:
        """Return the next action; None for text."""
        token = self._word()
        if token.kind == "text":
            self.has_text = self.has_text or bool(token.text.strip())
            return None
        if token.kind != "{{":
            raise self._unexpected(token, "here")
        action = self._action()
        if action.kind not in ("else", "end"):
            self.has_text = True
        return action

    def _action(self) -> Action:
        token = self._word()
        match token.kind:
            case "if" | "range" | "with":
                return self._control(token.kind, token.line)
            case "block":
                return self._block(token.line)
            case "template":
                return self._call(token.line)
            case "end":
                self._expect("}}", "after `end`")
                return Action("end", token.line)
            case "else":
                return self._else(token.line)
            case "break" | "continue":
                self._expect("}}", f"after `{token.kind}`")
                if not self.ranges:
                    raise TemplateError(f"`{{{{{token.kind}}}}}` stands outside of a range", token.line)
                return Action(token.kind, token.line)
        self._back(token)
        return Action("value", token.line, self._pipeline("action", "}}"))

    def _else(self, line: int) -> Action:
        # `else if` and `else with` leave their word for the control that they continue.
        if self._peek_word().kind not in ("if", "with"):
            self._expect("}}", "after `else`")
        return Action("else", line)

    def _control(self, kind: str, line: int) -> Action:
        known = len(self.variables)
        pipeline = self._pipeline(kind, "}}")
        self.ranges += kind == "range"
        body, end = self._list()
        self.ranges -= kind == "range"
        other: list[Action] = []
        if end.kind == "else":
            if kind != "range" and self._peek().kind == kind:
                token = self._next()
                self.depth += 1
                other = [self._control(kind, token.line)]
                self.depth -= 1
            else:
                other, end = self._list()
                if end.kind != "end":
                    raise TemplateError("a second `{{else}}` stands where an `{{end}}` belongs", end.line)
        del self.variables[known:]
        return Action(kind, line, pipeline, body, other)

    def _block(self, line: int) -> Action:
        name = self._name("after `block`")
        pipeline = self._pipeline("block", "}}")
        child = self._child()
        body, end = child._list()
        if end.kind != "end":
            raise TemplateError("`{{else}}` has no place in a block", end.line)
        self._define(name, body, end.line, is_filled=child.has_text)
        return Action("template", line, pipeline, name=name)

    def _call(self, line: int) -> Action:
        name = self._name("after `template`")
        token = self._word()
        if token.kind == "}}":
            return Action("template", line, name=name)
        self._back(token)
        return Action("template", line, self._pipeline("template", "}}"), name=name)

    def _pipeline(self, context: str, end: str) -> Pipeline:
        pipeline = Pipeline(self._peek_word().line)
        self._declarations(pipeline, context)
        while True:
            token = self._word()
            if token.kind == end:
                break
            if token.kind not in _OPERANDS:
                raise self._unexpected(token, f"in {'an' if context[0] in 'ai' else 'a'} `{context}`")
            self._back(token)
            pipeline.commands.append(self._command())
        if not pipeline.commands:
            raise TemplateError(f"{'an' if context[0] in 'ai' else 'a'} `{context}` needs a value", pipeline.line)
        for command in pipeline.commands[1:]:
            first = command[0]
            if first.kind in _LITERALS:
                raise TemplateError("only a function or a method can follow `|`", first.line)
        return pipeline

    def _declarations(self, pipeline: Pipeline, context: str) -> None:
        """Read `$x :=`, `$x =` or, in a range, `$i, $x :=`; leave a pipeline without them as it is."""
        while self._peek_word().kind == "variable":
            variable = self._word()
            after = self._next()
            token = after
            while token.kind == "space":
                token = self._next()
            if token.kind in ("=", ":="):
                pipeline.assigns = token.kind == "="
                pipeline.declared.append(variable.text)
                self.variables.append(variable.text)
                return
            if token.kind != ",":
                self._back(variable, *([after] if after.kind == "space" else []), token)
                return
            pipeline.declared.append(variable.text)
            self.variables.append(variable.text)
            if context != "range" or len(pipeline.declared) > 1:
                raise TemplateError("only a range can declare two variables, and none more", variable.line)
            following = self._peek_word()
            if following.kind not in ("variable", "}}", ")"):
                raise self._unexpected(following, "after the `,` of a range, where a variable belongs")

    def _command(self) -> list[Operand]:
        operands: list[Operand] = []
        while True:
            self._peek_word()
            operand = self._operand()
            if operand is not None:
                operands.append(operand)
            token = self._next()
            if token.kind == "space":
                continue
            if token.kind in ("}}", ")"):
                self._back(token)
            elif token.kind != "|":
                raise self._unexpected(token, "after a value")
            break
        if not operands:
            raise TemplateError("a value is missing", token.line)
        return operands

    def _operand(self) -> Operand | None:
        operand = self._term()
        if operand is None or self._peek().kind != "field":
            return operand
        if operand.kind in _LITERALS:
            raise TemplateError("a field must not follow a plain value", operand.line)
        while self._peek().kind == "field":
            operand.fields.append(self._next().text[1:])
        return operand

    def _term(self) -> Operand | None:
        token = self._word()
        match token.kind:
            case "identifier":
                if token.text not in self.functions:
                    raise TemplateError(f"there is no function `{token.text}`", token.line)
                return Operand("identifier", token.line, token.text)
            case "dot" | "nil" | "bool":
                return Operand(token.kind, token.line)
            case "variable":
                if token.text not in self.variables:
                    raise TemplateError(f"the variable `{token.text}` is not declared", token.line)
                return Operand("variable", token.line, token.text)
            case "field":
                return Operand("field", token.line, fields=[token.text[1:]])
            case "char" | "complex" | "number":
                _check_number(token)
                return Operand("number", token.line)
            case "string" | "rawstring":
                _unquote(token)
                return Operand("string", token.line)
            case "(":
                self.depth += 1
                if self.depth > _DEEPEST:
                    raise TemplateError("the template is nested too deep", token.line)
                inner = self._pipeline("parenthesis", ")")
                self.depth -= 1
                return Operand("pipeline", token.line, inner=inner)
        self._back(token)
        return None
