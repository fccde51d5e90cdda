"""A game in which moves are taken back."""

from helpers import make_game, rng

from rlgames.games.notation import render
from rlgames.players.player import Random
from rlgames.rollouts.interactive import InteractiveGame


class FirstLegal(Random):
    """Draws no random numbers, like a person."""

    def choose(self, state, rng):
        return self.game.legal_action_mask(state).int().argmax(1)


def test_a_move_that_is_taken_back_and_played_again_meets_the_same_chance():
    game = make_game("game=2048", "board=3")
    play = InteractiveGame(game, [FirstLegal(game)], [0], game.initial(1, rng(0)), rng(1))
    boards = []
    for ply in range(20):
        before = render(game, play.state, 0)
        play.play_ply()
        boards.append(render(game, play.state, 0))
        play.take_back()
        assert render(game, play.state, 0) == before
        assert len(play.positions) == len(play.plies) + 1 == ply + 1
        play.play_ply()
        assert render(game, play.state, 0) == boards[-1]
    assert len({*boards}) == 20
