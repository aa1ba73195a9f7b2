"""The package: all public names are documented, the examples run, the types are right."""

from __future__ import annotations

import doctest
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, Iterator

import pytest
from conftest import ROOT

import undertick

PACKAGE = Path(undertick.__file__).parent


def public() -> Iterator[tuple[str, Any]]:
    """Yields everything public, including the members of classes."""
    for name in undertick.__all__:
        if name == "__version__":
            continue
        found = getattr(undertick, name)
        yield f"undertick.{name}", found
        if inspect.isclass(found):
            for member, value in vars(found).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    yield f"undertick.{name}.{member}", value


def test_everything_public_has_a_docstring() -> None:
    for name, found in public():
        assert inspect.getdoc(found), f"{name} has no docstring"
    for name in ("span", "event", "next", "pair", "name", "thread_name", "enabled"):
        assert inspect.signature(getattr(undertick, name)), name


def examples() -> list[doctest.DocTest]:
    modules = [undertick]
    left_out = {"__main__", "spark"}
    try:
        import opentelemetry.sdk  # noqa: F401
    except ImportError:
        left_out.add("opentelemetry")
    for info in pkgutil.iter_modules(undertick.__path__, "undertick."):
        if info.name.split(".")[1] not in left_out:
            modules.append(__import__(info.name, fromlist=["x"]))
    texts = {name: inspect.getdoc(found) or "" for name, found in public()}
    texts |= {module.__name__: module.__doc__ or "" for module in modules}
    parser = doctest.DocTestParser()
    tests = [parser.get_doctest(text, {}, name, None, None) for name, text in sorted(texts.items())]
    return [test for test in tests if test.examples]


@pytest.mark.parametrize("test", examples(), ids=lambda test: test.name)
def test_examples_of_docstrings(test: doctest.DocTest) -> None:
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    failed = runner.run(test, out=said.append).failed
    assert failed == 0, "".join(said)


def test_the_examples_are_found() -> None:
    names = {test.name for test in examples()}
    wanted = {"span", "event", "next", "pair", "name", "record", "estimate", "compare", "run"}
    assert wanted <= {name.removeprefix("undertick.") for name in names}


def python_of(chapter: Path) -> str:
    """Returns the Python blocks of a chapter as one program."""
    blocks = re.findall(r"^```python\n(.*?)^```$", chapter.read_text(), re.MULTILINE | re.DOTALL)
    return "\n".join(blocks)


def test_the_programs_of_the_chapter_run(tmp_path: Path) -> None:
    chapter = ROOT / "docs" / "book" / "python.md"
    program = tmp_path / "chapter.py"
    program.write_text(python_of(chapter))
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_all_that_chapters_show_in_python_is_python() -> None:
    """Includes programs that need a cluster or a test runner, which are not run here."""
    chapters = [*(ROOT / "docs").glob("**/*.md"), ROOT / "README.md"]
    programs = {chapter: python_of(chapter) for chapter in chapters}
    shown = {chapter.name for chapter, program in programs.items() if program}
    assert shown >= {"README.md", "python.md", "spark.md"}
    for chapter, program in programs.items():
        compile(program, str(chapter), "exec")


def test_types(tmp_path: Path) -> None:
    """mypy --strict accepts the package with its stubs."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--cache-dir", os.devnull]
    # An installed package is found from anywhere, and mypy must not see its neighbours.
    where = PACKAGE.parent if (PACKAGE.parent / "Cargo.toml").exists() else tmp_path
    done = subprocess.run(
        [*command, "-p", "undertick"], capture_output=True, text=True, timeout=300, cwd=where
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_use_is_a_type_error(tmp_path: Path) -> None:
    """The stubs reject what the functions reject."""
    pytest.importorskip("mypy")
    program = tmp_path / "wrong.py"
    program.write_text(
        "import undertick\n"
        'with undertick.span("right") as span: span.event + 1\n'
        'undertick.event("right", payload=3)\n'
        "undertick.span(1.5)\n"
        'undertick.event("x", "y")\n'
        'undertick.record("x", overflow="block")\n'
        "undertick.open(3)\n"
        'undertick.estimate([1.0]).value + "x"\n'
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    lines = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    assert lines == {4, 5, 6, 7, 8}, done.stdout + done.stderr


def test_the_stub_names_what_there_is() -> None:
    """Everything exported has a stub, and the stub names nothing else."""
    from undertick import _native

    stub = (PACKAGE / "_native.pyi").read_text()
    of_stub = set(re.findall(r"^(?:def|class) (\w+)", stub, re.MULTILINE))
    of_stub |= set(re.findall(r"^(\w+): ", stub, re.MULTILINE))
    there = {
        name
        for name, found in vars(_native).items()
        if not (name.startswith("__") and name != "__version__") and not isinstance(found, types.ModuleType)
    }
    assert of_stub == there
    for kind in (_native.Batches, _native.Trace, _native.Report):
        body = stub.split(f"class {kind.__name__}:")[1].split("\n@final")[0]
        of_body = set(re.findall(r"    def (\w+)", body)) - {"__init__", "__arrow_c_stream__"}
        assert of_body == {name for name in vars(kind) if not name.startswith("_")}


def test_importing_it_needs_nothing_else() -> None:
    program = (
        "import sys\n"
        "class No:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.split('.')[0] in ('numpy', 'pyarrow', 'duckdb', 'polars', 'pandas', 'pytest'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, No())\n"
        "import undertick\n"
        "assert undertick.estimate([1.0, 2.0]).value == 1.5\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_command_line() -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "undertick", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    version = run("--version")
    assert (version.returncode, version.stdout) == (0, f"undertick {undertick.__version__}\n")
    assert "record" in run("--help").stdout
    wrong = run("reprot")
    assert wrong.returncode == 2 and "report" in wrong.stderr
    nothing = run("report", "none.ut")
    assert nothing.returncode == 2 and "none.ut" in nothing.stderr
    assert run("record", "-o", "/nowhere/x.ut", "--no-calibration", "--", "false").returncode != 0


def test_calibration_by_the_command_line(tmp_path: Path) -> None:
    """The interpreter starts the workload that measures the cost of recording."""
    trace = tmp_path / "run.ut"
    program = "import undertick\nwith undertick.span('x'): pass"
    command = [sys.executable, "-m", "undertick", "record", "--kernel", "off", "-o", str(trace), "--"]
    done = subprocess.run([*command, sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    calibration = undertick.open(trace).manifest["calibration"]
    if calibration is None:
        assert "will not be subtracted" in done.stderr
        print("skipped: this machine is too noisy to be calibrated")
    else:
        assert "events" in done.stderr
