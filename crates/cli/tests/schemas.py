"""Holds documents that `undertick` printed to the published schemas: schemas.py SCHEMAS DOCUMENTS.

SCHEMAS has KIND.json for each kind of document, DOCUMENTS a directory KIND with documents of that kind.
With a third word, `whole`, each kind must have a document.
"""

import json
import pathlib
import sys

from jsonschema import Draft202012Validator


def valid(schema: dict, file: pathlib.Path) -> None:
    for error in Draft202012Validator(schema).iter_errors(json.loads(file.read_text())):
        sys.exit(f"{file}: {error.json_path}: {error.message[:400]}")


def main(schemas: pathlib.Path, documents: pathlib.Path, *words: str) -> None:
    numbers = {}
    for path in sorted(schemas.glob("*.json")):
        schema = json.loads(path.read_text())
        Draft202012Validator.check_schema(schema)
        files = sorted((documents / path.stem).glob("*.json"))
        for file in files:
            valid(schema, file)
        numbers[path.stem] = len(files)
    assert numbers, schemas
    without = [kind for kind, number in numbers.items() if not number]
    if without and "whole" in words:
        sys.exit(f"no test has kept a document of these kinds: {', '.join(without)}")
    for kind in without:
        print(f"skipped: no document of the kind {kind} was made by the tests that were run")
    print(f"{sum(numbers.values())} documents of {len(numbers) - len(without)} kinds are as their schemas say")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:3]), *sys.argv[3:])
