"""A campaign file, as pytest collects it: a test for each variant and seed."""

from collections.abc import Iterator

import pytest

from harrow.pytest_harrow.options import Options


class CampaignFile(pytest.File):
    """A campaign file."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the tests, or say all that is wrong with the file."""
        from harrow.campaigns.language.problem import CampaignError
        from harrow.campaigns.record.report import variant_name
        from harrow.pytest_harrow.campaign_run import CampaignRun
        from harrow.pytest_harrow.campaign_source import load_source

        options = Options.of(self.config)
        try:
            source = load_source(self.path, self.config.invocation_params.dir, options.overrides)
        except CampaignError as error:
            raise self.CollectError(str(error)) from None
        for plan in source.plans:
            for seed in options.seeds:
                # Nothing in a name that a shell or the language of `-k` would want to have quoted.
                name = f"{variant_name(plan)}[seed-{seed}]"
                yield CampaignRun.from_parent(
                    self,
                    name=name,
                    # From a whole id pytest takes the part in brackets as it does when it reads one
                    # again for --lf; from a name it does not.
                    nodeid=f"{self.nodeid}::{name}",
                    source=source,
                    plan=plan,
                    seed=seed,
                    skips_inconclusive=options.skips_inconclusive,
                )
