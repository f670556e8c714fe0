"""A headless Chromium, driven by Selenium, that keeps what pages log and what they ask for."""

import json
import pathlib
import shutil
import sys
import tempfile

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
except ImportError:
    sys.exit("the Python package selenium is missing: apt-get install python3-selenium")

# No sandbox: it cannot be had by root in a container. No /dev/shm: small there.
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
           "--no-first-run", "--disable-background-networking", "--hide-scrollbars")


def program(name):
    return shutil.which(name) or sys.exit(f"{name} is missing: apt-get install chromium "
                                          "chromium-driver")


class Browser:
    def __init__(self):
        self._profile = tempfile.TemporaryDirectory(prefix="verbatim-browser-")
        options = webdriver.ChromeOptions()
        options.binary_location = program("chromium")
        for option in (*OPTIONS, f"--user-data-dir={self._profile.name}"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(program("chromedriver")))

    def close(self):
        self.driver.quit()
        self._profile.cleanup()

    def show(self, page: pathlib.Path, width=1200, scheme="light", media=""):
        """Opens the page anew, in a window of that width and with these preferences."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.driver.get(page.as_uri())

    def run(self, script, *arguments):
        """What the script returns in the page."""
        return self.driver.execute_script(script, *arguments)

    def complaints(self):
        """What pages have written to the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """The addresses that pages have asked for since the last call."""
        events = (json.loads(entry["message"])["message"]
                  for entry in self.driver.get_log("performance"))
        return {event["params"]["request"]["url"] for event in events
                if event["method"] == "Network.requestWillBeSent"}
