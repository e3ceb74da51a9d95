"""DataFusion's issues of wrong results, asked of Cairn and of PostgreSQL.

    issues.py --cairn DIR --postgres DIR [--markdown] [FILE..]

A file has an issue's number (0 for a shape beside them) and its shape behind `---`, and then the statements; tables stay for
those that come later in the file. Without FILE it takes `datafusion-issues.sql`, the issues' own statements, and
`datafusion-shapes.sql`, more statements of their shapes. Prints what differs, or a table of what is right.
"""

import argparse
import collections
import pathlib

from foreign import fresh, is_ordered
from sides import Side, compare


def parts(text):
    """(number, shape, statements) of each issue."""
    for block in text.split("--- ")[1:]:
        head, _, body = block.partition(";\n")
        number, _, shape = head.partition(" ")
        yield int(number), shape, [sql.strip() for sql in body.split(";\n") if sql.strip(" ;\n")]


def verdict(cairn, postgres, sql):
    """`right`, `wrong`, or with what code Cairn refuses, and both answers."""
    one, other = postgres.run(sql), cairn.run(sql)
    if compare(one, other, is_ordered(sql)) in (None, "type", "names", "format"):
        return "right", one, other
    return (f"refused {other[1]}" if other[0] == "error" and one[0] != "error" else "wrong"), one, other


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cairn", required=True)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    here = pathlib.Path(__file__).parent
    cairn, postgres = Side(options.cairn, "cairn"), Side(options.postgres, "postgres")
    counts = collections.Counter()
    for file in options.files or [here / "datafusion-issues.sql", here / "datafusion-shapes.sql"]:
        fresh((cairn, postgres))
        for number, shape, statements in parts(pathlib.Path(file).read_text()):
            found = [(sql, *verdict(cairn, postgres, sql)) for sql in statements]
            counts.update(is_it.split()[0] for _, is_it, _, _ in found)
            if options.markdown:
                print(f"| {number} | {shape} | {', '.join(sorted({is_it for _, is_it, _, _ in found}))} |")
                continue
            for sql, is_it, one, other in found:
                if is_it != "right":
                    print(f"\n{number} {shape}: {is_it}\n    {sql}\n    postgres {one[1:]}\n    cairn    {other[1:]}"[:1500])
    print(f"\n{sum(counts.values())} statements", dict(counts))


if __name__ == "__main__":
    main()
