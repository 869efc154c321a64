"""Each section of a campaign file as it is written from a plan: the way back from `harrow.campaigns.language.readers`."""
