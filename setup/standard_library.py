"""A contract of import-linter: a module whose docstring says "standard library only" imports nothing else, neither
directly nor through other modules of the project.

Such modules are loaded by a Python without the testbed's packages (uWSGI's, mitmproxy's, the system's).
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output

PROMISE = "standard library only"
PROJECT = Path(__file__).parent.parent


class StandardLibraryContract(Contract):
    """Fails for each import of a package that does not come with Python."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        # Importing a module also runs the packages that contain it.
        for module in graph.modules:
            if "." in module:
                graph.add_import(importer=module, imported=module.rpartition(".")[0])
        chains = [chain for module in sorted(promising_modules(graph)) for chain in forbidden_chains(graph, module)]
        return ContractCheck(kept=not chains, metadata={"chains": chains})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for chain in check.metadata["chains"]:
            output.print_error(" -> ".join(chain), bold=False)
        output.print_error(f'The first module of each line says "{PROMISE}" in its docstring.', bold=False)


def promising_modules(graph: ImportGraph, project: Path = PROJECT) -> Iterator[str]:
    for module in graph.modules:
        file = source_file(module, project)
        if file and PROMISE in " ".join((ast.get_docstring(ast.parse(file.read_text())) or "").lower().split()):
            yield module


def source_file(module: str, project: Path) -> Path | None:
    """The file of a module of the `project`; None for any other module."""
    path = project.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def forbidden_chains(graph: ImportGraph, module: str, project: Path = PROJECT) -> Iterator[tuple[str, ...]]:
    """The shortest chain of imports from a module to each package that is neither the `project`'s nor Python's."""
    for imported in sorted(graph.find_upstream_modules(module)):
        if not source_file(imported, project) and imported.partition(".")[0] not in sys.stdlib_module_names:
            yield graph.find_shortest_chain(importer=module, imported=imported) or ()
