"""Searches for the recipe that made the given codes: a sample eliminates candidates, the whole tensor decides.

A recipe is a block format with a rule for its scales. A trial is a recipe with a way to read the stored codes and
scales. Its tally has the numbers of codes and scales that agree.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from floatlab.auditing.recipe_search.candidates import element_variations, scale_variations
from floatlab.auditing.recipe_search.derivations import telling_element
from floatlab.auditing.recipe_search.differences import difference_words, scale_distance
from floatlab.auditing.recipe_search.examples import PROBES, example
from floatlab.auditing.recipe_search.integers.nested import nested_words
from floatlab.auditing.recipe_search.matching import Agreement, Evidence, Trial, given_scales
from floatlab.auditing.recipe_search.properties import matched
from floatlab.auditing.recipe_search.records import MatchedRecipe, RecipeSearch, TellingElement
from floatlab.auditing.recipe_search.trials import named_trials, plausible, tallies
from floatlab.errors import FileFormatError
from floatlab.record import Individual

Agreements = dict[Trial, Agreement]
_MOST_VARIED, _MOST_NEAREST, _MOST_EXAMPLES = 12, 3, 3
_RESEMBLES = 0.2  # if no recipe gives at least this share of the codes, no variations are tried
_MOST_COMPARED = 64  # the scales of at most this many trials that give the same codes are compared
_PER_PASS = 8  # if no candidate agrees on the sample, only this many of the best are compared over the whole tensor


class Names(Individual):
    """The names under which the codes and the original are shown."""

    codes: str
    original: str


def search(
    evidence: Evidence, names: Names, done: Callable[[int], object] = lambda count: None, explains: bool = True
) -> RecipeSearch:
    """Return the recipes that give these codes and scales; `done` is called with the number of elements compared.

    With `explains`, the result also has the first element that the recipe and its nearest rival quantise differently,
    examples, and remarks.
    """
    trials = named_trials(evidence)
    if not trials:
        raise FileFormatError(_nothing_fits(evidence, names))
    sample = _sampled(trials, evidence)
    tried = len({trial.candidate for trial in sample})
    chosen = _chosen(sample)
    # A tensor that is quantised whole needs no second pass.
    whole = sample if evidence.is_small else tallies(chosen, evidence, sampled=False, done=done)
    exact = _sorted({trial: whole[trial] for trial in chosen if trial in whole and whole[trial].is_exact})
    exact = _simplest(exact)
    others = _nearest({**sample, **{t: whole[t] for t in chosen if t in whole}}, exact, evidence)
    recipes = _merged(exact, evidence)
    best = [*(exact or others)]
    rival = None if not exact else _rival(best[0], others)
    element = None
    examples: list[TellingElement] = []
    remarks: list[str] = []
    if explains:
        element = telling_element(best[0], rival, evidence) if best and (rival or not exact) else None
        examples, remarks = _told_apart([*exact], evidence, recipes)
        if not exact and best:
            remarks = [*difference_words(best[0], others[best[0]], evidence), *_hints(others)]
        remarks += [*nested_words(evidence), *_remarks_on_parts(recipes, evidence)]
    return RecipeSearch(
        source=names.codes,
        original=names.original,
        shape=evidence.shape,
        format=evidence.survey.format.name,
        tried=tried,
        recipes=tuple(recipes),
        nearest=tuple(matched(trial, tally, evidence) for trial, tally in others.items()),
        element=element,
        examples=tuple(examples),
        remarks=tuple(remarks),
    )


def _nothing_fits(evidence: Evidence, names: Names) -> str:
    shape = "×".join(map(str, evidence.shape))
    if not evidence.readings:
        return f"{names.codes} has no scales, and no recipe for {shape} numbers has none"
    stored = "×".join(map(str, evidence.readings[0].values.shape)) or "one number"
    return f"the scales of {names.codes} have the shape {stored}, which fits no blocks of {shape} numbers"


def _sampled(trials: list[Trial], evidence: Evidence) -> Agreements:
    """Return the tallies of trials over a sample of the tensor: the numbers of codes and scales that agree.

    Four kinds of trials are compared one after the other, until a trial agrees: plausible trials, trials with the
    stored scale of the tensor, all other trials, and variations of the best trials.
    """
    likely = plausible(trials, evidence)
    found = tallies(likely, evidence, sampled=True)
    if _is_settled(found):
        return found
    if evidence.tensor is not None and evidence.tensor.size == 1:
        stored = float(evidence.tensor.reshape(-1)[0])
        given = [
            Trial(each, trial.layout, trial.reading, trial.form)
            for trial in found
            for each in given_scales(trial.candidate, stored)
        ]
        found |= tallies(given, evidence, sampled=True)
        if _is_settled(found):
            return found
    left = [trial for trial in trials if trial not in found]
    found |= tallies(left, evidence, sampled=True)
    if _is_settled(found) or max(tally.rank[1] for tally in found.values()) < _RESEMBLES:
        return found
    return found | _varied(found, evidence)


def _is_settled(found: Agreements) -> bool:
    return any(tally.is_exact for tally in found.values())


def _varied(found: Agreements, evidence: Evidence) -> Agreements:
    """Return the tallies of copies of the best candidates: first `scale_variations`, then `element_variations`."""
    varied: Agreements = {}
    best = _best({t: n for t, n in found.items() if not t.candidate.recipe.format.minimum})
    changed = [_having(trial, each) for trial in best for each in scale_variations(trial.candidate, _kind(trial))]
    varied |= tallies(changed, evidence, sampled=True)
    by_scales = _best({**{trial: found[trial] for trial in best}, **varied}, scales_first=True)
    changed = [_having(trial, each) for trial in by_scales for each in element_variations(trial.candidate)]
    return varied | tallies(changed, evidence, sampled=True)


def _kind(trial: Trial) -> str:
    return "" if trial.reading is None else trial.reading.kind


def _having(trial: Trial, candidate: object) -> Trial:
    return trial.replace(candidate=candidate)


def _best(found: Agreements, scales_first: bool = False) -> list[Trial]:
    def rank(item: tuple[Trial, Agreement]) -> tuple[object, ...]:
        trial, tally = item
        total, codes, fits = tally.rank
        simple = -len(trial.candidate.changes)
        return (total - codes, codes, fits, simple) if scales_first else (total, codes, fits, simple)

    return [trial for trial, _ in sorted(found.items(), key=rank, reverse=True)[:_MOST_VARIED]]


def _chosen(sample: Agreements) -> list[Trial]:
    """Return the trials to compare over the whole tensor: all that agree on the sample or, if none agrees, the best."""
    exact = [trial for trial, tally in sample.items() if tally.is_exact]
    return exact or list(_sorted(sample))[:_PER_PASS]


def _sorted(found: Agreements) -> Agreements:
    """Return the tallies sorted, the best first. Among equals, unchanged recipes of libraries come first."""

    def key(item: tuple[Trial, Agreement]) -> tuple[object, ...]:
        trial, tally = item
        candidate = trial.candidate
        total, codes, fits = tally.rank
        unseen = candidate.recipe.rule.scales and trial.reading is None
        return (
            -total, -codes, not fits, candidate.distance, unseen, tally.tensor not in ("", "as in the recipe"),
            candidate.recipe.rule.is_exact, candidate.on_cuda, bool(candidate.takes), bool(trial.form),
            candidate.arrangement.order != "", not _is_usual(trial),
        )  # fmt: skip

    return dict(sorted(found.items(), key=key))


def _is_usual(trial: Trial) -> bool:
    """Return whether a recipe has the default block shape of its format, or a format that has no default."""
    return "/" not in trial.candidate.base or trial.candidate.base.startswith("e")


def _simplest(exact: Agreements) -> Agreements:
    """Return the trials with the fewest changes.

    Trials with PyTorch's division on CUDA are left out if one of the other trials has a rule of a library.
    """
    fewest = min((trial.candidate.distance for trial in exact), default=0)
    found = {trial: tally for trial, tally in exact.items() if trial.candidate.distance == fewest}
    plain = {t: n for t, n in found.items() if not t.candidate.on_cuda}
    return plain if any(not trial.candidate.recipe.rule.is_exact for trial in plain) else found


def _nearest(sample: Agreements, exact: Agreements, evidence: Evidence) -> Agreements:
    """Return the best trials that do not agree fully, at most one for each recipe.

    If several trials give all codes but no scale, the trial whose scales are nearest to the stored scales comes first.
    """
    agree = {trial.candidate.name for trial in exact}
    found: Agreements = {}
    known: set[str] = set()
    ranked = list(_sorted(sample).items())
    if not exact and ranked and ranked[0][1].codes == ranked[0][1].codes_tried and not ranked[0][1].scales:
        same = [item for item in ranked[:_MOST_COMPARED] if item[1].rank == ranked[0][1].rank]
        ranked[: len(same)] = sorted(same, key=lambda item: scale_distance(item[0], evidence))
    for trial, tally in ranked:
        name = trial.candidate.name
        if tally.is_exact or name in agree or name in known or (exact and trial.candidate.changes):
            continue
        known.add(name)
        found[trial] = tally
        if len(found) == _MOST_NEAREST:
            break
    return found


def _rival(trial: Trial, others: Agreements) -> Trial | None:
    """Return the nearest other recipe with the same element format; recipes of libraries are preferred."""
    element = trial.candidate.recipe.format.element
    same = [other for other in others if other.candidate.recipe.format.element == element]
    libraries = [other for other in same if not other.candidate.recipe.rule.is_exact]
    return next(iter(libraries or same), None)


def _merged(exact: Agreements, evidence: Evidence) -> list[MatchedRecipe]:
    """Return a record for each recipe that agrees. If a recipe agrees in several layouts, its record names each."""
    found: dict[str, MatchedRecipe] = {}
    for trial, tally in exact.items():
        record = matched(trial, tally, evidence)
        known = found.setdefault(record.name, record)
        if known.layout != record.layout:
            more = tuple(f"or {words}" for words in record.layout if words not in known.layout)
            found[record.name] = known.replace(layout=tuple(dict.fromkeys((*known.layout, *more))))
    return [*found.values()]


def _told_apart(
    exact: list[Trial], evidence: Evidence, recipes: list[MatchedRecipe]
) -> tuple[list[TellingElement], list[str]]:
    """Return examples that tell exact recipes apart: numbers that the first and another recipe quantise differently.

    The second result has a remark on the recipes for which no example was found.
    """
    examples: list[TellingElement] = []
    alike: list[str] = []
    known: set[str] = set()
    for trial in exact:
        name = trial.candidate.name
        if not known or name in known or trial.candidate.recipe.format.minimum:
            known.add(name)
            continue
        known.add(name)
        found = example(exact[0].candidate, trial.candidate, evidence.survey.format)
        if found is None:
            alike.append(name)
        elif len(examples) < _MOST_EXAMPLES:
            examples.append(found)
    remarks = []
    if alike:
        first = recipes[0].name
        remarks.append(f"{' and '.join(alike)} gave the same codes as {first} for {PROBES:,} other numbers, too")
    return examples, remarks


def _hints(others: Agreements) -> list[str]:
    """Return a remark if a recipe with a changed rule gives more of the stored codes than any unchanged recipe."""
    named = next((tally for trial, tally in others.items() if not trial.candidate.changes), None)
    for trial, tally in others.items():
        if trial.candidate.changes and named is not None and tally.rank > named.rank:
            return [f"with {', '.join(trial.candidate.changes)}, {trial.candidate.base} gives more of the codes"]
    return []


def _remarks_on_parts(recipes: list[MatchedRecipe], evidence: Evidence) -> list[str]:
    """Return a remark if only some of the codes were compared, because the recipe is slow to compute."""
    total = total_of(evidence)
    if not recipes or recipes[0].codes_tried == total:
        return []
    return [f"{recipes[0].name} is slow to compute: {recipes[0].codes_tried:,} of {total:,} codes were compared"]


def total_of(evidence: Evidence) -> int:
    """Return the number of elements that a search compares."""
    return prod(evidence.shape)
