"""Reports of the real program as their readers take them: schema, parsers, a browser, a viewer."""

import json
import pathlib
import sys
import unittest
import xml.etree.ElementTree

import harness
from harness import recorded, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "reports"))
import verdict_schema  # noqa: E402  (found through the line above)

STAGES = 2


def shared_record():
    return recorded("--stages", STAGES).path


class ReportsTest(harness.EndToEndTest):
    def altered(self):
        """A record whose samples were exchanged when it was made: re-executed, it differs."""
        return self.train("--stages", STAGES, "--inject", "swapped-samples@5")

    def report(self, record, form, *options, code):
        path = self.folder / f"report.{form}"
        self.expect(run("verify", record, "--format", form, "-o", path, *options), code)
        return path.read_text(encoding="utf-8")

    def check(self, record, verdict, code, *options):
        """Every format says this verdict."""
        found = json.loads(self.report(record, "json", *options, code=code))
        self.assertEqual(verdict_schema.problems(found), [])
        self.assertEqual(found["verdict"], verdict)
        suites = xml.etree.ElementTree.fromstring(
            self.report(record, "junit", *options, code=code))
        failed = int(suites.get("failures")) + int(suites.get("errors"))
        self.assertEqual(failed > 0, code != 0)
        markdown = self.report(record, "markdown", *options, code=code)
        self.assertIn(f" {verdict}: <code>", markdown.splitlines()[0])
        page = self.report(record, "html", *options, code=code)
        self.assertIn(f"<strong>{verdict}</strong>", page)
        return found, page

    def test_an_intact_record(self):
        self.check(shared_record(), "intact", 0)

    def test_a_reexecuted_record(self):
        self.check(shared_record(), "equal", 0, "--reexecute", "all")

    def test_a_record_that_differs(self):
        found, page = self.check(self.altered(), "different", 1, "--reexecute", "all")
        self.assertEqual(found["first_difference"]["subnet"], 5)
        self.assertIn(found["first_difference"]["next_command"], page)

    def test_a_damaged_record(self):
        record = harness.copy_record(self, "--stages", STAGES)
        harness.tamper(record, "UPDATE subnets SET loss_bits = loss_bits + 1 WHERE seq = 3")
        self.check(record, "damaged", 3)

    def test_show_writes_page_and_trace(self):
        page, trace = self.folder / "run.html", self.folder / "run.json"
        self.expect(run("show", shared_record(), "--html", page, "--trace", trace), 0)
        self.assertIn("<strong>intact</strong>", page.read_text(encoding="utf-8"))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
        tasks = [event for event in events if event["ph"] == "X"]
        recorded_tasks = harness.query(shared_record(), "SELECT count(*) FROM activity")[0][0]
        self.assertEqual(len(tasks), recorded_tasks)
        self.assertEqual({event["tid"] for event in tasks}, set(range(1, STAGES + 1)))
        self.assertEqual({event["args"]["subnet"] for event in tasks}, set(range(harness.SUBNETS)))


if __name__ == "__main__":
    unittest.main()
