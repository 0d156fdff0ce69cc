"""Inspection -> Verification: each verdict against its numerical consequence.

The verb is `normscope.verification.verify.verify_inspection`; what it returns knows no torch.
"""

from normscope.inspection import (
    Consequence,
    NormCheck,
    NotChecked,
    Verification,
    VerifiedBranch,
    VerifiedNorm,
)

__all__ = [
    "Consequence",
    "NormCheck",
    "NotChecked",
    "Verification",
    "VerifiedBranch",
    "VerifiedNorm",
]
