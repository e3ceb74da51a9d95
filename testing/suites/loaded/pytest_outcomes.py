"""A plugin for pytest that writes a line per outcome; see drive.py."""

import json
import os


def pytest_configure():
    if os.environ.get("SUITES_PASS_OVER"):
        import pass_over

        pass_over.install()


def pytest_runtest_logreport(report):
    if report.when != "call" and report.outcome == "passed":
        return
    outcome = {"passed": "pass", "failed": "fail", "skipped": "skip"}[report.outcome]
    # A test that is expected to fail and does is reported as skipped.
    if hasattr(report, "wasxfail"):
        outcome = "skip"
    crash = getattr(report.longrepr, "reprcrash", None)
    message = crash.message if crash else str(report.longrepr or "")[-2000:]
    write(report.nodeid, outcome, message)


def pytest_collectreport(report):
    if report.outcome == "failed":
        write(f"{report.nodeid} (collection)", "fail", str(report.longrepr)[-2000:])


def write(test, outcome, message):
    with open(os.environ["SUITES_OUTCOMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps({"test": test, "outcome": outcome, "message": message[:2000]}) + "\n")
