"""Holds documents that `undertick` printed to the published schemas: schemas.py SCHEMAS DOCUMENTS.

SCHEMAS has KIND.json for each kind of document, DOCUMENTS a directory KIND with documents of that kind.
"""

import json
import pathlib
import sys

from jsonschema import Draft202012Validator


def valid(schema: dict, file: pathlib.Path) -> None:
    for error in Draft202012Validator(schema).iter_errors(json.loads(file.read_text())):
        sys.exit(f"{file}: {error.json_path}: {error.message[:400]}")


def main(schemas: pathlib.Path, documents: pathlib.Path) -> None:
    numbers = {}
    for path in sorted(schemas.glob("*.json")):
        schema = json.loads(path.read_text())
        Draft202012Validator.check_schema(schema)
        files = sorted((documents / path.stem).glob("*.json"))
        for file in files:
            valid(schema, file)
        numbers[path.stem] = len(files)
    others = {path.name for path in documents.iterdir()} - numbers.keys()
    assert numbers and not others, f"no schemas for {others}"
    for kind in (kind for kind, number in numbers.items() if not number):
        print(f"skipped: the tests that were run made no document of the kind {kind}")
    kinds = sum(number > 0 for number in numbers.values())
    assert kinds, documents
    print(f"{sum(numbers.values())} documents of {kinds} kinds are as their schemas say")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
