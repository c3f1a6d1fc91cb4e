"""The registry: definitions, versions, schemas, search, locks, and what a change concerns.

It imports expressions, infrastructure and contracts. Policy, executor, runs, and the packages above core import it.
Decisions: docs/decisions/0011, 0027.
"""

from typing import TYPE_CHECKING

from toolcrib.contracts.base import names_on_use

if TYPE_CHECKING:
    from toolcrib.core.registry.catalog.catalog import Registry, SchemaCopies, stored_tool
    from toolcrib.core.registry.catalog.index import Facet, RealmIndex
    from toolcrib.core.registry.catalog.search import Hit, ToolGroup, ToolSearch, group_of
    from toolcrib.core.registry.catalog.unversioned_definitions import (
        ItemT,
        Named,
        Providers,
        stored_provider,
        why_unreadable,
    )
    from toolcrib.core.registry.changes.adoption import (
        Decision,
        NameState,
        plan_absence,
        plan_adoption,
        plan_provider,
        restored,
        summary_of,
        versions_of,
        with_adopted,
    )
    from toolcrib.core.registry.changes.classification import classify, compare_input, compare_output
    from toolcrib.core.registry.checks.arguments import misfits
    from toolcrib.core.registry.checks.definitions import DefinitionFaults, check_definition
    from toolcrib.core.registry.checks.providers import (
        ABSOLUTE,
        CREDENTIAL_NAME,
        REFERENCE_HINT,
        all_references_of,
        check_provider,
        check_provider_name,
        references_of,
    )
    from toolcrib.core.registry.checks.versions import Version, newest, satisfies
    from toolcrib.core.registry.links.bindings import bindings, check_callees, check_prices, means_many, refers_to
    from toolcrib.core.registry.links.impact import dependents_of
    from toolcrib.core.registry.links.locks import (
        Lock,
        LockedReference,
        Transition,
        callees_without_model,
        lock_of,
        meant,
        pins_of,
    )
    from toolcrib.core.registry.links.notices import concerns, notice_of, warnings_at_start, warnings_for
    from toolcrib.core.registry.schema.validation import LABELS, SchemaProblem, SchemaValidator, compile_schema
else:
    __getattr__ = names_on_use(
        __name__,
        {
            "toolcrib.core.registry.catalog.catalog": "Registry SchemaCopies stored_tool",
            "toolcrib.core.registry.catalog.index": "Facet RealmIndex",
            "toolcrib.core.registry.catalog.search": "Hit ToolGroup ToolSearch group_of",
            "toolcrib.core.registry.catalog.unversioned_definitions": (
                "ItemT Named Providers stored_provider why_unreadable"
            ),
            "toolcrib.core.registry.changes.adoption": (
                "Decision NameState plan_absence plan_adoption plan_provider restored summary_of versions_of "
                "with_adopted"
            ),
            "toolcrib.core.registry.changes.classification": "classify compare_input compare_output",
            "toolcrib.core.registry.checks.arguments": "misfits",
            "toolcrib.core.registry.checks.definitions": "DefinitionFaults check_definition",
            "toolcrib.core.registry.checks.providers": (
                "ABSOLUTE CREDENTIAL_NAME REFERENCE_HINT all_references_of check_provider check_provider_name "
                "references_of"
            ),
            "toolcrib.core.registry.checks.versions": "Version newest satisfies",
            "toolcrib.core.registry.links.bindings": "bindings check_callees check_prices means_many refers_to",
            "toolcrib.core.registry.links.impact": "dependents_of",
            "toolcrib.core.registry.links.locks": (
                "Lock LockedReference Transition callees_without_model lock_of meant pins_of"
            ),
            "toolcrib.core.registry.links.notices": "concerns notice_of warnings_at_start warnings_for",
            "toolcrib.core.registry.schema.validation": "LABELS SchemaProblem SchemaValidator compile_schema",
        },
    )

__all__ = [
    "ABSOLUTE",
    "CREDENTIAL_NAME",
    "LABELS",
    "REFERENCE_HINT",
    "Decision",
    "DefinitionFaults",
    "Facet",
    "Hit",
    "ItemT",
    "Lock",
    "LockedReference",
    "NameState",
    "Named",
    "Providers",
    "RealmIndex",
    "Registry",
    "SchemaCopies",
    "SchemaProblem",
    "SchemaValidator",
    "ToolGroup",
    "ToolSearch",
    "Transition",
    "Version",
    "all_references_of",
    "bindings",
    "callees_without_model",
    "check_callees",
    "check_definition",
    "check_prices",
    "check_provider",
    "check_provider_name",
    "classify",
    "compare_input",
    "compare_output",
    "compile_schema",
    "concerns",
    "dependents_of",
    "group_of",
    "lock_of",
    "means_many",
    "meant",
    "misfits",
    "newest",
    "notice_of",
    "pins_of",
    "plan_absence",
    "plan_adoption",
    "plan_provider",
    "references_of",
    "refers_to",
    "restored",
    "satisfies",
    "stored_provider",
    "stored_tool",
    "summary_of",
    "versions_of",
    "warnings_at_start",
    "warnings_for",
    "why_unreadable",
    "with_adopted",
]
