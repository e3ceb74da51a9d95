"""Reads a psql script: the statements that psql would send, one after another, with its variables in them.

Commands that only show things (`\\d`, `\\pset`, `\\echo`) are passed over. Statements come from a generator, because a
variable may get its value (`\\gset`) from the answer to the statement before.
"""

import re
from typing import NamedTuple

DOLLAR = re.compile(r"\$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)?\$")
WORD = re.compile(r"[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*")
VARIABLE = re.compile(r""":(?:'(\w+)'|"(\w+)"|\{\?(\w+)\}|(\w+))""")
COMMAND = re.compile(r"\\(\w+|[;!?])")
# Of commands with a backslash: those that send what stands before them.
SENDING = {"g", "gx", "gset", "gexec", "gdesc", "crosstabview", "watch"}
STRINGS = re.compile(r"(?:re)?set\s+standard_conforming_strings(?:\s*(?:=|to)\s*'?(on|off))?", re.I)
NEVER = object()


class Statement(NamedTuple):
    """A message to the server, where in the script it begins, and the command that ended it: `;`, `g`, `gset`, ..."""

    at: int
    sql: str
    ending: str = ";"
    argument: str = ""


class Connect(NamedTuple):
    """`\\c`: a new connection, perhaps as another user."""

    at: int
    user: str


class Pending:
    """A statement as far as it is read."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.pieces, self.begin, self.words = [], None, []
        # Parentheses, and blocks of BEGIN ATOMIC: a semicolon in them ends nothing.
        self.depth, self.blocks = 0, 0

    def add(self, at, kind, piece):
        """Takes a piece; true if it is the semicolon that ends the statement."""
        if kind == "comment" or kind == "space" and not self.pieces:
            return False
        if kind != "space" and self.begin is None:
            self.begin = at
        if kind == "word":
            self.follow(piece.lower())
        self.depth += (piece == "(") - (piece == ")" and self.depth > 0)
        if piece == ";" and self.depth == 0 and self.blocks == 0:
            return True
        # Two statements of one message have a semicolon between them that psql does not look at.
        self.pieces.append(";" if piece == "\\;" else piece)
        return False

    def follow(self, word):
        self.words.append(word)
        if self.words[0] == "create" and {"function", "procedure"} & set(self.words[1:4]):
            self.blocks += (word == "begin") + (word == "case" and self.blocks > 0)
            self.blocks -= word == "end" and self.blocks > 0

    def take(self, ending, argument=""):
        """Yields the statement, if there is one, and begins the next."""
        sql, begin = "".join(self.pieces).strip(), self.begin
        self.clear()
        if sql:
            yield Statement(begin, sql, ending, argument)


class Script:
    def __init__(self, source, environment):
        self.source, self.environment = source, environment
        self.variables = {}
        self.place, self.conditions = 0, []
        # Whether a backslash in a plain literal is an escape, as the script sets it.
        self.escapes = False

    def line(self, at):
        return self.source.count("\n", 0, at) + 1

    def data(self):
        """What COPY FROM STDIN reads: the lines up to `\\.`, from the line that follows."""
        begin = self.source.find("\n", self.place) + 1 or len(self.source)
        end = re.compile(r"^\\\.[ \t]*$", re.M).search(self.source, begin)
        if end is None:
            return b""
        self.place = min(end.end() + 1, len(self.source))
        return self.source[begin : end.start()].encode("utf-8", "surrogateescape")

    def events(self):
        """Statements and connections, in order."""
        pending = Pending()
        while self.place < len(self.source):
            at = self.place
            kind, piece = self.token()
            if kind == "command":
                name, argument = piece
                if name in ("q", "quit") and self.is_active():
                    return
                if event := self.command_event(at, name, argument, pending):
                    yield event
            elif self.is_active() and pending.add(at, kind, piece):
                for statement in pending.take(";"):
                    self.notice(statement.sql)
                    yield statement
        yield from pending.take(";")

    def notice(self, sql):
        if found := STRINGS.match(sql):
            self.escapes = (found[1] or "").lower() == "off"

    def is_active(self):
        """Whether all conditions around this place hold."""
        return all(taken is True for taken in self.conditions)

    def command_event(self, at, name, argument, pending):
        """What a command sends, if it sends anything."""
        if name in ("if", "elif", "else", "endif"):
            self.condition(name, argument)
        elif not self.is_active():
            return None
        elif name == ";":
            pending.add(at, "text", "\\;")
        elif name == "r":
            pending.clear()
        elif name in SENDING:
            return next(pending.take(name if name in ("gset", "gexec") else "g", argument), None)
        elif name == "copy":
            return Statement(at, "copy " + argument, "copy")
        elif name in ("c", "connect"):
            parts = argument.split()
            return Connect(at, parts[1] if len(parts) > 1 and parts[1] != "-" else "")
        else:
            self.perform(name, argument)
        return None

    def token(self):
        """(kind, text) of what stands next; moves on behind it."""
        source, at = self.source, self.place
        char = source[at]
        if char.isspace():
            end = at + 1
            while end < len(source) and source[end].isspace():
                end += 1
            self.place = end
            return "space", source[at:end]
        if source.startswith("--", at):
            end = source.find("\n", at)
            self.place = len(source) if end < 0 else end
            return "comment", ""
        if source.startswith("/*", at):
            return "text", self.take(self.block_comment(at))
        if char == "'":
            before = source[max(at - 2, 0) : at].lower()
            prefixed = before[-1:] == "e" and not (before[:-1].isalnum() or before[:-1] == "_")
            escapes = prefixed or self.escapes and before != "u&"
            return "text", self.take(self.quoted(at, "'", escapes))
        if char == '"':
            return "text", self.take(self.quoted(at, '"', False))
        if char == "$" and (tag := DOLLAR.match(source, at)):
            end = source.find(tag.group(), tag.end())
            return "text", self.take(len(source) if end < 0 else end + len(tag.group()))
        if source.startswith("\\\\", at):
            # It parts a command from the text behind it.
            return "space", self.take(at + 2)
        if char == "\\" and (command := COMMAND.match(source, at)):
            return "command", self.command(command)
        if source.startswith("::", at):
            return "text", self.take(at + 2)
        if char == ":" and (variable := VARIABLE.match(source, at)):
            self.place = variable.end()
            return "text", self.substitute(variable)
        if word := WORD.match(source, at):
            # The letter of E'..' goes with what follows.
            return "word", self.take(word.end())
        return "text", self.take(at + 1)

    def take(self, end):
        begin, self.place = self.place, end
        return self.source[begin:end]

    def quoted(self, at, quote, escapes):
        at += 1
        while at < len(self.source):
            if escapes and self.source[at] == "\\":
                at += 2
            elif self.source[at] == quote:
                if self.source[at + 1 : at + 2] != quote:
                    return at + 1
                at += 2
            else:
                at += 1
        return len(self.source)

    def block_comment(self, at):
        depth = 0
        for mark in re.compile(r"/\*|\*/").finditer(self.source, at):
            depth += 1 if mark.group() == "/*" else -1
            if depth == 0:
                return mark.end()
        return len(self.source)

    def command(self, found):
        """A command's name and argument. It ends with its line, or where the next command begins."""
        name = found.group(1)
        self.place = found.end()
        if name == ";":
            return name, ""
        end = self.source.find("\n", self.place)
        end = len(self.source) if end < 0 else end
        argument = self.source[self.place : end]
        if name not in ("copy", "echo", "set", "!", "if"):
            following = re.search(r"\s\\[a-z\\]", argument)
            if following:
                end = self.place + following.start()
                argument = argument[: following.start()]
        self.place = end
        return name, argument.strip()

    def substitute(self, found):
        literal, identifier, test, plain = found.groups()
        name = next(part for part in found.groups() if part is not None)
        if test is not None:
            return "TRUE" if name in self.variables else "FALSE"
        if name not in self.variables:
            return found.group()
        value = self.variables[name]
        if literal is not None:
            quoted = "'" + value.replace("'", "''") + "'"
            return " E" + quoted.replace("\\", "\\\\") if "\\" in value else quoted
        return '"' + value.replace('"', '""') + '"' if identifier is not None else value

    def words(self, argument):
        """The arguments of a command, with variables and quotes resolved."""
        parts = []
        for part in re.findall(r"""(?:'(?:''|\\.|[^'])*'|"(?:""|[^"])*"|:'\w+'|:"\w+"|[^\s'"])+""", argument):
            part = VARIABLE.sub(lambda found: self.value(found), part)
            parts.append(re.sub(r"'((?:''|\\.|[^'])*)'", lambda found: unescaped(found.group(1)), part))
        return parts

    def value(self, found):
        """A variable as an argument. One that is quoted keeps its quotes as characters."""
        if found.group(1) is not None and found.group(1) in self.variables:
            return "'" + self.substitute(found).strip().replace("'", "''") + "'"
        return self.substitute(found)

    def perform(self, name, argument):
        words = self.words(argument)
        if name == "set" and words:
            self.variables[words[0]] = "".join(words[1:])
        elif name == "unset" and words:
            self.variables.pop(words[0], None)
        elif name == "getenv" and len(words) == 2 and words[1] in self.environment:
            self.variables[words[0]] = self.environment[words[1]]

    def condition(self, name, argument):
        """Each level is True (taken), False (not yet taken), or NEVER (an earlier branch was)."""
        value = "".join(self.words(argument)).lower() in ("t", "true", "on", "yes", "1")
        if name == "if":
            self.conditions.append(value)
        elif not self.conditions:
            return
        elif name == "endif":
            self.conditions.pop()
        else:
            before = self.conditions.pop()
            self.conditions.append(NEVER if before in (True, NEVER) else value or name == "else")


def unescaped(text):
    """The characters of a quoted argument."""
    escapes = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
    return re.sub(r"''|\\(.)", lambda found: escapes.get(found[1], found[1]) if found[1] else "'", text)
