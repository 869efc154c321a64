"""Campaigns: their files, their runs, and the library of campaigns that ships with harrow."""
