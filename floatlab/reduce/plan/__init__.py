"""Orders of additions: plans, schedules, and the expressions that describe schedules."""
