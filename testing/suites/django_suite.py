"""Django's own tests, by the application: each runs in a process of its own, on fresh databases."""

import shutil
import sys

import fetch
from drive import PASS, compare, drive
from places import LOADED, scratch
from servers import Cairn, Postgres

VERSION = "5.2"
PACKAGES = (f"Django=={VERSION}", "psycopg[binary]==3.3.9", "jinja2", "PyYAML", "Pillow", "tblib", "docutils")
# Applications that work with the database; the others test templates, forms, files and the web.
APPS = """
    aggregation aggregation_regress annotations backends basic bulk_create composite_pk constraints
    contenttypes_tests custom_columns custom_lookups custom_managers custom_pk datatypes dates datetimes
    db_functions db_typecasts db_utils defer defer_regress delete delete_regress distinct_on_fields expressions
    expressions_case expressions_window extra_regress field_defaults filtered_relation fixtures fixtures_regress
    force_insert_update foreign_object from_db_value generic_relations generic_relations_regress
    get_earliest_or_latest get_or_create indexes inspectdb introspection known_related_objects lookup
    m2m_and_m2o m2m_intermediary m2m_multiple m2m_recursive m2m_regress m2m_signals m2m_through
    m2m_through_regress m2o_recursive managers_regress many_to_many many_to_one many_to_one_null max_lengths
    migrations migrations2 model_fields model_formsets model_indexes model_inheritance model_inheritance_regress
    model_regress multiple_database mutually_referential nested_foreign_keys null_fk null_fk_ordering
    null_queries one_to_one or_lookups order_with_respect_to ordering postgres_tests prefetch_related
    proxy_models queries queryset_pickle raw_query reserved_names reverse_lookup save_delete_hooks schema
    select_for_update select_related select_related_onetoone select_related_regress serializers sessions_tests
    string_lookup timezones transaction_hooks transactions unmanaged_models update update_only_fields
    xor_lookups
""".split()
# Django connects to it before any other.
DATABASE = "postgres"
# Seconds for an application on one server.
LIMIT = 1200


class Databases:
    """The two servers of one kind that Django uses, as `default` and `other`."""

    def __init__(self, make):
        self.servers = [make(), make()]
        self.name = self.servers[0].name

    def environment(self):
        default, other = self.servers
        return {
            "SUITES_DEFAULT": str(default.folder),
            "SUITES_OTHER": str(other.folder),
            "SUITES_DATABASE": default.database,
        }

    def fresh(self):
        for server in self.servers:
            server.fresh()

    def stop(self):
        for server in self.servers:
            server.stop()


def run(options):
    source = fetch.sdist(f"Django=={VERSION}")
    python = fetch.venv("django", *PACKAGES)
    apps = options.files.split(",") if options.files else APPS
    makes = (lambda: Postgres(DATABASE), lambda: Cairn(options.cairn, DATABASE))
    found = [trials(Databases(make), python, source, apps, options) for make in makes]
    control, mine = ({test: outcome for trial in part for test, outcome in trial.tests.items()} for part in found)
    errors = {app: trial.error for app, trial in zip(apps, found[1])}
    ended = sum(trial.ended for trial in found[1])
    title = f"Django {VERSION}, {len(apps)} applications"
    return compare(title, control, mine, ended, lambda test: errors.get(test.split(".")[0], ""))


def trials(databases, python, source, apps, options):
    """A trial of each application on one kind of server."""
    folder, found = scratch("django"), []
    environment = {**databases.environment(), "PYTHONPATH": str(LOADED)}
    try:
        shutil.copytree(source / "tests", folder / "tests", symlinks=True)
        for app in apps:
            databases.fresh()
            command = [
                python,
                "runtests.py",
                "--settings=django_settings",
                "--parallel=1",
                "--keepdb",
                "--noinput",
                app,
            ]
            outcomes, limit = options.out / f"{databases.name}-{app}.jsonl", options.limit or LIMIT
            trial = drive(command, databases.servers, outcomes, limit, folder / "tests", environment)
            passed = sum(outcome == PASS for outcome, _ in trial.tests.values())
            print(f"{databases.name:9} {app:28} {passed} of {len(trial.tests)} pass", file=sys.stderr, flush=True)
            found.append(trial)
    finally:
        databases.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return found
