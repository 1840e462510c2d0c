"""The project's own checks: names of values, claims about imports, and links in documents."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import grimp
import pytest

from base.places import PROJECT


def module_of_setup(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, PROJECT / "setup" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "source",
    [
        "told = 1",
        "told: int = 1",
        "for told in range(2): pass",
        "with open('x') as told: pass",
        "def f(told): pass",
        "if told := 1: pass",
        "self._told = 1",
        "a, (told, b) = 1, (2, 3)",
        "[0 for told in range(2)]",
    ],
)
def test_a_value_that_is_named_by_a_participle_is_reported(source: str) -> None:
    assert [name.strip("_") for _, name in module_of_setup("check_words").participles(source)] == ["told"]


@pytest.mark.parametrize("source", ["told()", "print(told)", "recorded_ip = 1", "plot(left=1)", "'told = 1'"])
def test_other_uses_of_the_word_are_not_reported(source: str) -> None:
    assert not list(module_of_setup("check_words").participles(source))


@pytest.mark.parametrize(
    ("name", "text", "places"),
    [
        ("a.py", '"""What is less is none."""\n', [(1, "What is less is none")]),
        ("a.py", "# One.\n# Two. Of a third\n# nothing.\nx = 1\n", [(2, "Of a third # nothing")]),
        ("a.py", "x = 1  # So many are sent.\n", [(1, "So many are sent")]),
        ("a.rs", "/// One, and what is\n/// left. In what order\nfn f() {}\n", [(2, "In what order")]),
        ("a.toml", "# By what it is called.\na = 1\n", [(1, "By what it is called")]),
        ("a.md", "# What it is\n\n- Of two, one.\n", [(3, "Of two, one")]),
        ("a.md", "| a | Of two |\n", [(1, "Of two |")]),
        ("a.md", "What is it? One. It is what it is.\n\n```\nOf two\n```\n", []),
        ("a.py", "x = f'{y} is. What is {z} is none.'\n", [(1, "What is X is none")]),
        ("tests/a.py", "x = 'What is less is none.'\n# Whatever it is.\n", []),
        ("a.csv", "# Of two, one.\na,b\nOf two,1\n", [(1, "Of two, one")]),
        ("a.html.j2", "<h1>{% if x %}Of two, one.{% endif %}</h1>\n<p>What is it?</p>\n", [(1, "Of two, one")]),
        ("a.md", "A page\nbehind\nLTE.\n", [(2, "'behind LTE'; write 'on'")]),
        ("a.md", "A page behind a banner.\n", []),
        ("a.md", "It took\n1 runs, 11 runs and 1.1 runs.\n", [(2, "'1 runs'; write '1 run'")]),
        ("a.py", "x = f'a page behind DSL took {y} ms'\n# behind DSL\n", [(1, "'behind DSL'; write 'on'")]),
        (
            "a.py",
            "x = 'there is no campaign so called'\ny = 'the folder is no campaign'\n",
            [(2, "'is no campaign'; write 'is not a'")],
        ),
        ("tests/a.py", "x = 'the folder stays as it is'\n", []),
        ("a.html.j2", "<p>{{ x }} is none of the networks</p>\n", [(1, "'is none of the'; write 'is not one of'")]),
    ],
)
def test_a_sentence_that_does_not_begin_with_its_subject_and_a_wrong_phrase_are_reported(
    name: str, text: str, places: list[tuple[int, str]], tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert list({*module_of_setup("check_words").faults(tmp_path / name)}) == places


def test_a_broken_promise_about_imports_is_reported_with_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "checked_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "promising.py").write_text(
        '"""Standard\nlibrary only."""\nimport json\nfrom checked_package import far\n'
    )
    (package / "far.py").write_text("import click\n")
    monkeypatch.syspath_prepend(tmp_path)
    contract = module_of_setup("standard_library")
    graph = grimp.build_graph("checked_package", include_external_packages=True, cache_dir=None)
    assert list(contract.promising_modules(graph, tmp_path)) == ["checked_package.promising"]
    chains = list(contract.forbidden_chains(graph, "checked_package.promising", tmp_path))
    assert chains == [("checked_package.promising", "checked_package.far", "click")]


def test_before_a_commit_all_checkers_run_but_that_which_compiles_and_nothing_is_downloaded() -> None:
    hooks = (PROJECT / ".pre-commit-config.yaml").read_text()
    checkers = re.search(r"^CHECKERS=\((.*)\)", (PROJECT / "setup" / "check").read_text(), re.MULTILINE)
    assert checkers is not None
    names = " ".join(re.findall(r"entry: setup/check (.*)", hooks)).split()
    assert sorted([*names, "clippy"]) == sorted(checkers[1].split())
    assert re.findall(r"repo: (.*)", hooks) == ["local"]
    assert set(re.findall(r"language: (.*)", hooks)) == {"system"}


def test_every_link_of_a_document_leads_somewhere() -> None:
    documents = [*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), *PROJECT.glob("*/README.md")]
    links = [
        (document, target)
        for document in documents
        for target in re.findall(r"\]\(([^)#\s]+)", document.read_text())
        if "://" not in target
    ]
    assert links
    assert [(str(document), target) for document, target in links if not (document.parent / target).exists()] == []
