"""Projects: folders of definitions in YAML and JSON that a store is made equal to, and written from.

`documents` reads a folder, `saving` saves it into a crib, `planning` compares and applies, `exporting`
and `writing` are the inverse.
Used by `toolcrib apply`, `export`, `init` and `upgrade rehearse --apply`.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.crib.project.documents import InvalidProject, Project, ProjectDocument, ProjectFault
    from toolcrib.crib.project.editor_schema import project_schema
    from toolcrib.crib.project.exporting import project_files, write_files
    from toolcrib.crib.project.planning import PreparedPlan, prepare
    from toolcrib.crib.project.saving import Functions, functions_of, save_project
    from toolcrib.crib.project.starter import start_project
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.crib.project.documents": "InvalidProject Project ProjectDocument ProjectFault",
            "toolcrib.crib.project.editor_schema": "project_schema",
            "toolcrib.crib.project.exporting": "project_files write_files",
            "toolcrib.crib.project.planning": "PreparedPlan prepare",
            "toolcrib.crib.project.saving": "Functions functions_of save_project",
            "toolcrib.crib.project.starter": "start_project",
        },
    )

__all__ = [
    "Functions",
    "InvalidProject",
    "PreparedPlan",
    "Project",
    "ProjectDocument",
    "ProjectFault",
    "functions_of",
    "prepare",
    "project_files",
    "project_schema",
    "save_project",
    "start_project",
    "write_files",
]
