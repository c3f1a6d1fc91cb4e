"""Who may have a workflow be run that was a draft.

A person may if a grant covers `ai://workflows/{name}/publish`. Whoever is no person, a service account or an agent, may
only if a grant names the verb: a grant for everything is not meant to let a model put its own work into service.
"""

from toolcrib.contracts import PermissionDenied, Principal
from toolcrib.core.policy.permissions_part import permits


def require_publish(principal: Principal, name: str) -> None:
    """Let a principal pass who may publish the workflow of a name.

    Raises:
        PermissionDenied: No grant lets it.
    """
    uri = f"ai://workflows/{name}/publish"
    grants = principal.grants
    if principal.kind != "user":
        grants = tuple(grant for grant in grants if grant.endswith("/publish"))
    if permits(grants, uri):
        return
    told = "" if principal.kind == "user" else f"; of a principal of kind {principal.kind!r} one must name the verb"
    msg = f"principal {principal.id!r} has no grant for {uri!r}{told}"
    raise PermissionDenied(f"{msg}; save a draft, and have a person publish it")
