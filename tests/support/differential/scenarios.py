"""All scenarios: what delta-spark's own suites tell, what we thought of, and what is generated."""

from __future__ import annotations

from support.differential.creation_cases import CREATION_CASES
from support.differential.delta_older_suite import DELTA_OLDER_SUITE
from support.differential.delta_suites import DELTA_SUITES
from support.differential.generated import GENERATED
from support.differential.level_cases import LEVEL_CASES
from support.differential.metadata_cases import METADATA_CASES
from support.differential.other_cases import OTHER_CASES
from support.differential.predicates import PREDICATES
from support.differential.protocol_cases import PROTOCOL_CASES
from support.differential.rebased_cases import REBASED_CASES
from support.differential.vector_cases import VECTOR_CASES

HAND_PICKED = [
    *DELTA_SUITES,
    *DELTA_OLDER_SUITE,
    *PREDICATES,
    *LEVEL_CASES,
    *METADATA_CASES,
    *PROTOCOL_CASES,
    *VECTOR_CASES,
    *REBASED_CASES,
    *CREATION_CASES,
    *OTHER_CASES,
]
SCENARIOS = [*HAND_PICKED, *GENERATED]
