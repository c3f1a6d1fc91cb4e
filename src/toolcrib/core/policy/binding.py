"""What an approval is bound to besides the arguments and the revision of the tool: the policy of the call.

Equal hashes mean that the guard applies the same rules. A budget is no rule: what is left of it changes all the time,
and is looked at again whenever a call is about to run.
"""

from toolcrib.contracts import canonical, digest
from toolcrib.core.policy.guard import CallPolicy


def policy_hash(policy: CallPolicy, name: str) -> str:
    """The hash of what the guard applies to the calls of a tool: `sha256:…` of its canonical JSON.

    Args:
        policy: The run's policy.
        name: The tool's.
    """
    rules = {
        "allowed": None if policy.allowed is None else sorted(policy.allowed),
        "side_effects": policy.side_effects,
        "guardrails": [rule.model_dump(mode="json") for rule in policy.guardrails],
        "confirm": name in policy.confirm,
        "narrowed": policy.narrowed.get(name),
        "version": policy.versions.get(name),
    }
    return f"sha256:{digest(canonical(rules))}"
