"""Creates topics that clients name (``AutoTopicCreationManager.scala``)."""

from collections.abc import Callable, Iterable, Mapping

from harrow.cluster_model import errors
from harrow.cluster_model.controller.administration import NewTopic
from harrow.cluster_model.controller.control_plane import BrokerLifecycle
from harrow.cluster_model.controller.new_topics import is_valid_name, plain_name
from harrow.cluster_model.settings import BrokerConfig


class AutoTopicCreationManager:
    """Creates topics for one broker, each at most once at a time."""

    __slots__ = ("_config", "_lifecycle", "_under_way")

    def __init__(self, config: BrokerConfig, lifecycle: BrokerLifecycle) -> None:
        self._config = config
        self._lifecycle = lifecycle
        self._under_way: dict[str, None] = {}

    def create_topics(
        self, names: Iterable[str], on_answer: Callable[[Mapping[str, str]], None], *, is_allowed: bool
    ) -> None:
        """Create topics that do not exist, if the client and the broker's settings permit that.

        *on_answer* gets the error of each topic for the client.
        """
        refused: dict[str, str] = {}
        created: list[str] = []
        for name in names:
            if not is_valid_name(plain_name(name)):
                refused[name] = errors.INVALID_TOPIC
            elif name in self._under_way or not (is_allowed and self._config.auto_create_topics):
                refused[name] = errors.UNKNOWN_TOPIC_OR_PARTITION
            else:
                created.append(name)
        if not created:
            on_answer(refused)
            return
        self._under_way.update(dict.fromkeys(created))
        partitions, factor = self._config.default_partitions, self._config.default_replication_factor
        self._lifecycle.create_topics(
            tuple([NewTopic(name, partitions, factor) for name in created]),
            lambda answer: on_answer({**refused, **answer}),
            lambda: self._end(created),
        )

    def _end(self, names: Iterable[str]) -> None:
        for name in names:
            self._under_way.pop(name, None)
