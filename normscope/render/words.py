"""The words of the views for sites and roles."""

from collections.abc import Mapping

from normscope.inspection import Role, Site

SITE_WORDS: Mapping[Site, str] = {
    Site.BRANCH_INPUT: "input",
    Site.INSIDE_BRANCH: "inside",
    Site.BRANCH_OUTPUT: "output",
    Site.TRUNK: "trunk",
}

SITE_ROLES = frozenset(Role(site.value) for site in Site)
"""The roles of norms that stand at a branch."""

ROLE_LABELS: Mapping[Role, str] = {
    Role.BRANCH_INPUT: "branch input norm",
    Role.INSIDE_BRANCH: "norm inside a branch",
    Role.BRANCH_OUTPUT: "branch output norm",
    Role.TRUNK: "trunk norm",
    Role.EMBEDDING: "embedding norm",
    Role.FINAL: "final norm",
    Role.STACK_INPUT: "norm before the blocks",
    Role.BETWEEN_STACKS: "norm between stacks",
    Role.HEAD: "head norm",
    Role.POOLER: "pooler norm",
    Role.UNPLACED: "unplaced norm",
}


def role_word(role: Role) -> str:
    """Return the short word of a role: `input` for a branch input, `final` for the final norm."""
    if role in SITE_ROLES:
        return SITE_WORDS[Site(role.value)]
    return role.value.replace("_", " ")
