"""Links that go through proxies, which can cut them, and hold, drop and repeat messages."""

from collections.abc import Callable, Collection, Sequence

from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.faults.fault import process_name
from harrow.live_cluster.links.link_faults import LinkFaults
from harrow.live_cluster.links.observed_requests import ObservedRequests
from harrow.live_cluster.links.proxy import Proxies


class ProxiedLinks:
    """The links of a cluster whose processes connect through proxies (a `Links`)."""

    def __init__(self, proxies: Proxies, requests: ObservedRequests) -> None:
        self._proxies = proxies
        self._requests = requests

    def cut(self, sender: int | str, receiver: int | str) -> None:
        self._in_loop(lambda faults: faults.cut(process_name(sender), process_name(receiver)))

    def restore(self, sender: int | str, receiver: int | str) -> None:
        self._in_loop(lambda faults: faults.restore(process_name(sender), process_name(receiver)))

    def is_cut_one_way(self, sender: int | str, receiver: int | str) -> bool:
        return self._proxies.in_loop(
            lambda faults: faults.is_cut(process_name(sender), process_name(receiver))
        )

    def degrade(self, sender: int | str, receiver: int | str, quality: LinkQuality) -> None:
        self._in_loop(lambda faults: faults.degrade(process_name(sender), process_name(receiver), quality))

    def recover(self, sender: int | str, receiver: int | str, quality: LinkQuality) -> None:
        self._in_loop(lambda faults: faults.recover(process_name(sender), process_name(receiver), quality))

    def reset(self, one: int | str, other: int | str) -> None:
        self._proxies.reset(process_name(one), process_name(other))

    def restore_all(self) -> None:
        self._in_loop(LinkFaults.restore_all)

    def restore_all_but(self, outside: Collection[int]) -> None:
        names = frozenset(map(process_name, outside))
        self._in_loop(lambda faults: faults.restore_all_but(names))

    def add_rule(self, rule: MessageRule) -> None:
        self._in_loop(lambda faults: faults.add(rule))

    def remove_rules(self, is_meant: Callable[[MessageRule], bool]) -> None:
        def remove(faults: LinkFaults) -> None:
            for rule in filter(is_meant, faults.rules()):
                faults.remove(rule)

        self._in_loop(remove)

    def rules(self) -> tuple[MessageRule, ...]:
        return self._proxies.in_loop(lambda faults: tuple(faults.rules()))

    def are_disturbed(self, broker: int, control: Sequence[str]) -> bool:
        name = process_name(broker)

        def are_disturbed(faults: LinkFaults) -> bool:
            is_cut_off = all(faults.is_cut(name, node) or faults.is_cut(node, name) for node in control)
            return faults.disturbs(name) and not is_cut_off

        return self._proxies.in_loop(are_disturbed)

    def remote_leo(self, leader: int, partition: str, replica: int) -> int:
        return self._requests.remote_leo(leader, partition, replica)

    def forget(self, broker: int) -> None:
        self._in_loop(lambda _: self._requests.forget(broker))

    def watch_messages(self) -> None:
        self._requests.watches_messages = True

    def watch_fetches(self) -> None:
        self._requests.watches_fetches = True

    def _in_loop(self, do: Callable[[LinkFaults], None]) -> None:
        self._proxies.in_loop(do)
