"""Every JSON report validates against docs/verdict.schema.json, which states every field."""

import copy
import json
import sys
import unittest

import reports

try:
    import jsonschema
except ImportError:
    sys.exit("the Python package jsonschema is missing: apt-get install python3-jsonschema")

# Ubuntu 22.04 has jsonschema 3, which stops at draft 7: what the schema uses means the same there.
Validator = getattr(jsonschema, "Draft202012Validator", jsonschema.Draft7Validator)
SCHEMA = json.loads((reports.ROOT / "docs" / "verdict.schema.json").read_text(encoding="utf-8"))


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


class JsonReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.validator = Validator(closed(SCHEMA))
        cls.reports = {name: json.loads(path.read_text(encoding="utf-8"))
                       for name, path in reports.named(".json").items()}

    def problems(self, report):
        return [f"{list(error.path)}: {error.message}"
                for error in self.validator.iter_errors(report)]

    def test_the_schema_is_one(self):
        Validator.check_schema(SCHEMA)

    def test_every_report_validates(self):
        for name, report in self.reports.items():
            with self.subTest(name):
                self.assertEqual(self.problems(report), [])

    def test_the_reports_are_of_every_verdict(self):
        found = {report["verdict"] for report in self.reports.values()}
        self.assertEqual(found, {"equal", "intact", "different", "damaged"})

    def test_wrong_reports_do_not_validate(self):
        for path, value in (("verdict", "fine"), ("exit_code", 2), ("checks", None),
                            ("counts.subnets", -1), ("first_difference.class", "cosmic ray"),
                            ("first_difference.subnet", "12"), ("extra", 1)):
            with self.subTest(path):
                report = copy.deepcopy(self.reports["different"])
                *parents, last = path.split(".")
                place = report
                for key in parents:
                    place = place[key]
                place[last] = value
                self.assertNotEqual(self.problems(report), [])

    def test_every_field_is_needed(self):
        for field in self.reports["equal"]:
            with self.subTest(field):
                report = dict(self.reports["equal"])
                del report[field]
                self.assertNotEqual(self.problems(report), [])


if __name__ == "__main__":
    unittest.main()
