"""Brings foreign suites from their packages, with the ordinary client of each registry.

Each function returns the folder of what it brought, and does nothing where that is there already.
"""

import contextlib
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

from places import CACHE


class Missing(Exception):
    """A suite that cannot be had on this machine."""


def run(*command, **more):
    """Runs a client of a registry; raises `Missing` with the end of its output if it fails."""
    command = [str(part) for part in command]
    try:
        ran = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    except FileNotFoundError:
        raise Missing(f"{command[0]} is not installed") from None
    if ran.returncode:
        raise Missing(f"{' '.join(command)} failed:\n{ran.stdout[-2000:]}")
    return ran.stdout


@contextlib.contextmanager
def once(name):
    """Yields (folder, whether it is new). One that could not be filled is made anew the next time."""
    folder = CACHE / name
    complete = CACHE / "complete" / name
    if complete.exists():
        yield folder, False
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    yield folder, True
    complete.parent.mkdir(exist_ok=True)
    complete.touch()


def apt_options():
    """Options that let apt-get look for sources where this machine's packages come from, with lists of its own."""
    apt = CACHE / "apt"
    shutil.rmtree(apt / "sources", ignore_errors=True)
    for folder in (apt / "sources", apt / "lists" / "partial"):
        folder.mkdir(parents=True, exist_ok=True)
    configured = pathlib.Path("/etc/apt")
    for path in configured.glob("sources.list.d/*.sources"):
        text = re.sub(r"^Types:.*", "Types: deb-src", path.read_text(), flags=re.M)
        (apt / "sources" / path.name).write_text(text)
    for path in (*configured.glob("sources.list"), *configured.glob("sources.list.d/*.list")):
        text = re.sub(r"^deb\s", "deb-src ", path.read_text(), flags=re.M)
        (apt / "sources" / f"{path.stem}.list").write_text(text)
    settings = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": apt / "sources",
        "Dir::State::lists": apt / "lists",
    }
    return [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]


def debian_source(package, inside):
    """The part `inside` of the upstream sources of a Debian package: of the newest version that is served."""
    with once(f"{package}-source") as (folder, new):
        if new:
            options = apt_options()
            run("apt-get", *options, "update")
            listed = run("apt-cache", *options, "showsrc", package)
            versions = sorted(
                set(re.findall(r"^Version: (.*)", listed, re.M)), key=functools.cmp_to_key(compare_versions)
            )
            for version in reversed(versions):
                with contextlib.suppress(Missing):
                    run("apt-get", *options, "source", "--download-only", f"{package}={version}", cwd=folder)
                    break
            else:
                raise Missing(f"no version of the source package {package} can be had")
            archive = next(folder.glob("*.orig.tar.*"))
            with tarfile.open(archive) as tar:
                members = [member for member in tar if f"/{inside}/" in member.name]
                tar.extractall(folder, members=members)
            for path in folder.glob("*.tar.*"):
                path.unlink()
    return next(folder.glob(f"*/{inside}"))


def compare_versions(one, other):
    return 1 if subprocess.run(["dpkg", "--compare-versions", one, "gt", other]).returncode == 0 else -1


def maven(artifact):
    """The unpacked jar of a Maven artifact."""
    name = artifact.replace(":", "-")
    with once(name) as (folder, new):
        if new:
            plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
            run("mvn", "-B", "-ntp", plugin, f"-Dartifact={artifact}", f"-DoutputDirectory={folder}")
            for jar in folder.glob("*.jar"):
                zipfile.ZipFile(jar).extractall(folder)
                jar.unlink()
    return folder


def venv(name, *packages):
    """The interpreter of a Python environment with these packages."""
    with once(f"venv-{name}") as (folder, new):
        if new:
            run(sys.executable, "-m", "venv", folder)
            # By its interpreter: the scripts of an environment name the folder that it was made in.
            run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages)
    return folder / "bin" / "python"


def sdist(requirement):
    """The unpacked source distribution of a Python package."""
    with once(f"sdist-{re.sub('[^A-Za-z0-9.]+', '-', requirement)}") as (folder, new):
        if new:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            run(*pip, "--dest", folder, requirement, env={**os.environ, "DISABLE_SQLALCHEMY_CEXT": "1"})
            for archive in folder.glob("*.tar.gz"):
                with tarfile.open(archive) as tar:
                    tar.extractall(folder)
                archive.unlink()
    return next(path for path in folder.iterdir() if path.is_dir())
