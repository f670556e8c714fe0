"""JUnit reports as a CI system reads them: well-formed, with totals that agree with the cases."""

import json
import unittest
import xml.etree.ElementTree

import reports


class JunitReportTest(unittest.TestCase):
    def setUp(self):
        self.suites = {name: xml.etree.ElementTree.parse(path).getroot()
                       for name, path in reports.named(".xml").items()}

    def test_totals_are_those_of_the_cases(self):
        for name, root in self.suites.items():
            with self.subTest(name):
                self.assertEqual(root.tag, "testsuites")
                (suite,) = root.findall("testsuite")
                cases = suite.findall("testcase")
                self.assertEqual(int(suite.get("tests")), len(cases))
                for element, total in (("failure", "failures"), ("error", "errors"),
                                       ("skipped", "skipped")):
                    found = sum(case.find(element) is not None for case in cases)
                    self.assertEqual(int(suite.get(total)), found, total)
                    self.assertEqual(root.get(total), suite.get(total))

    def test_every_case_has_a_place_and_a_name_of_its_own(self):
        for name, root in self.suites.items():
            with self.subTest(name):
                places = [(case.get("classname"), case.get("name"))
                          for case in root.iter("testcase")]
                self.assertEqual(len(places), len(set(places)))
                for classname, case in places:
                    self.assertRegex(classname, r"^verbatim\..")
                    self.assertTrue(case)

    def test_a_suite_passes_exactly_where_the_exit_code_is_0(self):
        for name, root in self.suites.items():
            with self.subTest(name):
                verdict = json.loads((reports.FOLDER / f"{name}.json").read_text(encoding="utf-8"))
                fails = int(root.get("failures")) + int(root.get("errors"))
                self.assertEqual(fails > 0, verdict["exit_code"] != 0)

    def test_a_failure_says_where_and_what_next(self):
        failure = self.suites["different"].find(".//failure")
        self.assertEqual(failure.get("type"), "schedule")
        self.assertIn("subnet 12, layer block3.1, forward", failure.text)
        self.assertIn("verbatim show run.db --layer block3.1", failure.text)

    def test_properties_name_the_facts_that_differ(self):
        found = {item.get("name"): item.get("value")
                 for item in self.suites["different"].iter("property")}
        self.assertEqual(found["environment.cpu.model.recorded"], "A|B")
        self.assertEqual(found["environment.cpu.model.here"], "C<D>")
        self.assertEqual(found["run.policy"], "causal")


if __name__ == "__main__":
    unittest.main()
