"""Statistics of a made model that hold one finding of each rule."""

from golden.inspections import llama
from normscope.statistics import InputFacts, Statistics, StatisticsFinding, Token

CODES = {
    "NS401": ("warning", "massive activation in channel 7"),
    "NS402": ("warning", "sink at token id 101"),
    "NS403": ("error", "beyond float16"),
    "NS404": ("note", "large eps"),
    "NS405": ("error", "output off the formula"),
    "NS406": ("error", "not finite"),
}


def measured(*findings: StatisticsFinding) -> Statistics:
    made = llama(4)
    return Statistics(
        target=made.target,
        versions=made.versions,
        model=made.model,
        dtype="float32",
        device="cpu",
        input=InputFacts(sequences=1, tokens=3, padding=0, special=1),
        tokens=(),
        norms=(),
        findings=findings,
        verified=True,
    )


def finding(code: str, **more: object) -> StatisticsFinding:
    token = Token(sequence=0, position=0, id=101, text="[CLS]", special=True)
    return StatisticsFinding(
        code=code,
        severity=CODES[code][0],
        where="layers.2.input_layernorm",
        message=f"what {code} says",
        token=token,
        channel=7,
        **more,  # type: ignore[arg-type]
    )


EVERY = measured(*map(finding, CODES))
