"""The least expected number of turns of battleship, by dynamic programming over beliefs.

A belief is what the cells shot at so far have shown: each cell is unknown, a miss or a hit. It is
written as a row of digits, 0, 1 or 2 for each cell, and numbered in base 3. With w(s) the weight
of the layouts that agree with belief s and V(s) the expected number of turns still needed, the
tables hold W(s) = w(s) V(s), for which no division is needed:

    W(s) = w(s) + min over sets of cells A of Σ over results on A of W(s with those results)

Beliefs are closed before they are valued, so that many of them become one:

- A cell that no layout in agreement has counts as a miss. More cells that can matter never hurt,
  so such a cell is only ever shot at for want of others.
- A cell that all of them have counts as a hit, and as a debt: a shot still to be spent on it. Only
  the number of debts matters, not their places, since none of them tells anything. With one shot
  a turn a debt costs one turn, whenever it is paid, and is charged at once. With more, a state is a
  closed belief and its number of debts k, and a turn shoots j ≥ 1 unknown cells and pays
  shots - j debts. (A turn that only pays debts can as well be put off to the end, so j = 0 is
  left out while anything is unknown.)
- Beliefs that a symmetry turns into each other have one number: the least over all symmetries.

An unknown cell of a closed belief is one that some of the layouts in agreement have and some do
not. Shooting at one makes more cells known, so beliefs are found in the order of the number of
known cells, and valued in the opposite order. Little but their numbers and values is kept:
where memory is short, the results of shooting are worked out a second time to value them.
"""

from rlgames.solvers.belief.solution import BeliefSolution, solve_belief
from rlgames.solvers.budget import OutOfBudget

__all__ = ["BeliefSolution", "OutOfBudget", "solve_belief"]
