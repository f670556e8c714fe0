"""Every JSON report validates against docs/verdict.schema.json, which states every field."""

import copy
import json
import unittest

import reports
import verdict_schema


class JsonReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.reports = {name: json.loads(path.read_text(encoding="utf-8"))
                       for name, path in reports.named(".json").items()}

    def test_the_schema_is_one(self):
        verdict_schema.Validator.check_schema(verdict_schema.SCHEMA)

    def test_every_report_validates(self):
        for name, report in self.reports.items():
            with self.subTest(name):
                self.assertEqual(verdict_schema.problems(report), [])

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
                self.assertNotEqual(verdict_schema.problems(report), [])

    def test_every_field_is_needed(self):
        self.assertEqual(set(verdict_schema.SCHEMA["required"]), set(self.reports["equal"]))
        for field in self.reports["equal"]:
            with self.subTest(field):
                report = dict(self.reports["equal"])
                del report[field]
                self.assertNotEqual(verdict_schema.problems(report), [])


if __name__ == "__main__":
    unittest.main()
