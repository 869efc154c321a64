"""Campaign files, the runner and the library of campaigns that ship."""
