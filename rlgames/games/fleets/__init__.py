"""Hidden fleets: layouts of ships, where they can be, and games of shots at them.

The words, everywhere in this folder and in its callers:

- placement: the cells of one ship, across or down. `Fleet.placements` has all, by length.
- layout: a placement for every ship, none overlapping; by cell 0 for sea, or the ship's number.
- seen: the cells shot at, those that were hit, and the announced sunk ships (`Seen`).
- agree: a layout agrees if the same shots at it would have shown the same.
- world: a position whose hidden layout agrees.
- posterior: the distribution of the layout given what was seen; all that agree are equally likely.
- occupancy: the probability that a cell has a ship, under the posterior.
- slot: one for each ship, with the turn when it sank (`ShipSlots`). A placement
  fills the slot of the turn when its last hit was; a ship afloat has a cell without a hit.
- type: ships that cannot be told apart: of one length, unless sunk ships are announced.
- open hit: a hit that no ship placed so far covers.
- belief: what was seen, as a state of the exact solver (`solvers/belief`).

Layouts are listed while they are few (`posterior.py`), else counted ship by ship (`counts.py` and
its kernels), else sampled (`posterior.py`).
"""
