"""DataFusion's issues of wrong results, asked of Cairn and of PostgreSQL.

    issues.py --cairn DIR --postgres DIR [--markdown]

`datafusion-issues.sql` has an issue's number and its shape behind `---`, and then the statements; tables stay for those that come later. Prints what differs, or the table of
`docs/src/design/sql-datafusion-issues.md`.
"""

import argparse
import pathlib

from sides import Side, compare


def parts(text):
    """(number, shape, statements) of each issue."""
    for block in text.split("--- ")[1:]:
        head, _, body = block.partition(";\n")
        number, _, shape = head.partition(" ")
        yield int(number), shape, [sql.strip() for sql in body.split(";") if sql.strip()]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--cairn", required=True)
    options.add_argument("--postgres", required=True)
    options.add_argument("--markdown", action="store_true")
    options = options.parse_args()
    cairn, postgres = Side(options.cairn, "cairn"), Side(options.postgres, "postgres")
    postgres.run("drop schema public cascade")
    postgres.run("create schema public")
    text = pathlib.Path(__file__).with_name("datafusion-issues.sql").read_text()
    if options.markdown:
        print("| issue | shape | here |\n|---|---|---|")
    for number, shape, statements in parts(text):
        found = []
        for sql in statements:
            difference = compare(postgres.run(sql), cairn.run(sql), " order by " in sql)
            if difference:
                found.append(difference)
                if not options.markdown:
                    print(f"{number} {shape}: {difference}\n    {sql}")
        if options.markdown:
            here = "refused" if found and all(one == "unsupported" for one in found) else "wrong" if found else "right"
            print(f"| {number} | {shape} | {here} |")


if __name__ == "__main__":
    main()
