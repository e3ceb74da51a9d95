"""Settings for Django's own test suite: where its two databases are, and a runner that writes outcomes."""

import os

import pass_over

pass_over.install()

DATABASES = {
    alias: {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ[f"SUITES_{alias.upper()}"],
        "USER": "postgres",
        "NAME": os.environ["SUITES_DATABASE"],
        # The database is there already: `--keepdb` uses it.
        "TEST": {"NAME": os.environ["SUITES_DATABASE"]},
    }
    for alias in ("default", "other")
}
SECRET_KEY = "django_tests_secret_key"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "django_outcomes.Runner"
