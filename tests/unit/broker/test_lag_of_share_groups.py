from __future__ import annotations

from support.lag_scene import LagScene
from support.share_consumer import ShareConsumer, share_broker


def test_what_a_group_is_done_with_is_no_lag() -> None:
    scene = LagScene(share_broker())
    consumer = ShareConsumer(scene.broker)
    scene.write(10)
    consumer.fetch()
    scene.round()
    assert scene.of()["lag"] == 10

    consumer.fetch()  # again: the locks have ended
    assert consumer.say((2, 5, 1)) == 0
    scene.round()
    assert scene.of()["lag"] == 6

    consumer.fetch()
    assert consumer.say((0, 1, 1), (6, 9, 3)) == 0
    scene.round()
    assert scene.of()["lag"] == 0


def test_the_lag_in_time_is_that_of_the_oldest_record_that_is_not_done() -> None:
    scene = LagScene(share_broker())
    consumer = ShareConsumer(scene.broker)
    scene.write(1)
    scene.round()
    scene.write(1)
    consumer.fetch()
    assert consumer.say((1, 1, 1)) == 0

    scene.round(4)

    assert scene.of()["lag"] == 1
    assert scene.of()["lag.time"] >= 4 * 30


def test_a_group_that_has_read_nothing_has_no_lag() -> None:
    scene = LagScene(share_broker())
    scene.write(1)

    scene.round()

    assert "lag" not in scene.of()
