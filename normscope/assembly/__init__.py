"""placed graphs -> Inspection: the facts of every stage, put into the report's words."""

from normscope.assembly.assemble import PlacedRoot, assemble_inspection

__all__ = ["PlacedRoot", "assemble_inspection"]
