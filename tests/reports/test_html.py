"""HTML reports in a browser: drawn, silent, alone, and usable on small screens, paper and keys."""

import json
import unittest

import browser
import reports
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

# By report: its charts, and the least that each has to draw.
MARKS = {
    "intact": {"graph": 10, "loss": 30, "timeline": 100},
    "reexecuted": {"graph": 20, "loss": 30, "timeline": 100},
    "diff": {"map": 30, "graph": 20, "loss": 60, "timeline": 100},
    "steps": {"map": 11, "loss": 40},
    "simulation": {"sweep": 6, **{f"timeline-{run}": 60 for run in range(6)}},
}


class HtmlReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = reports.named(".html")
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def marks(self):
        """By chart: how many marks of some size it has."""
        return self.browser.run("""
            return Object.fromEntries([...document.querySelectorAll(".chart")].map((chart) =>
              [chart.dataset.chart, [...chart.querySelectorAll("[data-tip]")].filter((mark) => {
                const { width, height } = mark.getBoundingClientRect();
                return width + height > 0;
              }).length]))""")

    def computed(self, selector, style):
        return self.browser.run("return getComputedStyle(document.querySelector(arguments[0]))"
                                "[arguments[1]]", selector, style)

    def test_every_page_is_silent_and_asks_for_nothing(self):
        self.browser.complaints()
        self.browser.requests()
        for page in self.pages.values():
            self.browser.show(page)
        self.assertEqual(self.browser.complaints(), [])
        asked = self.browser.requests()
        self.assertEqual({address for address in asked if not address.startswith("data:")},
                         {page.as_uri() for page in self.pages.values()})

    def test_every_page_says_its_verdict(self):
        for name, page in self.pages.items():
            report = reports.FOLDER / f"{name}.json"
            if not report.exists():
                continue
            with self.subTest(name):
                verdict = json.loads(report.read_text(encoding="utf-8"))
                self.browser.show(page)
                text = self.browser.run("return document.querySelector('#verdict').innerText")
                self.assertIn(verdict["verdict"], text)
                self.assertIn(verdict["summary"], text)

    def test_every_chart_is_drawn(self):
        for name, least in MARKS.items():
            with self.subTest(name):
                self.browser.show(self.pages[name])
                found = self.marks()
                self.assertEqual(found.keys(), least.keys())
                for chart, marks in least.items():
                    self.assertGreaterEqual(found[chart], marks, chart)

    def test_a_narrow_window_does_not_scroll_sideways(self):
        for name, page in self.pages.items():
            with self.subTest(name):
                self.browser.show(page, width=360)
                self.assertLessEqual(
                    self.browser.run("return document.documentElement.scrollWidth"), 360)

    def test_charts_are_drawn_anew_for_another_width(self):
        self.browser.show(self.pages["diff"], width=1200)
        wide = self.browser.run("return document.querySelector('.chart svg').viewBox.baseVal.width")
        self.browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": 500, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        self.browser.run("return new Promise((done) => requestAnimationFrame(() => "
                         "requestAnimationFrame(done)))")
        narrow = self.browser.run(
            "return document.querySelector('.chart svg').viewBox.baseVal.width")
        self.assertLess(narrow, 500)
        self.assertGreater(wide, 1000)

    def test_dark_is_dark_and_paper_is_light(self):
        page = self.pages["diff"]
        colors = {}
        for kind, options in {"light": {}, "dark": {"scheme": "dark"},
                              "print": {"scheme": "dark", "media": "print"}}.items():
            self.browser.show(page, **options)
            colors[kind] = [self.computed("body", "color"), self.computed(".chart text", "fill"),
                            self.computed(".chart rect.equal", "fill")]
        self.assertEqual(colors["print"], colors["light"])
        for light, dark in zip(colors["light"], colors["dark"]):
            self.assertNotEqual(light, dark)

    def test_keys_step_through_a_chart(self):
        self.browser.show(self.pages["diff"])
        chart = self.browser.driver.find_element(By.CSS_SELECTOR, "[data-chart=timeline] svg")
        self.browser.run("arguments[0].focus()", chart)
        tips = []
        for _ in range(2):
            chart.send_keys(Keys.ARROW_RIGHT)
            tips.append(self.browser.driver.find_element(By.ID, "tip").text)
        self.assertRegex(tips[0], r"^forward of subnet \d+, micro-batch 0")
        self.assertNotEqual(tips[0], tips[1])
        chart.send_keys(Keys.ESCAPE)
        self.assertFalse(self.browser.driver.find_element(By.ID, "tip").is_displayed())

    def test_every_chart_has_a_name_and_its_data_as_a_table(self):
        self.browser.show(self.pages["diff"])
        figures = self.browser.driver.find_elements(By.TAG_NAME, "figure")
        self.assertEqual(len(figures), 4)
        for figure in figures:
            chart = figure.find_element(By.CSS_SELECTOR, "svg")
            self.assertTrue(chart.get_attribute("aria-label"))
            self.assertEqual(chart.get_attribute("tabindex"), "0")
            self.assertTrue(figure.find_element(By.TAG_NAME, "figcaption").text)
            self.assertTrue(figure.find_elements(By.CSS_SELECTOR, "details table tbody tr"))

    def test_copying_a_command_answers(self):
        self.browser.show(self.pages["diff"])
        button = self.browser.driver.find_element(By.CSS_SELECTOR, "#difference button.copy")
        self.assertEqual(button.get_attribute("aria-label"),
                         "Copy verbatim show run.db --layer block3.1")
        button.click()
        said = self.browser.run("""
            const button = arguments[0];
            return new Promise((done) => {
              const look = () => button.textContent === "Copy"
                ? requestAnimationFrame(look) : done(button.textContent);
              look();
            })""", button)
        self.assertIn(said, ("Copied", "Selected"))

    def test_links_lead_to_sections(self):
        self.browser.show(self.pages["diff"])
        self.assertEqual(self.browser.run("""
            return [...document.querySelectorAll("a[href^='#']")]
              .filter((link) => !document.querySelector(link.getAttribute("href"))).length"""), 0)


if __name__ == "__main__":
    unittest.main()
