"""docs/verdict.schema.json as a check: what a JSON report has that the schema does not state."""

import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    sys.exit("the Python package jsonschema is missing: apt-get install python3-jsonschema")

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs" / "verdict.schema.json")
                    .read_text(encoding="utf-8"))
# Ubuntu 22.04 has jsonschema 3, which stops at draft 7: what the schema uses means the same there.
Validator = getattr(jsonschema, "Draft202012Validator", jsonschema.Draft7Validator)


def closed(schema):
    """The schema with every object shut: no field that it does not state."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    shut = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict):
        shut["additionalProperties"] = False
    return shut


def problems(report):
    return [f"{list(error.path)}: {error.message}"
            for error in Validator(closed(SCHEMA)).iter_errors(report)]
