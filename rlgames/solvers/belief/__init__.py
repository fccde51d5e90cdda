"""The minimum expected number of turns of battleship, by dynamic programming over beliefs.

A belief is the result of the shots so far: each cell is unknown, a miss or a hit. It is a row of
digits, 0, 1 or 2 for each cell, and their value in base 3 is its number. With w(s) the weight of
the layouts that agree with belief s and V(s) the expected number of turns still needed, the tables
hold W(s) = w(s) V(s), which needs no division:

    W(s) = w(s) + min over sets of cells A of Σ over results on A of W(s with those results)

Beliefs are closed before they are valued, which makes many of them equal:

- A cell that has no ship in any agreeing layout counts as a miss. Such a cell is shot at only if no
  other cell is left.
- A cell that has a ship in all agreeing layouts counts as a hit and as a certain hit: it still
  needs a shot. Only the number of certain hits matters, not their places, since these shots give no
  information. With one shot per turn a certain hit costs one turn, which is charged at once. With
  more shots, a state is a closed belief and its number k of certain hits, and a turn shoots at
  j ≥ 1 unknown cells and at shots - j certain hits. (A turn with j = 0 can be postponed to the end,
  so it is left out while any cell is unknown.)
- Beliefs that are symmetric to each other have one number: the smallest over all symmetries.

An unknown cell of a closed belief has a ship in some agreeing layouts only. A shot at it makes more
cells known, so no belief comes twice on a path. Beliefs are valued depth-first; a hash table keeps
the value of each. The layouts that agree with a belief are a range of an array, which a result of a
turn divides in two, so no step looks at layouts that were ruled out before.
"""

from rlgames.solvers.belief.solution import BeliefSolution, solve_belief

__all__ = ["BeliefSolution", "solve_belief"]
