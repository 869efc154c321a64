"""A shrunk failure as a campaign file that says what it shows and where it comes from."""

from dataclasses import replace

from campaigns.plan_file import campaign_text
from campaigns.report import anomalies
from campaigns.shrink import Shrinker, Shrunk
from campaigns.version import VERSION


def shrunk_text(shrinker: Shrinker, command: str) -> str:
    """Return the text of the best that a search has found; *command* is what runs the original."""
    best = shrinker.best
    sentence = _sentence(best, shrinker.signature.rule)
    comments = [f"{sentence[:1].upper()}{sentence[1:]}."]
    comments += [f"  {link.text}" for link in best.finding.chain]
    prevented_by = best.finding.prevented_by
    if prevented_by:
        comments += ["", "What would have prevented it:", *(f"  {way}" for way in prevented_by)]
    state = "" if shrinker.complete else ", stopped before nothing more could be left out"
    comments += ["", f"Shrunk by harrow {VERSION}{state} from:", f"  {command}"]
    if best.seed:
        comments += [f"It takes --seed {best.seed} to fail."]
    plan = best.plan
    if best is not shrinker.original:
        plan = replace(plan, description=f"Fails: {sentence}.")
    return campaign_text(plan, comments=comments)


def _sentence(best: Shrunk, rule: str) -> str:
    found = [anomaly for anomaly in anomalies(best.result) if anomaly.rule == rule]
    return next(anomaly.sentence() for anomaly in found if anomaly.permitted_by is None)
