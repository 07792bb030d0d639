"""Wrong programs: each is told what was expected, what came and what to do, and nothing is lost."""
