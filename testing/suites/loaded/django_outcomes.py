"""Django's test runner with a result that writes a line per outcome; see drive.py."""

import unittest

from django.test.runner import DiscoverRunner

from pytest_outcomes import write


class Outcomes(unittest.TextTestResult):
    def addSuccess(self, test):
        super().addSuccess(test)
        write(test.id(), "pass", "")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        write(test.id(), "skip", reason)

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        write(test.id(), "skip", "fails, as expected")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        write(test.id(), "fail", "passes against expectation")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        write(test.id(), "fail", described(error))

    def addError(self, test, error):
        super().addError(test, error)
        write(test.id(), "fail", described(error))

    def addSubTest(self, test, part, error):
        super().addSubTest(test, part, error)
        if error is not None:
            write(test.id(), "fail", described(error))


def described(error):
    kind, value, _ = error
    cause = value.__cause__
    name = f"{type(cause).__module__}.{type(cause).__name__}: {cause}" if cause else f"{kind.__name__}: {value}"
    return name


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return Outcomes
