"""Tables with rows."""

from values import INTS, TYPES, VALUES


class Table:
    def __init__(self, draw, number, others):
        self.name = f"t{number}"
        self.columns = [("id", "i4")]
        kinds = list(TYPES)
        for at in range(draw.randint(4, 8)):
            kind = draw.choice(["i4", "i4", "i8", "text", "text", "num", "bool"]) if draw.p(55) else draw.choice(kinds)
            self.columns.append((f"{'abcdefgh'[at]}{number}" if draw.p(40) else "abcdefgh"[at], kind))
        lines = []
        self.composite = draw.p(25)
        self.no_key = not self.composite and draw.p(10)
        self.unique = []
        for name, kind in self.columns:
            line = f"{name} {TYPES[kind]}"
            if name == "id" and not self.composite and not self.no_key:
                line += " primary key"
            elif name != "id" and kind != "iv" and draw.p(12):
                line += " unique"
                self.unique.append(name)
            elif name != "id" and kind in INTS and others and draw.p(25):
                other = draw.choice(others)
                if not other.composite and not other.no_key:
                    follow = ["cascade", "set null", "no action", "set default", "restrict"]
                    line += f" references {other.name} (id) on delete {draw.choice(follow)} on update {draw.choice(follow)}"
                if draw.p(30):
                    line += f" default {draw.randint(1, 4)}"
                if draw.p(20):
                    line += f" check ({name} {draw.choice(['<> 2', '< 20', 'is not null', 'in (1, 2, 3)'])})"
                elif draw.p(10):
                    line += " not null"
            elif draw.p(8) and name != "id":
                line += " not null"
            elif draw.p(8) and name != "id":
                value = draw.choice(VALUES[kind][:4])
                line += f" default {value}" if draw.p(50) else f" check ({name} <> {value})"
            lines.append(line)
        self.key = ["id"]
        if self.composite and self.columns[1][1] == "iv":
            self.composite = False
        if self.composite:
            self.key = ["id", self.columns[1][0]]
            lines.append(f"primary key ({', '.join(self.key)})")
        if draw.p(20):
            two = draw.sample([name for name, kind in self.columns[1:] if kind != "iv"] + ["id"], 2)
            lines.append(f"unique ({', '.join(two)})")
        self.create = [f"create table {self.name} ({', '.join(lines)})"]
        for at in range(draw.randint(0, 2)):
            keys = draw.sample([name for name, kind in self.columns if kind != "iv"], draw.randint(1, 2))
            include = [name for name, _ in self.columns if name not in keys]
            text = f"create index ix{number}_{at} on {self.name} ({', '.join(key + draw.choice(['', ' desc', ' desc nulls last', ' nulls first']) for key in keys)})"
            if draw.p(40):
                text += f" include ({draw.choice(include)})"
            self.create.append(text)
        self.rows = []
        for row in range(draw.randint(0, 14) if draw.p(80) else draw.randint(0, 2)):
            values = []
            for name, kind in self.columns:
                if name == "id":
                    values.append(str(row + 1))
                elif draw.p(30):
                    values.append("NULL")
                else:
                    some = VALUES[kind]
                    values.append(draw.choice(some[: max(3, len(some) // 2)] if draw.p(70) else some))
            self.rows.append(values)

    def inserts(self):
        return [f"insert into {self.name} values ({', '.join(values)})" for values in self.rows]
