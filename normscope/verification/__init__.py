"""Inspection -> Verification: each verdict against its numerical consequence.

The results are torch-free; the verb is `normscope.verification.verify.verify_inspection`.
"""

from normscope.verification.verdict import (
    NormCheck,
    NotChecked,
    Verification,
    VerifiedBranch,
    VerifiedNorm,
)

__all__ = ["NormCheck", "NotChecked", "Verification", "VerifiedBranch", "VerifiedNorm"]
